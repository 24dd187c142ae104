// Joins what was computed apart: pairs (out, lse), and the states of blocks. Numerics: merge of (out, lse); fold, sinks
// and output. Channels are lanes.
#include "arch/highway/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "arch/highway/merge.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "arch/highway/math-inl.h"
#include "arch/highway/stages.h"

HWY_BEFORE_NAMESPACE();
namespace etalon {
namespace HWY_NAMESPACE {
#if ETALON_HIGHWAY_EXACT
namespace {

// The weights that bring two sides to a common maximum, in all lanes. Neither side is empty: what else a maximum of
// -inf could be is for the arithmetic to say, which is why this is not WeightsOf().
HWY_INLINE VectorWeights WeightsOfBoth(VF m1, VF m2) {
  const VF max = MaxOf(m1, m2);
  return {max, Exp(hn::Sub(m1, max)), Exp(hn::Sub(m2, max))};
}

HWY_INLINE VF Joined(VF x1, VF x2, const VectorWeights& weights) {
  return hn::MulAdd(x1, weights.a, hn::Mul(x2, weights.b));
}

// lse of a row that is not empty.
HWY_INLINE float Lse(VF m, VF l) { return hn::GetLane(Canonical(hn::Add(m, Log(l)))); }

// --- (out, lse) ---

struct MergeRow {
  const void* out1;
  const void* out2;
  void* out;
  float lse1;
  float lse2;
};

MergeRow RowOf(const MergeArgs& a, size_t r) {
  const int64_t row = static_cast<int64_t>(r);
  return {static_cast<const unsigned char*>(a.out1) + row * a.out1_stride_bytes,
          static_cast<const unsigned char*>(a.out2) + row * a.out2_stride_bytes,
          static_cast<unsigned char*>(a.out) + row * a.out_stride_bytes, a.lse1[r], a.lse2[r]};
}

void WriteZeros(DType type, size_t value_dim, void* out) {
  ForVectors(value_dim, [&](size_t c, size_t count) HWY_ATTR { StoreOutputsN(type, out, c, hn::Zero(DF()), count); });
}

// An empty side passes the other through, but for the two rules of everything that is written: one NaN, zeros are +0.
void CopyRow(DType type, size_t value_dim, const void* in, void* out) {
  ForVectors(value_dim, [&](size_t c, size_t count)
                            HWY_ATTR { StoreOutputsN(type, out, c, LoadElementsN(type, in, c, count), count); });
}

// Returns the joined lse.
float MergeBoth(DType type, size_t value_dim, const MergeRow& row) {
  const VectorWeights weights = WeightsOfBoth(hn::Set(DF(), row.lse1), hn::Set(DF(), row.lse2));
  const VF l = hn::Add(weights.a, weights.b);
  ForVectors(value_dim, [&](size_t c, size_t count) HWY_ATTR {
    const VF out1 = LoadElementsN(type, row.out1, c, count);
    const VF out2 = LoadElementsN(type, row.out2, c, count);
    StoreOutputsN(type, row.out, c, hn::Div(Joined(out1, out2, weights), l), count);
  });
  return Lse(weights.max, l);
}

float MergeOneRow(DType type, size_t value_dim, const MergeRow& row) {
  const bool empty1 = row.lse1 == NegativeInfinity();
  const bool empty2 = row.lse2 == NegativeInfinity();
  if (!empty1 && !empty2) return MergeBoth(type, value_dim, row);
  if (empty1 && empty2) {
    WriteZeros(type, value_dim, row.out);
    return NegativeInfinity();
  }
  CopyRow(type, value_dim, empty1 ? row.out2 : row.out1, row.out);
  const float lse = empty1 ? row.lse2 : row.lse1;
  return lse != lse ? FromBits(kCanonicalNaN) : lse;
}

// --- States ---

// The state of a row so far. l = 0 means that it has seen no key.
struct Total {
  VF m;  // the same in all lanes, as l
  VF l;
  float* o;  // value_dim, and room for whole vectors
};

HWY_INLINE bool IsEmpty(VF l) { return hn::GetLane(l) == 0.0f; }

void Clear(Total* total, size_t value_dim) {
  total->m = NegativeInfinities();
  total->l = hn::Zero(DF());
  for (size_t c = 0; c < value_dim; c += kLanes) hn::Store(hn::Zero(DF()), DF(), total->o + c);
}

// The first state that is not empty.
void Take(VF m, VF l, const float* o, size_t value_dim, Total* total) {
  total->m = m;
  total->l = l;
  ForVectors(value_dim, [&](size_t c, size_t count)
                            HWY_ATTR { hn::Store(LoadElementsN(DType::kF32, o, c, count), DF(), total->o + c); });
}

// *total = fold of *total and a state, in this order.
void Fold(VF m, VF l, const float* o, size_t value_dim, Total* total) {
  if (IsEmpty(l)) return;
  if (IsEmpty(total->l)) return Take(m, l, o, value_dim, total);
  const VectorWeights weights = WeightsOfBoth(total->m, m);
  total->m = weights.max;
  total->l = Joined(total->l, l, weights);
  ForVectors(value_dim, [&](size_t c, size_t count) HWY_ATTR {
    const VF joined = Joined(hn::Load(DF(), total->o + c), LoadElementsN(DType::kF32, o, c, count), weights);
    hn::Store(joined, DF(), total->o + c);
  });
}

// The sink is one more state, (sink, 1, 0); a sink of -inf is no sink.
void FoldSink(float sink, size_t value_dim, Total* total) {
  if (sink == NegativeInfinity()) return;
  const VF m = hn::Set(DF(), sink);
  const VF one = hn::Set(DF(), 1.0f);
  if (IsEmpty(total->l)) {  // o is zero already
    total->m = m;
    total->l = one;
    return;
  }
  const VectorWeights weights = WeightsOfBoth(total->m, m);
  total->m = weights.max;
  total->l = Joined(total->l, one, weights);
  for (size_t c = 0; c < value_dim; c += kLanes) {
    hn::Store(Joined(hn::Load(DF(), total->o + c), hn::Zero(DF()), weights), DF(), total->o + c);
  }
}

void WriteOutput(const Total& total, DType out_type, size_t value_dim, const QueryRow& row) {
  if (IsEmpty(total.l)) {
    WriteZeros(out_type, value_dim, row.out);
    if (row.lse != nullptr) *row.lse = NegativeInfinity();
    return;
  }
  ForVectors(value_dim, [&](size_t c, size_t count) HWY_ATTR {
    StoreOutputsN(out_type, row.out, c, hn::Div(hn::Load(DF(), total.o + c), total.l), count);
  });
  if (row.lse != nullptr) *row.lse = Lse(total.m, total.l);
}

}  // namespace

void Merge(const MergeArgs& args) {
  for (size_t r = 0; r < args.num_rows; ++r) {
    const float lse = MergeOneRow(args.type, args.value_dim, RowOf(args, r));
    if (args.lse != nullptr) args.lse[r] = lse;
  }
}

size_t FoldScratchBytes(size_t value_dim) { return RoundUp(value_dim) * sizeof(float); }

void FoldStates(const FoldArgs& args) {
  const DF d;
  const States& states = args.states;
  for (size_t r = 0; r < args.num_rows; ++r) {
    const int64_t first = static_cast<int64_t>(r) * states.row_stride;
    Total total = {hn::Zero(d), hn::Zero(d), static_cast<float*>(args.scratch)};
    Clear(&total, args.value_dim);
    for (int64_t i = first; i < first + args.num_states; ++i) {
      const float* o = states.o + i * static_cast<int64_t>(args.value_dim);
      Fold(hn::Set(d, states.m[i]), hn::Set(d, states.l[i]), o, args.value_dim, &total);
    }
    if (args.sinks) FoldSink(args.rows[r].sink, args.value_dim, &total);
    WriteOutput(total, args.out_type, args.value_dim, args.rows[r]);
  }
}

#endif  // ETALON_HIGHWAY_EXACT
}  // namespace HWY_NAMESPACE
}  // namespace etalon
HWY_AFTER_NAMESPACE();
