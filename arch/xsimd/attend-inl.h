// attend-inl.h: the fused pass: chunks, their fold into blocks, and the fold of the blocks. One walk serves a prompt
// and a single query.
#ifndef ETALON_ARCH_XSIMD_ATTEND_INL_H_
#define ETALON_ARCH_XSIMD_ATTEND_INL_H_

#include <cstddef>
#include <cstdint>

#include "arch/kernel_table.h"
#include "arch/xsimd/functions-inl.h"
#include "arch/xsimd/keys-inl.h"
#include "arch/xsimd/score-inl.h"
#include "arch/xsimd/scratch-inl.h"
#include "arch/xsimd/state-inl.h"
#include "arch/xsimd/vector-inl.h"

namespace etalon {
namespace {

// The states that the rows of a group have among one kind of part: chunk, block or everything.
struct GroupStates {
  State of_row[kGroupRows];
};

inline GroupStates EmptyStates(float* o, size_t value_dim) {
  GroupStates states;
  for (size_t r = 0; r < kGroupRows; ++r) states.of_row[r] = {0.0f, 0.0f, o + r * RoundUpToLanes(value_dim)};
  return states;
}

// m and l of one row's chunk; the weights exp(s - m) of its keys go to `weights`.
inline void SumChunk(const float* scores, float* weights, State* state) {
  const size_t num_keys = static_cast<size_t>(kChunkKeys);
  F32 max = MinusInfinity();
  for (size_t i = 0; i < num_keys; i += kLanes) max = xsimd::max(max, Load(scores + i));
  state->m = LargestLane(max);
  for (size_t i = 0; i < num_keys; i += kLanes) Store(Exp(Load(scores + i) - F32(state->m)), weights + i);
  state->l = 0.0f;
  for (size_t i = 0; i < num_keys; ++i) {
    if (IsVisible(scores[i])) state->l = state->l + weights[i];
  }
}

// o of all rows. A value that no row sees is not read.
inline void WeighChunk(const RowGroup& group, const KeySource& source, int64_t first, size_t value_dim,
                       GroupStates* chunk) {
  const Scratch& scratch = group.scratch;
  for (size_t r = 0; r < group.num_rows; ++r) {
    for (size_t c = 0; c < value_dim; c += kLanes) Store(F32(0.0f), chunk->of_row[r].o + c);
  }
  for (size_t i = 0; i < static_cast<size_t>(kChunkKeys); ++i) {
    bool is_widened = false;
    for (size_t r = 0; r < group.num_rows; ++r) {
      const size_t at = r * static_cast<size_t>(kChunkKeys) + i;
      if (!IsVisible(scratch.scores[at])) continue;
      if (!is_widened) {
        const void* v = ValueAt(source, first + static_cast<int64_t>(i));
        for (size_t c = 0; c < value_dim; c += kLanes) {
          Store(LoadSome(source.v_type, v, c, AtMostLanes(value_dim - c)), scratch.value + c);
        }
        is_widened = true;
      }
      const F32 p(scratch.weights[at]);
      float* o = chunk->of_row[r].o;
      for (size_t c = 0; c < value_dim; c += kLanes) Store(Fma(p, Load(scratch.value + c), Load(o + c)), o + c);
    }
  }
}

// The states of the chunk whose first position, of all that the grid gives it, is `first`.
inline void AttendChunk(const RowGroup& group, const KeySource& source, const RowKeys* keys, int64_t first,
                        size_t value_dim, GroupStates* chunk) {
  const Scratch& scratch = group.scratch;
  for (int64_t i = 0; i < kChunkKeys; i += kLanes) {
    ScoreKeys(group, source, keys, first + i, kLanes, scratch.scores + i, static_cast<size_t>(kChunkKeys));
  }
  for (size_t r = 0; r < group.num_rows; ++r) {
    const size_t at = r * static_cast<size_t>(kChunkKeys);
    SumChunk(scratch.scores + at, scratch.weights + at, &chunk->of_row[r]);
  }
  WeighChunk(group, source, first, value_dim, chunk);
}

inline void AttendBlock(const RowGroup& group, const KeySource& source, const RowKeys* keys, int64_t block,
                        size_t value_dim, GroupStates* states) {
  *states = EmptyStates(group.scratch.block, value_dim);
  GroupStates chunk = EmptyStates(group.scratch.chunk, value_dim);
  const int64_t end = (block + 1) * kBlockKeys;
  for (int64_t first = block * kBlockKeys; first < end; first += kChunkKeys) {
    if (NextInSpanAndRuns(source, keys, group.num_rows, first) >= first + kChunkKeys) continue;
    AttendChunk(group, source, keys, first, value_dim, &chunk);
    for (size_t r = 0; r < group.num_rows; ++r) FoldInto(&states->of_row[r], chunk.of_row[r], value_dim);
  }
}

// Rows r0 ... of a tile, their queries scaled. A query of which no span has a key is not read.
inline RowGroup BeginGroup(const AttendArgs& args, size_t r0) {
  const size_t left = args.num_rows - r0;
  const RowGroup group = {args.rows + r0, left < kGroupRows ? left : kGroupRows, args.head_dim, &args.options,
                          CarveScratch(args.head_dim, args.value_dim, args.scratch)};
  for (size_t r = 0; r < group.num_rows; ++r) {
    bool is_read = false;
    for (size_t s = 0; s < args.num_sources; ++s) is_read |= HasKeys(args.keys[s * args.num_rows + r0 + r].span);
    if (is_read) ScaleQuery(group, r);
  }
  return group;
}

// Numerics: chunks, fold, sinks and output.
void Attend(const AttendArgs& args) {
  for (size_t r0 = 0; r0 < args.num_rows; r0 += kGroupRows) {
    const RowGroup group = BeginGroup(args, r0);
    GroupStates total = EmptyStates(group.scratch.total, args.value_dim), block;
    for (size_t s = 0; s < args.num_sources; ++s) {
      const RowKeys* keys = args.keys + s * args.num_rows + r0;
      int64_t next = NextInSpanAndRuns(args.sources[s], keys, group.num_rows, 0);
      while (next != kNoKey) {
        const int64_t index = next / kBlockKeys;
        AttendBlock(group, args.sources[s], keys, index, args.value_dim, &block);
        for (size_t r = 0; r < group.num_rows; ++r) FoldInto(&total.of_row[r], block.of_row[r], args.value_dim);
        next = NextInSpanAndRuns(args.sources[s], keys, group.num_rows, (index + 1) * kBlockKeys);
      }
    }
    for (size_t r = 0; r < group.num_rows; ++r) {
      if (args.sinks) FoldSinkInto(&total.of_row[r], group.rows[r].sink, group.scratch.value, args.value_dim);
      WriteRow(total.of_row[r], group.rows[r], args.out_type, args.value_dim);
    }
  }
}

// Numerics: states.
void BlockStates(const BlockStatesArgs& args) {
  const AttendArgs& tile = args.tile;
  if (args.first_block >= args.last_block) return;
  for (size_t r0 = 0; r0 < tile.num_rows; r0 += kGroupRows) {
    const RowGroup group = BeginGroup(tile, r0);
    for (int64_t index = args.first_block; index < args.last_block; ++index) {
      GroupStates block;
      AttendBlock(group, *tile.sources, tile.keys + r0, index, tile.value_dim, &block);
      for (size_t r = 0; r < group.num_rows; ++r) {
        const int64_t to = static_cast<int64_t>(r0 + r) * args.states.row_stride + index - args.first_block;
        WriteState(block.of_row[r], args.states, to, tile.value_dim);
      }
    }
  }
}

}  // namespace
}  // namespace etalon

#endif  // ETALON_ARCH_XSIMD_ATTEND_INL_H_
