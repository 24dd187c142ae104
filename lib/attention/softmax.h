// softmax.h: the masked softmax primitive over rows of scores that are stored.
#ifndef ETALON_LIB_ATTENTION_SOFTMAX_H_
#define ETALON_LIB_ATTENTION_SOFTMAX_H_

#include "lib/attention/columns.h"
#include "lib/attention/sequences.h"
#include "lib/attention/tiles.h"
#include "lib/base/view.h"

namespace etalon {

// scores, weights [batch, heads, q_len, kv_len] f32; lse [batch, heads, q_len] f32, data may be null. tiles.group = 1:
// every head is its own.
struct SoftmaxProblem {
  RowTiles tiles;
  Sequences sequences;
  TensorView scores;
  MutableTensorView weights;
  MutableTensorView lse;
  ColumnsView mask;  // of bytes
};

void SoftmaxTile(const KernelTable& table, const SoftmaxProblem& problem, const Tile& tile);

}  // namespace etalon

#endif  // ETALON_LIB_ATTENTION_SOFTMAX_H_
