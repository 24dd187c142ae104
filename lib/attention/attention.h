// attention.h: one tile of attention: brings the rows of a call and their keys into the form that the fused kernels
// take. Which tiles there are is the business of tiles.h, who runs them that of schedule.h.
#ifndef ETALON_LIB_ATTENTION_ATTENTION_H_
#define ETALON_LIB_ATTENTION_ATTENTION_H_

#include <cstddef>
#include <cstdint>

#include "arch/kernel_table.h"
#include "lib/attention/columns.h"
#include "lib/attention/sequences.h"
#include "lib/attention/tiles.h"
#include "lib/base/view.h"

namespace etalon {

constexpr int64_t kMostSources = 8;

// Keys and values of one source: k [batch, num_kv_heads, kv_len, head_dim], v [..., kv_len, value_dim]; data may be
// null in tensors without elements, and in v where it is not wanted.
struct SourceProblem {
  Sequences sequences;
  TensorView k;  // of pages: [pages, num_kv_heads, page_len, head_dim]
  TensorView v;
  KeyPlaces places;      // as in KeySource, but for what stands in sequences and views; `pages` of the first sequence
  int64_t pages_stride;  // from one sequence's pages to those of the next
  ColumnsView bias;
  ColumnsView mask;
};

// q [batch, num_q_heads, q_len, head_dim], out [batch, num_q_heads, q_len, value_dim], lse [batch, num_q_heads, q_len]
// f32; data may be null in tensors without elements, and in out and lse where they are not wanted. If ragged (tiles,
// sequences) the tensors have rows of all sequences, and one batch of stride 0. Everything has been checked.
struct AttentionProblem {
  RowTiles tiles;
  SourceProblem sources[kMostSources];  // in call order; what is behind num_sources need not be anything
  int64_t num_sources;
  size_t head_dim;
  size_t value_dim;
  TensorView q;
  MutableTensorView out;
  MutableTensorView lse;
  float scale;    // as it is used
  float softcap;  // 0 = off
  bool alibi;
  TensorView slopes;             // of ALiBi: [batch, num_q_heads], any stride 0; no data = the standard ones:
  const float* standard_slopes;  // [num_q_heads]
  TensorView sinks;              // [batch, num_q_heads], any stride 0; no data = none
};

// 1 / sqrt(head_dim), computed in f64 and rounded to f32 once.
float DefaultScale(size_t head_dim);

// The rows of a tile and the keys of its sources, as kernels take them, in memory of the worker's.
struct TileArguments {
  QueryRow* rows;      // [tile.num_rows]
  KeySource* sources;  // [num_sources]
  RowKeys* keys;       // [num_sources][tile.num_rows]
  RingRuns* rings;     // [num_sources]: what keys may point to
};
size_t TileArgumentsBytes(int64_t num_sources);  // a multiple of kWorkspaceAlignment
TileArguments FillTile(const AttentionProblem& problem, const Tile& tile, void* memory);

// What kernels do between dot product and softmax.
ScoreOptions OptionsOf(const AttentionProblem& problem);

// The scratch of a worker, for all functions below and the scores: TileArgumentsBytes, then what the kernel wants.
size_t TileScratchBytes(const KernelTable& table, int64_t num_sources, size_t head_dim, size_t value_dim);
void* KernelScratch(const AttentionProblem& problem, void* scratch);

// The whole tile: out and lse.
void AttendTile(const KernelTable& table, const AttentionProblem& problem, const Tile& tile, void* scratch);

// The states of blocks first_block ... last_block - 1 of one source for every row of the tile; state i of a row is that
// of block first_block + i.
void AttendBlocks(const KernelTable& table, const AttentionProblem& problem, const Tile& tile, int64_t source,
                  int64_t first_block, int64_t last_block, const States& states, void* scratch);

// Out and lse of the tile from the states of its rows. Uses nothing of the sources.
void FoldTile(const KernelTable& table, const AttentionProblem& problem, const Tile& tile, const States& states,
              int64_t num_states, void* scratch);

}  // namespace etalon

#endif  // ETALON_LIB_ATTENTION_ATTENTION_H_
