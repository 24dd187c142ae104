// attend-inl.h: the fused pass, one row after the other: chunks folded into blocks, blocks of all sources folded into
// the row. Numerics: chunks and states, fold, sinks and output.
#ifndef ETALON_ARCH_SCALAR_ATTEND_INL_H_
#define ETALON_ARCH_SCALAR_ATTEND_INL_H_

#include "arch/scalar/score-inl.h"
#include "arch/scalar/scratch-inl.h"
#include "arch/scalar/state-inl.h"
#include "lib/base/parallel.h"

namespace etalon {
namespace {

// One row against one source.
struct RowPass {
  const AttendArgs& args;
  const QueryRow& row;
  const RowKeys& keys;
  const KeySource& source;
  const Scratch& scratch;
};

// The state of the chunk's visible keys among positions first ... last - 1, which lie in one chunk.
void AttendChunk(const RowPass& pass, int64_t first, int64_t last, State* chunk) {
  const AttendArgs& a = pass.args;
  float* s = pass.scratch.scores;
  Clear(chunk, a.value_dim);
  for (int64_t t = first; t < last; ++t) {
    s[t - first] = Score(pass.row, pass.scratch.q_scaled, pass.keys, pass.source, a.head_dim, a.options, t);
    if (s[t - first] != NegativeInfinity()) chunk->m = Max(chunk->m, s[t - first]);
  }
  for (int64_t t = first; t < last; ++t) {
    if (s[t - first] == NegativeInfinity()) continue;  // absent from the chains, not a term of zero
    const float p = Exp(s[t - first] - chunk->m);
    const void* v = ValueRow(pass.source, t);
    chunk->l += p;
    for (size_t c = 0; c < a.value_dim; ++c) chunk->o[c] = Fma(p, LoadElement(pass.source.v_type, v, c), chunk->o[c]);
  }
}

// The state of the row over the keys of one block.
void AttendBlock(const RowPass& pass, int64_t block, State* result) {
  Clear(result, pass.args.value_dim);
  const int64_t end = Smaller((block + 1) * kBlock, pass.keys.span.last);
  State chunk = {0.0f, 0.0f, pass.scratch.o[0]};
  for (int64_t first = block * kBlock; first < end; first += kChunk) {
    const int64_t from = Larger(first, pass.keys.span.first);
    const int64_t to = Smaller(first + kChunk, end);
    if (from >= to) continue;
    AttendChunk(pass, from, to, &chunk);
    Fold(result, chunk, pass.args.value_dim);
  }
}

void Attend(const AttendArgs& a) {
  const Scratch scratch = Carve(a.scratch, a.head_dim, a.value_dim);
  for (size_t r = 0; r < a.num_rows; ++r) {
    bool scaled = false;  // the query of a row that sees nothing is not read
    State block = {0.0f, 0.0f, scratch.o[1]};
    State total = {0.0f, 0.0f, scratch.o[2]};
    Clear(&total, a.value_dim);
    for (size_t i = 0; i < a.num_sources; ++i) {
      const RowKeys& keys = a.keys[i * a.num_rows + r];
      if (keys.span.first >= keys.span.last) continue;
      if (!scaled) ScaleQuery(a.rows[r], a.options, a.head_dim, scratch.q_scaled);
      scaled = true;
      const RowPass pass = {a, a.rows[r], keys, a.sources[i], scratch};
      for (int64_t t = NextVisible(keys, pass.source, 0); t < keys.span.last;) {
        const int64_t b = t / kBlock;
        AttendBlock(pass, b, &block);
        Fold(&total, block, a.value_dim);
        t = NextVisible(keys, pass.source, (b + 1) * kBlock);
      }
    }
    if (a.sinks) FoldSink(&total, a.rows[r].sink, a.value_dim);
    WriteOutput(total, a.out_type, a.value_dim, a.rows[r].out, a.rows[r].lse);
  }
}

void AttendBlockStates(const BlockStatesArgs& a) {
  const AttendArgs& tile = a.tile;
  const Scratch scratch = Carve(tile.scratch, tile.head_dim, tile.value_dim);
  for (size_t r = 0; r < tile.num_rows; ++r) {
    const bool sees = tile.keys[r].span.first < tile.keys[r].span.last;
    if (sees) ScaleQuery(tile.rows[r], tile.options, tile.head_dim, scratch.q_scaled);
    const RowPass pass = {tile, tile.rows[r], tile.keys[r], tile.sources[0], scratch};
    State block = {0.0f, 0.0f, scratch.o[1]};
    for (int64_t b = a.first_block; b < a.last_block; ++b) {
      AttendBlock(pass, b, &block);
      WriteState(block, tile.value_dim, a.states, static_cast<int64_t>(r), b - a.first_block);
    }
  }
}

}  // namespace
}  // namespace etalon

#endif  // ETALON_ARCH_SCALAR_ATTEND_INL_H_
