// How rows are cut into tiles, and the order of the tiles.
#include "lib/attention/tiles.h"

#include <doctest/doctest.h>

#include <cstdint>
#include <vector>

#include "lib/attention/sequences.h"
#include "tests/support/generate.h"

namespace etalon::test {
namespace {

// Tiles, and what they point to.
struct Rows {
  RowTiles tiles;
  std::vector<int64_t> q_starts, first_tiles;

  const RowTiles& Get() {
    if (q_starts.empty()) return tiles;
    tiles.q_starts = q_starts.data();
    first_tiles.resize(q_starts.size());
    FillFirstTiles(tiles, first_tiles.data());
    tiles.first_tiles = first_tiles.data();
    return tiles;
  }
};

RowTiles RandomTiles(Random* random) {
  RowTiles tiles = {};
  tiles.batch = 1 + random->Below(3);
  tiles.num_kv_heads = 1 + random->Below(3);
  tiles.group = 1 + random->Below(random->Below(4) == 0 ? 70 : 5);
  tiles.q_len = 1 + random->Below(random->Below(2) == 0 ? 10 : 400);
  tiles.heads_apart = random->Below(2) == 0;
  tiles.tile_rows = kLeastTileRows << random->Below(3);
  return tiles;
}

// Sequences of all lengths, 0 too; the rows of the tensor that belong to none may lie before, between and behind.
Rows RandomRows(Random* random, bool ragged) {
  Rows rows = {RandomTiles(random), {}, {}};
  if (!ragged) return rows;
  rows.tiles.batch = 1 + random->Below(7);
  rows.tiles.q_len = 0;
  rows.q_starts.push_back(random->Below(5));
  for (int64_t b = 0; b < rows.tiles.batch; ++b) {
    const int64_t q_len = random->Below(3) == 0 ? 0 : random->Below(random->Below(2) == 0 ? 10 : 300);
    rows.q_starts.push_back(rows.q_starts.back() + q_len);
    rows.tiles.q_len = q_len > rows.tiles.q_len ? q_len : rows.tiles.q_len;
  }
  return rows;
}

TEST_CASE("tiles: every row lies in one tile; tasks are all tiles, once") {
  Random random(1);
  for (int round = 0; round < 600; ++round) {
    Rows source = RandomRows(&random, round % 2 == 1);
    const RowTiles& tiles = source.Get();
    INFO("round ", round, " batch ", tiles.batch, " heads ", tiles.num_kv_heads, " group ", tiles.group, " q_len ",
         tiles.q_len, " apart ", tiles.heads_apart, " tile_rows ", tiles.tile_rows);
    const int64_t heads = tiles.num_kv_heads * tiles.group;
    std::vector<int64_t> first_of(1, 0);  // of the rows of all sequences before, in the order of batch, head, query
    for (int64_t b = 0; b < tiles.batch; ++b) first_of.push_back(first_of.back() + heads * QLen(tiles, b));
    std::vector<int> in_tiles(static_cast<size_t>(first_of.back())), in_tasks = in_tiles;
    bool sound = true;
    for (int64_t i = 0; i < NumTiles(tiles); ++i) {
      for (const bool task : {false, true}) {
        const Tile tile = task ? TileOfTask(tiles, i) : TileAt(tiles, i);
        sound &= tile.batch >= 0 && tile.batch < tiles.batch && tile.kv_head >= 0 && tile.kv_head < tiles.num_kv_heads;
        sound &= tile.num_rows >= 1 && tile.num_rows <= tiles.tile_rows;
        const int64_t q_len = QLen(tiles, tile.batch);
        sound &= tile.first >= 0 && tile.first + tile.num_rows <= tiles.group * q_len;
        REQUIRE(sound);
        TileRow next = RowOf(tiles, tile, 0);
        for (int64_t r = 0; r < tile.num_rows; ++r, next = NextRow(tiles, tile, next)) {
          const TileRow row = RowOf(tiles, tile, r);
          sound &= row.head == next.head && row.query == next.query;
          sound &= row.head / tiles.group == tile.kv_head && row.query >= 0 && row.query < q_len;
          sound &= !tiles.heads_apart || row.head == RowOf(tiles, tile, 0).head;
          REQUIRE(sound);
          const int64_t at = first_of[static_cast<size_t>(tile.batch)] + row.head * q_len + row.query;
          ++(task ? in_tasks : in_tiles)[static_cast<size_t>(at)];
        }
      }
    }
    CHECK(in_tiles == std::vector<int>(in_tiles.size(), 1));
    CHECK(in_tasks == in_tiles);
  }
}

TEST_CASE("tiles: tasks go through key/value heads in order, and through each with its last rows first") {
  Random random(2);
  for (int round = 0; round < 600; ++round) {
    Rows source = RandomRows(&random, round % 2 == 1);
    const RowTiles& tiles = source.Get();
    if (NumTiles(tiles) == 0) continue;
    Tile before = TileOfTask(tiles, 0);
    CHECK(before.first + before.num_rows == tiles.group * QLen(tiles, before.batch));
    for (int64_t task = 1; task < NumTiles(tiles); ++task) {
      const Tile tile = TileOfTask(tiles, task);
      const bool same_head = tile.batch == before.batch && tile.kv_head == before.kv_head;
      const bool last_head = before.kv_head + 1 == tiles.num_kv_heads;
      bool next_head = last_head ? tile.batch > before.batch && tile.kv_head == 0
                                 : tile.batch == before.batch && tile.kv_head == before.kv_head + 1;
      for (int64_t b = before.batch + 1; b < tile.batch; ++b) next_head &= QLen(tiles, b) == 0;
      INFO("round ", round, " task ", task);
      CHECK((same_head || next_head));
      CHECK(same_head == (before.first > 0));
      if (same_head) CHECK(tile.first + tile.num_rows == before.first);
      if (next_head) CHECK(tile.first + tile.num_rows == tiles.group * QLen(tiles, tile.batch));
      before = tile;
    }
  }
}

// The last rows of a causal head see most. Where a tile holds the ends of several heads of the group, lengths are not
// in order, so this has one head.
TEST_CASE("tiles: under a causal mask the longest tiles of a head come first") {
  for (int64_t tile_rows : {32, 64, 128}) {
    for (int64_t q_len : {1, 33, 128, 1000, 1025}) {
      RowTiles tiles = {2, 2, 1, q_len, false};
      tiles.tile_rows = tile_rows;
      Sequences causal = {};
      causal.kv_len = q_len;
      causal.left = -1;
      int64_t last = 0;
      for (int64_t task = 0; task < NumTiles(tiles); ++task) {
        if (task % TilesOfGroup(tiles, 0) == 0) last = q_len;
        const Span span = SpanOfTile(tiles, TileOfTask(tiles, task), causal);
        CHECK(span.first == 0);
        CHECK(span.last <= last);
        last = span.last - 1;
      }
      CHECK(last < tile_rows);
    }
  }
}

TEST_CASE("tiles: as large as leaves four for each worker") {
  const auto rows = [](int64_t batch, int64_t kv_heads, int64_t group, int64_t q_len, int32_t workers) {
    return ChooseTileRows({batch, kv_heads, group, q_len, false}, workers);
  };
  for (int32_t workers : {0, 1}) {  // nobody waits for another
    CHECK(rows(1, 1, 1, 1, workers) == 128);
    CHECK(rows(1, 8, 4, 2048, workers) == 128);
  }
  CHECK(rows(1, 1, 1, 128 * 7 + 1, 2) == 128);  // eight tiles
  CHECK(rows(1, 1, 1, 128 * 7, 2) == 64);       // seven, which are 14 of 64 rows
  CHECK(rows(1, 1, 1, 64 * 7 + 1, 2) == 64);
  CHECK(rows(1, 1, 1, 64 * 7, 2) == 32);
  CHECK(rows(1, 1, 1, 1, 2) == 32);
  CHECK(rows(2, 2, 1, 1, 1) == 128);
  CHECK(rows(2, 4, 1, 1, 2) == 128);  // eight heads
  CHECK(rows(1, 1, 8, 128, 2) == 128);
  CHECK(rows(0, 1, 1, 1, 2) == 32);  // of no tile any size will do
  Random random(3);
  for (int round = 0; round < 300; ++round) {
    RowTiles tiles = RandomTiles(&random);
    const RowTiles given = tiles;
    const int32_t workers = static_cast<int32_t>(2 + random.Below(40));
    tiles.tile_rows = ChooseTileRows(given, workers);
    INFO("round ", round, " workers ", workers, " tile_rows ", tiles.tile_rows);
    CHECK((tiles.tile_rows == 32 || tiles.tile_rows == 64 || tiles.tile_rows == 128));
    if (tiles.tile_rows > 32) CHECK(NumTiles(tiles) >= 4 * workers);
    tiles.tile_rows *= 2;
    if (tiles.tile_rows <= 128) CHECK(NumTiles(tiles) < 4 * workers);
  }
}

}  // namespace
}  // namespace etalon::test
