// values.h: the weighted sum primitive: out = weights v of every head.
#ifndef ETALON_LIB_ATTENTION_VALUES_H_
#define ETALON_LIB_ATTENTION_VALUES_H_

#include <cstddef>

#include "lib/attention/columns.h"
#include "lib/attention/sequences.h"
#include "lib/attention/tiles.h"
#include "lib/base/view.h"

namespace etalon {

// weights [batch, num_q_heads, q_len, kv_len] f32, v [batch, num_kv_heads, kv_len, value_dim], out [batch, num_q_heads,
// q_len, value_dim].
struct WeightedSumProblem {
  RowTiles tiles;
  Sequences sequences;
  size_t value_dim;
  TensorView weights;
  TensorView v;
  MutableTensorView out;
  ColumnsView mask;  // of bytes
};

void WeightedSumTile(const KernelTable& table, const WeightedSumProblem& problem, const Tile& tile, void* scratch);

}  // namespace etalon

#endif  // ETALON_LIB_ATTENTION_VALUES_H_
