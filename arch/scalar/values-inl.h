// values-inl.h: the weighted sum primitive, out = w v. Numerics: weighted sum primitive.
#ifndef ETALON_ARCH_SCALAR_VALUES_INL_H_
#define ETALON_ARCH_SCALAR_VALUES_INL_H_

#include "arch/kernel_table.h"
#include "arch/scalar/scratch-inl.h"
#include "lib/base/arithmetic.h"

namespace etalon {
namespace {

void WeightedSumOfRow(const WeightedSumArgs& a, const WeightedSumRow& row, float* total, float* chunk) {
  for (size_t c = 0; c < a.value_dim; ++c) total[c] = 0.0f;
  for (int64_t first = 0; first < a.num_keys; first += kChunk) {
    const int64_t last = first + kChunk < a.num_keys ? first + kChunk : a.num_keys;
    for (size_t c = 0; c < a.value_dim; ++c) chunk[c] = 0.0f;
    for (int64_t j = first; j < last; ++j) {
      if (j < row.span.first || j >= row.span.last) continue;
      if (row.mask != nullptr && row.mask[j * a.mask_stride_bytes] == 0) continue;
      const void* v = static_cast<const unsigned char*>(a.v) + j * a.v_stride_bytes;
      for (size_t c = 0; c < a.value_dim; ++c) chunk[c] = Fma(row.w[j], LoadElement(a.v_type, v, c), chunk[c]);
    }
    for (size_t c = 0; c < a.value_dim; ++c) total[c] += chunk[c];
  }
  for (size_t c = 0; c < a.value_dim; ++c) StoreOutput(a.out_type, row.out, c, total[c]);
}

void WeightedSum(const WeightedSumArgs& a) {
  const Scratch scratch = Carve(a.scratch, 0, a.value_dim);
  for (size_t r = 0; r < a.num_rows; ++r) WeightedSumOfRow(a, a.rows[r], scratch.o[2], scratch.o[0]);
}

}  // namespace
}  // namespace etalon

#endif  // ETALON_ARCH_SCALAR_VALUES_INL_H_
