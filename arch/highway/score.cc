// The scores primitive: register tiles of prefill-style blocks (lanes are queries), transposed on their way out; few
// rows go key by key as in decode, whose scores already lie as they are wanted.
#include "arch/highway/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "arch/highway/score.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "arch/highway/decode-inl.h"
#include "arch/highway/lanes-inl.h"
#include "arch/highway/options-inl.h"
#include "arch/highway/scratch.h"
#include "arch/highway/spans.h"
#include "arch/highway/stages.h"

HWY_BEFORE_NAMESPACE();
namespace etalon {
namespace HWY_NAMESPACE {
#if ETALON_HIGHWAY_EXACT
namespace {

struct Scratch {
  float* s;           // [kChunk][lanes], or [row][kChunk]
  float* k;           // copy of a chunk
  float* q[kBlocks];  // [head_dim][lanes]
};

Scratch Carve(Carver* carver, size_t head_dim) {
  Scratch scratch = {};
  scratch.s = CarveFloats(carver, kRowScores * kWidth);
  scratch.k = CarveFloats(carver, kRowScores * CopyStride(head_dim));
  for (float*& q : scratch.q) q = CarveFloats(carver, RoundUp(head_dim) * kWidth);
  return scratch;
}
static_assert(kWidth >= kLeastRowsInLanes, "few rows fit into the same scratch");

struct ScoreBlock {
  LaneRows lanes;
  LaneOptions options;
  const float* q;
  float* s;  // of the first row
};

// Elements first ... last - 1 of the row are not visible.
void Hide(float* row, int64_t first, int64_t last) {
  const DF d;
  for (; first + static_cast<int64_t>(kLanes) <= last; first += static_cast<int64_t>(kLanes)) {
    hn::StoreU(NegativeInfinities(), d, row + first);
  }
  if (first < last) hn::StoreN(NegativeInfinities(), d, row + first, static_cast<size_t>(last - first));
}

// All but the keys of `hull`, which may be none.
void HideOutside(const KeySource& source, const Span& hull, float* row) {
  const bool none = IsEmpty(hull);
  Hide(row, 0, none ? 0 : hull.first - source.base);
  Hide(row, none ? 0 : hull.last - source.base, source.num_keys);
}

// Those of `keys` that are not in `seen`, which may be none.
void HideBeside(const KeySource& source, const Span& keys, const Span& seen, float* row) {
  Hide(row, keys.first - source.base, (IsEmpty(seen) ? keys.last : seen.first) - source.base);
  if (!IsEmpty(seen)) Hide(row, seen.last - source.base, keys.last - source.base);
}

template <size_t NV>
HWY_NOINLINE void ScoreChunk(const ScoresArgs& a, const LaneSight& sight, const FloatRows& k, float* s,
                             const ScoreBlock& b) {
  const DF d;
  const Span& keys = sight.keys;
  const size_t num_keys = static_cast<size_t>(keys.last - keys.first);
  VF max[NV], probe[NV];
  ETALON_UNROLL for (size_t j = 0; j < NV; ++j) max[j] = probe[j] = hn::Zero(d);
  ScoreTiles<NV>(b.q, k.data, k.stride, num_keys, a.head_dim, s, max, probe);
  bool numbers = true;
  ETALON_UNROLL for (size_t j = 0; j < NV; ++j) numbers &= !AnyNaN(probe[j]);
  if (b.options.any) {
    ApplyOptions(b.lanes, *a.source, a.options, b.options, keys, s);
    numbers = false;
  }
  if (!sight.whole) HideScores(b.lanes, sight, s);
  float* out = b.s + (keys.first - a.source->base);
  const auto write = [&](size_t r, size_t c, size_t count, VF x) HWY_ATTR {
    StoreFirst(x, d, out + static_cast<int64_t>(r) * a.row_stride + static_cast<int64_t>(c), count);
  };
  if (numbers) {
    ForRowsOfLanes(b.lanes, s, num_keys, [](size_t, VF x) HWY_ATTR { return x; }, write);
  } else {
    ForRowsOfLanes(b.lanes, s, num_keys, [](size_t, VF x) HWY_ATTR { return Canonical(x); }, write);
  }
}

struct ChunkKernel {
  const ScoresArgs& a;
  const LaneSight& sight;
  const FloatRows& k;
  float* s;
  const ScoreBlock& b;
  template <size_t NV>
  HWY_INLINE void Run() const {
    ScoreChunk<NV>(a, sight, k, s, b);
  }
};

// Rows first ... first + count - 1; what none of a block sees is written. Returns how many blocks.
size_t FillBlocks(const ScoresArgs& a, size_t first, size_t count, const Scratch& scratch, ScoreBlock* blocks) {
  const size_t num_blocks = NumBlocks(count);
  for (size_t g = 0; g < num_blocks; ++g) {
    ScoreBlock* b = &blocks[g];
    *b = {};
    const size_t from = first + CutBlock(count, g, &b->lanes);
    b->lanes.rows = a.rows + from;
    SetKeys(a.keys + from, &b->lanes);
    b->options = OptionsOf(b->lanes, a.options);
    b->s = a.s + static_cast<int64_t>(from) * a.row_stride;
    bool reads[kWidth];
    for (size_t r = 0; r < b->lanes.num_rows; ++r) {
      reads[r] = !IsEmpty(b->lanes.keys[r].span);
      HideOutside(*a.source, b->lanes.hull, b->s + static_cast<int64_t>(r) * a.row_stride);
    }
    TransposeQueries(b->lanes, reads, a.options, a.head_dim, scratch.q[g]);
    b->q = scratch.q[g];
  }
  return num_blocks;
}

// The keys of a chunk that the block computes; the rest of its hull is written as not visible.
Span HideGap(const ScoresArgs& a, const Span& chunk, const ScoreBlock& b, LaneSight* sight) {
  const Span part = Intersect(chunk, b.lanes.hull);
  Look(b.lanes, *a.source, part, sight);
  if (IsEmpty(part)) return part;
  for (size_t r = 0; r < b.lanes.num_rows; ++r) {
    HideBeside(*a.source, part, sight->keys, b.s + static_cast<int64_t>(r) * a.row_stride);
  }
  return sight->keys;
}

void ScoreBlocks(const ScoresArgs& a, size_t first, size_t count, const Scratch& scratch) {
  const KeySource& source = *a.source;
  ScoreBlock blocks[kBlocks];
  const size_t num_blocks = FillBlocks(a, first, count, scratch, blocks);
  const Span hull = HullOf(num_blocks, [&](size_t g) { return blocks[g].lanes.hull; });
  for (int64_t from = hull.first; from < hull.last; from += kChunk) {
    LaneSight sights[kBlocks];
    const Span chunk = {from, from + kChunk};
    const Span wanted = HullOf(num_blocks, [&](size_t g) { return HideGap(a, chunk, blocks[g], &sights[g]); });
    if (IsEmpty(wanted)) continue;
    const size_t num_keys = static_cast<size_t>(wanted.last - wanted.first);
    const FloatRows rows = LoadKeys(source, wanted, a.head_dim, num_blocks > 1, scratch.k);
    if (rows.data != scratch.k) FetchRows(rows, num_keys, a.head_dim);
    for (size_t g = 0; g < num_blocks; ++g) {
      const Span& seen = sights[g].keys;
      if (IsEmpty(seen)) continue;
      const FloatRows seen_rows = {rows.data + (seen.first - wanted.first) * rows.stride, rows.stride};
      WithVectors(blocks[g].lanes.vectors, ChunkKernel{a, sights[g], seen_rows, scratch.s, blocks[g]});
    }
  }
}

// --- Few rows: lanes are keys ---

void ScoreFewRowsOfChunk(const ScoresArgs& a, const Span& keys, const Scratch& scratch) {
  const DF d;
  const KeySource& source = *a.source;
  const size_t num_keys = static_cast<size_t>(keys.last - keys.first);
  unsigned char* const copies = reinterpret_cast<unsigned char*>(scratch.k);
  static_assert(kMostKeyVectors * kLanes <= kRowScores, "the copies of key vectors fit that of a chunk");
  KeyVector vectors[kMostKeyVectors];
  for (size_t t = 0; t < num_keys;) {
    size_t n = 0;
    do {
      unsigned char* const copy = copies + n * KeyVectorBytes(a.head_dim);
      vectors[n++] = KeyVectorAt(source, keys, t, a.head_dim, scratch.s, copy);
      t += kLanes;
    } while (n < kMostKeyVectors && t < num_keys);
    FetchKeys(vectors, n, a.head_dim * ElementSize(source.k_type));
    WithType(source.k_type, ScoreAllRows{scratch.q[0], a.num_rows, vectors, n, a.head_dim});
  }
  for (size_t r = 0; r < a.num_rows; ++r) {
    float* s = scratch.s + r * kRowScores;
    const RowKeys& row_keys = a.keys[r];
    if (HasOptions(a.options, row_keys)) {
      ApplyRowOptions(a.rows[r], row_keys, *a.source, a.options, keys.first, num_keys, s);
    }
    if (!SeesAll(row_keys, keys)) HideRowScores(VisibleOf(row_keys, *a.source, keys), num_keys, s);
    float* out = a.s + static_cast<int64_t>(r) * a.row_stride + (keys.first - a.source->base);
    ForVectors(num_keys,
               [&](size_t c, size_t n) HWY_ATTR { StoreFirst(Canonical(hn::Load(d, s + c)), d, out + c, n); });
  }
}

void ScoreFewRows(const ScoresArgs& a, const Scratch& scratch) {
  const KeySource& source = *a.source;
  const size_t stride = RoundUp(a.head_dim);
  LaneRows all = {};
  all.rows = a.rows;
  all.num_rows = a.num_rows;
  SetKeys(a.keys, &all);
  for (size_t r = 0; r < a.num_rows; ++r) {
    ScaleRow(a.rows[r].q, !IsEmpty(a.keys[r].span), a.options, a.head_dim, scratch.q[0] + r * stride);
    HideOutside(source, all.hull, a.s + static_cast<int64_t>(r) * a.row_stride);
  }
  for (int64_t first = all.hull.first; first < all.hull.last; first += kChunk) {
    const Span chunk = {first, Smaller(first + kChunk, all.hull.last)};
    const Span keys = HullOf(a.num_rows, [&](size_t r) { return SeenOf(a.keys[r], source, chunk); });
    for (size_t r = 0; r < a.num_rows; ++r) {
      HideBeside(source, chunk, keys, a.s + static_cast<int64_t>(r) * a.row_stride);
    }
    if (!IsEmpty(keys)) ScoreFewRowsOfChunk(a, keys, scratch);
  }
}

}  // namespace

size_t ScoresScratchBytes(size_t head_dim) {
  Carver carver = {};
  Carve(&carver, head_dim);
  return carver.bytes;
}

void Scores(const ScoresArgs& a) {
  Carver carver = {a.scratch, 0};
  const Scratch scratch = Carve(&carver, a.head_dim);
  if (a.num_rows < kLeastRowsInLanes) return ScoreFewRows(a, scratch);
  for (size_t first = 0; first < a.num_rows; first += kBlocksRows) {
    const size_t count = a.num_rows - first < kBlocksRows ? a.num_rows - first : kBlocksRows;
    ScoreBlocks(a, first, count, scratch);
  }
}

#endif  // ETALON_HIGHWAY_EXACT
}  // namespace HWY_NAMESPACE
}  // namespace etalon
HWY_AFTER_NAMESPACE();
