#include "lib/attention/score.h"

#include "lib/base/arithmetic.h"

namespace etalon {
namespace {

// Bytes from one row of a group to the next, the last query of a head followed by the first of the next head.
int64_t RowStrideBytes(const RowTiles& tiles, const MutableTensorView& scores) {
  return tiles.q_len == 1 ? scores.head_stride_bytes : scores.row_stride_bytes;
}

}  // namespace

void SetScoresTiles(ScoresProblem* s) {
  RowTiles* tiles = &s->problem.tiles;
  int64_t head_bytes;  // of evenly spaced heads; may overflow where there is one head
  const bool even = !__builtin_mul_overflow(tiles->q_len, s->scores.row_stride_bytes, &head_bytes) &&
                    s->scores.head_stride_bytes == head_bytes;
  tiles->heads_apart = tiles->q_len > 1 && !even;
}

void ScoreTile(const KernelTable& table, const ScoresProblem& s, const Tile& tile, void* scratch) {
  const AttentionProblem& p = s.problem;
  const int64_t element_bytes = static_cast<int64_t>(sizeof(float));
  const TileArguments arguments = FillTile(p, tile, scratch);
  const TileRow first = RowOf(p.tiles, tile, 0);
  ScoresArgs args = {};
  args.rows = arguments.rows;
  args.num_rows = static_cast<size_t>(tile.num_rows);
  args.keys = arguments.keys;
  args.source = arguments.sources;
  args.head_dim = p.head_dim;
  args.options = OptionsOf(p);
  args.s = static_cast<float*>(s.scores.Row(tile.batch, first.head, first.query));
  args.row_stride = RowStrideBytes(p.tiles, s.scores) / element_bytes;
  args.scratch = KernelScratch(p, scratch);
  // Columns before a sequence's first key and beyond its length are written too, as what they are: not visible.
  const int64_t before = arguments.sources->first_column;
  for (int64_t r = 0; r < tile.num_rows; ++r) {
    for (int64_t i = 0; i < before; ++i) args.s[r * args.row_stride + i] = NegativeInfinity();
  }
  args.s += before;
  arguments.sources->num_keys = p.sources[0].sequences.kv_len - before;
  table.scores(args);
}

}  // namespace etalon
