// state-inl.h: the states (m, l, o) of docs/numerics.md, their fold, and what becomes of the last one. Lanes are
// channels.
#ifndef ETALON_ARCH_XSIMD_STATE_INL_H_
#define ETALON_ARCH_XSIMD_STATE_INL_H_

#include <cstddef>
#include <cstdint>

#include "arch/kernel_table.h"
#include "arch/xsimd/functions-inl.h"
#include "arch/xsimd/scratch-inl.h"
#include "arch/xsimd/vector-inl.h"

namespace etalon {
namespace {

// l = 0 means empty, and then m and o mean nothing. o has whole vectors.
struct State {
  float m;
  float l;
  float* o;
};

inline float Largest(float a, float b) { return b > a ? b : a; }

// *left = the fold of *left and right.
inline void FoldInto(State* left, const State& right, size_t value_dim) {
  if (right.l == 0.0f) return;
  if (left->l == 0.0f) {
    left->m = right.m;
    left->l = right.l;
    for (size_t c = 0; c < value_dim; c += kLanes) Store(Load(right.o + c), left->o + c);
    return;
  }
  const float max = Largest(left->m, right.m);
  const float a = Exp(left->m - max), b = Exp(right.m - max);
  left->l = Fma(left->l, a, right.l * b);
  for (size_t c = 0; c < value_dim; c += kLanes) {
    Store(Fma(Load(left->o + c), F32(a), Load(right.o + c) * F32(b)), left->o + c);
  }
  left->m = max;
}

// The sink of a row is the state (sink, 1, 0); its o is made in `zeros`.
inline void FoldSinkInto(State* total, float sink, float* zeros, size_t value_dim) {
  if (!IsVisible(sink)) return;
  for (size_t c = 0; c < value_dim; c += kLanes) Store(F32(0.0f), zeros + c);
  FoldInto(total, {sink, 1.0f, zeros}, value_dim);
}

// out and lse of a row whose states and sink are all folded.
inline void WriteRow(const State& total, const QueryRow& row, DType out_type, size_t value_dim) {
  const bool empty = total.l == 0.0f;
  for (size_t c = 0; c < value_dim; c += kLanes) {
    const F32 out = empty ? F32(0.0f) : Divide(Load(total.o + c), F32(total.l));
    StoreSomeOutputs(out_type, row.out, c, AtMostLanes(value_dim - c), out);  // adds the 0
  }
  if (row.lse != nullptr) *row.lse = empty ? FromBits(0xFF800000u) : Canonical(total.m + Log(total.l));
}

// State `index` of `states`, numbered as its arrays are.
inline void WriteState(const State& state, const States& states, int64_t index, size_t value_dim) {
  const bool empty = state.l == 0.0f;
  float* o = states.o + index * static_cast<int64_t>(value_dim);
  for (size_t c = 0; c < value_dim; c += kLanes) {
    StoreSomeOutputs(DType::kF32, o, c, AtMostLanes(value_dim - c), empty ? F32(0.0f) : Load(state.o + c));
  }
  const float m = state.l != state.l ? state.l : state.m + 0.0f;
  states.m[index] = empty ? FromBits(0xFF800000u) : Canonical(m);
  states.l[index] = empty ? 0.0f : Canonical(state.l);
}

// Numerics: fold, sinks and output.
void Fold(const FoldArgs& args) {
  const Scratch scratch = CarveScratch(0, args.value_dim, args.scratch);
  for (size_t r = 0; r < args.num_rows; ++r) {
    State total = {0.0f, 0.0f, scratch.total};
    for (int64_t i = 0; i < args.num_states; ++i) {
      const int64_t index = static_cast<int64_t>(r) * args.states.row_stride + i;
      const float* o = args.states.o + index * static_cast<int64_t>(args.value_dim);
      const State state = {args.states.m[index], args.states.l[index], scratch.block};
      if (state.l == 0.0f) continue;
      for (size_t c = 0; c < args.value_dim; c += kLanes) {
        Store(LoadSome(o + c, AtMostLanes(args.value_dim - c)), state.o + c);
      }
      FoldInto(&total, state, args.value_dim);
    }
    if (args.sinks) FoldSinkInto(&total, args.rows[r].sink, scratch.block, args.value_dim);
    WriteRow(total, args.rows[r], args.out_type, args.value_dim);
  }
}

}  // namespace
}  // namespace etalon

#endif  // ETALON_ARCH_XSIMD_STATE_INL_H_
