#include "lib/attention/values.h"

namespace etalon {

void WeightedSumTile(const KernelTable& table, const WeightedSumProblem& p, const Tile& tile, void* scratch) {
  WeightedSumRow rows[kMostTileRows];
  for (int64_t r = 0; r < tile.num_rows; ++r) {
    const TileRow row = RowOf(p.tiles, tile, r);
    rows[r] = {};
    if (p.weights.data != nullptr) {
      rows[r].w = static_cast<const float*>(p.weights.Row(tile.batch, row.head, row.query));
    }
    rows[r].out = p.out.Row(tile.batch, row.head, row.query);
    rows[r].span = SeenBy(p.sequences, tile.batch, row.head, row.query).span;
    if (p.mask.rows.data != nullptr) {
      rows[r].mask = static_cast<const uint8_t*>(p.mask.rows.Row(tile.batch, row.head, row.query));
    }
  }
  WeightedSumArgs args = {};
  args.rows = rows;
  args.num_rows = static_cast<size_t>(tile.num_rows);
  args.num_keys = p.sequences.kv_len;
  args.mask_stride_bytes = p.mask.column_stride_bytes;
  if (p.v.data != nullptr) args.v = p.v.Row(tile.batch, tile.kv_head, 0);
  args.v_stride_bytes = p.v.row_stride_bytes;
  args.v_type = p.v.type;
  args.out_type = p.out.type;
  args.value_dim = p.value_dim;
  args.scratch = scratch;
  table.weighted_sum(args);
}

}  // namespace etalon
