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
#include "arch/visible.h"
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
  Span all;   // what every row sees, whatever chunk it is in; none if there are masks or runs
  bool runs;  // a row has runs
};

inline void SetKeys(const RowKeys* keys, LaneRows* lanes) {
  lanes->keys = keys;
  lanes->hull = HullOf(lanes->num_rows, [&](size_t r) { return keys[r].span; });
  lanes->all = {INT64_MIN, INT64_MAX};
  lanes->runs = false;
  for (size_t r = 0; r < lanes->num_rows; ++r) {
    lanes->runs |= keys[r].runs != nullptr;
    lanes->all = Intersect(lanes->all, keys[r].span);
    if (keys[r].runs != nullptr || keys[r].mask != nullptr) lanes->all = {0, 0};
  }
}

// What the rows of a block see of a chunk, or of a part of one.
struct LaneSight {
  Span keys;   // the smallest span that holds what they see
  bool whole;  // every row sees all of `keys`, and what follows is not filled
  int64_t chunk_first;
  alignas(64) int32_t words[4][kWidth];  // bit t % 32 of words[t / 32]: the row sees position chunk_first + t
  uint32_t all[4];                       // every row does
};

// Touches what the rows have of a mask in memory. Each begins a line somewhere else, which no prefetcher foresees:
// asked for one after the other they would cost a wait each, all at once one wait.
HWY_INLINE void FetchMasks(const LaneRows& lanes, const KeySource& source, const Span& chunk) {
  const int64_t first = chunk.first - source.base + source.first_column, last = first + (chunk.last - chunk.first);
  const bool bits = source.mask_type == MaskType::kBits;
  if (!bits && source.mask_stride_bytes != 1) return;
  for (size_t r = 0; r < lanes.num_rows; ++r) {
    const RowKeys& keys = lanes.keys[r];
    if (keys.mask == nullptr || keys.span.first > chunk.first || keys.span.last < chunk.last) continue;
    if (r > 0 && keys.mask == lanes.keys[r - 1].mask) continue;
    Touch(keys.mask + (bits ? first / 8 : first));
    Touch(keys.mask + (bits ? (last - 1) / 8 : last - 1));
  }
}

// `chunk` lies within the hull and has at most 128 positions.
inline void Look(const LaneRows& lanes, const KeySource& source, const Span& chunk, LaneSight* sight) {
  sight->keys = chunk;
  sight->whole = true;
  if (IsEmpty(chunk) || (lanes.all.first <= chunk.first && chunk.last <= lanes.all.last)) return;
  FetchMasks(lanes, source, chunk);
  VisibleBits any = {}, all = {{~uint64_t{0}, ~uint64_t{0}}}, bits = {};
  for (size_t r = 0; r < lanes.num_rows; ++r) {
    if (r == 0 || !SeeAlike(lanes.keys[r], lanes.keys[r - 1])) {
      bits = VisibleOf(lanes.keys[r], source, chunk);
      any = {{any.word[0] | bits.word[0], any.word[1] | bits.word[1]}};
      all = {{all.word[0] & bits.word[0], all.word[1] & bits.word[1]}};
    }
    for (size_t w = 0; w < 4; ++w) sight->words[w][r] = static_cast<int32_t>(bits.word[w / 2] >> (w % 2 * 32));
  }
  sight->keys = {chunk.first + FirstBit(any), chunk.first + LastBit(any)};
  if (IsEmpty(sight->keys)) return;
  const VisibleBits whole = BitRange(sight->keys.first - chunk.first, sight->keys.last - chunk.first);
  sight->whole = all.word[0] == whole.word[0] && all.word[1] == whole.word[1];
  sight->chunk_first = chunk.first;
  for (size_t w = 0; w < 4; ++w) {
    sight->all[w] = static_cast<uint32_t>(all.word[w / 2] >> (w % 2 * 32));
    for (size_t r = lanes.num_rows; r < lanes.vectors * kLanes; ++r) sight->words[w][r] = -1;
  }
}

// The first position from `position` on that spans and runs let a row of the block see; INT64_MAX if there is none.
inline int64_t NextSeen(const LaneRows& lanes, const KeySource& source, int64_t position) {
  if (!lanes.runs) return position < lanes.hull.last ? Larger(position, lanes.hull.first) : INT64_MAX;
  return NextSeen(lanes.keys, lanes.num_rows, source, position);
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
  bool any;  // false: nothing but visibility
  bool bias;
};

inline LaneOptions OptionsOf(const LaneRows& lanes, const ScoreOptions& options) {
  LaneOptions found = {options.softcap > 0 || options.alibi, false};
  for (size_t r = 0; r < lanes.num_rows; ++r) found.bias |= lanes.keys[r].bias != nullptr;
  found.any |= found.bias;
  return found;
}

// s[key][lanes] = cap tanh(s / cap).
inline void CapScores(float softcap, size_t count, float* s) {
  const DF d;
  const VF cap = hn::Set(d, softcap);
  for (size_t i = 0; i < count; i += kLanes) {
    hn::Store(hn::Mul(cap, Tanh(hn::Div(hn::Load(d, s + i), cap))), d, s + i);
  }
}

// ALiBi for keys whose distances may be anything: one after the other.
inline void AddFarDistances(const LaneRows& lanes, const Span& keys, const float* slopes, float* s) {
  const DF d;
  alignas(64) float distances[kWidth] = {};
  const size_t width = lanes.vectors * kLanes;
  for (int64_t t = keys.first; t < keys.last; ++t, s += width) {
    for (size_t r = 0; r < lanes.num_rows; ++r) distances[r] = Distance(lanes.keys[r].position, t);
    for (size_t j = 0; j < width; j += kLanes) {
      hn::Store(hn::NegMulAdd(hn::Load(d, slopes + j), hn::Load(d, distances + j), hn::Load(d, s + j)), d, s + j);
    }
  }
}

