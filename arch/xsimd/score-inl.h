// score-inl.h: scores of a few rows against a vector of keys: lanes are keys, with one chain for each row and key.
#ifndef ETALON_ARCH_XSIMD_SCORE_INL_H_
#define ETALON_ARCH_XSIMD_SCORE_INL_H_

#include <cstddef>
#include <cstdint>

#include "arch/kernel_table.h"
#include "arch/xsimd/functions-inl.h"
#include "arch/xsimd/keys-inl.h"
#include "arch/xsimd/scratch-inl.h"
#include "arch/xsimd/vector-inl.h"

namespace etalon {
namespace {

// A few rows of a tile that are worked on together.
struct RowGroup {
  const QueryRow* rows;
  size_t num_rows;  // <= kGroupRows
  size_t head_dim;
  const ScoreOptions* options;
  Scratch scratch;
};

// q' of a row into the scratch.
inline void ScaleQuery(const RowGroup& group, size_t r) {
  float* scaled = group.scratch.queries + r * group.head_dim;
  const F32 scale(group.options->scale);
  for (size_t c = 0; c < group.head_dim; c += kLanes) {
    const size_t count = AtMostLanes(group.head_dim - c);
    StoreSome(LoadSome(group.options->q_type, group.rows[r].q, c, count) * scale, scaled + c, count);
  }
}

// Which of the keys `first` ... are admitted by each row (1 or 0), and by any of them.
struct Admitted {
  float by_row[kGroupRows][kLanes];
  bool row_has_key[kGroupRows];
  bool by_any[kLanes];
  bool any;
};

inline void Admit(const RowGroup& group, const KeySource& source, const RowKeys* keys, int64_t first, size_t count,
                  Admitted* admitted) {
  admitted->any = false;
  for (size_t lane = 0; lane < kLanes; ++lane) admitted->by_any[lane] = false;
  for (size_t r = 0; r < group.num_rows; ++r) {
    admitted->row_has_key[r] = false;
    for (size_t lane = 0; lane < kLanes; ++lane) {
      const bool shown = lane < count && IsAdmitted(source, keys[r], first + static_cast<int64_t>(lane));
      admitted->by_row[r][lane] = shown ? 1.0f : 0.0f;
      admitted->row_has_key[r] |= shown;
      admitted->by_any[lane] |= shown;
      admitted->any |= shown;
    }
  }
}

// Channel c of the keys goes to packed[c * kLanes ...]; zeros for keys that nobody sees.
inline void PackKeys(const KeySource& source, int64_t first, const bool* wanted, size_t head_dim, float* packed) {
  for (size_t lane = 0; lane < kLanes; ++lane) {
    if (!wanted[lane]) {
      for (size_t c = 0; c < head_dim; ++c) packed[c * kLanes + lane] = 0.0f;
      continue;
    }
    const void* key = KeyAt(source, first + static_cast<int64_t>(lane));
    for (size_t c = 0; c < head_dim; ++c) packed[c * kLanes + lane] = LoadElement(source.k_type, key, c);
  }
}

inline F32 DotProducts(const float* scaled_query, const float* packed, size_t head_dim) {
  F32 s(0.0f);
  for (size_t c = 0; c < head_dim; ++c) s = Fma(F32(scaled_query[c]), Load(packed + c * kLanes), s);
  return s;
}

// |row position - key position|, rounded to f32 once. The difference may need all 64 bits.
inline F32 Distances(int64_t row_position, int64_t first) {
  float distances[kLanes];
  for (size_t lane = 0; lane < kLanes; ++lane) {
    const uint64_t key = static_cast<uint64_t>(first) + lane, row = static_cast<uint64_t>(row_position);
    const bool behind = first + static_cast<int64_t>(lane) >= row_position;
    distances[lane] = static_cast<float>(behind ? key - row : row - key);
  }
  return Load(distances);
}

// The bias of the keys that the row admits, zeros elsewhere.
inline F32 Biases(const KeySource& source, const RowKeys& row, int64_t first, const float* admitted) {
  float biases[kLanes] = {};
  for (size_t lane = 0; lane < kLanes; ++lane) {
    if (admitted[lane] == 0.0f) continue;
    const int64_t index = first + static_cast<int64_t>(lane) - source.base;
    biases[lane] = LoadElement(source.bias_type, RowAt(row.bias, source.bias_stride_bytes, index), 0);
  }
  return Load(biases);
}

inline F32 ApplyOptions(F32 s, const RowGroup& group, size_t r, const KeySource& source, const RowKeys& row,
                        int64_t first, const float* admitted) {
  const ScoreOptions& options = *group.options;
  if (options.softcap > 0.0f) {
    const F32 cap(options.softcap);
    s = cap * Tanh(Divide(s, cap));
  }
  if (options.alibi) s = Fma(F32(group.rows[r].slope), Negate(Distances(row.position, first)), s);
  if (row.bias != nullptr) {
    const F32 bias = Biases(source, row, first, admitted);
    s = Select(bias == MinusInfinity(), MinusInfinity(), s + bias);
  }
  return Select(Load(admitted) != F32(0.0f), s, MinusInfinity());
}

// Scores against the keys at positions first ... first + count - 1, count <= kLanes: kLanes of them for each row, to
// s[r * row_stride ...]; -inf where not visible, and behind the last.
inline void ScoreKeys(const RowGroup& group, const KeySource& source, const RowKeys* keys, int64_t first, size_t count,
                      float* s, size_t row_stride) {
  Admitted admitted;
  Admit(group, source, keys, first, count, &admitted);
  if (admitted.any) PackKeys(source, first, admitted.by_any, group.head_dim, group.scratch.keys);
  for (size_t r = 0; r < group.num_rows; ++r) {
    F32 scores = MinusInfinity();
    if (admitted.row_has_key[r]) {
      scores = DotProducts(group.scratch.queries + r * group.head_dim, group.scratch.keys, group.head_dim);
      scores = ApplyOptions(scores, group, r, source, keys[r], first, admitted.by_row[r]);
    }
    Store(scores, s + r * row_stride);
  }
}

// Numerics: score, score options.
void Scores(const ScoresArgs& args) {
  for (size_t r0 = 0; r0 < args.num_rows; r0 += kGroupRows) {
    const size_t left = args.num_rows - r0;
    const RowGroup group = {args.rows + r0, left < kGroupRows ? left : kGroupRows, args.head_dim, &args.options,
                            CarveScratch(args.head_dim, 0, args.scratch)};
    const RowKeys* keys = args.keys + r0;
    for (size_t r = 0; r < group.num_rows; ++r) {
      if (HasKeys(keys[r].span)) ScaleQuery(group, r);
    }
    for (int64_t i = 0; i < args.source->num_keys; i += kLanes) {
      const int64_t remaining = args.source->num_keys - i;
      const size_t count = remaining < static_cast<int64_t>(kLanes) ? static_cast<size_t>(remaining) : kLanes;
      float scores[kGroupRows * kLanes];
      ScoreKeys(group, *args.source, keys, args.source->base + i, count, scores, kLanes);
      for (size_t r = 0; r < group.num_rows; ++r) {
        float* to = args.s + static_cast<int64_t>(r0 + r) * args.row_stride + i;
        StoreSome(CanonicalNaN(Load(scores + r * kLanes)), to, count);
      }
    }
  }
}

}  // namespace
}  // namespace etalon

#endif  // ETALON_ARCH_XSIMD_SCORE_INL_H_
