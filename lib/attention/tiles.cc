#include "lib/attention/tiles.h"

namespace etalon {
namespace {

int64_t RowsOfSegment(const RowTiles& t) { return t.heads_apart ? t.q_len : t.group * t.q_len; }
int64_t TilesOfSegment(const RowTiles& t) { return (RowsOfSegment(t) - 1) / t.tile_rows + 1; }
Geometry GeometryOf(const Sequences& s, int64_t batch) {
  Geometry geometry;
  geometry.q_offset = s.q_offsets == nullptr ? s.q_offset : AddSaturated(s.q_offset, s.q_offsets[batch]);
  geometry.left = s.left;
  geometry.right = s.right;
  return geometry;
}

}  // namespace

int64_t TilesOfGroup(const RowTiles& t) { return (t.heads_apart ? t.group : 1) * TilesOfSegment(t); }

int64_t NumTiles(const RowTiles& t) {
  if (t.batch == 0 || t.num_kv_heads == 0 || t.group == 0 || t.q_len == 0) return 0;
  return t.batch * t.num_kv_heads * TilesOfGroup(t);
}

Tile TileAt(const RowTiles& t, int64_t index) {
  const int64_t group = index / TilesOfGroup(t);
  const int64_t of_group = index % TilesOfGroup(t);
  const int64_t rows = RowsOfSegment(t);
  const int64_t of_segment = of_group % TilesOfSegment(t) * t.tile_rows;
  Tile tile;
  tile.batch = group / t.num_kv_heads;
  tile.kv_head = group % t.num_kv_heads;
  tile.first = of_group / TilesOfSegment(t) * rows + of_segment;
  tile.num_rows = rows - of_segment < t.tile_rows ? rows - of_segment : t.tile_rows;
  return tile;
}

Tile TileOfTask(const RowTiles& t, int64_t task) {
  const int64_t of_group = TilesOfGroup(t);
  return TileAt(t, task - task % of_group + (of_group - 1 - task % of_group));
}

int64_t ChooseTileRows(const RowTiles& tiles, int32_t workers) {
  RowTiles trial = tiles;
  for (trial.tile_rows = kMostTileRows; trial.tile_rows > kLeastTileRows; trial.tile_rows /= 2) {
    if (workers <= 1 || NumTiles(trial) >= kTilesForWorker * workers) break;
  }
  return trial.tile_rows;
}

TileRow RowOf(const RowTiles& t, const Tile& tile, int64_t row) {
  const int64_t of_group = tile.first + row;
  return {tile.kv_head * t.group + of_group / t.q_len, of_group % t.q_len};
}

int64_t KvLen(const Sequences& s, int64_t batch) { return s.kv_lens == nullptr ? s.kv_len : s.kv_lens[batch]; }

int64_t PositionOf(const Sequences& s, int64_t batch, int64_t query) {
  return RowPosition(GeometryOf(s, batch), query);
}

Span SpanOf(const Sequences& s, int64_t batch, int64_t query) {
  if (s.q_lens != nullptr && query >= s.q_lens[batch]) return {0, 0};
  return VisibleSpan(GeometryOf(s, batch), query, 0, KvLen(s, batch));
}

Span SpanOfTile(const RowTiles& t, const Tile& tile, const Sequences& s) {
  Span all = {0, 0};
  // After q_len rows the queries repeat for the next head.
  for (int64_t r = 0; r < tile.num_rows && r < t.q_len; ++r) {
    const Span one = SpanOf(s, tile.batch, RowOf(t, tile, r).query);
    if (one.first >= one.last) continue;
    if (all.first >= all.last) {
      all = one;
      continue;
    }
    if (one.first < all.first) all.first = one.first;
    if (one.last > all.last) all.last = one.last;
  }
  return all;
}

}  // namespace etalon