// s[key - keys.first][lanes] -= slope of the row times the distance of key and row, which is an integer, rounded once.
inline void AddDistances(const LaneRows& lanes, const Span& keys, float* s) {
  const DF d;
  const DI di;
  alignas(64) float slopes[kWidth] = {};
  alignas(64) int32_t before[kWidth] = {};  // position of the row less that of the first key
  bool near = true;
  for (size_t r = 0; r < lanes.num_rows; ++r) {
    const int64_t position = lanes.keys[r].position;
    slopes[r] = lanes.rows[r].slope;
    near &= IsNear(position, keys.first);
    before[r] = near ? static_cast<int32_t>(position - keys.first) : 0;
  }
  if (!near) return AddFarDistances(lanes, keys, slopes, s);
  const int32_t num_keys = static_cast<int32_t>(keys.last - keys.first);
  const size_t width = lanes.vectors * kLanes;
  for (int32_t t = 0; t < num_keys; ++t, s += width) {
    const VI at = hn::Set(di, t);
    for (size_t j = 0; j < width; j += kLanes) {
      const VF distance = hn::ConvertTo(d, hn::Abs(hn::Sub(hn::Load(di, before + j), at)));
      hn::Store(hn::NegMulAdd(hn::Load(d, slopes + j), distance, hn::Load(d, s + j)), d, s + j);
    }
  }
}

// s[key - keys.first][lanes] += the same for all rows.
inline void AddSharedBiases(const RowKeys& row, const KeySource& source, const Span& keys, size_t width, float* s) {
  const DF d;
  for (int64_t t = keys.first; t < keys.last; ++t, s += width) {
    const VF bias = hn::Set(d, BiasAt(row, source, t));
    for (size_t j = 0; j < width; j += kLanes) hn::Store(WithBias(hn::Load(d, s + j), bias), d, s + j);
  }
}

// s[key - keys.first][lanes] += bias of the row and the key. Biases of a row lie side by side: a few rows of them are
// copied, so that each line of memory is read once and all are asked for together, and then transposed.
inline void AddBiases(const LaneRows& lanes, const KeySource& source, const Span& keys, float* s) {
  const DF d;
  const size_t num_keys = static_cast<size_t>(keys.last - keys.first), width = lanes.vectors * kLanes;
  bool shared = true;
  for (size_t r = 0; r < lanes.num_rows; ++r) shared &= lanes.keys[r].bias == lanes.keys[0].bias;
  if (shared) return AddSharedBiases(lanes.keys[0], source, keys, width, s);
  constexpr size_t kStride = static_cast<size_t>(kChunk) + kLanes;  // not a multiple of a page
  alignas(64) float rows[kLanes * kStride];
  for (size_t j = 0; j < width; j += kLanes) {
    for (size_t i = 0; i < kLanes; ++i) {
      const bool has = j + i < lanes.num_rows && lanes.keys[j + i].bias != nullptr;
      if (has) {
        CopyBiases(lanes.keys[j + i], source, keys, rows + i * kStride);
      } else {  // -0 is the term that changes nothing
        for (size_t t = 0; t < num_keys; t += kLanes) hn::Store(SetBits(0x80000000u), d, rows + i * kStride + t);
      }
    }
    for (size_t t = 0; t < num_keys; t += kLanes) {
      VF square[kLanes];
      ETALON_UNROLL for (size_t i = 0; i < kLanes; ++i) square[i] = hn::Load(d, rows + i * kStride + t);
      TransposeSquare(square);
      float* to = s + t * width + j;
      for (size_t i = 0; i < kLanes && t + i < num_keys; ++i, to += width) {
        hn::Store(WithBias(hn::Load(d, to), square[i]), d, to);
      }
    }
  }
}

// s[key - keys.first][lanes]: dot products become scores, visibility apart.
inline void ApplyOptions(const LaneRows& lanes, const KeySource& source, const ScoreOptions& options,
                         const LaneOptions& what, const Span& keys, float* s) {
  if (options.softcap > 0) {
    CapScores(options.softcap, static_cast<size_t>(keys.last - keys.first) * lanes.vectors * kLanes, s);
  }
  if (options.alibi) AddDistances(lanes, keys, s);
  if (what.bias) AddBiases(lanes, source, keys, s);
}

// Scores of keys that a row does not see become -inf.
inline void HideScores(const LaneRows& lanes, const LaneSight& sight, float* s) {
  const DF d;
  const DI di;
  const size_t width = lanes.vectors * kLanes;
  const int64_t last = sight.keys.last - sight.chunk_first;
  for (int64_t t = sight.keys.first - sight.chunk_first; t < last; ++t, s += width) {
    const uint32_t bit = uint32_t{1} << (t % 32);
    if ((sight.all[t / 32] & bit) != 0) continue;
    const VI mask = hn::Set(di, static_cast<int32_t>(bit));
    const int32_t* words = sight.words[t / 32];
    for (size_t j = 0; j < width; j += kLanes) {
      const auto seen = hn::RebindMask(d, hn::TestBit(hn::Load(di, words + j), mask));
      hn::Store(hn::IfThenElse(seen, hn::Load(d, s + j), NegativeInfinities()), d, s + j);
    }
  }
}

#endif  // ETALON_HIGHWAY_EXACT
}  // namespace HWY_NAMESPACE
}  // namespace etalon
HWY_AFTER_NAMESPACE();

#endif  // include guard
