// tiles.h: the query rows of a call, cut into tiles that read the same keys.
#ifndef ETALON_LIB_ATTENTION_TILES_H_
#define ETALON_LIB_ATTENTION_TILES_H_

#include <cstdint>

#include "arch/kernel_table.h"

namespace etalon {

// Rows of a tile: a power of two between these. The rows of a tile widen 16-bit keys once and share what is read of the
// caches, so more is better, as long as there are tiles enough for all workers.
constexpr int64_t kLeastTileRows = 32;
constexpr int64_t kMostTileRows = 128;
// Tiles for each worker that a larger tile must leave, so that a late start or a slow core costs little.
constexpr int64_t kTilesForWorker = 4;

// The rows that share a key/value head, [group][q_len], are cut into tiles of tile_rows. `heads_apart` cuts at query
// heads too, for outputs whose heads are not evenly spaced.
struct RowTiles {
  int64_t batch;
  int64_t num_kv_heads;
  int64_t group;  // query heads of a key/value head
  int64_t q_len;  // of the longest sequence
  bool heads_apart;
  int64_t tile_rows = kLeastTileRows;
  // Ragged: sequence b has rows q_starts[b] ... q_starts[b + 1] - 1 of the tensor. Null = q_len rows of its own.
  const int64_t* q_starts = nullptr;  // [batch + 1]
  // Ragged: tiles of all sequences before b, and of all in the end. Filled by FillFirstTiles once tile_rows is set;
  // only TileAt and TileOfTask need it.
  const int64_t* first_tiles = nullptr;  // [batch + 1]
};

// The queries of a sequence, and the row of the tensors at which they begin.
int64_t QLen(const RowTiles& tiles, int64_t batch);
int64_t FirstRow(const RowTiles& tiles, int64_t batch);

void FillFirstTiles(const RowTiles& tiles, int64_t* first_tiles);

// The best tile_rows for that many workers; sets nothing.
int64_t ChooseTileRows(const RowTiles& tiles, int32_t workers);

struct Tile {
  int64_t batch;
  int64_t kv_head;
  int64_t first;  // row of the group
  int64_t num_rows;
};

// What query head and query a row of a tile is.
struct TileRow {
  int64_t head;
  int64_t query;
};

// Tiles of each key/value head of a sequence, which come one after another: all of them see the same keys.
int64_t TilesOfGroup(const RowTiles& tiles, int64_t batch);
Tile TileOf(const RowTiles& tiles, int64_t batch, int64_t kv_head, int64_t of_group);  // of_group < TilesOfGroup

// 0 if any size is 0, whatever the others are; otherwise their product must fit. O(batch) if ragged.
int64_t NumTiles(const RowTiles& tiles);
Tile TileAt(const RowTiles& tiles, int64_t index);  // 0 <= index < NumTiles(tiles)
TileRow RowOf(const RowTiles& tiles, const Tile& tile, int64_t row);
TileRow NextRow(const RowTiles& tiles, const Tile& tile, const TileRow& row);  // in order, without a division

// The tile of a task, where each task is a tile: those of a key/value head one after the other, its last rows first.
// Under a causal mask these see most, and what is long should begin early.
Tile TileOfTask(const RowTiles& tiles, int64_t task);

}  // namespace etalon

#endif  // ETALON_LIB_ATTENTION_TILES_H_
