// Geometry as spans against a reading of its definition key by key, in wider integers.
#include "lib/attention/mask.h"

#include <doctest/doctest.h>

#include <cstdint>
#include <string>

#include "tests/support/generate.h"

namespace etalon::test {
namespace {

__extension__ typedef __int128 Wide;

// Key t is in the span iff -left <= t - (row + q_offset) <= right; a negative limit is none, and the right one does not
// hold for keys of the prefix.
bool Inside(const Geometry& g, int64_t row, int64_t t) {
  const Wide distance = static_cast<Wide>(t) - (static_cast<Wide>(row) + g.q_offset);
  return (g.left < 0 || distance >= -static_cast<Wide>(g.left)) && (g.right < 0 || distance <= g.right || t < g.prefix);
}

TEST_CASE("VisibleSpan: every small geometry, key by key") {
  int64_t wrong = 0;
  for (int64_t q_offset = -7; q_offset <= 7; ++q_offset) {
    for (int64_t left = -2; left <= 6; ++left) {
      for (int64_t right = -2; right <= 6; ++right) {
        for (int64_t kv_len = 0; kv_len <= 6; ++kv_len) {
          for (int64_t kv_first = 0; kv_first <= kv_len; ++kv_first) {
            for (int64_t row = 0; row <= 5; ++row) {
              const Geometry g = {q_offset, left, right, (row + q_offset + kv_len) % 9 - 1};
              const Span span = VisibleSpan(g, row, kv_first, kv_len);
              for (int64_t t = -2; t <= 9; ++t) {
                const bool expected = t >= kv_first && t < kv_len && Inside(g, row, t);
                if ((t >= span.first && t < span.last) == expected) continue;
                if (wrong++ > 0) continue;  // the first is enough
                INFO("q_offset ", q_offset, " left ", left, " right ", right, " prefix ", g.prefix, " keys ", kv_first,
                     "...", kv_len, " row ", row, " key ", t);
                CHECK((t >= span.first && t < span.last) == expected);
              }
            }
          }
        }
      }
    }
  }
  CHECK(wrong == 0);
}

TEST_CASE("VisibleSpan: numbers at the ends of the range neither overflow nor wrap") {
  constexpr int64_t kEnds[] = {INT64_MIN, INT64_MIN + 1,    INT64_MIN + 2, -(int64_t{1} << 62), -3,       -1, 0, 1,
                               2,         int64_t{1} << 62, INT64_MAX - 2, INT64_MAX - 1,       INT64_MAX};
  for (int64_t q_offset : kEnds) {
    for (int64_t left : kEnds) {
      for (int64_t right : kEnds) {
        for (int64_t row : {int64_t{0}, int64_t{5}, int64_t{1} << 62, INT64_MAX}) {
          const Geometry g = {q_offset, left, right, right < 0 ? INT64_MAX : row / 2};
          // A row past the end of the range has no position; which keys it sees is not said, only that nothing
          // overflows.
          const Wide position = static_cast<Wide>(row) + q_offset;
          const bool has_position = position <= INT64_MAX;
          for (int64_t kv_first : {int64_t{0}, int64_t{3}, INT64_MAX - 5}) {
            for (int64_t kv_last : {kv_first, kv_first + 1, kv_first + 4, INT64_MAX}) {
              const Span span = VisibleSpan(g, row, kv_first, kv_last);
              if (span.first < span.last) CHECK((span.first >= kv_first && span.last <= kv_last));
              if (!has_position) continue;
              for (int64_t t : {int64_t{0}, int64_t{1}, int64_t{3}, int64_t{4}, int64_t{6}, int64_t{1} << 62,
                                INT64_MAX - 5, INT64_MAX - 2, INT64_MAX - 1}) {
                const bool expected = t >= kv_first && t < kv_last && Inside(g, row, t);
                INFO("q_offset ", q_offset, " left ", left, " right ", right, " row ", row, " keys ", kv_first, "...",
                     kv_last, " key ", t);
                CHECK((t >= span.first && t < span.last) == expected);
              }
            }
          }
        }
      }
    }
  }
}

TEST_CASE("VisibleSpan: random geometries of real sizes") {
  Random random(1);
  for (int n = 0; n < 20000; ++n) {
    const int64_t q_len = 1 + random.Below(3000), kv_len = random.Below(3000), row = random.Below(q_len);
    const Geometry g = {random.Below(2) == 0 ? kv_len - q_len : random.Below(4000) - 2000, random.Below(600) - 100,
                        random.Below(600) - 100, random.Below(2) == 0 ? 0 : random.Below(3000)};
    const Span span = VisibleSpan(g, row, 0, kv_len);
    for (int64_t t : {span.first - 1, span.first, span.last - 1, span.last, g.prefix, random.Below(3000)}) {
      const bool expected = t >= 0 && t < kv_len && Inside(g, row, t);
      INFO("case ", n, " key ", t);
      CHECK((t >= span.first && t < span.last) == expected);
    }
  }
}

}  // namespace
}  // namespace etalon::test
