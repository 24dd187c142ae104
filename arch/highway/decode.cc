// The fused pass for few query rows (decode-inl.h has its kernels), all of them at once. The chunks of a block are
// computed side by side: they are independent until they are folded, so that there are chains enough to hide the
// latency of one, and memory is read in as many places at once, which a core needs to get all of its bandwidth.
#include "arch/highway/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "arch/highway/decode.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "arch/highway/attend.h"
#include "arch/highway/decode-inl.h"
#include "arch/highway/options-inl.h"
#include "arch/highway/scratch.h"
#include "arch/highway/spans.h"
#include "arch/highway/stages.h"

HWY_BEFORE_NAMESPACE();
namespace etalon {
namespace HWY_NAMESPACE {
#if ETALON_HIGHWAY_EXACT
namespace {

// The states of the rows: m[row], l[row], o[row][value_dim rounded up]. If `any` is false all are empty, and nothing is
// stored yet; otherwise a row without a visible key has m = -inf, l = 0, o = 0.
struct RowStates {
  float* m;
  float* l;
  float* o;
  bool any;
};

constexpr size_t kParts = static_cast<size_t>(kBlock / kChunk);

struct Scratch {
  float* q;             // [row][head_dim rounded up], scaled
  unsigned char* keys;  // [kMostKeyVectors][KeyVectorBytes]: copies of keys that do not lie one after the other
  float* s[kParts];     // [row][kRowScores]: scores of a chunk, then their weights
  float* sum[kParts];   // [row][value_dim rounded up]: weighted sums of a chunk
  float* m[kParts];     // [row]
  float* l[kParts];
  float* a;  // [row]: weights of a fold
  float* b;
  RowStates block;
  RowStates total;
};

Scratch Carve(Carver* carver, size_t head_dim, size_t value_dim) {
  const size_t rows = RoundUp(kMostDecodeRows);
  Scratch scratch = {};
  scratch.q = CarveFloats(carver, kMostDecodeRows * RoundUp(head_dim));
  scratch.keys =
      reinterpret_cast<unsigned char*>(CarveFloats(carver, kMostKeyVectors * KeyVectorBytes(head_dim) / sizeof(float)));
  for (size_t p = 0; p < kParts; ++p) {
    scratch.s[p] = CarveFloats(carver, kMostDecodeRows * kRowScores);
    scratch.sum[p] = CarveFloats(carver, kMostDecodeRows * RoundUp(value_dim));
    scratch.m[p] = CarveFloats(carver, rows);
    scratch.l[p] = CarveFloats(carver, rows);
  }
  scratch.a = CarveFloats(carver, rows);
  scratch.b = CarveFloats(carver, rows);
  for (RowStates* states : {&scratch.block, &scratch.total}) {
    states->m = CarveFloats(carver, rows);
    states->l = CarveFloats(carver, rows);
    states->o = CarveFloats(carver, kMostDecodeRows * RoundUp(value_dim));
  }
  return scratch;
}

// A chunk of one source, or the part of it that some row sees.
struct Part {
  Span keys;
  size_t num_keys;
};

// Parts of one block that are computed side by side.
struct Parts {
  const KeySource& source;
  const RowKeys* row_keys;
  Part parts[kParts];
  size_t count;
  size_t most_keys;  // of a part
};

// Scores of all rows; lanes beyond a part's keys repeat the last.
void ScoreParts(const AttendArgs& a, const Parts& parts, const Scratch& scratch) {
  const KeySource& source = parts.source;
  const size_t row_bytes = a.head_dim * ElementSize(source.k_type);
  KeyVector keys[kMostKeyVectors];
  size_t n = 0;
  const auto flush = [&]() HWY_ATTR {
    FetchKeys(keys, n, row_bytes);
    WithType(source.k_type, ScoreAllRows{scratch.q, a.num_rows, keys, n, a.head_dim});
    n = 0;
  };
  for (size_t t = 0; t < parts.most_keys; t += kLanes) {
    for (size_t p = 0; p < parts.count; ++p) {
      const Part& part = parts.parts[p];
      if (t >= part.num_keys) continue;
      unsigned char* const copy = scratch.keys + n * KeyVectorBytes(a.head_dim);
      keys[n] = KeyVectorAt(source, part.keys, t, a.head_dim, scratch.s[p], copy);
      if (++n == kMostKeyVectors) flush();
    }
  }
  if (n > 0) flush();
  for (size_t p = 0; p < parts.count; ++p) {
    const size_t num_keys = parts.parts[p].num_keys;
    for (size_t r = 0; r < a.num_rows; ++r) {
      float* s = scratch.s[p] + r * kRowScores;
      for (size_t t = num_keys; t % kLanes != 0; ++t) s[t] = s[num_keys - 1];
    }
  }
}

// Scores of row r become weights; its maximum and sum. True if every key is visible and every score a number.
bool WeighRow(const AttendArgs& a, const Parts& parts, size_t p, size_t r, const Scratch& scratch) {
  const DF d;
  float* s = scratch.s[p] + r * kRowScores;
  const RowKeys& keys = parts.row_keys[r];
  const Part& part = parts.parts[p];
  const size_t n = part.num_keys;
  const bool options = HasOptions(a.options, keys), whole = SeesAll(keys, part.keys);
  if (options) ApplyRowOptions(a.rows[r], keys, parts.source, a.options, part.keys.first, n, s);
  if (options || !whole) HideRowScores(VisibleOf(keys, parts.source, part.keys), n, s);

  VF max = NegativeInfinities(), probe = hn::Zero(d);
  for (size_t i = 0; i < n; i += kLanes) {
    const VF x = hn::Load(d, s + i);  // lanes beyond n repeat the last key, or are -inf
    max = MaxOf(x, max);
    probe = hn::MulAdd(x, hn::Zero(d), probe);
  }
  const float m = hn::ReduceMax(d, max);
  const VF finite = m == FromBits(0xFF800000u) ? hn::Zero(d) : hn::Set(d, m);
  const bool plain = whole && !AnyNaN(probe);
  for (size_t i = 0; i < n; i += kLanes) {
    const VF x = hn::Load(d, s + i);
    const VF t = hn::Sub(x, finite);
    const VF weight =
        plain ? ExpOfNumbers(t) : hn::IfThenElse(hn::Eq(x, NegativeInfinities()), SetBits(0x80000000u), Exp(t));
    hn::Store(weight, d, s + i);
  }
  scratch.m[p][r] = m;
  return plain;
}

// The sums of the weights of all rows and parts, each a chain of its own. The weight of a key that is not visible, -0,
// changes no sum, and nor do the zeros that fill up the parts.
void SumWeights(const Parts& parts, size_t num_rows, const Scratch& scratch) {
  for (size_t r = 0; r < num_rows; ++r) {
    float l[kParts] = {};
    for (size_t p = 0; p < parts.count; ++p) {
      for (size_t t = parts.parts[p].num_keys; t < parts.most_keys; ++t) scratch.s[p][r * kRowScores + t] = 0.0f;
    }
    const float* s[kParts];
    for (size_t p = 0; p < kParts; ++p) s[p] = scratch.s[p < parts.count ? p : 0] + r * kRowScores;
    for (size_t t = 0; t < parts.most_keys; ++t) {
      for (size_t p = 0; p < kParts; ++p) l[p] += s[p][t];
    }
    for (size_t p = 0; p < parts.count; ++p) scratch.l[p][r] = l[p];
  }
}

template <DType kType>
struct SumKernel {
  const float* s;
  const unsigned char* v;
  int64_t v_stride;
  size_t num_keys;
  size_t value_dim;
  bool from_zero;
  float* sum;
  template <size_t NR>
  HWY_INLINE void Run(size_t r) const {
    const size_t stride = RoundUp(value_dim);
    SumAllChannels<kType, NR>(s + r * kRowScores, kRowScores, v, v_stride, num_keys, value_dim, from_zero,
                              sum + r * stride, stride);
  }
};

// Weighted sums of the parts whose keys are all visible, a few keys of each in turn.
struct SumParts {
  const AttendArgs& a;
  const Parts& parts;
  const bool* plain;
  const Scratch& scratch;

