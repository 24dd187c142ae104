#include "lib/attention/attention.h"

#include <cmath>

#include "arch/dispatch.h"
#include "lib/base/environment.h"

namespace etalon {
namespace {

constexpr int64_t kRowsOfTile = 32;

// The rows of one group (the query heads that share a key/value head) in head-major order.
int64_t RowsOfGroup(const AttentionProblem& p) { return p.num_q_heads / p.num_kv_heads * p.q_len; }

int64_t TilesOfGroup(const AttentionProblem& p) { return (RowsOfGroup(p) + kRowsOfTile - 1) / kRowsOfTile; }

KeySource SourceOf(const AttentionProblem& p, int64_t batch, int64_t kv_head) {
  KeySource source = {};
  source.k = p.k.Row(batch, kv_head, 0);
  source.v = p.v.Row(batch, kv_head, 0);
  source.k_stride_bytes = p.k.row_stride_bytes;
  source.v_stride_bytes = p.v.row_stride_bytes;
  source.k_type = p.k.type;
  source.v_type = p.v.type;
  source.num_keys = p.kv_len;
  return source;
}

void RunTile(const KernelTable& table, const AttentionProblem& p, int64_t task, void* scratch) {
  const int64_t tiles = TilesOfGroup(p);
  const int64_t group = p.num_q_heads / p.num_kv_heads;
  const int64_t batch = task / tiles / p.num_kv_heads;
  const int64_t kv_head = task / tiles % p.num_kv_heads;
  const int64_t first = task % tiles * kRowsOfTile;
  const int64_t rows_left = RowsOfGroup(p) - first;
  const int64_t num_rows = rows_left < kRowsOfTile ? rows_left : kRowsOfTile;

  QueryRow rows[kRowsOfTile];
  RowKeys keys[kRowsOfTile];
  for (int64_t r = 0; r < num_rows; ++r) {
    const int64_t head = kv_head * group + (first + r) / p.q_len;
    const int64_t i = (first + r) % p.q_len;
    float* lse = p.lse == nullptr ? nullptr : p.lse + (batch * p.num_q_heads + head) * p.q_len + i;
    rows[r] = {p.q.Row(batch, head, i), RowPosition(p.geometry, i), 0.0f, 0.0f, p.out.Row(batch, head, i), lse};
    keys[r] = {VisibleSpan(p.geometry, i, 0, p.kv_len), nullptr, nullptr};
  }

  KeySource source = {};
  if (p.kv_len > 0) source = SourceOf(p, batch, kv_head);  // without keys the pointers may be null

  AttendArgs args = {};
  args.rows = rows;
  args.num_rows = static_cast<size_t>(num_rows);
  args.sources = &source;
  args.num_sources = 1;
  args.keys = keys;
  args.head_dim = p.head_dim;
  args.value_dim = p.value_dim;
  args.options = {p.q.type, p.scale, 0.0f, false};
  args.out_type = p.out.type;
  args.scratch = scratch;
  table.attend(args);
}

struct Job {
  const KernelTable& table;
  const AttentionProblem& problem;
  Range tasks;
  void* scratch;
};

void RunJob(void* arg) {
  const Job& job = *static_cast<const Job*>(arg);
  for (int64_t task = job.tasks.first; task < job.tasks.last; ++task) {
    RunTile(job.table, job.problem, task, job.scratch);
  }
}

struct ScaleJob {
  size_t head_dim;
  float scale;
};

void ComputeScale(void* arg) {
  ScaleJob* job = static_cast<ScaleJob*>(arg);
  job->scale = static_cast<float>(1.0 / std::sqrt(static_cast<double>(job->head_dim)));
}

}  // namespace

float DefaultScale(size_t head_dim) {
  ScaleJob job = {head_dim, 0.0f};
  RunInEnvironment(ComputeScale, &job);  // the host's rounding mode would change the last bit for some head_dim
  return job.scale;
}

int64_t NumAttentionTasks(const AttentionProblem& p) {
  return p.num_kv_heads == 0 ? 0 : p.batch * p.num_kv_heads * TilesOfGroup(p);  // no heads, no groups
}

size_t AttentionScratchBytes(const KernelTable& table, const AttentionProblem& p) {
  return ScratchBytes(table, p.head_dim, p.value_dim);
}

void RunAttention(const KernelTable& table, const AttentionProblem& problem, Range tasks, void* scratch) {
  Job job = {table, problem, tasks, scratch};
  RunInEnvironment(RunJob, &job);
}

}  // namespace etalon
