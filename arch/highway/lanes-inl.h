// lanes-inl.h: a block of query rows with the queries in lanes: their scaled, transposed elements, what each sees of a
// source, and what happens to scores between the dot product and the softmax.
#if defined(ETALON_ARCH_HIGHWAY_LANES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ETALON_ARCH_HIGHWAY_LANES_INL_H_
#undef ETALON_ARCH_HIGHWAY_LANES_INL_H_
#else
#define ETALON_ARCH_HIGHWAY_LANES_INL_H_
#endif

#include "arch/highway/options-inl.h"
#include "arch/highway/rows-inl.h"
#include "arch/highway/spans.h"
#include "arch/highway/tile-inl.h"
#include "arch/highway/transpose-inl.h"
#include "arch/kernel_table.h"
#include "lib/base/parallel.h"

HWY_BEFORE_NAMESPACE();
namespace etalon {
namespace HWY_NAMESPACE {
#if ETALON_HIGHWAY_EXACT

// Rows of a tile in the lanes of `vectors` vectors; lanes beyond num_rows compute something that nobody reads.
struct LaneRows {
  const QueryRow* rows;
  const RowKeys* keys;  // of the source at hand
  size_t num_rows;
  size_t vectors;
  Span hull;  // the smallest span that holds those of all rows
  Span all;   // what every row sees, masks apart
};

inline void SetKeys(const RowKeys* keys, LaneRows* lanes) {
  lanes->keys = keys;
  lanes->hull = HullOf(lanes->num_rows, [&](size_t r) { return keys[r].span; });
  lanes->all = {INT64_MIN, INT64_MAX};
  for (size_t r = 0; r < lanes->num_rows; ++r) lanes->all = Intersect(lanes->all, keys[r].span);
}

// What some row sees of these keys, which lie within the hull. Rows of several heads may leave a gap between their
// spans.
HWY_INLINE Span SeenOf(const LaneRows& lanes, const Span& keys) {
  if (IsEmpty(keys) || (lanes.all.first <= keys.first && keys.last <= lanes.all.last)) return keys;
  return HullOf(lanes.num_rows, [&](size_t r) { return Intersect(lanes.keys[r].span, keys); });
}

// Blocks that share a widened or copied chunk: those of the largest tile of lib/attention (128 rows).
constexpr size_t kBlocks = (128 + kWidth - 1) / kWidth;
constexpr size_t kBlocksRows = kBlocks * kWidth;

// `count` <= kBlocksRows rows are cut into so many blocks, of as equal a number of vectors as there can be.
HWY_INLINE size_t NumBlocks(size_t count) { return (RoundUp(count) / kLanes + kVectors - 1) / kVectors; }

// Sets num_rows and vectors of block g; returns its first row.
HWY_INLINE size_t CutBlock(size_t count, size_t g, LaneRows* lanes) {
  const Range part = PartOfRange(static_cast<int64_t>(RoundUp(count) / kLanes), static_cast<int64_t>(g),
                                 static_cast<int64_t>(NumBlocks(count)));
  const size_t first = static_cast<size_t>(part.first) * kLanes, last = static_cast<size_t>(part.last) * kLanes;
  lanes->num_rows = (last < count ? last : count) - first;
  lanes->vectors = static_cast<size_t>(part.last - part.first);
  return first;
}

// kernel.Run<number of vectors>(): the register tiles are compiled for each.
template <class Kernel>
HWY_INLINE void WithVectors(size_t vectors, const Kernel& kernel) {
  if (vectors == 1) return kernel.template Run<1>();
  if (vectors == 2) return kernel.template Run<2>();
  if constexpr (kVectors == 3) return kernel.template Run<3>();
}

// to[c][lanes] = element c of each row's query, scaled; 0 for rows whose query must not be read. Whole vectors of
// channels are written: to has room for head_dim rounded up.
inline void TransposeQueries(const LaneRows& lanes, const bool* reads, const ScoreOptions& options, size_t head_dim,
                             float* to) {
  const DF d;
  const VF scale = hn::Set(d, options.scale);
  for (size_t j = 0; j < lanes.vectors; ++j) {
    const QueryRow* rows = lanes.rows + j * kLanes;
    bool whole = (j + 1) * kLanes <= lanes.num_rows;
    for (size_t i = 0; whole && i < kLanes; ++i) whole = reads[j * kLanes + i];
    const auto store = [&](size_t c, VF(&square)[kLanes]) HWY_ATTR {
      TransposeSquare(square);
      ETALON_UNROLL for (size_t i = 0; i < kLanes; ++i) {
        hn::Store(square[i], d, to + ((c + i) * lanes.vectors + j) * kLanes);
      }
    };
    size_t c = 0;
    if (whole && options.q_type == DType::kF32) {  // the rest is right for this as well, but slower
      for (; c + kLanes <= head_dim; c += kLanes) {
        VF square[kLanes];
        ETALON_UNROLL for (size_t i = 0; i < kLanes; ++i) {
          square[i] = hn::Mul(hn::LoadU(d, static_cast<const float*>(rows[i].q) + c), scale);
        }
        store(c, square);
      }
    }
    for (; c < head_dim; c += kLanes) {
      const size_t count = head_dim - c < kLanes ? head_dim - c : kLanes;
      VF square[kLanes];
      for (size_t i = 0; i < kLanes; ++i) {
        const size_t r = j * kLanes + i;
        square[i] = hn::Zero(d);
        if (r >= lanes.num_rows || !reads[r]) continue;
        square[i] = hn::Mul(LoadElementsN(options.q_type, rows[i].q, c, count), scale);
      }
      store(c, square);
    }
  }
}

// The way back: calls write(row, first element, number of elements, vector of them) for all of m[n][lanes], each vector
// of lanes changed by change(first lane, vector) before.
template <class Change, class Write>
HWY_INLINE void ForRowsOfLanes(const LaneRows& lanes, const float* m, size_t n, const Change& change,
                               const Write& write) {
  const DF d;
  const size_t width = lanes.vectors * kLanes;
  for (size_t j = 0; j < width; j += kLanes) {
    size_t c = 0;
    for (; c + kLanes <= n && j + kLanes <= lanes.num_rows; c += kLanes) {  // the rest is right for this as well
      VF square[kLanes];
      ETALON_UNROLL for (size_t i = 0; i < kLanes; ++i) square[i] = change(j, hn::Load(d, m + (c + i) * width + j));
      TransposeSquare(square);
      ETALON_UNROLL for (size_t i = 0; i < kLanes; ++i) write(j + i, c, kLanes, square[i]);
    }
    for (; c < n; c += kLanes) {
      const size_t count = n - c < kLanes ? n - c : kLanes;
      VF square[kLanes];
      for (size_t i = 0; i < kLanes; ++i) {
        square[i] = i < count ? change(j, hn::Load(d, m + (c + i) * width + j)) : hn::Zero(d);
      }
      TransposeSquare(square);
      for (size_t i = 0; i < kLanes && j + i < lanes.num_rows; ++i) write(j + i, c, count, square[i]);
    }
  }
}

// What is to be done to the scores of one source beside the dot product.
struct LaneOptions {
  bool any;  // false: nothing but spans
  bool bias;
  bool mask;
};

inline LaneOptions OptionsOf(const LaneRows& lanes, const ScoreOptions& options) {
  LaneOptions found = {options.softcap > 0 || options.alibi, false, false};
  for (size_t r = 0; r < lanes.num_rows; ++r) {
    found.bias |= lanes.keys[r].bias != nullptr;
    found.mask |= lanes.keys[r].mask != nullptr;
  }
  found.any |= found.bias || found.mask;
  return found;
}

// -|position of each row - position of the key|, rounded once from 64 bits.
inline void Distances(const LaneRows& lanes, int64_t position, float* to) {
  for (size_t r = 0; r < kWidth; ++r) {
    to[r] = r < lanes.num_rows ? -Distance(lanes.rows[r].position, position) : 0.0f;
  }
}

// ALiBi and biases read one row after the other; -0 is the term that changes nothing.
inline void Biases(const LaneRows& lanes, const KeySource& source, int64_t position, float* to) {
  for (size_t r = 0; r < kWidth; ++r) {
    const bool has = r < lanes.num_rows && lanes.keys[r].bias != nullptr;
    to[r] = has ? BiasAt(lanes.keys[r], source, position) : -0.0f;
  }
}

// 1 where the row may see the key, else 0.
inline void Allowed(const LaneRows& lanes, const KeySource& source, int64_t position, float* to) {
  for (size_t r = 0; r < kWidth; ++r) {
    to[r] = r >= lanes.num_rows || IsAllowed(lanes.keys[r], source, position) ? 1.0f : 0.0f;
  }
}

// s[key - first][lanes]: dot products become scores, -inf where not visible.
inline void ApplyOptions(const LaneRows& lanes, const KeySource& source, const ScoreOptions& options,
                         const LaneOptions& what, const Span& keys, float* s) {
  const DF d;
  alignas(64) float slopes[kWidth] = {}, distances[kWidth], biases[kWidth], allowed[kWidth];
  for (size_t r = 0; r < lanes.num_rows && options.alibi; ++r) slopes[r] = lanes.rows[r].slope;
  const VF cap = hn::Set(d, options.softcap);
  for (int64_t t = keys.first; t < keys.last; ++t) {
    if (options.alibi) Distances(lanes, t, distances);
    if (what.bias) Biases(lanes, source, t, biases);
    Allowed(lanes, source, t, allowed);
    float* row = s + static_cast<size_t>(t - keys.first) * lanes.vectors * kLanes;
    for (size_t j = 0; j < lanes.vectors * kLanes; j += kLanes) {
      VF x = hn::Load(d, row + j);
      if (options.softcap > 0) x = hn::Mul(cap, Tanh(hn::Div(x, cap)));
      if (options.alibi) x = hn::MulAdd(hn::Load(d, slopes + j), hn::Load(d, distances + j), x);
      if (what.bias) {
        const VF bias = hn::Load(d, biases + j);
        x = hn::IfThenElse(hn::Eq(bias, NegativeInfinities()), bias, hn::Add(x, bias));
      }
      hn::Store(hn::IfThenElse(hn::Ne(hn::Load(d, allowed + j), hn::Zero(d)), x, NegativeInfinities()), d, row + j);
    }
  }
}

// The same where there are only spans, and only outside of what every row sees.
inline void ApplySpans(const LaneRows& lanes, const Span& keys, float* s) {
  const DF d;
  const DI di;
  alignas(64) int32_t first[kWidth], last[kWidth];
  const auto relative = [&](int64_t position) {
    return static_cast<int32_t>(Smaller(Larger(position - keys.first, 0), keys.last - keys.first));
  };
  for (size_t r = 0; r < kWidth; ++r) {
    const bool is_row = r < lanes.num_rows && !IsEmpty(lanes.keys[r].span);
    // Held at the ends before the subtraction, which could overflow.
    first[r] = is_row ? relative(Larger(lanes.keys[r].span.first, keys.first)) : 0;
    last[r] = is_row ? relative(Smaller(lanes.keys[r].span.last, keys.last)) : 0;
  }
  const Span inside = Intersect(lanes.all, keys);
  for (int64_t t = keys.first; t < keys.last; ++t) {
    if (!IsEmpty(inside) && t == inside.first) {
      t = inside.last;
      if (t == keys.last) break;
    }
    const VI at = hn::Set(di, static_cast<int32_t>(t - keys.first));
    float* row = s + static_cast<size_t>(t - keys.first) * lanes.vectors * kLanes;
    for (size_t j = 0; j < lanes.vectors * kLanes; j += kLanes) {
      const auto before = hn::Gt(hn::Load(di, first + j), at);
      const auto within = hn::AndNot(before, hn::Gt(hn::Load(di, last + j), at));
      hn::Store(hn::IfThenElse(hn::RebindMask(d, within), hn::Load(d, row + j), NegativeInfinities()), d, row + j);
    }
  }
}

#endif  // ETALON_HIGHWAY_EXACT
}  // namespace HWY_NAMESPACE
}  // namespace etalon
HWY_AFTER_NAMESPACE();

#endif  // include guard
