// spans.h: what the kernels do with spans of key positions. Plain code, compiled for the baseline (internal linkage, as
// lib/base/types.h explains).
#ifndef ETALON_ARCH_HIGHWAY_SPANS_H_
#define ETALON_ARCH_HIGHWAY_SPANS_H_

#include <cstddef>
#include <cstdint>

#include "arch/kernel_table.h"
#include "lib/base/parallel.h"

namespace etalon {

static inline bool IsEmpty(const Span& span) { return span.first >= span.last; }

static inline Span Intersect(const Span& a, const Span& b) {
  return {Larger(a.first, b.first), Smaller(a.last, b.last)};
}

// The smallest span that holds those of `count` things; span_of(i) may be empty. {0, 0} if all are.
template <class SpanOf>
static inline Span HullOf(size_t count, const SpanOf& span_of) {
  Span hull = {INT64_MAX, INT64_MIN};
  for (size_t i = 0; i < count; ++i) {
    const Span span = span_of(i);
    if (IsEmpty(span)) continue;
    hull = {Smaller(hull.first, span.first), Larger(hull.last, span.last)};
  }
  return IsEmpty(hull) ? Span{0, 0} : hull;
}

// Whether a row of a tile sees a key of any source. If not, its query must not be read.
static inline bool SeesAnything(const AttendArgs& a, size_t row) {
  for (size_t i = 0; i < a.num_sources; ++i) {
    if (!IsEmpty(a.keys[i * a.num_rows + row].span)) return true;
  }
  return false;
}

}  // namespace etalon

#endif  // ETALON_ARCH_HIGHWAY_SPANS_H_
