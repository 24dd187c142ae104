// softmax-inl.h: the masked softmax of rows. Lanes are the sixteen partial sums.
#ifndef ETALON_ARCH_XSIMD_SOFTMAX_INL_H_
#define ETALON_ARCH_XSIMD_SOFTMAX_INL_H_

#include <cstddef>
#include <cstdint>

#include "arch/kernel_table.h"
#include "arch/xsimd/functions-inl.h"
#include "arch/xsimd/keys-inl.h"
#include "arch/xsimd/scratch-inl.h"
#include "arch/xsimd/vector-inl.h"

namespace etalon {
namespace {

constexpr int64_t kPartialSums = 16;
static_assert(kPartialSums % kLanes == 0, "a vector holds partial sums of one group of sixteen keys");

inline bool IsShown(const Span& span, const uint8_t* mask, int64_t mask_stride_bytes, int64_t j) {
  return j >= span.first && j < span.last && (mask == nullptr || mask[j * mask_stride_bytes] != 0);
}

// Scores first ... first + 15 of a row; -inf where span or mask hide one, which is then not read.
inline void LoadScores(const SoftmaxArgs& args, const SoftmaxRow& row, int64_t first, float* scores) {
  for (int64_t r = 0; r < kPartialSums; ++r) {
    const bool shown = IsShown(row.span, row.mask, args.mask_stride_bytes, first + r);
    scores[r] = shown ? row.s[first + r] : FromBits(0xFF800000u);
  }
}

// M, and whether any key is visible.
inline bool FindMaximum(const SoftmaxArgs& args, const SoftmaxRow& row, int64_t begin, int64_t end, float* maximum) {
  F32 max = MinusInfinity(), visible(0.0f);
  for (int64_t j = begin; j < end; j += kPartialSums) {
    float scores[kPartialSums];
    LoadScores(args, row, j, scores);
    for (int64_t r = 0; r < kPartialSums; r += kLanes) {
      const F32 s = Load(scores + r);
      max = xsimd::max(max, s);
      visible = Select(IsVisible(s), F32(1.0f), visible);
    }
  }
  *maximum = LargestLane(max);
  return LargestLane(visible) != 0.0f;
}

// The partial sums of one chunk, joined.
inline float SumOfChunk(const SoftmaxArgs& args, const SoftmaxRow& row, int64_t begin, int64_t end, float maximum) {
  float partial[kPartialSums] = {};
  for (int64_t j = begin; j < end; j += kPartialSums) {
    float scores[kPartialSums];
    LoadScores(args, row, j, scores);
    for (int64_t r = 0; r < kPartialSums; r += kLanes) {
      const F32 s = Load(scores + r), sum = Load(partial + r);
      Store(Select(IsVisible(s), sum + Exp(s - F32(maximum)), sum), partial + r);
    }
  }
  for (int64_t h = kPartialSums / 2; h >= 1; h /= 2) {
    for (int64_t r = 0; r < h; ++r) partial[r] = partial[r] + partial[r + h];
  }
  return partial[0];
}

inline void SoftmaxOfRow(const SoftmaxArgs& args, const SoftmaxRow& row) {
  const float minus_infinity = FromBits(0xFF800000u);
  // Whole chunks around the span.
  const bool has_keys = HasKeys(row.span);
  const int64_t begin = has_keys ? row.span.first / kChunkKeys * kChunkKeys : 0;
  const int64_t end = has_keys ? row.span.last : 0;
  float maximum, sum = 0.0f;
  if (!FindMaximum(args, row, begin, end, &maximum)) {
    for (int64_t j = 0; j < args.num_keys; ++j) row.w[j] = 0.0f;
    if (row.lse != nullptr) *row.lse = minus_infinity;
    return;
  }
  for (int64_t first = begin; first < end; first += kChunkKeys) {
    const int64_t last = end - first < kChunkKeys ? end : first + kChunkKeys;
    sum = sum + SumOfChunk(args, row, first, last, maximum);
  }
  const F32 inverse = Divide(F32(1.0f), F32(sum));
  // w may be s: a score is read for the last time where its weight is written.
  for (int64_t j = 0; j < args.num_keys; j += kPartialSums) {
    float scores[kPartialSums];
    LoadScores(args, row, j, scores);
    for (int64_t r = 0; r < kPartialSums && j + r < args.num_keys; r += kLanes) {
      const F32 s = Load(scores + r);
      const F32 w = Select(IsVisible(s), Exp(s - F32(maximum)) * inverse, F32(0.0f));
      StoreSome(CanonicalNaN(w), row.w + j + r, AtMostLanes(static_cast<size_t>(args.num_keys - j - r)));
    }
  }
  if (row.lse != nullptr) *row.lse = Canonical(maximum + Log(sum));
}

// Numerics: masked softmax.
void Softmax(const SoftmaxArgs& args) {
  for (size_t r = 0; r < args.num_rows; ++r) SoftmaxOfRow(args, args.rows[r]);
}

}  // namespace
}  // namespace etalon

#endif  // ETALON_ARCH_XSIMD_SOFTMAX_INL_H_
