#include "lib/attention/tiles.h"

namespace etalon {
namespace {

// Rows that are cut into tiles by themselves: those of a query head, or of all that share a key/value head.
int64_t RowsOfSegment(const RowTiles& t, int64_t batch) { return (t.heads_apart ? 1 : t.group) * QLen(t, batch); }
int64_t TilesOfSegment(const RowTiles& t, int64_t rows) {
  return rows / t.tile_rows + (rows % t.tile_rows != 0 ? 1 : 0);
}

// A tile by its place among those of its sequence.
struct TilePlace {
  int64_t batch;
  int64_t kv_head;
  int64_t of_group;
};

TilePlace PlaceOf(const RowTiles& t, int64_t index) {
  int64_t batch, of_batch, of_group;
  if (t.q_starts == nullptr) {
    of_group = TilesOfGroup(t, 0);
    batch = index / (t.num_kv_heads * of_group);
    of_batch = index % (t.num_kv_heads * of_group);
  } else {
    int64_t low = 0, high = t.batch;  // the last sequence whose tiles do not begin beyond it: one that has tiles
    while (high - low > 1) {
      const int64_t middle = low + (high - low) / 2;
      if (t.first_tiles[middle] <= index) {
        low = middle;
      } else {
        high = middle;
      }
    }
    batch = low;
    of_batch = index - t.first_tiles[batch];
    of_group = TilesOfGroup(t, batch);
  }
  return {batch, of_batch / of_group, of_batch % of_group};
}

}  // namespace

int64_t QLen(const RowTiles& t, int64_t batch) {
  return t.q_starts == nullptr ? t.q_len : t.q_starts[batch + 1] - t.q_starts[batch];
}

int64_t FirstRow(const RowTiles& t, int64_t batch) { return t.q_starts == nullptr ? 0 : t.q_starts[batch]; }

int64_t TilesOfGroup(const RowTiles& t, int64_t batch) {
  return (t.heads_apart ? t.group : 1) * TilesOfSegment(t, RowsOfSegment(t, batch));
}

int64_t NumTiles(const RowTiles& t) {
  if (t.batch == 0 || t.num_kv_heads == 0 || t.group == 0 || t.q_len == 0) return 0;
  if (t.q_starts == nullptr) return t.batch * t.num_kv_heads * TilesOfGroup(t, 0);
  int64_t tiles = 0;
  for (int64_t b = 0; b < t.batch; ++b) tiles += t.num_kv_heads * TilesOfGroup(t, b);
  return tiles;
}

void FillFirstTiles(const RowTiles& t, int64_t* first_tiles) {
  first_tiles[0] = 0;
  for (int64_t b = 0; b < t.batch; ++b) first_tiles[b + 1] = first_tiles[b] + t.num_kv_heads * TilesOfGroup(t, b);
}

Tile TileOf(const RowTiles& t, int64_t batch, int64_t kv_head, int64_t of_group) {
  const int64_t rows = RowsOfSegment(t, batch), tiles = TilesOfSegment(t, rows);
  const int64_t of_segment = of_group % tiles * t.tile_rows;
  const int64_t rest = rows - of_segment;
  return {batch, kv_head, of_group / tiles * rows + of_segment, rest < t.tile_rows ? rest : t.tile_rows};
}

Tile TileAt(const RowTiles& t, int64_t index) {
  const TilePlace place = PlaceOf(t, index);
  return TileOf(t, place.batch, place.kv_head, place.of_group);
}

Tile TileOfTask(const RowTiles& t, int64_t task) {
  const TilePlace place = PlaceOf(t, task);
  return TileOf(t, place.batch, place.kv_head, TilesOfGroup(t, place.batch) - 1 - place.of_group);
}

int64_t ChooseTileRows(const RowTiles& tiles, int32_t workers) {
  RowTiles trial = tiles;
  for (trial.tile_rows = kMostTileRows; trial.tile_rows > kLeastTileRows; trial.tile_rows /= 2) {
    if (workers <= 1 || NumTiles(trial) >= kTilesForWorker * workers) break;
  }
  return trial.tile_rows;
}

TileRow RowOf(const RowTiles& t, const Tile& tile, int64_t row) {
  const int64_t of_group = tile.first + row, q_len = QLen(t, tile.batch);
  return {tile.kv_head * t.group + of_group / q_len, of_group % q_len};
}

TileRow NextRow(const RowTiles& t, const Tile& tile, const TileRow& row) {
  const bool same_head = row.query + 1 < QLen(t, tile.batch);
  return {same_head ? row.head : row.head + 1, same_head ? row.query + 1 : 0};
}

}  // namespace etalon
