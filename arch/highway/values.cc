// The weighted sum primitive: many rows in blocks with the rows in lanes, as prefill has them; few with channels in
// lanes, as decode. A chunk's sum is a chain from +0; sums are added in order.
#include "arch/highway/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "arch/highway/values.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "arch/highway/decode-inl.h"
#include "arch/highway/lanes-inl.h"
#include "arch/highway/scratch.h"
#include "arch/highway/spans.h"
#include "arch/highway/stages.h"

HWY_BEFORE_NAMESPACE();
namespace etalon {
namespace HWY_NAMESPACE {
#if ETALON_HIGHWAY_EXACT
namespace {

constexpr size_t kWeights = static_cast<size_t>(kChunk);

struct Scratch {
  float* weights;     // [kLanes][kWeights]: rows of weights as they are used
  float* p;           // [kChunk][lanes]: the same, transposed
  float* v;           // copy of a chunk
  float* o[kBlocks];  // [value_dim][lanes], or [row][value_dim rounded up]
  float* sum;         // [row][value_dim rounded up], few rows
};

Scratch Carve(Carver* carver, size_t value_dim) {
  Scratch scratch = {};
  scratch.weights = CarveFloats(carver, kLanes * kWeights);
  scratch.p = CarveFloats(carver, kWeights * kWidth);
  scratch.v = CarveFloats(carver, kWeights * CopyStride(value_dim));
  for (float*& o : scratch.o) o = CarveFloats(carver, RoundUp(value_dim) * kWidth);
  scratch.sum = CarveFloats(carver, kLanes * RoundUp(value_dim));
  return scratch;
}
static_assert(kLanes >= kLeastRowsInLanes, "few rows fit into the same scratch");

bool VisibleAt(const WeightedSumArgs& a, const WeightedSumRow& row, int64_t j) {
  if (j < row.span.first || j >= row.span.last) return false;
  return row.mask == nullptr || row.mask[j * a.mask_stride_bytes] != 0;
}

// Weights of the keys as the kernels want them: one that is not visible is -0, which is the mark of an absent key; a
// visible zero is +0. False if a key is not visible.
bool CopyWeights(const WeightedSumArgs& a, const WeightedSumRow& row, const Span& keys, float* to) {
  const DF d;
  const size_t n = static_cast<size_t>(keys.last - keys.first);
  if (row.mask == nullptr && row.span.first <= keys.first && row.span.last >= keys.last) {
    size_t i = 0;
    for (; i + kLanes <= n; i += kLanes) {
      hn::StoreU(hn::Add(hn::LoadU(d, row.w + keys.first + i), hn::Zero(d)), d, to + i);
    }
    for (; i < n; ++i) to[i] = row.w[keys.first + static_cast<int64_t>(i)] + 0.0f;
    return true;
  }
  for (size_t i = 0; i < n; ++i) {
    const int64_t j = keys.first + static_cast<int64_t>(i);
    to[i] = VisibleAt(a, row, j) ? row.w[j] + 0.0f : -0.0f;
  }
  return false;
}

// The same for a block, transposed to p[key][lanes].
bool TransposeWeights(const WeightedSumArgs& a, const WeightedSumRow* rows, const LaneRows& lanes, const Span& keys,
                      const Scratch& scratch) {
  const DF d;
  const size_t n = static_cast<size_t>(keys.last - keys.first);
  bool all_visible = true;
  for (size_t j = 0; j < lanes.vectors; ++j) {
    for (size_t i = 0; i < kLanes; ++i) {
      const size_t r = j * kLanes + i;
      float* to = scratch.weights + i * kWeights;
      if (r < lanes.num_rows) {
        all_visible &= CopyWeights(a, rows[r], keys, to);
      } else {
        for (size_t c = 0; c < kWeights; c += kLanes) hn::Store(hn::Zero(d), d, to + c);
      }
    }
    for (size_t c = 0; c < n; c += kLanes) {
      VF square[kLanes];
      for (size_t i = 0; i < kLanes; ++i) square[i] = hn::Load(d, scratch.weights + i * kWeights + c);
      TransposeSquare(square);
      for (size_t i = 0; i < kLanes; ++i) {
        hn::Store(square[i], d, scratch.p + ((c + i) * lanes.vectors + j) * kLanes);
      }
    }
  }
  return all_visible;
}

template <size_t NV>
HWY_NOINLINE void AddChunk(const Scratch& scratch, const FloatRows& v, size_t num_keys, size_t value_dim, bool select,
                           bool first, float* o) {
  VF one[NV];
  ETALON_UNROLL for (size_t j = 0; j < NV; ++j) one[j] = hn::Set(DF(), 1.0f);
  const JoinChunk join = {first, one, one};  // o * 1 + sum * 1
  if (select) {
    ValueTiles<NV, true>(scratch.p, v.data, v.stride, num_keys, value_dim, o, join);
  } else {
    ValueTiles<NV, false>(scratch.p, v.data, v.stride, num_keys, value_dim, o, join);
  }
}

struct SumBlock {
  LaneRows lanes;
  const WeightedSumRow* rows;
  float* o;
  bool any;  // o holds something
};

struct ChunkKernel {
  const Scratch& scratch;
  const FloatRows& v;
  size_t num_keys;
  size_t value_dim;
  bool select;
  const SumBlock& b;
  template <size_t NV>
  HWY_INLINE void Run() const {
    AddChunk<NV>(scratch, v, num_keys, value_dim, select, !b.any, b.o);
  }
};

// Those of the keys that some of the rows see. Rows of several heads may leave a gap between their spans.
Span KeysSeen(const WeightedSumRow* rows, size_t count, const Span& keys) {
  return HullOf(count, [&](size_t r) { return Intersect(rows[r].span, keys); });
}

FloatRows LoadValues(const WeightedSumArgs& a, const Span& keys, bool again, const Scratch& scratch) {
  const size_t num_keys = static_cast<size_t>(keys.last - keys.first);
  const void* first = static_cast<const unsigned char*>(a.v) + keys.first * a.v_stride_bytes;
  const FloatRows v = LoadRows(a.v_type, first, a.v_stride_bytes, num_keys, a.value_dim, again, scratch.v);
  if (v.data != scratch.v) FetchRows(v, num_keys, a.value_dim);
  return v;
}

void SumInLanes(const WeightedSumArgs& a, const WeightedSumRow* rows, size_t count, const Scratch& scratch) {
  SumBlock blocks[kBlocks];
  const size_t num_blocks = NumBlocks(count);
  for (size_t g = 0; g < num_blocks; ++g) {
    SumBlock* b = &blocks[g];
    *b = {};
    b->rows = rows + CutBlock(count, g, &b->lanes);
    b->o = scratch.o[g];
  }
  const Span hull = KeysSeen(rows, count, {0, a.num_keys});
  for (int64_t chunk = hull.first / kChunk * kChunk; chunk < hull.last; chunk += kChunk) {
    const Span keys = KeysSeen(rows, count, Intersect({chunk, chunk + kChunk}, hull));
    if (IsEmpty(keys)) continue;
    const FloatRows v = LoadValues(a, keys, num_blocks > 1, scratch);
    int finite = -1;  // not looked at yet
    for (size_t g = 0; g < num_blocks; ++g) {
      SumBlock* b = &blocks[g];
      const Span seen = KeysSeen(b->rows, b->lanes.num_rows, keys);
      if (IsEmpty(seen)) continue;
      bool select = false;
      if (!TransposeWeights(a, b->rows, b->lanes, seen, scratch)) {
        if (finite < 0) finite = AllFinite(v, static_cast<size_t>(keys.last - keys.first), a.value_dim) ? 1 : 0;
        select = finite == 0;
      }
      const FloatRows seen_v = {v.data + (seen.first - keys.first) * v.stride, v.stride};
      const size_t num_keys = static_cast<size_t>(seen.last - seen.first);
      WithVectors(b->lanes.vectors, ChunkKernel{scratch, seen_v, num_keys, a.value_dim, select, *b});
      b->any = true;
    }
  }
  for (size_t g = 0; g < num_blocks; ++g) {
    const SumBlock& b = blocks[g];
    const auto nothing_if_none = [&](size_t, VF x) HWY_ATTR { return b.any ? x : hn::Zero(DF()); };
    ForRowsOfLanes(b.lanes, b.o, a.value_dim, nothing_if_none, [&](size_t r, size_t c, size_t n, VF x) HWY_ATTR {
      StoreOutputsN(a.out_type, b.rows[r].out, c, x, n);
    });
  }
}

template <DType kType>
struct FewRows {
  const float* weights;
  const unsigned char* v;
  int64_t v_stride;
  size_t num_keys;
  size_t value_dim;
  float* sum;
  template <size_t NR>
  HWY_INLINE void Run(size_t r) const {
    const size_t stride = RoundUp(value_dim);
    SumAllChannels<kType, NR>(weights + r * kWeights, kWeights, v, v_stride, num_keys, value_dim, true,
                              sum + r * stride, stride);
  }
};

struct SumAllRows {
  const WeightedSumArgs& a;
  const Scratch& scratch;
  const unsigned char* v;
  size_t num_rows;
  size_t num_keys;
  template <DType kType>
  HWY_INLINE void Run() const {
    ForRowBlocks(num_rows, FewRows<kType>{scratch.weights, v, a.v_stride_bytes, num_keys, a.value_dim, scratch.sum});
  }
};

void SumFewRows(const WeightedSumArgs& a, const WeightedSumRow* rows, size_t count, const Scratch& scratch) {
  const DF d;
  const size_t stride = RoundUp(a.value_dim);
  float* total = scratch.o[0];
  for (size_t i = 0; i < count * stride; i += kLanes) hn::Store(hn::Zero(d), d, total + i);
  const Span hull = KeysSeen(rows, count, {0, a.num_keys});
  for (int64_t chunk = hull.first / kChunk * kChunk; chunk < hull.last; chunk += kChunk) {
    const Span keys = KeysSeen(rows, count, Intersect({chunk, chunk + kChunk}, hull));
    if (IsEmpty(keys)) continue;
    const size_t num_keys = static_cast<size_t>(keys.last - keys.first);
    const unsigned char* v = static_cast<const unsigned char*>(a.v) + keys.first * a.v_stride_bytes;
    FetchRows(v, num_keys == 1 ? 0 : a.v_stride_bytes, num_keys, a.value_dim * ElementSize(a.v_type));
    bool all_visible = true;
    for (size_t r = 0; r < count; ++r) all_visible &= CopyWeights(a, rows[r], keys, scratch.weights + r * kWeights);
    if (all_visible) {
      WithType(a.v_type, SumAllRows{a, scratch, v, count, num_keys});
    } else {
      for (size_t r = 0; r < count; ++r) {
        SumSelected(scratch.weights + r * kWeights, a.v_type, num_keys, a.value_dim, scratch.sum + r * stride,
                    [&](size_t t) { return v + static_cast<int64_t>(t) * a.v_stride_bytes; });
      }
    }
    for (size_t i = 0; i < count * stride; i += kLanes) {
      hn::Store(hn::Add(hn::Load(d, total + i), hn::Load(d, scratch.sum + i)), d, total + i);
    }
  }
  for (size_t r = 0; r < count; ++r) {
    ForVectors(a.value_dim, [&](size_t c, size_t n) HWY_ATTR {
      StoreOutputsN(a.out_type, rows[r].out, c, hn::Load(d, total + r * stride + c), n);
    });
  }
}

}  // namespace

size_t WeightedSumScratchBytes(size_t value_dim) {
  Carver carver = {};
  Carve(&carver, value_dim);
  return carver.bytes;
}

void WeightedSum(const WeightedSumArgs& a) {
  Carver carver = {a.scratch, 0};
  const Scratch scratch = Carve(&carver, a.value_dim);
  for (size_t first = 0; first < a.num_rows; first += kBlocksRows) {
    const size_t count = a.num_rows - first < kBlocksRows ? a.num_rows - first : kBlocksRows;
    if (count < kLeastRowsInLanes) {
      SumFewRows(a, a.rows + first, count, scratch);
    } else {
      SumInLanes(a, a.rows + first, count, scratch);
    }
  }
}

#endif  // ETALON_HIGHWAY_EXACT
}  // namespace HWY_NAMESPACE
}  // namespace etalon
HWY_AFTER_NAMESPACE();
