// attention.h: attention over whole arrays: cuts the problem into tiles of query rows that share a key/value head, and
// gives each tile its spans. The arithmetic is the kernels'.
#ifndef ETALON_LIB_ATTENTION_ATTENTION_H_
#define ETALON_LIB_ATTENTION_ATTENTION_H_

#include <cstddef>
#include <cstdint>

#include "arch/kernel_table.h"
#include "lib/attention/mask.h"
#include "lib/base/parallel.h"
#include "lib/base/view.h"

namespace etalon {

// q [batch, num_q_heads, q_len, head_dim], k [batch, num_kv_heads, kv_len, head_dim], v [..., kv_len, value_dim],
// out [batch, num_q_heads, q_len, value_dim], lse [batch, num_q_heads, q_len] packed, or null. Head h reads key/value
// head h / (num_q_heads / num_kv_heads). Sizes are valid: the heads divide, dims >= 1, the rest >= 0.
struct AttentionProblem {
  int64_t batch;
  int64_t num_q_heads;
  int64_t num_kv_heads;
  int64_t q_len;
  int64_t kv_len;
  size_t head_dim;
  size_t value_dim;
  TensorView q;
  TensorView k;
  TensorView v;
  MutableTensorView out;
  float* lse;
  float scale;
  Geometry geometry;
};

// 1 / sqrt(head_dim), computed in f64 and rounded to f32 once.
float DefaultScale(size_t head_dim);

// Independent tasks of the problem, each a tile of rows.
int64_t NumAttentionTasks(const AttentionProblem& problem);

// Scratch of one worker, in bytes, aligned to kWorkspaceAlignment.
size_t AttentionScratchBytes(const KernelTable& table, const AttentionProblem& problem);

// Runs tasks first ... last - 1 in the library's floating-point environment. Any order and any split gives the same
// bytes.
void RunAttention(const KernelTable& table, const AttentionProblem& problem, Range tasks, void* scratch);

}  // namespace etalon

#endif  // ETALON_LIB_ATTENTION_ATTENTION_H_
