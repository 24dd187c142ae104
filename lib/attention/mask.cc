#include "lib/attention/mask.h"

namespace etalon {

int64_t AddSaturated(int64_t a, int64_t b) {
  int64_t sum;
  if (!__builtin_add_overflow(a, b, &sum)) return sum;
  return a < 0 ? INT64_MIN : INT64_MAX;
}

int64_t RowPosition(const Geometry& geometry, int64_t row) { return AddSaturated(row, geometry.q_offset); }

Span VisibleSpan(const Geometry& geometry, int64_t row, int64_t kv_first, int64_t kv_last) {
  const int64_t position = RowPosition(geometry, row);
  Span span = {kv_first, kv_last};
  if (geometry.left >= 0) {
    const int64_t first = AddSaturated(position, -geometry.left);
    if (first > span.first) span.first = first;
  }
  if (geometry.right >= 0) {
    int64_t last = AddSaturated(AddSaturated(position, geometry.right), 1);
    if (last < geometry.prefix) last = geometry.prefix;
    if (last < span.last) span.last = last;
  }
  return span;
}

}  // namespace etalon