  // The values of keys from ... last - 1 of a part, as far as they lie one after the other.
  HWY_INLINE RowRun ValuesFrom(size_t p, size_t from, size_t last) const {
    const int64_t first = parts.parts[p].keys.first;
    return RowsFrom(parts.source, ValuePlacesOf(parts.source), first + static_cast<int64_t>(from),
                    first + static_cast<int64_t>(last));
  }

  template <DType kType>
  HWY_INLINE void Run() const {
    static_assert(kParts == kStreams, "a stream a part");
    constexpr size_t kStep = 8;
    const int64_t stride = parts.source.v_stride_bytes;
    for (size_t t = 0; t < parts.most_keys; t += kStep) {
      RowRun runs[kParts];
      size_t last[kParts];
      for (size_t p = 0; p < parts.count; ++p) {
        last[p] = parts.parts[p].num_keys < t + kStep ? parts.parts[p].num_keys : t + kStep;
        runs[p] = t < last[p] ? ValuesFrom(p, t, last[p]) : RowRun{nullptr, 0};
      }
      // What lies behind the first run is of another page, and fetched when it is read.
      for (int64_t i = 0; i < static_cast<int64_t>(kStep); ++i) {
        for (size_t p = 0; p < parts.count; ++p) {
          if (i < runs[p].count) TouchRow(runs[p].first + i * stride, a.value_dim * ElementSize(kType));
        }
      }
      for (size_t p = 0; p < parts.count; ++p) {
        for (size_t from = t; plain[p] && from < last[p];) {
          const RowRun run = from == t ? runs[p] : ValuesFrom(p, from, last[p]);
          const size_t count = static_cast<size_t>(run.count);
          ForRowBlocks(a.num_rows, SumKernel<kType>{scratch.s[p] + from, run.first, stride, count, a.value_dim,
                                                    from == 0, scratch.sum[p]});
          from += count;
        }
      }
    }
  }
};

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

// The state (m, l, o) of each row joins *left.
void FoldRows(const AttendArgs& a, const float* m, const float* l, const float* o, const Scratch& scratch,
              RowStates* left) {
  const DF d;
  const size_t stride = RoundUp(a.value_dim);
  if (!left->any) {
    left->any = true;
    for (size_t r = 0; r < a.num_rows; r += kLanes) {
      hn::Store(hn::Load(d, m + r), d, left->m + r);
      hn::Store(hn::Load(d, l + r), d, left->l + r);
    }
    for (size_t i = 0; i < a.num_rows * stride; i += kLanes) hn::Store(hn::Load(d, o + i), d, left->o + i);
    return;
  }
  FoldSums(a.num_rows, *left, m, l, scratch);
  for (size_t r = 0; r < a.num_rows; ++r) {
    const VF wa = hn::Set(d, scratch.a[r]), wb = hn::Set(d, scratch.b[r]);
    for (size_t i = r * stride; i < (r + 1) * stride; i += kLanes) {
      hn::Store(hn::MulAdd(hn::Load(d, left->o + i), wa, hn::Mul(hn::Load(d, o + i), wb)), d, left->o + i);
    }
  }
}

void AttendParts(const AttendArgs& a, const Parts& parts, Scratch* scratch) {
  bool plain[kParts];
  ScoreParts(a, parts, *scratch);
  for (size_t p = 0; p < parts.count; ++p) {
    plain[p] = true;
    for (size_t r = 0; r < a.num_rows; ++r) plain[p] &= WeighRow(a, parts, p, r, *scratch);
  }
  SumWeights(parts, a.num_rows, *scratch);
  WithType(parts.source.v_type, SumParts{a, parts, plain, *scratch});
  const size_t stride = RoundUp(a.value_dim);
  for (size_t p = 0; p < parts.count; ++p) {
    const Part& part = parts.parts[p];
    for (size_t r = 0; r < a.num_rows && !plain[p]; ++r) {
      SumSelected(scratch->s[p] + r * kRowScores, parts.source.v_type, part.num_keys, a.value_dim,
                  scratch->sum[p] + r * stride,
                  [&](size_t t) { return ValueRow(parts.source, part.keys.first + static_cast<int64_t>(t)); });
    }
    FoldRows(a, scratch->m[p], scratch->l[p], scratch->sum[p], *scratch, &scratch->block);
  }
}

void SwapStates(RowStates* a, RowStates* b) {
  const RowStates old = *a;
  *a = *b;
  *b = old;
}

// The states of the block of keys join the totals, and are empty again.
void FoldBlock(const AttendArgs& a, Scratch* scratch) {
  if (!scratch->block.any) return;
  if (!scratch->total.any) return SwapStates(&scratch->block, &scratch->total);
  scratch->block.any = false;
  FoldRows(a, scratch->block.m, scratch->block.l, scratch->block.o, *scratch, &scratch->total);
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

// The keys of a block.
void AttendBlock(const AttendArgs& a, const KeySource& source, const RowKeys* row_keys, const Span& keys,
                 Scratch* scratch) {
  Parts parts = {source, row_keys, {}, 0, 0};
  for (int64_t first = keys.first / kChunk * kChunk; first < keys.last; first += kChunk) {
    const Span chunk = Intersect({first, first + kChunk}, keys);
    const Span seen = HullOf(a.num_rows, [&](size_t r) { return SeenOf(row_keys[r], source, chunk); });
    if (IsEmpty(seen)) continue;
    const size_t num_keys = static_cast<size_t>(seen.last - seen.first);
    parts.parts[parts.count++] = {seen, num_keys};
    if (num_keys > parts.most_keys) parts.most_keys = num_keys;
  }
  if (parts.count > 0) AttendParts(a, parts, scratch);
}

}  // namespace

size_t DecodeScratchBytes(size_t head_dim, size_t value_dim) {
  Carver carver = {};
  Carve(&carver, head_dim, value_dim);
  return carver.bytes;
}

void AttendDecode(const AttendJob& job) {
  const AttendArgs& a = job.args;
  Carver carver = {a.scratch, 0};
  Scratch scratch = Carve(&carver, a.head_dim, a.value_dim);
  for (size_t r = 0; r < a.num_rows; ++r) {
    ScaleRow(a.rows[r].q, SeesAnything(a, r), a.options, a.head_dim, scratch.q + r * RoundUp(a.head_dim));
  }
  for (size_t i = 0; i < a.num_sources; ++i) {
    const RowKeys* row_keys = a.keys + i * a.num_rows;
    const Span hull = HullOf(a.num_rows, [&](size_t r) { return row_keys[r].span; });
    Range blocks = {hull.first / kBlock, DivideUp(hull.last, kBlock)};
    if (job.states != nullptr) blocks = {job.first_block, job.last_block};
    for (int64_t block = blocks.first; block < blocks.last; ++block) {
      if (job.states == nullptr) {  // no state is due of blocks that nobody sees
        const int64_t next = NextSeen(row_keys, a.num_rows, a.sources[i], block * kBlock);
        if (next >= blocks.last * kBlock) break;
        block = next / kBlock;
      }
      const Span keys = Intersect({block * kBlock, (block + 1) * kBlock}, hull);
      if (!IsEmpty(keys)) AttendBlock(a, a.sources[i], row_keys, keys, &scratch);
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
