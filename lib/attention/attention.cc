#include "lib/attention/attention.h"

#include "lib/base/environment.h"

namespace etalon {
namespace {

KeySource SourceOf(const AttentionProblem& p, const Tile& tile) {
  KeySource source = {};
  source.k_type = p.k.type;
  source.v_type = p.v.type;
  source.num_keys = KvLen(p.sequences, tile.batch);
  if (source.num_keys == 0) return source;  // there may be no memory
  source.k = p.k.Row(tile.batch, tile.kv_head, 0);
  source.k_stride_bytes = p.k.row_stride_bytes;
  source.v = p.v.data == nullptr ? nullptr : p.v.Row(tile.batch, tile.kv_head, 0);
  source.v_stride_bytes = p.v.row_stride_bytes;
  return source;
}

AttendArgs ArgsOf(const AttentionProblem& p, const Tile& tile, const TileArguments& arguments, void* scratch) {
  AttendArgs args = {};
  args.rows = arguments.rows;
  args.num_rows = static_cast<size_t>(tile.num_rows);
  args.sources = &arguments.source;
  args.num_sources = 1;
  args.keys = arguments.keys;
  args.head_dim = p.head_dim;
  args.value_dim = p.value_dim;
  args.options = {p.q.type, p.scale, 0.0f, false};
  args.out_type = p.out.type;
  args.scratch = scratch;
  return args;
}

struct ScaleJob {
  size_t head_dim;
  float scale;
};

void ComputeScale(void* arg) {
  ScaleJob* job = static_cast<ScaleJob*>(arg);
  job->scale = static_cast<float>(1.0 / __builtin_sqrt(static_cast<double>(job->head_dim)));
}

}  // namespace

float DefaultScale(size_t head_dim) {
  ScaleJob job = {head_dim, 0.0f};
  RunInEnvironment(ComputeScale, &job);  // the host's rounding mode would change the last bit for some head_dim
  return job.scale;
}

void FillTile(const AttentionProblem& p, const Tile& tile, TileArguments* arguments) {
  for (int64_t r = 0; r < tile.num_rows; ++r) {
    const TileRow row = RowOf(p.tiles, tile, r);
    QueryRow* query = &arguments->rows[r];
    *query = {};
    query->q = p.q.Row(tile.batch, row.head, row.query);
    query->position = PositionOf(p.sequences, tile.batch, row.query);
    if (p.out.data != nullptr) query->out = p.out.Row(tile.batch, row.head, row.query);
    if (p.lse.data != nullptr) query->lse = static_cast<float*>(p.lse.Row(tile.batch, row.head, row.query));
    arguments->keys[r] = {SpanOf(p.sequences, tile.batch, row.query), nullptr, nullptr};
  }
  arguments->source = SourceOf(p, tile);
}

void AttendTile(const KernelTable& table, const AttentionProblem& p, const Tile& tile, void* scratch) {
  TileArguments arguments;
  FillTile(p, tile, &arguments);
  table.attend(ArgsOf(p, tile, arguments, scratch));
}

void AttendBlocks(const KernelTable& table, const AttentionProblem& p, const Tile& tile, int64_t first_block,
                  int64_t last_block, const States& states, void* scratch) {
  TileArguments arguments;
  FillTile(p, tile, &arguments);
  table.block_states({ArgsOf(p, tile, arguments, scratch), first_block, last_block, states});
}

void FoldTile(const KernelTable& table, const AttentionProblem& p, const Tile& tile, const States& states,
              int64_t num_states, void* scratch) {
  TileArguments arguments;
  FillTile(p, tile, &arguments);
  FoldArgs args = {};
  args.rows = arguments.rows;
  args.num_rows = static_cast<size_t>(tile.num_rows);
  args.states = states;
  args.num_states = num_states;
  args.value_dim = p.value_dim;
  args.out_type = p.out.type;
  args.scratch = scratch;
  table.fold(args);
}

}  // namespace etalon
