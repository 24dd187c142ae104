// attention.h: one tile of attention: brings the rows of a call and their keys into the form that the fused kernels
// take. Which tiles there are is the business of tiles.h, who runs them that of schedule.h.
#ifndef ETALON_LIB_ATTENTION_ATTENTION_H_
#define ETALON_LIB_ATTENTION_ATTENTION_H_

#include <cstddef>
#include <cstdint>

#include "arch/kernel_table.h"
#include "lib/attention/tiles.h"
#include "lib/base/view.h"

namespace etalon {

// q [batch, num_q_heads, q_len, head_dim], k [batch, num_kv_heads, kv_len, head_dim], v [..., kv_len, value_dim],
// out [batch, num_q_heads, q_len, value_dim], lse [batch, num_q_heads, q_len] f32; data may be null in tensors without
// elements, and in out, lse and v where they are not wanted. Everything has been checked.
struct AttentionProblem {
  RowTiles tiles;
  Sequences sequences;
  size_t head_dim;
  size_t value_dim;
  TensorView q;
  TensorView k;
  TensorView v;
  MutableTensorView out;
  MutableTensorView lse;
  float scale;  // as it is used
};

// 1 / sqrt(head_dim), computed in f64 and rounded to f32 once.
float DefaultScale(size_t head_dim);

// The rows of a tile and the keys of its only source, as kernels take them.
struct TileArguments {
  QueryRow rows[kMostTileRows];
  RowKeys keys[kMostTileRows];
  KeySource source;
};
void FillTile(const AttentionProblem& problem, const Tile& tile, TileArguments* arguments);

// The whole tile: out and lse. Scratch as the kernel wants it.
void AttendTile(const KernelTable& table, const AttentionProblem& problem, const Tile& tile, void* scratch);

// The states of blocks first_block ... last_block - 1 of every row of the tile; state i of a row is that of block
// first_block + i.
void AttendBlocks(const KernelTable& table, const AttentionProblem& problem, const Tile& tile, int64_t first_block,
                  int64_t last_block, const States& states, void* scratch);

// Out and lse of the tile from the states of its rows.
void FoldTile(const KernelTable& table, const AttentionProblem& problem, const Tile& tile, const States& states,
              int64_t num_states, void* scratch);

}  // namespace etalon

#endif  // ETALON_LIB_ATTENTION_ATTENTION_H_
