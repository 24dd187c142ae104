#include "lib/attention/softmax.h"

namespace etalon {

void SoftmaxTile(const KernelTable& table, const SoftmaxProblem& p, const Tile& tile) {
  SoftmaxRow rows[kMostTileRows];
  for (int64_t r = 0; r < tile.num_rows; ++r) {
    const TileRow row = RowOf(p.tiles, tile, r);
    rows[r] = {};
    rows[r].s = static_cast<const float*>(p.scores.Row(tile.batch, row.head, row.query));
    rows[r].w = static_cast<float*>(p.weights.Row(tile.batch, row.head, row.query));
    if (p.lse.data != nullptr) rows[r].lse = static_cast<float*>(p.lse.Row(tile.batch, row.head, row.query));
    rows[r].span = SeenBy(p.sequences, tile.batch, row.head, row.query).span;
    if (p.mask.rows.data != nullptr) {
      rows[r].mask = static_cast<const uint8_t*>(p.mask.rows.Row(tile.batch, row.head, row.query));
    }
  }
  SoftmaxArgs args = {};
  args.rows = rows;
  args.num_rows = static_cast<size_t>(tile.num_rows);
  args.num_keys = p.sequences.kv_len;
  args.mask_stride_bytes = p.mask.column_stride_bytes;
  table.softmax(args);
}

}  // namespace etalon
