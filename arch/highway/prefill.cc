// The fused pass for many query rows: lanes are queries. Rows are cut into register blocks of at most kWidth, a few of
// which walk the keys together, so that a chunk of keys and values is widened (or copied) once for all of them.
#include "arch/highway/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "arch/highway/prefill.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "arch/highway/attend.h"
#include "arch/highway/lanes-inl.h"
#include "arch/highway/scratch.h"
#include "arch/highway/stages.h"

HWY_BEFORE_NAMESPACE();
namespace etalon {
namespace HWY_NAMESPACE {
#if ETALON_HIGHWAY_EXACT
namespace {

// The states of the rows of a block, in lanes: m[lanes], l[lanes], o[channel][lanes]. Lanes of an empty state hold m =
// -inf, l = 0, o = 0; if `any` is false nothing is stored yet and all are empty.
struct LaneState {
  float* m;
  float* l;
  float* o;
  bool any;
};

struct QueryBlock {
  LaneRows lanes;
  LaneOptions options;
  float* q;         // [head_dim][lanes]
  LaneState block;  // the chunks of the block of keys so far
  LaneState total;  // the blocks so far
};

struct Scratch {
  float* s;  // scores of a chunk, then their weights: [kChunk][lanes]
  float* k;  // copy of a chunk
  float* v;
  float* q[kBlocks];
  LaneState states[kBlocks][2];
};

Scratch Carve(Carver* carver, size_t head_dim, size_t value_dim) {
  Scratch scratch = {};
  scratch.s = CarveFloats(carver, static_cast<size_t>(kChunk) * kWidth);
  scratch.k = CarveFloats(carver, static_cast<size_t>(kChunk) * CopyStride(head_dim));
  scratch.v = CarveFloats(carver, static_cast<size_t>(kChunk) * CopyStride(value_dim));
  for (size_t g = 0; g < kBlocks; ++g) {
    scratch.q[g] = CarveFloats(carver, RoundUp(head_dim) * kWidth);
    for (LaneState& state : scratch.states[g]) {
      state.m = CarveFloats(carver, kWidth);
      state.l = CarveFloats(carver, kWidth);
      state.o = CarveFloats(carver, value_dim * kWidth);
    }
  }
  return scratch;
}

// A chunk of one source, or the part of it that some row of the superblock sees.
struct ChunkData {
  Span keys;
  FloatRows k;
  FloatRows v;
  int finite;  // whether v holds no infinity or NaN: -1 = not looked at yet
};

const float* RowAt(const FloatRows& rows, const ChunkData& chunk, int64_t position) {
  return rows.data + static_cast<ptrdiff_t>(position - chunk.keys.first) * rows.stride;
}

bool ValuesAreFinite(size_t value_dim, ChunkData* chunk) {
  if (chunk->finite < 0) {
    chunk->finite = AllFinite(chunk->v, static_cast<size_t>(chunk->keys.last - chunk->keys.first), value_dim);
  }
  return chunk->finite != 0;
}

// p = exp(s - max) in place, and their sums in order.
template <size_t NV>
HWY_INLINE void Weights(size_t num_keys, const VF* max, float* s, VF* sum) {
  const DF d;
  for (size_t t = 0; t < num_keys; ++t) {
    ETALON_UNROLL for (size_t j = 0; j < NV; ++j) {
      float* at = s + (t * NV + j) * kLanes;
      const VF p = ExpOfNumbers(hn::Sub(hn::Load(d, at), max[j]));
      hn::Store(p, d, at);
      sum[j] = hn::Add(sum[j], p);
    }
  }
}

// The same where scores may be anything: NaN stays NaN, and a key that is not visible has the weight -0, which changes
// no sum and which no exp gives.
template <size_t NV>
HWY_INLINE void WeightsOfAny(size_t num_keys, const VF* max, float* s, VF* sum) {
  const DF d;
  for (size_t t = 0; t < num_keys; ++t) {
    ETALON_UNROLL for (size_t j = 0; j < NV; ++j) {
      float* at = s + (t * NV + j) * kLanes;
      const VF x = hn::Load(d, at);
      const VF p = hn::IfThenElse(hn::Eq(x, NegativeInfinities()), SetBits(0x80000000u), Exp(hn::Sub(x, max[j])));
      hn::Store(p, d, at);
      sum[j] = hn::Add(sum[j], p);
    }
  }
}

// The maximum, and 0 * s of all, which is NaN if one is an infinity or NaN.
template <size_t NV>
HWY_INLINE void MaxOfScores(size_t num_keys, const float* s, VF* max, VF* probe) {
  ETALON_UNROLL for (size_t j = 0; j < NV; ++j) {
    max[j] = NegativeInfinities();
    probe[j] = hn::Zero(DF());
  }
  for (size_t t = 0; t < num_keys; ++t) {
    ETALON_UNROLL for (size_t j = 0; j < NV; ++j) {
      const VF x = hn::Load(DF(), s + (t * NV + j) * kLanes);
      max[j] = MaxOf(x, max[j]);
      probe[j] = hn::MulAdd(x, hn::Zero(DF()), probe[j]);
    }
  }
}

// The visible keys of a chunk join the block's state.
template <size_t NV>
HWY_NOINLINE void AttendChunk(const AttendArgs& a, const KeySource& source, const LaneSight& sight, ChunkData* chunk,
                              float* s, QueryBlock* b) {
  const DF d;
  const Span& keys = sight.keys;
  const size_t num_keys = static_cast<size_t>(keys.last - keys.first);
  const float* v = RowAt(chunk->v, *chunk, keys.first);
  VF max[NV], probe[NV], sum[NV], weight_a[NV], weight_b[NV];
  ETALON_UNROLL for (size_t j = 0; j < NV; ++j) {
    max[j] = NegativeInfinities();
    probe[j] = sum[j] = weight_a[j] = weight_b[j] = hn::Zero(d);  // weights: unless there is something to join
  }
  ScoreTiles<NV>(b->q, RowAt(chunk->k, *chunk, keys.first), chunk->k.stride, num_keys, a.head_dim, s, max, probe);

  if (b->options.any) ApplyOptions(b->lanes, source, a.options, b->options, keys, s);
  if (!sight.whole) HideScores(b->lanes, sight, s);
  if (b->options.any || !sight.whole) MaxOfScores<NV>(num_keys, s, max, probe);
  bool plain = true;  // every row sees every key, and all scores are numbers
  ETALON_UNROLL for (size_t j = 0; j < NV; ++j) plain &= !AnyNaN(probe[j]);
  if (plain) {
    Weights<NV>(num_keys, max, s, sum);
  } else {
    VF finite[NV];  // s - max must not become -inf - -inf
    ETALON_UNROLL for (size_t j = 0; j < NV; ++j) {
      finite[j] = hn::IfThenElseZero(hn::Ne(max[j], NegativeInfinities()), max[j]);
    }
    WeightsOfAny<NV>(num_keys, finite, s, sum);
  }

  ETALON_UNROLL for (size_t j = 0; j < NV; ++j) {
    float* m = b->block.m + j * kLanes;
    float* l = b->block.l + j * kLanes;
    if (!b->block.any) {
      hn::Store(max[j], d, m);
      hn::Store(sum[j], d, l);
      continue;
    }
    const VectorWeights w = WeightsOf(hn::Load(d, m), max[j]);
    weight_a[j] = w.a;
    weight_b[j] = w.b;
    hn::Store(w.max, d, m);
    hn::Store(hn::MulAdd(hn::Load(d, l), w.a, hn::Mul(sum[j], w.b)), d, l);
  }
  const JoinChunk join = {!b->block.any, weight_a, weight_b};
  if (plain || ValuesAreFinite(a.value_dim, chunk)) {
    ValueTiles<NV, false>(s, v, chunk->v.stride, num_keys, a.value_dim, b->block.o, join);
  } else {
    ValueTiles<NV, true>(s, v, chunk->v.stride, num_keys, a.value_dim, b->block.o, join);
  }
  b->block.any = true;
}

struct ChunkKernel {
  const AttendArgs& a;
  const KeySource& source;
  const LaneSight& sight;
  ChunkData* chunk;
  float* s;
  QueryBlock* b;
  template <size_t NV>
  HWY_INLINE void Run() const {
    AttendChunk<NV>(a, source, sight, chunk, s, b);
  }
};

void SwapStates(LaneState* a, LaneState* b) {
  const LaneState old = *a;
  *a = *b;
  *b = old;
}

// The state of the block of keys joins the total, and is empty again.
void FoldBlock(size_t value_dim, QueryBlock* b) {
  const DF d;
  if (!b->block.any) return;
  if (!b->total.any) {
    SwapStates(&b->block, &b->total);
    return;
  }
  b->block.any = false;
  const size_t width = b->lanes.vectors * kLanes;
  for (size_t j = 0; j < width; j += kLanes) {
    const VectorWeights w = WeightsOf(hn::Load(d, b->total.m + j), hn::Load(d, b->block.m + j));
    hn::Store(w.max, d, b->total.m + j);
    const VF l = hn::Mul(hn::Load(d, b->block.l + j), w.b);
    hn::Store(hn::MulAdd(hn::Load(d, b->total.l + j), w.a, l), d, b->total.l + j);
    for (size_t c = 0; c < value_dim; ++c) {
      float* to = b->total.o + c * width + j;
      hn::Store(hn::MulAdd(hn::Load(d, to), w.a, hn::Mul(hn::Load(d, b->block.o + c * width + j), w.b)), d, to);
    }
  }
}

void ClearState(const QueryBlock& b, size_t value_dim, LaneState* state) {
  const DF d;
  const size_t width = b.lanes.vectors * kLanes;
  for (size_t j = 0; j < width; j += kLanes) {
    hn::Store(NegativeInfinities(), d, state->m + j);
    hn::Store(hn::Zero(d), d, state->l + j);
  }
  for (size_t i = 0; i < value_dim * width; i += kLanes) hn::Store(hn::Zero(d), d, state->o + i);
  state->any = true;
}

// Numerics: sinks. An empty state becomes that of the sink, which is not a fold: a sink of +inf is no NaN there.
void FoldSinks(size_t value_dim, QueryBlock* b) {
  const DF d;
  const size_t width = b->lanes.vectors * kLanes;
  alignas(64) float sinks[kWidth];
  for (size_t r = 0; r < width; ++r) {
    sinks[r] = r < b->lanes.num_rows ? b->lanes.rows[r].sink : FromBits(0xFF800000u);
  }
  LaneState* total = &b->total;
  for (size_t j = 0; j < width; j += kLanes) {
    const VF sink = hn::Load(d, sinks + j), m = hn::Load(d, total->m + j), l = hn::Load(d, total->l + j);
    const auto none = hn::Eq(sink, NegativeInfinities());
    const auto alone = hn::AndNot(none, hn::Eq(l, hn::Zero(d)));
    const VectorWeights w = WeightsOf(m, sink);
    const VF joined_m = hn::IfThenElse(alone, sink, w.max);
    const VF joined_l = hn::IfThenElse(alone, hn::Set(d, 1.0f), hn::MulAdd(l, w.a, w.b));
    hn::Store(hn::IfThenElse(none, m, joined_m), d, total->m + j);
    hn::Store(hn::IfThenElse(none, l, joined_l), d, total->l + j);
    const auto keep = hn::Or(none, alone);
    for (size_t c = 0; c < value_dim; ++c) {
      float* at = total->o + c * width + j;
      const VF o = hn::Load(d, at);
      hn::Store(hn::IfThenElse(keep, o, hn::MulAdd(o, w.a, hn::Mul(hn::Zero(d), w.b))), d, at);
    }
  }
}

void WriteOutputs(const AttendArgs& a, QueryBlock* b) {
  const DF d;
  if (!b->total.any) ClearState(*b, a.value_dim, &b->total);
  if (a.sinks) FoldSinks(a.value_dim, b);
  const LaneRows& lanes = b->lanes;
  const auto divide = [&](size_t j, VF x) HWY_ATTR {
    const VF l = hn::Load(d, b->total.l + j);
    return hn::IfThenZeroElse(hn::Eq(l, hn::Zero(d)), hn::Div(x, l));
  };
  ForRowsOfLanes(lanes, b->total.o, a.value_dim, divide, [&](size_t r, size_t c, size_t count, VF x) HWY_ATTR {
    StoreOutputsN(a.out_type, lanes.rows[r].out, c, x, count);
  });
  alignas(64) float lse[kLanes];
  for (size_t j = 0; j < lanes.vectors * kLanes; j += kLanes) {
    const VF l = hn::Load(d, b->total.l + j);
    const VF sum = Canonical(hn::Add(hn::Load(d, b->total.m + j), Log(l)));
    hn::Store(hn::IfThenElse(hn::Eq(l, hn::Zero(d)), NegativeInfinities(), sum), d, lse);
    for (size_t i = 0; i < kLanes && j + i < lanes.num_rows; ++i) {
      if (lanes.rows[j + i].lse != nullptr) *lanes.rows[j + i].lse = lse[i];
    }
  }
}

// State i of each row of the block; first_row is the block's first row in the tile.
void WriteStates(const States& to, size_t first_row, int64_t i, size_t value_dim, QueryBlock* b) {
  if (!b->block.any) ClearState(*b, value_dim, &b->block);
  b->block.any = false;
  const auto at = [&](size_t r) { return static_cast<int64_t>(first_row + r) * to.row_stride + i; };
  for (size_t r = 0; r < b->lanes.num_rows; ++r) {
    const float m = b->block.m[r], l = b->block.l[r];
    to.m[at(r)] = etalon::Canonical(l != l ? l : m + 0.0f);
    to.l[at(r)] = etalon::Canonical(l);
  }
  const auto written = [](size_t, VF x) HWY_ATTR { return Canonical(hn::Add(x, hn::Zero(DF()))); };
  ForRowsOfLanes(b->lanes, b->block.o, value_dim, written, [&](size_t r, size_t c, size_t count, VF x) HWY_ATTR {
    StoreFirst(x, DF(), to.o + at(r) * static_cast<int64_t>(value_dim) + c, count);
  });
}

struct Superblock {
  QueryBlock blocks[kBlocks];
  size_t num_blocks;
};

void AttendSuperblockChunk(const AttendArgs& a, const KeySource& source, const Span& keys, const Scratch& scratch,
                           Superblock* superblock) {
  LaneSight sights[kBlocks];
  for (size_t g = 0; g < superblock->num_blocks; ++g) {
    const LaneRows& lanes = superblock->blocks[g].lanes;
    Look(lanes, source, Intersect(keys, lanes.hull), &sights[g]);
  }
  const Span wanted = HullOf(superblock->num_blocks, [&](size_t g) { return sights[g].keys; });
  if (IsEmpty(wanted)) return;
  const size_t num_keys = static_cast<size_t>(wanted.last - wanted.first);
  const bool again = superblock->num_blocks > 1;
  ChunkData chunk = {wanted, {}, {}, -1};
  chunk.k = LoadKeys(source, wanted, a.head_dim, again, scratch.k);
  chunk.v = LoadValues(source, wanted, a.value_dim, again, scratch.v);
  if (chunk.k.data != scratch.k) FetchRows(chunk.k, num_keys, a.head_dim);
  if (chunk.v.data != scratch.v) FetchRows(chunk.v, num_keys, a.value_dim);
  for (size_t g = 0; g < superblock->num_blocks; ++g) {
    QueryBlock* b = &superblock->blocks[g];
    if (IsEmpty(sights[g].keys)) continue;
    WithVectors(b->lanes.vectors, ChunkKernel{a, source, sights[g], &chunk, scratch.s, b});
  }
}

// The first position from `position` on that a row sees, masks apart; INT64_MAX if there is none.
int64_t NextSeen(const Superblock& superblock, const KeySource& source, int64_t position) {
  int64_t next = INT64_MAX;
  for (size_t g = 0; g < superblock.num_blocks; ++g) {
    next = Smaller(next, NextSeen(superblock.blocks[g].lanes, source, position));
  }
  return next;
}

void AttendSuperblock(const AttendJob& job, size_t first_row, const Scratch& scratch, Superblock* superblock) {
  const AttendArgs& a = job.args;
  for (size_t i = 0; i < a.num_sources; ++i) {
    const KeySource& source = a.sources[i];
    size_t row = first_row;
    for (size_t g = 0; g < superblock->num_blocks; ++g) {
      QueryBlock* b = &superblock->blocks[g];
      SetKeys(a.keys + i * a.num_rows + row, &b->lanes);
      b->options = OptionsOf(b->lanes, a.options);
      row += b->lanes.num_rows;
    }
    const Span hull = HullOf(superblock->num_blocks, [&](size_t g) { return superblock->blocks[g].lanes.hull; });
    Range blocks = {hull.first / kBlock, DivideUp(hull.last, kBlock)};
    if (job.states != nullptr) blocks = {job.first_block, job.last_block};
    for (int64_t block = blocks.first; block < blocks.last; ++block) {
      int64_t next = NextSeen(*superblock, source, block * kBlock);
      if (job.states == nullptr) {  // no state is due of blocks that nobody sees
        if (next >= blocks.last * kBlock) break;
        block = next / kBlock;
      }
      while (next < (block + 1) * kBlock) {
        const int64_t first = next / kChunk * kChunk;
        AttendSuperblockChunk(a, source, Intersect({first, first + kChunk}, hull), scratch, superblock);
        next = NextSeen(*superblock, source, first + kChunk);
      }
      row = first_row;
      for (size_t g = 0; g < superblock->num_blocks; ++g) {
        QueryBlock* b = &superblock->blocks[g];
        if (job.states == nullptr) {
          FoldBlock(a.value_dim, b);
        } else {
          WriteStates(*job.states, row, block - job.first_block, a.value_dim, b);
        }
        row += b->lanes.num_rows;
      }
    }
  }
  if (job.states != nullptr) return;
  for (size_t g = 0; g < superblock->num_blocks; ++g) WriteOutputs(a, &superblock->blocks[g]);
}

// Rows first ... first + count - 1 of the tile.
void FillSuperblock(const AttendArgs& a, size_t first, size_t count, const Scratch& scratch, Superblock* superblock) {
  superblock->num_blocks = NumBlocks(count);
  for (size_t g = 0; g < superblock->num_blocks; ++g) {
    QueryBlock* b = &superblock->blocks[g];
    *b = {};
    const size_t row = first + CutBlock(count, g, &b->lanes);
    b->lanes.rows = a.rows + row;
    b->q = scratch.q[g];
    b->block = scratch.states[g][0];
    b->total = scratch.states[g][1];
    bool reads[kWidth];
    for (size_t r = 0; r < b->lanes.num_rows; ++r) reads[r] = SeesAnything(a, row + r);
    TransposeQueries(b->lanes, reads, a.options, a.head_dim, b->q);
  }
}

}  // namespace

size_t PrefillScratchBytes(size_t head_dim, size_t value_dim) {
  Carver carver = {};
  Carve(&carver, head_dim, value_dim);
  return carver.bytes;
}

void AttendPrefill(const AttendJob& job) {
  const AttendArgs& a = job.args;
  Carver carver = {a.scratch, 0};
  const Scratch scratch = Carve(&carver, a.head_dim, a.value_dim);
  Superblock superblock;
  for (size_t first = 0; first < a.num_rows; first += kBlocksRows) {
    const size_t count = a.num_rows - first < kBlocksRows ? a.num_rows - first : kBlocksRows;
    FillSuperblock(a, first, count, scratch, &superblock);
    AttendSuperblock(job, first, scratch, &superblock);
  }
}

#endif  // ETALON_HIGHWAY_EXACT
}  // namespace HWY_NAMESPACE
}  // namespace etalon
HWY_AFTER_NAMESPACE();
