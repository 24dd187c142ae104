#include "lib/attention/count.h"

#include "lib/base/arithmetic.h"
#include "lib/base/parallel.h"

namespace etalon {
namespace {

// With the queries of one head, the end of a tile's span either stands still or moves a key with each query. It changes
// from the one to the other, or from nothing to something, at few queries: the edges. Between two of them a tile
// `period` tiles further on has moved by a whole chunk, so that its counts have grown or shrunk by as much as those of
// the `period` tiles before it.
static_assert(kChunk % kMostTileRows == 0, "whole tiles make a chunk");
constexpr int kNumEdges = 7;

void AddTo(KeyCount* sum, const KeyCount& more) {
  sum->chunks = AddSaturated(sum->chunks, more.chunks);
  sum->keys = AddSaturated(sum->keys, more.keys);
}

KeyCount CountOf(const Span& span) {
  if (span.first >= span.last) return {};
  return {DivideUp(span.last, kChunk) - span.first / kChunk, span.last - span.first};
}

// first + ... + last: n numbers that are evenly spaced.
int64_t SumOfSeries(int64_t first, int64_t last, int64_t n) {
  const int64_t least = Smaller(first, last), rise = Larger(first, last) - least;  // rise: a multiple of n - 1
  const int64_t above = n % 2 == 0 ? MultiplySaturated(rise, n / 2) : MultiplySaturated(rise / 2, n);
  return AddSaturated(MultiplySaturated(least, n), above);
}

// The rows of some heads that share a key/value head.
class Heads {
 public:
  Heads(const RowTiles& tiles, const Sequences& sequences, int64_t batch, int64_t heads)
      : tiles_(tiles), sequences_(sequences), batch_(batch), q_len_(QLen(tiles, batch)), rows_(heads * q_len_) {
    const int64_t offset = PositionOf(sequences, batch, 0), num_keys = NumKeys(sequences, batch);
    const int64_t low = sequences.ring_len == 0 ? 0 : RunsOfRing(sequences, batch).of[1].first;  // the lowest key
    if (sequences.q_lens != nullptr) Edge(sequences.q_lens[batch]);
    if (sequences.left >= 0) {
      const int64_t first = AddSaturated(sequences.left, -offset);  // the query whose span would begin at key 0
      Edge(AddSaturated(first, low));
      Edge(AddSaturated(first, num_keys));  // it would begin beyond the last key
    }
    if (sequences.right >= 0) {
      const int64_t last = AddSaturated(-sequences.right, -offset);  // the first query that would see key 0
      Edge(AddSaturated(last, low));
      Edge(AddSaturated(last, num_keys - 1));  // the first that sees the last key
      if (sequences.prefix_lens != nullptr) {
        Edge(AddSaturated(last, sequences.prefix_lens[batch] - 1));  // the first that sees the last of the prefix
      }
    }
    Edge(q_len_);
  }

  KeyCount Count() const {
    KeyCount sum;
    const int64_t tile_rows = tiles_.tile_rows, period = kChunk / tile_rows;
    for (int64_t row = 0; row < rows_;) {
      const int64_t alike = EdgeAfter(row % q_len_) - row % q_len_;
      if (alike < tile_rows) {
        AddTo(&sum, CountAt(row));
        row = rows_ - row > tile_rows ? row + tile_rows : rows_;
        continue;
      }
      const int64_t n = alike / tile_rows;
      for (int64_t tile = 0; tile < n && tile < period; ++tile) {
        const int64_t steps = (n - 1 - tile) / period;
        const int64_t first = row + tile * tile_rows;
        const KeyCount one = CountAt(first), last = CountAt(first + steps * period * tile_rows);
        AddTo(&sum, {SumOfSeries(one.chunks, last.chunks, steps + 1), SumOfSeries(one.keys, last.keys, steps + 1)});
      }
      row += n * tile_rows;
    }
    return sum;
  }

 private:
  void Edge(int64_t query) { edges_[num_edges_++] = query; }

  // q_len_ is one.
  int64_t EdgeAfter(int64_t query) const {
    int64_t next = q_len_;
    for (int i = 0; i < num_edges_; ++i) {
      if (edges_[i] > query && edges_[i] < next) next = edges_[i];
    }
    return next;
  }

  KeyCount CountAt(int64_t row) const {
    return CountOf(SpanOfTile(tiles_, {batch_, 0, row, Smaller(tiles_.tile_rows, rows_ - row)}, sequences_));
  }

  const RowTiles& tiles_;
  const Sequences& sequences_;
  const int64_t batch_;
  const int64_t q_len_;
  const int64_t rows_;
  int64_t edges_[kNumEdges];
  int num_edges_ = 0;
};

// What the rows of a tile see together, found by a sweep over the runs of all of them.
class UnionOfRows {
 public:
  UnionOfRows(const RowTiles& tiles, const Sequences& sequences, const Tile& tile)
      : num_rows_(tile.num_rows),
        first_column_(FirstColumn(sequences, tile.batch)),
        ring_(RunsOfRing(sequences, tile.batch)) {
    TileRow row = RowOf(tiles, tile, 0);
    for (int64_t r = 0; r < num_rows_; ++r, row = NextRow(tiles, tile, row)) {
      rows_[r] = SeenBy(sequences, tile.batch, row.head, row.query);
      if (!rows_[r].both_runs) continue;
      rows_[r].runs = ring_.of;
      rows_[r].num_runs = 2;
    }
  }

