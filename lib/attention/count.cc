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
constexpr int kNumEdges = 6;

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
      : tiles_(tiles), sequences_(sequences), batch_(batch), rows_(heads * tiles.q_len) {
    const int64_t offset = PositionOf(sequences, batch, 0), kv_len = KvLen(sequences, batch);
    if (sequences.q_lens != nullptr) Edge(sequences.q_lens[batch]);
    if (sequences.left >= 0) {
      const int64_t first = AddSaturated(sequences.left, -offset);  // the query whose span begins at key 0
      Edge(first);
      Edge(AddSaturated(first, kv_len));  // it would begin beyond the last key
    }
    if (sequences.right >= 0) {
      const int64_t last = AddSaturated(-sequences.right, -offset);  // the first query that sees key 0
      Edge(last);
      Edge(AddSaturated(last, kv_len - 1));  // the first that sees the last key
    }
    Edge(tiles.q_len);
  }

  KeyCount Count() const {
    KeyCount sum;
    const int64_t tile_rows = tiles_.tile_rows, period = kChunk / tile_rows;
    for (int64_t row = 0; row < rows_;) {
      const int64_t alike = EdgeAfter(row % tiles_.q_len) - row % tiles_.q_len;
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

  // q_len is one.
  int64_t EdgeAfter(int64_t query) const {
    int64_t next = tiles_.q_len;
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
  const int64_t rows_;
  int64_t edges_[kNumEdges];
  int num_edges_ = 0;
};

}  // namespace

int64_t MultiplySaturated(int64_t a, int64_t b) {
  int64_t product;
  return __builtin_mul_overflow(a, b, &product) ? INT64_MAX : product;
}

KeyCount CountKeys(const RowTiles& tiles, const Sequences& sequences, int64_t batch) {
  // After so many heads a tile begins where a head does, as the first one did.
  const int64_t low_bit = tiles.q_len & -tiles.q_len;
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

}  // namespace etalon
