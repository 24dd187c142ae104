// merge.h: the two merges: of finished results (out, lse), and of states (m, l, o).
#ifndef ETALON_LIB_ATTENTION_MERGE_H_
#define ETALON_LIB_ATTENTION_MERGE_H_

#include <cstddef>
#include <cstdint>

#include "lib/attention/attention.h"
#include "lib/base/view.h"

namespace etalon {

// out1, out2, out [batch, heads, q_len, value_dim] of one type; lse1, lse2, lse [batch, heads, q_len] f32, the queries
// packed; lse.data may be null.
struct MergeProblem {
  int64_t batch;
  int64_t heads;
  int64_t q_len;
  size_t value_dim;
  TensorView out1;
  TensorView lse1;
  TensorView out2;
  TensorView lse2;
  MutableTensorView out;
  MutableTensorView lse;
};

int64_t NumMergeTasks(const MergeProblem& problem);  // a head of a sequence each
void MergeHead(const KernelTable& table, const MergeProblem& problem, int64_t task);

// The states of the rows of a call: row r of the group of a key/value head has `num_states` states, from state
// r * row_stride of the group on.
struct StatesView {
  float* m;
  float* l;
  float* o;
  int64_t m_batch_stride;  // floats
  int64_t l_batch_stride;
  int64_t o_batch_stride;
  int64_t row_stride;  // states
  int64_t num_states;
};

// Uses tiles, value_dim, out and lse of the problem.
void MergeStatesTile(const KernelTable& table, const AttentionProblem& problem, const StatesView& states,
                     const Tile& tile, void* scratch);

// Writes the states of all blocks.
void BlockStatesTile(const KernelTable& table, const AttentionProblem& problem, const StatesView& states,
                     const Tile& tile, void* scratch);

}  // namespace etalon

#endif  // ETALON_LIB_ATTENTION_MERGE_H_
