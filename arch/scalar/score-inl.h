// score-inl.h: scores of one query row against a run of keys, with everything that happens to a score before the
// softmax. Numerics: score, score options. Plain loops: this is the text as code.
#ifndef ETALON_ARCH_SCALAR_SCORE_INL_H_
#define ETALON_ARCH_SCALAR_SCORE_INL_H_

#include "arch/kernel_table.h"
#include "arch/key_rows.h"
#include "arch/scalar/scratch-inl.h"
#include "arch/visible.h"
#include "lib/base/arithmetic.h"

namespace etalon {
namespace {

void ScaleQuery(const QueryRow& row, const ScoreOptions& options, size_t head_dim, float* q_scaled) {
  for (size_t c = 0; c < head_dim; ++c) q_scaled[c] = LoadElement(options.q_type, row.q, c) * options.scale;
}

float Dot(const float* q_scaled, DType k_type, const void* k, size_t head_dim) {
  float s = 0.0f;
  for (size_t c = 0; c < head_dim; ++c) s = Fma(q_scaled[c], LoadElement(k_type, k, c), s);
  return s;
}

// |a - b| without overflow, rounded to f32 once.
float Distance(int64_t a, int64_t b) {
  const uint64_t ua = static_cast<uint64_t>(a), ub = static_cast<uint64_t>(b);
  return static_cast<float>(a > b ? ua - ub : ub - ua);
}

bool MaskShows(const RowKeys& keys, const KeySource& source, int64_t column) {
  if (source.mask_type == MaskType::kBits) return (keys.mask[column / 8] >> (column % 8) & 1) != 0;
  return keys.mask[column * source.mask_stride_bytes] != 0;
}

bool Allowed(const RowKeys& keys, const KeySource& source, int64_t position) {
  if (position < keys.span.first || position >= keys.span.last) return false;
  const int64_t column = position - source.base + source.first_column;
  return NextVisible(keys, source, position) == position && (keys.mask == nullptr || MaskShows(keys, source, column));
}

// The score after softcap, ALiBi, bias and masks; the key is visible iff this is not -inf. A key that geometry or mask
// exclude is not read.
float Score(const QueryRow& row, const float* q_scaled, const RowKeys& keys, const KeySource& source, size_t head_dim,
            const ScoreOptions& options, int64_t position) {
  if (!Allowed(keys, source, position)) return NegativeInfinity();
  float s = Dot(q_scaled, source.k_type, KeyRow(source, position), head_dim);
  if (options.softcap > 0) s = options.softcap * Tanh(s / options.softcap);
  if (options.alibi) s = Fma(row.slope, -Distance(keys.position, position), s);
  if (keys.bias != nullptr) {
    const unsigned char* bias_data = static_cast<const unsigned char*>(keys.bias);
    const float bias =
        LoadElement(source.bias_type, bias_data + (position - source.base) * source.bias_stride_bytes, 0);
    s = bias == NegativeInfinity() ? bias : s + bias;
  }
  return s;
}

void Scores(const ScoresArgs& a) {
  float* q_scaled = Carve(a.scratch, a.head_dim, 0).q_scaled;
  for (size_t r = 0; r < a.num_rows; ++r) {
    const bool sees = a.keys[r].span.first < a.keys[r].span.last;
    if (sees) ScaleQuery(a.rows[r], a.options, a.head_dim, q_scaled);
    for (int64_t i = 0; i < a.source->num_keys; ++i) {
      const float s = Score(a.rows[r], q_scaled, a.keys[r], *a.source, a.head_dim, a.options, a.source->base + i);
      a.s[static_cast<int64_t>(r) * a.row_stride + i] = Canonical(s);
    }
  }
}

}  // namespace
}  // namespace etalon

#endif  // ETALON_ARCH_SCALAR_SCORE_INL_H_
