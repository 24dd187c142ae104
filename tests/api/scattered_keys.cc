#include "tests/api/scattered_keys.h"

#include <algorithm>
#include <utility>

#include "tests/support/generate.h"

namespace etalon::test {
namespace {

constexpr uint32_t kNaN = 0xFFFFFFFFu;  // of any type

int64_t DivideUp(int64_t a, int64_t b) { return (a + b - 1) / b; }

// A slot of a position (etalon_kv_places), and whether the position is still there.
int64_t SlotOf(const PlacesCase& p, int64_t position) {
  if (p.ring_len == 0 || position < p.ring_keep) return position;
  return p.ring_keep + (position - p.ring_keep) % p.ring_len;
}
bool IsThere(const PlacesCase& p, int64_t len, int64_t position) {
  return p.ring_len == 0 || position < p.ring_keep || position >= len - p.ring_len;
}

// Of a sequence: slots that some row may see.
std::pair<int64_t, int64_t> SlotsInUse(const OptionsCase& c, size_t source, int64_t b) {
  const PlacesCase& p = c.sources[source].places;
  const int64_t len = c.End(source, b);
  int64_t first = len, last = 0;
  for (int64_t i = 0; i < c.QLen(b); ++i) {
    for (int64_t t = 0; t < len; ++t) {
      if (!SeesByGeometry(c, source, b, i, t)) continue;
      first = std::min(first, t);
      last = std::max(last, t + 1);
    }
  }
  if (last > 0 && p.ring_len > 0) return {0, std::min(len, p.ring_keep + p.ring_len)};
  return {first, last};
}

}  // namespace

ScatteredKeys Scatter(const OptionsCase& c, size_t source) {
  const SourceCase& s = c.sources[source];
  const PlacesCase& p = s.places;
  Random random(p.seed);
  ScatteredKeys result;
  REQUIRE(etalon_kv_places_init(&result.places, sizeof result.places) == ETALON_OK);
  result.places.ring_keep = p.ring_keep;
  result.places.ring_len = p.ring_len;
  const int64_t slots = p.ring_len > 0 ? p.ring_keep + p.ring_len : s.kv_len;
  const bool paged = p.page_len > 0;
  const int64_t page_len = paged ? p.page_len : slots + p.spare;
  const int64_t used_pages = paged ? DivideUp(slots, page_len) : 1;  // of a sequence
  const int64_t num_pages = c.batch * used_pages + (paged ? p.spare : 0);

  // Any order; the pages of a sequence are sometimes neighbours.
  std::vector<int32_t> ids;
  for (int64_t i = 0; i < num_pages; ++i) ids.push_back(static_cast<int32_t>(i));
  const int64_t swaps = paged ? random.Below(2) * num_pages : 0;
  for (int64_t i = 0; i < swaps; ++i) std::swap(ids[random.Below(num_pages)], ids[random.Below(num_pages)]);

  const auto place = [&](const Array& from, int64_t dim) {
    const Shape shape = {num_pages, c.num_kv_heads, page_len, dim};
    Array to(from.type(), Count(shape));
    for (int64_t i = 0; i < to.size(); ++i) to.SetWord(i, kNaN);
    for (int64_t b = 0; b < c.batch; ++b) {
      for (int64_t h = 0; h < c.num_kv_heads; ++h) {
        for (int64_t t = 0; t < c.End(source, b); ++t) {
          if (!IsThere(p, c.End(source, b), t)) continue;
          const int64_t slot = SlotOf(p, t);
          const int64_t page = ids[static_cast<size_t>(b * used_pages + slot / page_len)];
          const int64_t row = (page * c.num_kv_heads + h) * page_len + slot % page_len;
          const int64_t old = (b * c.num_kv_heads + h) * s.kv_len + t;
          for (int64_t i = 0; i < dim; ++i) to.SetWord(row * dim + i, from.Word(old * dim + i));
        }
      }
    }
    Place layout;
    const Layout layouts[] = {Packed, HeadsInside, Padded, Backward};
    layout.layout = layouts[random.Below(4)];
    return std::make_unique<GuardedTensor>(to, shape, layout);
  };
  result.k = place(s.k, c.head_dim);
  result.v = place(s.v, c.value_dim);
  if (!paged) return result;

  result.places.max_pages = used_pages + random.Below(3);
  result.places.page_table_stride = result.places.max_pages + random.Below(3);
  const int32_t rubbish[] = {-1, INT32_MAX, INT32_MIN, 123456, static_cast<int32_t>(num_pages)};
  result.page_table.resize(static_cast<size_t>(c.batch * result.places.page_table_stride + 1));
  for (int32_t& id : result.page_table) id = rubbish[random.Below(5)];
  for (int64_t b = 0; b < c.batch; ++b) {
    const auto [first, last] = SlotsInUse(c, source, b);
    for (int64_t slot = first; slot < last; ++slot) {
      const int64_t page = slot / page_len;
      result.page_table[static_cast<size_t>(b * result.places.page_table_stride + page)] =
          ids[static_cast<size_t>(b * used_pages + page)];
    }
  }
  return result;
}

}  // namespace etalon::test
