// softmax-inl.h: masked row softmax and logsumexp. Numerics: masked softmax primitive; its order differs from that of
// the fused pass on purpose (sixteen partial sums a chunk run at speed on rows).
#ifndef ETALON_ARCH_SCALAR_SOFTMAX_INL_H_
#define ETALON_ARCH_SCALAR_SOFTMAX_INL_H_

#include "arch/kernel_table.h"
#include "lib/base/arithmetic.h"

namespace etalon {
namespace {

bool VisibleInRow(const SoftmaxRow& row, int64_t mask_stride_bytes, int64_t j) {
  if (j < row.span.first || j >= row.span.last) return false;
  if (row.mask != nullptr && row.mask[j * mask_stride_bytes] == 0) return false;
  return row.s[j] != NegativeInfinity();
}

// p of a key that is not visible. No exp gives -0, and adding it changes no sum, so it marks the key once s is
// overwritten.
constexpr uint32_t kNotVisible = 0x80000000u;

// Sum of p over the chunk first ... last - 1: sixteen strided partial sums, then a fixed tree.
float ChunkSum(const float* p, int64_t first, int64_t last) {
  constexpr int kPartials = 16;
  float partial[kPartials] = {};
  for (int64_t j = first; j < last; ++j) partial[j % kPartials] += p[j];
  for (int half = kPartials / 2; half > 0; half /= 2) {
    for (int r = 0; r < half; ++r) partial[r] += partial[r + half];
  }
  return partial[0];
}

void SoftmaxOfRow(const SoftmaxRow& row, int64_t num_keys, int64_t mask_stride_bytes) {
  float max = NegativeInfinity();
  bool any = false;
  for (int64_t j = 0; j < num_keys; ++j) {
    if (!VisibleInRow(row, mask_stride_bytes, j)) continue;
    max = Max(max, row.s[j]);
    any = true;
  }
  for (int64_t j = 0; j < num_keys; ++j) {  // w may be s: each score is read before it is replaced
    row.w[j] = VisibleInRow(row, mask_stride_bytes, j) ? Exp(row.s[j] - max) : FromBits(kNotVisible);
  }
  float l = 0.0f;
  for (int64_t first = 0; first < num_keys; first += kChunk) {
    l += ChunkSum(row.w, first, first + kChunk < num_keys ? first + kChunk : num_keys);
  }
  const float inverse = 1.0f / l;
  for (int64_t j = 0; j < num_keys; ++j) {
    row.w[j] = Bits(row.w[j]) == kNotVisible ? 0.0f : Canonical(row.w[j] * inverse);
  }
  if (row.lse != nullptr) *row.lse = any ? Canonical(max + Log(l)) : NegativeInfinity();
}

void Softmax(const SoftmaxArgs& a) {
  for (size_t r = 0; r < a.num_rows; ++r) SoftmaxOfRow(a.rows[r], a.num_keys, a.mask_stride_bytes);
}

}  // namespace
}  // namespace etalon

#endif  // ETALON_ARCH_SCALAR_SOFTMAX_INL_H_
