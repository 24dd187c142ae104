// state-inl.h: the state (m, l, o) of one row over some keys: fold, sink, output. Numerics: chunks and states, fold,
// sinks and output.
#ifndef ETALON_ARCH_SCALAR_STATE_INL_H_
#define ETALON_ARCH_SCALAR_STATE_INL_H_

#include "arch/kernel_table.h"
#include "arch/scalar/scratch-inl.h"
#include "lib/base/arithmetic.h"

namespace etalon {
namespace {

// No key was seen iff l = 0: the key that holds the maximum adds exp(0) = 1, every other at least 0, and a NaN makes l
// NaN. So l is 0 only from the empty chain, and a fold keeps that (one of its two weights is 1).
struct State {
  float m;
  float l;
  float* o;  // value_dim elements
};

bool IsEmpty(const State& state) { return state.l == 0.0f; }

void Clear(State* state, size_t value_dim) {
  state->m = NegativeInfinity();
  state->l = 0.0f;
  for (size_t c = 0; c < value_dim; ++c) state->o[c] = 0.0f;
}

// *left = fold of *left and right, in this order.
void Fold(State* left, const State& right, size_t value_dim) {
  if (IsEmpty(right)) return;
  if (IsEmpty(*left)) {
    left->m = right.m;
    left->l = right.l;
    for (size_t c = 0; c < value_dim; ++c) left->o[c] = right.o[c];
    return;
  }
  const FoldWeights w = WeightsOfFold(left->m, right.m);
  left->m = w.max;
  left->l = Fma(left->l, w.a, right.l * w.b);
  for (size_t c = 0; c < value_dim; ++c) left->o[c] = Fma(left->o[c], w.a, right.o[c] * w.b);
}

// The fold with the sink's state (sink, 1, 0). A sink of -inf is no sink.
void FoldSink(State* state, float sink, size_t value_dim) {
  if (sink == NegativeInfinity()) return;
  if (IsEmpty(*state)) {
    state->m = sink;
    state->l = 1.0f;
    return;  // o is already zero
  }
  const FoldWeights w = WeightsOfFold(state->m, sink);
  state->m = w.max;
  state->l = Fma(state->l, w.a, w.b);  // 1 * b = b
  for (size_t c = 0; c < value_dim; ++c) state->o[c] = Fma(state->o[c], w.a, 0.0f * w.b);
}

void WriteOutput(const State& state, DType out_type, size_t value_dim, void* out, float* lse) {
  const bool empty = IsEmpty(state);
  for (size_t c = 0; c < value_dim; ++c) {
    StoreOutput(out_type, out, c, empty ? 0.0f : state.o[c] / state.l);
  }
  if (lse != nullptr) *lse = empty ? NegativeInfinity() : Canonical(state.m + Log(state.l));
}

// A state as it is written to memory, element i of row r of `to`.
void WriteState(const State& state, size_t value_dim, const States& to, int64_t r, int64_t i) {
  const int64_t at = r * to.row_stride + i;
  to.m[at] = Canonical(state.l != state.l ? state.l : state.m + 0.0f);
  to.l[at] = Canonical(state.l);
  float* o = to.o + at * static_cast<int64_t>(value_dim);
  for (size_t c = 0; c < value_dim; ++c) o[c] = Canonical(state.o[c] + 0.0f);
}

void FoldStates(const FoldArgs& a) {
  const Scratch scratch = Carve(a.scratch, 0, a.value_dim);
  for (size_t r = 0; r < a.num_rows; ++r) {
    const int64_t first = static_cast<int64_t>(r) * a.states.row_stride;
    State total = {0.0f, 0.0f, scratch.o[2]};
    Clear(&total, a.value_dim);
    for (int64_t i = first; i < first + a.num_states; ++i) {
      float* o = a.states.o + i * static_cast<int64_t>(a.value_dim);
      Fold(&total, {a.states.m[i], a.states.l[i], o}, a.value_dim);
    }
    if (a.sinks) FoldSink(&total, a.rows[r].sink, a.value_dim);
    WriteOutput(total, a.out_type, a.value_dim, a.rows[r].out, a.rows[r].lse);
  }
}

}  // namespace
}  // namespace etalon

#endif  // ETALON_ARCH_SCALAR_STATE_INL_H_
