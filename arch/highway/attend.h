// attend.h: the fused pass as its two forms see it: prefill, where lanes are queries, and decode, where lanes are keys,
// then channels. attend.cc chooses between them; the bits are the same.
#ifndef ETALON_ARCH_HIGHWAY_ATTEND_H_
#define ETALON_ARCH_HIGHWAY_ATTEND_H_

#include "arch/kernel_table.h"

namespace etalon {

// A tile of rows, either whole or stopped after each block.
struct AttendJob {
  const AttendArgs& args;
  const States* states;  // of blocks first_block ... last_block - 1; null = finish the rows: out and lse
  int64_t first_block;
  int64_t last_block;
};

// Decode takes at most so many rows; there is nothing it could not compute.
constexpr size_t kMostDecodeRows = 8;

#define ETALON_DECLARE_ATTEND(target_namespace)                  \
  namespace target_namespace {                                   \
  void AttendPrefill(const AttendJob& job);                      \
  void AttendDecode(const AttendJob& job);                       \
  size_t PrefillScratchBytes(size_t head_dim, size_t value_dim); \
  size_t DecodeScratchBytes(size_t head_dim, size_t value_dim);  \
  }
ETALON_DECLARE_ATTEND(N_AVX2)
ETALON_DECLARE_ATTEND(N_AVX3)
ETALON_DECLARE_ATTEND(N_NEON_WITHOUT_AES)
#undef ETALON_DECLARE_ATTEND

}  // namespace etalon

#endif  // ETALON_ARCH_HIGHWAY_ATTEND_H_
