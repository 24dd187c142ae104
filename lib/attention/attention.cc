#include "lib/attention/attention.h"

#include "arch/dispatch.h"
#include "lib/base/environment.h"
#include "lib/base/workspace.h"

namespace etalon {
namespace {

// Where the parts of TileArguments lie.
struct TileArgumentsLayout {
  size_t rows;
  size_t sources;
  size_t keys;
  size_t rings;
  size_t bytes;
};

TileArgumentsLayout LayOutArguments(int64_t num_sources) {
  const size_t sources = static_cast<size_t>(num_sources), rows = static_cast<size_t>(kMostTileRows);
  TileArgumentsLayout layout = {};
  layout.rows = ReserveBytes(&layout.bytes, rows * sizeof(QueryRow));
  layout.sources = ReserveBytes(&layout.bytes, sources * sizeof(KeySource));
  layout.keys = ReserveBytes(&layout.bytes, sources * rows * sizeof(RowKeys));
  layout.rings = ReserveBytes(&layout.bytes, sources * sizeof(RingRuns));
  return layout;
}

TileArguments Carve(const AttentionProblem& p, void* memory) {
  const TileArgumentsLayout layout = LayOutArguments(p.num_sources);
  return {At<QueryRow>(memory, layout.rows), At<KeySource>(memory, layout.sources), At<RowKeys>(memory, layout.keys),
          At<RingRuns>(memory, layout.rings)};
}

// Element [batch, head] of slopes or sinks.
float LoadOfHead(const TensorView& view, int64_t batch, int64_t head) {
  return LoadElement(view.type, view.Row(batch, head, 0), 0);
}

void FillRows(const AttentionProblem& p, const Tile& tile, QueryRow* rows) {
  const int64_t batch = tile.batch, first_row = FirstRow(p.tiles, batch);
  TileRow at = RowOf(p.tiles, tile, 0);
  for (int64_t r = 0; r < tile.num_rows; ++r, at = NextRow(p.tiles, tile, at)) {
    const int64_t row = first_row + at.query;
    QueryRow* query = &rows[r];
    *query = {};
    if (p.q.data != nullptr) query->q = p.q.Row(batch, at.head, row);
    if (p.alibi && p.slopes.data != nullptr) query->slope = LoadOfHead(p.slopes, batch, at.head);
    if (p.alibi && p.slopes.data == nullptr) query->slope = p.standard_slopes[at.head];
    if (p.sinks.data != nullptr) query->sink = LoadOfHead(p.sinks, batch, at.head);
    if (p.out.data != nullptr) query->out = p.out.Row(batch, at.head, row);
    if (p.lse.data != nullptr) query->lse = static_cast<float*>(p.lse.Row(batch, at.head, row));
  }
}

// Column 0 of a query's row.
const unsigned char* RowOfColumns(const ColumnsView& view, const Tile& tile, const TileRow& row) {
  return static_cast<const unsigned char*>(view.rows.Row(tile.batch, row.head, row.query));
}

void FillKeys(const AttentionProblem& p, const Tile& tile, const SourceProblem& s, RowKeys* keys, RingRuns* ring) {
  const int64_t first_column = FirstColumn(s.sequences, tile.batch);
  if (RingHasGap(s.sequences)) *ring = RunsOfRing(s.sequences, tile.batch);
  TileRow row = RowOf(p.tiles, tile, 0);
  for (int64_t r = 0; r < tile.num_rows; ++r, row = NextRow(p.tiles, tile, row)) {
    const Seen seen = SeenBy(s.sequences, tile.batch, row.head, row.query);
    RowKeys* of_row = &keys[r];
    *of_row = {};
    of_row->span = seen.span;
    of_row->position = PositionOf(s.sequences, tile.batch, row.query);
    if (seen.span.first >= seen.span.last) continue;  // there may be no memory
    of_row->runs = seen.both_runs ? ring->of : seen.runs;
    of_row->num_runs = seen.both_runs ? 2 : seen.num_runs;
    if (s.bias.rows.data != nullptr) {
      of_row->bias = RowOfColumns(s.bias, tile, row) + first_column * s.bias.column_stride_bytes;
    }
    of_row->mask = s.mask.rows.data != nullptr ? RowOfColumns(s.mask, tile, row) : seen.bits;
  }
}

KeySource SourceOf(const SourceProblem& s, const Tile& tile) {
  KeySource source = {};
  source.k_type = s.k.type;
  source.v_type = s.v.type;
  source.num_keys = NumKeys(s.sequences, tile.batch);
  source.first_column = FirstColumn(s.sequences, tile.batch);
  source.bias_type = s.bias.rows.type;
  source.bias_stride_bytes = s.bias.column_stride_bytes;
  source.mask_stride_bytes = s.mask.column_stride_bytes;
  source.mask_type = s.mask.rows.data != nullptr ? s.mask.mask_type : MaskType::kBits;  // of a prepared mask
  if (source.num_keys == 0) return source;                                              // there may be no memory
  source.places = s.places;
  if (s.places.pages != nullptr) source.places.pages += tile.batch * s.pages_stride;
  const int64_t batch = s.places.pages != nullptr ? 0 : tile.batch;  // of pages: the first one
  const int64_t row = FirstKeyRow(s.sequences, tile.batch);
  source.k = s.k.Row(batch, tile.kv_head, row);
  source.k_stride_bytes = s.k.row_stride_bytes;
  source.v = s.v.data == nullptr ? nullptr : s.v.Row(batch, tile.kv_head, row);
  source.v_stride_bytes = s.v.row_stride_bytes;
  return source;
}

void FillSource(const AttentionProblem& p, const Tile& tile, int64_t source, const TileArguments& arguments) {
  arguments.sources[source] = SourceOf(p.sources[source], tile);
  FillKeys(p, tile, p.sources[source], arguments.keys + source * tile.num_rows, arguments.rings + source);
}

// Of `num_sources` sources from `first` on.
AttendArgs ArgsOf(const AttentionProblem& p, const Tile& tile, const TileArguments& arguments, int64_t first,
                  int64_t num_sources, void* scratch) {
  AttendArgs args = {};
  args.rows = arguments.rows;
  args.num_rows = static_cast<size_t>(tile.num_rows);
  args.sources = arguments.sources + first;
  args.num_sources = static_cast<size_t>(num_sources);
  args.keys = arguments.keys + first * tile.num_rows;
  args.head_dim = p.head_dim;
  args.value_dim = p.value_dim;
  args.options = OptionsOf(p);
  args.out_type = p.out.type;
  args.sinks = p.sinks.data != nullptr;
  args.scratch = KernelScratch(p, scratch);
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

size_t TileArgumentsBytes(int64_t num_sources) { return LayOutArguments(num_sources).bytes; }

TileArguments FillTile(const AttentionProblem& p, const Tile& tile, void* memory) {
  const TileArguments arguments = Carve(p, memory);
  FillRows(p, tile, arguments.rows);
  for (int64_t source = 0; source < p.num_sources; ++source) FillSource(p, tile, source, arguments);
  return arguments;
}

ScoreOptions OptionsOf(const AttentionProblem& p) { return {p.q.type, p.scale, p.softcap, p.alibi}; }

size_t TileScratchBytes(const KernelTable& table, int64_t num_sources, size_t head_dim, size_t value_dim) {
  return TileArgumentsBytes(num_sources) + ScratchBytes(table, head_dim, value_dim);
}

void* KernelScratch(const AttentionProblem& p, void* scratch) {
  return static_cast<unsigned char*>(scratch) + TileArgumentsBytes(p.num_sources);
}

void AttendTile(const KernelTable& table, const AttentionProblem& p, const Tile& tile, void* scratch) {
  table.attend(ArgsOf(p, tile, FillTile(p, tile, scratch), 0, p.num_sources, scratch));
}

void AttendBlocks(const KernelTable& table, const AttentionProblem& p, const Tile& tile, int64_t source,
                  int64_t first_block, int64_t last_block, const States& states, void* scratch) {
  const TileArguments arguments = Carve(p, scratch);
  FillRows(p, tile, arguments.rows);
  FillSource(p, tile, source, arguments);
  table.block_states({ArgsOf(p, tile, arguments, source, 1, scratch), first_block, last_block, states});
}

void FoldTile(const KernelTable& table, const AttentionProblem& p, const Tile& tile, const States& states,
              int64_t num_states, void* scratch) {
  const TileArguments arguments = Carve(p, scratch);
  FillRows(p, tile, arguments.rows);
  FoldArgs args = {};
  args.rows = arguments.rows;
  args.num_rows = static_cast<size_t>(tile.num_rows);
  args.states = states;
  args.num_states = num_states;
  args.value_dim = p.value_dim;
  args.out_type = p.out.type;
  args.sinks = p.sinks.data != nullptr;
  args.scratch = KernelScratch(p, scratch);
  table.fold(args);
}

}  // namespace etalon