  KeyCount Count() {
    KeyCount count;
    int64_t end = 0, chunks_end = 0;  // of what was counted
    for (;;) {
      Span next = {INT64_MAX, end};
      for (int64_t r = 0; r < num_rows_; ++r) next.first = Smaller(next.first, FirstFrom(&rows_[r], end));
      if (next.first == INT64_MAX) return count;
      next.last = next.first;  // what lies behind the gap that no row has is seen in the next turn
      for (int64_t r = 0; r < num_rows_; ++r) next.last = Larger(next.last, EndFrom(&rows_[r], next.last));
      count.keys += next.last - next.first;
      const int64_t first_chunk = Larger(next.first / kChunk, chunks_end);
      chunks_end = DivideUp(next.last, kChunk);
      count.chunks += chunks_end - Smaller(first_chunk, chunks_end);
      end = next.last;
    }
  }

 private:
  // Drops what ends at or before the position.
  void Drop(Seen* row, int64_t position) const {
    while (row->num_runs > 0 && row->runs->last - first_column_ <= position) {
      ++row->runs;
      --row->num_runs;
      if (row->num_runs == 0) row->span = {0, 0};
    }
  }

  // The first position from there on that the row sees; INT64_MAX if none.
  int64_t FirstFrom(Seen* row, int64_t position) const {
    Drop(row, position);
    if (row->span.first >= row->span.last || position >= row->span.last) return INT64_MAX;
    const int64_t first = row->runs == nullptr ? row->span.first : row->runs->first - first_column_;
    return Larger(Larger(first, row->span.first), position);
  }

  // How far the row sees without a gap from there on.
  int64_t EndFrom(Seen* row, int64_t position) const {
    if (FirstFrom(row, position) != position) return position;
    return row->runs == nullptr ? row->span.last : Smaller(row->runs->last - first_column_, row->span.last);
  }

  int64_t num_rows_;
  int64_t first_column_;
  RingRuns ring_;
  Seen rows_[kMostTileRows];
};

}  // namespace

int64_t MultiplySaturated(int64_t a, int64_t b) {
  int64_t product;
  return __builtin_mul_overflow(a, b, &product) ? INT64_MAX : product;
}

KeyCount CountKeys(const RowTiles& tiles, const Sequences& with_mask, int64_t batch) {
  const int64_t q_len = QLen(tiles, batch);
  if (q_len == 0) return {};
  Sequences sequences = with_mask;
  sequences.mask = nullptr;
  // After so many heads a tile begins where a head does, as the first one did.
  const int64_t low_bit = q_len & -q_len;
  const int64_t heads = tiles.heads_apart ? 1 : tiles.tile_rows / Smaller(tiles.tile_rows, low_bit);
  const int64_t times = tiles.group / heads, rest = tiles.group % heads;
  KeyCount sum;
  if (times > 0) {
    const KeyCount one = Heads(tiles, sequences, batch, heads).Count();
    sum = {MultiplySaturated(one.chunks, times), MultiplySaturated(one.keys, times)};
  }
  if (rest > 0) AddTo(&sum, Heads(tiles, sequences, batch, rest).Count());
  return sum;
}

KeyCount CountMaskedKeys(const RowTiles& tiles, const Sequences& sequences, int64_t batch, int64_t kv_head) {
  KeyCount sum;
  for (int64_t i = 0; i < TilesOfGroup(tiles, batch); ++i) {
    AddTo(&sum, UnionOfRows(tiles, sequences, TileOf(tiles, batch, kv_head, i)).Count());
  }
  return sum;
}

KeyCount CountAllKeys(const RowTiles& tiles, const Sequences& sequences) {
  const PreparedMask* mask = sequences.mask;
  const bool alike = tiles.q_starts == nullptr && SequencesAreAlike(sequences) && (mask == nullptr || mask->batch == 1);
  const bool by_head = mask != nullptr && mask->num_heads > 1;
  const bool by_row = mask != nullptr || RingHasGap(sequences);
  const int64_t batches = alike ? Smaller(tiles.batch, 1) : tiles.batch;
  const int64_t kv_heads = by_head ? tiles.num_kv_heads : 1;
  KeyCount sum;
  for (int64_t batch = 0; batch < batches; ++batch) {
    for (int64_t head = 0; head < kv_heads; ++head) {
      AddTo(&sum, by_row ? CountMaskedKeys(tiles, sequences, batch, head) : CountKeys(tiles, sequences, batch));
    }
  }
  const int64_t times = MultiplySaturated(by_head ? 1 : tiles.num_kv_heads, alike ? tiles.batch : 1);
  return {MultiplySaturated(sum.chunks, times), MultiplySaturated(sum.keys, times)};
}

}  // namespace etalon
