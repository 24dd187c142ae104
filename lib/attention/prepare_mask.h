// prepare_mask.h: writes a mask that was given in one of three ways as a PreparedMask. Two passes over it: one that
// counts, so that a caller can be told how much memory to bring, and one that fills.
#ifndef ETALON_LIB_ATTENTION_PREPARE_MASK_H_
#define ETALON_LIB_ATTENTION_PREPARE_MASK_H_

#include <cstdint>

#include "lib/attention/columns.h"
#include "lib/attention/prepared_mask.h"

namespace etalon {

enum class MaskWay { kDense, kSegments, kBlocks };

// As in etalon_mask_args, checked. Only what belongs to the way is looked at.
struct MaskInput {
  MaskWay way;
  int64_t batch;
  int64_t num_heads;
  int64_t q_len;
  int64_t kv_len;
  ColumnsView dense;

  const int64_t* q_segments;
  const int64_t* kv_segments;

  int64_t q_block;  // 1 unless the mask is made of blocks
  int64_t kv_block;
  const int64_t* block_starts;
  const int64_t* blocks;
};

// Counts: fills *mask but for its entries, runs and bits. False if the bytes do not fit.
bool LayOutMask(const MaskInput& input, PreparedMask* mask);

// Writes mask.bytes bytes; the input is that of the layout.
void WriteMask(const MaskInput& input, const PreparedMask& mask, void* memory);

}  // namespace etalon

#endif  // ETALON_LIB_ATTENTION_PREPARE_MASK_H_
