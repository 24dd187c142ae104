// merge-inl.h: two results over disjoint keys, joined. Lanes are channels.
#ifndef ETALON_ARCH_XSIMD_MERGE_INL_H_
#define ETALON_ARCH_XSIMD_MERGE_INL_H_

#include <cstddef>
#include <cstdint>

#include "arch/kernel_table.h"
#include "arch/xsimd/functions-inl.h"
#include "arch/xsimd/keys-inl.h"
#include "arch/xsimd/state-inl.h"
#include "arch/xsimd/vector-inl.h"

namespace etalon {
namespace {

// The out of one side as it is, or zeros if `from` is null.
inline void PassThrough(const MergeArgs& args, const void* from, void* out) {
  for (size_t c = 0; c < args.value_dim; c += kLanes) {
    const size_t count = AtMostLanes(args.value_dim - c);
    StoreSomeOutputs(args.type, out, c, count, from != nullptr ? LoadSome(args.type, from, c, count) : F32(0.0f));
  }
}

inline float MergeRow(const MergeArgs& args, const void* out1, float lse1, const void* out2, float lse2, void* out) {
  const bool has1 = IsVisible(lse1), has2 = IsVisible(lse2);
  if (!has1 || !has2) {
    PassThrough(args, has1 ? out1 : has2 ? out2 : nullptr, out);
    return has1 ? lse1 : lse2;
  }
  const float max = Largest(lse1, lse2);
  const float a = Exp(lse1 - max), b = Exp(lse2 - max), l = a + b;
  for (size_t c = 0; c < args.value_dim; c += kLanes) {
    const size_t count = AtMostLanes(args.value_dim - c);
    const F32 o1 = LoadSome(args.type, out1, c, count), o2 = LoadSome(args.type, out2, c, count);
    StoreSomeOutputs(args.type, out, c, count, Divide(Fma(o1, F32(a), o2 * F32(b)), F32(l)));  // adds the 0
  }
  return max + Log(l);
}

// Numerics: merge.
void Merge(const MergeArgs& args) {
  for (size_t r = 0; r < args.num_rows; ++r) {
    const int64_t row = static_cast<int64_t>(r);
    void* out = static_cast<unsigned char*>(args.out) + row * args.out_stride_bytes;
    const float lse = MergeRow(args, RowAt(args.out1, args.out1_stride_bytes, row), args.lse1[r],
                               RowAt(args.out2, args.out2_stride_bytes, row), args.lse2[r], out);
    if (args.lse != nullptr) args.lse[r] = Canonical(lse);
  }
}

}  // namespace
}  // namespace etalon

#endif  // ETALON_ARCH_XSIMD_MERGE_INL_H_
