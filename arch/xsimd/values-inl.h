// values-inl.h: the weighted sum of values by rows of weights. Lanes are channels.
#ifndef ETALON_ARCH_XSIMD_VALUES_INL_H_
#define ETALON_ARCH_XSIMD_VALUES_INL_H_

#include <cstddef>
#include <cstdint>

#include "arch/kernel_table.h"
#include "arch/xsimd/keys-inl.h"
#include "arch/xsimd/scratch-inl.h"
#include "arch/xsimd/softmax-inl.h"
#include "arch/xsimd/vector-inl.h"

namespace etalon {
namespace {

// Channels c ... c + count - 1 of one row.
inline F32 WeightedSumOfChannels(const WeightedSumArgs& args, const WeightedSumRow& row, size_t c, size_t count) {
  F32 total(0.0f);
  if (!HasKeys(row.span)) return total;
  for (int64_t first = row.span.first / kChunkKeys * kChunkKeys; first < row.span.last; first += kChunkKeys) {
    F32 o(0.0f);
    for (int64_t j = first; j < first + kChunkKeys; ++j) {
      if (!IsShown(row.span, row.mask, args.mask_stride_bytes, j)) continue;
      o = Fma(F32(row.w[j]), LoadSome(args.v_type, RowAt(args.v, args.v_stride_bytes, j), c, count), o);
    }
    total = total + o;
  }
  return total;
}

// Numerics: weighted sum.
void WeightedSum(const WeightedSumArgs& args) {
  for (size_t r = 0; r < args.num_rows; ++r) {
    const WeightedSumRow& row = args.rows[r];
    for (size_t c = 0; c < args.value_dim; c += kLanes) {
      const size_t count = AtMostLanes(args.value_dim - c);
      StoreSomeOutputs(args.out_type, row.out, c, count, WeightedSumOfChannels(args, row, c, count));  // adds the 0
    }
  }
}

}  // namespace
}  // namespace etalon

#endif  // ETALON_ARCH_XSIMD_VALUES_INL_H_
