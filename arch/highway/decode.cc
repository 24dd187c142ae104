// The fused pass for few query rows (decode-inl.h has its kernels): chunk by chunk, all rows at once.
#include "arch/highway/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "arch/highway/decode.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "arch/highway/attend.h"
#include "arch/highway/decode-inl.h"
#include "arch/highway/options-inl.h"
#include "arch/highway/stages.h"
#include "lib/base/workspace.h"

HWY_BEFORE_NAMESPACE();
namespace etalon {
namespace HWY_NAMESPACE {
#if ETALON_HIGHWAY_EXACT
namespace {

constexpr size_t kScores = static_cast<size_t>(kChunk);  // of a row of a chunk

// The states of the rows: m[row], l[row], o[row][value_dim rounded up]. If `any` is false all are empty, and nothing is
// stored yet; otherwise a row without a visible key has m = -inf, l = 0, o = 0.
struct RowStates {
  float* m;
  float* l;
  float* o;
  bool any;
};

struct Scratch {
  float* s;  // [row][kScores]: scores of a chunk, then their weights
  float* q;  // [row][head_dim rounded up], scaled
  float* k;  // copy of a chunk
  float* v;
  float* m;  // [row]: of the chunk
  float* l;
  float* a;  // [row]: weights of a fold
  float* b;
  RowStates block;
  RowStates total;
};

size_t RoundUp(size_t n) { return (n + kLanes - 1) / kLanes * kLanes; }

Scratch LayOut(void* memory, size_t head_dim, size_t value_dim, size_t* needed) {
  *needed = 0;
  const auto reserve = [&](size_t floats) {
    const size_t offset = ReserveBytes(needed, floats * sizeof(float));
    return memory == nullptr ? nullptr : At<float>(memory, offset);
  };
  constexpr size_t kRows = (kMostDecodeRows + kLanes - 1) / kLanes * kLanes;
  Scratch scratch = {};
  scratch.s = reserve(kMostDecodeRows * kScores);
  scratch.q = reserve(kMostDecodeRows * RoundUp(head_dim));
  scratch.k = reserve(static_cast<size_t>(kChunk) * CopyStride(head_dim));
  scratch.v = reserve(static_cast<size_t>(kChunk) * CopyStride(value_dim));
  for (float** row : {&scratch.m, &scratch.l, &scratch.a, &scratch.b}) *row = reserve(kRows);
  for (RowStates* states : {&scratch.block, &scratch.total}) {
    states->m = reserve(kRows);
    states->l = reserve(kRows);
    states->o = reserve(kMostDecodeRows * RoundUp(value_dim));
  }
  return scratch;
}

bool IsEmpty(const Span& span) { return span.first >= span.last; }

Span Intersect(const Span& a, const Span& b) { return {Larger(a.first, b.first), Smaller(a.last, b.last)}; }

bool SeesAnything(const AttendArgs& a, size_t row) {
  for (size_t i = 0; i < a.num_sources; ++i) {
    if (!IsEmpty(a.keys[i * a.num_rows + row].span)) return true;
  }
  return false;
}

void ScaleQueries(const AttendArgs& a, float* q) {
  const DF d;
  const VF scale = hn::Set(d, a.options.scale);
  const size_t stride = RoundUp(a.head_dim);
  for (size_t r = 0; r < a.num_rows; ++r) {
    const bool reads = SeesAnything(a, r);
    for (size_t c = 0; c < a.head_dim; c += kLanes) {
      const size_t count = a.head_dim - c < kLanes ? a.head_dim - c : kLanes;
      const VF x = reads ? LoadElementsN(a.options.q_type, a.rows[r].q, c, count) : hn::Zero(d);
      hn::Store(hn::Mul(x, scale), d, q + r * stride + c);
    }
  }
}

// A chunk of one source, or the part of it that some row sees.
struct Chunk {
  const KeySource& source;
  const RowKeys* row_keys;
  Span keys;
  FloatRows k;
  FloatRows v;
  size_t num_keys;
};

struct ScoreKernel {
  const Scratch& scratch;
  const Chunk& chunk;
  size_t head_dim;
  template <size_t NR>
  HWY_INLINE void Run(size_t r) const {
    const size_t stride = RoundUp(head_dim);
    ScoreAllKeys<NR>(scratch.q + r * stride, stride, chunk.k, chunk.num_keys, head_dim, scratch.s + r * kScores,
                     kScores);
  }
};

struct SumKernel {
  const Scratch& scratch;
  const Chunk& chunk;
  size_t value_dim;
  bool first;
  template <size_t NR>
  HWY_INLINE void Run(size_t r) const {
    const size_t stride = RoundUp(value_dim);
    SumAllChannels<NR>(scratch.s + r * kScores, kScores, chunk.v, chunk.num_keys, value_dim,
                       scratch.block.o + r * stride, stride, {first, scratch.a + r, scratch.b + r});
  }
};

// Scores of row r become weights; its maximum and sum. True if every key is visible and every score a number.
bool WeighRow(const AttendArgs& a, const Chunk& chunk, size_t r, const Scratch& scratch) {
  const DF d;
  float* s = scratch.s + r * kScores;
  const RowKeys& keys = chunk.row_keys[r];
  const size_t n = chunk.num_keys;
  const bool partial = keys.span.first > chunk.keys.first || keys.span.last < chunk.keys.last;
  const bool changed = partial || HasOptions(a.options, keys);
  if (changed) ApplyRowOptions(a.rows[r], keys, chunk.source, a.options, chunk.keys.first, n, s);

  VF max = NegativeInfinities(), probe = hn::Zero(d);
  for (size_t i = 0; i < n; i += kLanes) {
    const VF x = hn::Load(d, s + i);  // lanes beyond n repeat the last key, or are -inf
    max = MaxOf(x, max);
    probe = hn::MulAdd(x, hn::Zero(d), probe);
  }
  const float m = hn::ReduceMax(d, max);
  const VF finite = m == FromBits(0xFF800000u) ? hn::Zero(d) : hn::Set(d, m);
  const bool plain = !changed && !AnyNaN(probe);
  for (size_t i = 0; i < n; i += kLanes) {
    const VF x = hn::Load(d, s + i);
    const VF t = hn::Sub(x, finite);
    const VF p =
        plain ? ExpOfNumbers(t) : hn::IfThenElse(hn::Eq(x, NegativeInfinities()), SetBits(0x80000000u), Exp(t));
    hn::Store(p, d, s + i);
  }
  float l = 0.0f;
  for (size_t i = 0; i < n; ++i) l += s[i];  // -0 of a key that is not visible changes no sum
  scratch.m[r] = m;
  scratch.l[r] = l;
  return plain;
}

// left = fold of left and right, but for o: the weights for that come out.
void FoldSums(size_t num_rows, const RowStates& left, const float* m, const float* l, const Scratch& scratch) {
  const DF d;
  for (size_t r = 0; r < num_rows; r += kLanes) {
    const VectorWeights w = WeightsOf(hn::Load(d, left.m + r), hn::Load(d, m + r));
    hn::Store(w.max, d, left.m + r);
    hn::Store(hn::MulAdd(hn::Load(d, left.l + r), w.a, hn::Mul(hn::Load(d, l + r), w.b)), d, left.l + r);
    hn::Store(w.a, d, scratch.a + r);
    hn::Store(w.b, d, scratch.b + r);
  }
}

void AttendChunk(const AttendArgs& a, const Chunk& chunk, Scratch* scratch) {
  const DF d;
  ForRowBlocks(a.num_rows, ScoreKernel{*scratch, chunk, a.head_dim});
  bool plain = true;
  for (size_t r = 0; r < a.num_rows; ++r) plain &= WeighRow(a, chunk, r, *scratch);
  RowStates* block = &scratch->block;
  const bool first = !block->any;
  block->any = true;
  if (first) {
    for (size_t r = 0; r < a.num_rows; r += kLanes) {
      hn::Store(hn::Load(d, scratch->m + r), d, block->m + r);
      hn::Store(hn::Load(d, scratch->l + r), d, block->l + r);
    }
  } else {
    FoldSums(a.num_rows, *block, scratch->m, scratch->l, *scratch);
  }
  if (plain) return ForRowBlocks(a.num_rows, SumKernel{*scratch, chunk, a.value_dim, first});
  const size_t stride = RoundUp(a.value_dim);
  for (size_t r = 0; r < a.num_rows; ++r) {
    SumSelected(scratch->s + r * kScores, chunk.v, chunk.num_keys, a.value_dim, block->o + r * stride,
                {first, scratch->a + r, scratch->b + r});
  }
}

void SwapStates(RowStates* a, RowStates* b) {
  const RowStates old = *a;
  *a = *b;
  *b = old;
}

// The states of the block of keys join the totals, and are empty again.
void FoldBlock(const AttendArgs& a, Scratch* scratch) {
  const DF d;
  if (!scratch->block.any) return;
  if (!scratch->total.any) return SwapStates(&scratch->block, &scratch->total);
  scratch->block.any = false;
  FoldSums(a.num_rows, scratch->total, scratch->block.m, scratch->block.l, *scratch);
  const size_t stride = RoundUp(a.value_dim);
  for (size_t r = 0; r < a.num_rows; ++r) {
    const VF wa = hn::Set(d, scratch->a[r]), wb = hn::Set(d, scratch->b[r]);
    float* o = scratch->total.o + r * stride;
    const float* block_o = scratch->block.o + r * stride;
    for (size_t c = 0; c < a.value_dim; c += kLanes) {
      hn::Store(hn::MulAdd(hn::Load(d, o + c), wa, hn::Mul(hn::Load(d, block_o + c), wb)), d, o + c);
    }
  }
}

void ClearStates(const AttendArgs& a, RowStates* states) {
  states->any = true;
  for (size_t r = 0; r < a.num_rows; ++r) {
    states->m[r] = FromBits(0xFF800000u);
    states->l[r] = 0.0f;
  }
  const size_t floats = a.num_rows * RoundUp(a.value_dim);
  for (size_t i = 0; i < floats; i += kLanes) hn::Store(hn::Zero(DF()), DF(), states->o + i);
}

// Numerics: sinks. An empty state becomes that of the sink, which is not a fold: a sink of +inf is no NaN there.
void FoldSink(size_t value_dim, float sink, float* m, float* l, float* o) {
  const DF d;
  if (sink == FromBits(0xFF800000u)) return;
  if (*l == 0.0f) {
    *m = sink;
    *l = 1.0f;
    return;
  }
  const VectorWeights w = WeightsOf(hn::Set(d, *m), hn::Set(d, sink));
  *m = hn::GetLane(w.max);
  *l = hn::GetLane(hn::MulAdd(hn::Set(d, *l), w.a, w.b));
  const VF nothing = hn::Mul(hn::Zero(d), w.b);
  for (size_t c = 0; c < value_dim; c += kLanes) hn::Store(hn::MulAdd(hn::Load(d, o + c), w.a, nothing), d, o + c);
}

void WriteOutputs(const AttendArgs& a, Scratch* scratch) {
  const DF d;
  RowStates* total = &scratch->total;
  if (!total->any) ClearStates(a, total);
  const size_t stride = RoundUp(a.value_dim);
  for (size_t r = 0; r < a.num_rows; ++r) {
    float* o = total->o + r * stride;
    if (a.sinks) FoldSink(a.value_dim, a.rows[r].sink, &total->m[r], &total->l[r], o);
    const VF l = hn::Set(d, total->l[r]);
    const auto empty = hn::Eq(l, hn::Zero(d));
    for (size_t c = 0; c < a.value_dim; c += kLanes) {
      const size_t count = a.value_dim - c < kLanes ? a.value_dim - c : kLanes;
      const VF out = hn::IfThenZeroElse(empty, hn::Div(hn::Load(d, o + c), l));
      StoreOutputsN(a.out_type, a.rows[r].out, c, out, count);
    }
    if (a.rows[r].lse == nullptr) continue;
    const VF sum = Canonical(hn::Add(hn::Set(d, total->m[r]), Log(l)));
    *a.rows[r].lse = hn::GetLane(hn::IfThenElse(empty, NegativeInfinities(), sum));
  }
}

// State i of each row.
void WriteStates(const AttendArgs& a, const States& to, int64_t i, Scratch* scratch) {
  const DF d;
  RowStates* block = &scratch->block;
  if (!block->any) ClearStates(a, block);
  block->any = false;
  const size_t stride = RoundUp(a.value_dim);
  for (size_t r = 0; r < a.num_rows; ++r) {
    const int64_t at = static_cast<int64_t>(r) * to.row_stride + i;
    const float m = block->m[r], l = block->l[r];
    to.m[at] = etalon::Canonical(l != l ? l : m + 0.0f);
    to.l[at] = etalon::Canonical(l);
    float* o = to.o + at * static_cast<int64_t>(a.value_dim);
    for (size_t c = 0; c < a.value_dim; c += kLanes) {
      const size_t count = a.value_dim - c < kLanes ? a.value_dim - c : kLanes;
      hn::StoreN(Canonical(hn::Add(hn::Load(d, block->o + r * stride + c), hn::Zero(d))), d, o + c, count);
    }
  }
}

// The smallest span that holds those of all rows.
Span HullOf(const RowKeys* keys, size_t num_rows) {
  Span hull = {INT64_MAX, INT64_MIN};
  for (size_t r = 0; r < num_rows; ++r) {
    if (IsEmpty(keys[r].span)) continue;
    hull.first = Smaller(hull.first, keys[r].span.first);
    hull.last = Larger(hull.last, keys[r].span.last);
  }
  return IsEmpty(hull) ? Span{0, 0} : hull;
}

void AttendKeys(const AttendArgs& a, const KeySource& source, const RowKeys* row_keys, const Span& keys,
                Scratch* scratch) {
  const auto at = [&](const void* data, int64_t stride) {
    return static_cast<const unsigned char*>(data) + (keys.first - source.base) * stride;
  };
  const size_t n = static_cast<size_t>(keys.last - keys.first);
  const FloatRows k = LoadRows(source.k_type, at(source.k, source.k_stride_bytes), source.k_stride_bytes, n, a.head_dim,
                               false, scratch->k);
  const FloatRows v = LoadRows(source.v_type, at(source.v, source.v_stride_bytes), source.v_stride_bytes, n,
                               a.value_dim, false, scratch->v);
  AttendChunk(a, {source, row_keys, keys, k, v, n}, scratch);
}

}  // namespace

size_t DecodeScratchBytes(size_t head_dim, size_t value_dim) {
  size_t needed;
  LayOut(nullptr, head_dim, value_dim, &needed);
  return needed;
}

void AttendDecode(const AttendJob& job) {
  const AttendArgs& a = job.args;
  size_t needed;
  Scratch scratch = LayOut(a.scratch, a.head_dim, a.value_dim, &needed);
  ScaleQueries(a, scratch.q);
  for (size_t i = 0; i < a.num_sources; ++i) {
    const RowKeys* row_keys = a.keys + i * a.num_rows;
    const Span hull = HullOf(row_keys, a.num_rows);
    Range blocks = {hull.first / kBlock, DivideUp(hull.last, kBlock)};
    if (job.states != nullptr) blocks = {job.first_block, job.last_block};
    for (int64_t block = blocks.first; block < blocks.last; ++block) {
      for (int64_t first = block * kBlock; first < (block + 1) * kBlock; first += kChunk) {
        const Span keys = Intersect({first, first + kChunk}, hull);
        if (!IsEmpty(keys)) AttendKeys(a, a.sources[i], row_keys, keys, &scratch);
      }
      if (job.states == nullptr) {
        FoldBlock(a, &scratch);
      } else {
        WriteStates(a, *job.states, block - job.first_block, &scratch);
      }
    }
  }
  if (job.states == nullptr) WriteOutputs(a, &scratch);
}

#endif  // ETALON_HIGHWAY_EXACT
}  // namespace HWY_NAMESPACE
}  // namespace etalon
HWY_AFTER_NAMESPACE();
