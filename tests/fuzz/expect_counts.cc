// What a plan tells of a call, counted row by row and key by key.
#include <algorithm>

#include "tests/fuzz/expect.h"

namespace etalon::fuzz {
namespace {

// Keys of one source that rows of a tile see.
class Keys {
 public:
  explicit Keys(int64_t count) : seen_(static_cast<size_t>(count)) {}

  void Add(int64_t key) { seen_[static_cast<size_t>(key)] = true; }

  // Those themselves.
  KeyCount Seen() const {
    KeyCount count;
    int64_t chunk = -1;
    for (int64_t t = 0; t < static_cast<int64_t>(seen_.size()); ++t) {
      if (!seen_[static_cast<size_t>(t)]) continue;
      ++count.keys;
      if (t / 128 != chunk) ++count.chunks;
      chunk = t / 128;
    }
    return count;
  }

  // From the first to the last of them.
  KeyCount Span() const {
    const auto first = std::find(seen_.begin(), seen_.end(), true);
    if (first == seen_.end()) return {};
    const int64_t low = first - seen_.begin();
    const int64_t high = seen_.rend() - std::find(seen_.rbegin(), seen_.rend(), true) - 1;
    return {high / 128 - low / 128 + 1, high - low + 1};
  }

 private:
  std::vector<bool> seen_;
};

// Rows first ... last - 1 of a key/value head: of `group` heads from `head` on, one after the other.
struct Tile {
  int64_t b, head, first, last;
};

void CountTile(const Judged& judged, const Source& source, const Tile& tile, int64_t key_bytes, Counts* counts) {
  const int64_t keys = source.Rows(tile.b), q_len = judged.queries.Rows(tile.b);
  Keys reached(keys), seen(keys);
  for (int64_t r = tile.first; r < tile.last; ++r) {
    const int64_t head = tile.head + r / q_len, query = r % q_len;
    if (query >= judged.queries.Length(tile.b)) continue;
    for (int64_t t = 0; t < keys; ++t) {
      if (source.Reaches(tile.b, query, t)) reached.Add(t);
      if (source.Sees(tile.b, head, query, t)) seen.Add(t);
    }
  }
  // Without a mask, all from the first key that a row sees to the last. With one that is kept as runs, what some row
  // sees. With any other something between the two.
  const bool exact = source.mask == nullptr || source.mask->runs;
  const KeyCount least = source.mask == nullptr ? reached.Span() : seen.Seen();
  counts->least.Add(least, key_bytes);
  counts->most.Add(exact ? least : reached.Span(), key_bytes);
}

}  // namespace

Counts Count(const Call& call, const Judged& judged, int64_t tile_rows) {
  const Sizes& n = judged.sizes;
  Counts counts;
  const int64_t group = n[kQHeads] / n[kKvHeads];
  const int64_t key_bytes = n[kHeadDim] * static_cast<int64_t>(judged.tensors[call.SlotOf("k")].bytes()) +
                            n[kValueDim] * static_cast<int64_t>(judged.tensors[call.SlotOf("v")].bytes());
  for (int64_t b = 0; b < n[kBatch]; ++b) {
    const int64_t q_len = judged.queries.Rows(b), rows = group * q_len;
    for (int64_t kv_head = 0; kv_head < n[kKvHeads]; ++kv_head) {
      for (int64_t first = 0; first < rows; first += tile_rows) {
        ++counts.tiles;
        const Tile tile = {b, kv_head * group, first, std::min(rows, first + tile_rows)};
        for (int i = 0; i < judged.num_sources; ++i) CountTile(judged, judged.sources[i], tile, key_bytes, &counts);
      }
    }
  }
  return counts;
}

}  // namespace etalon::fuzz
