// keys-inl.h: which keys of a source the structure of a row admits: span, mask and runs, before any score is known.
// Only what is admitted is ever read.
#ifndef ETALON_ARCH_XSIMD_KEYS_INL_H_
#define ETALON_ARCH_XSIMD_KEYS_INL_H_

#include <cstddef>
#include <cstdint>

#include "arch/kernel_table.h"

namespace etalon {
namespace {

constexpr int64_t kNoKey = INT64_MAX;

inline bool HasKeys(const Span& span) { return span.first < span.last; }

// The first run that ends behind a column; num_runs if none does.
inline int64_t FirstRunBehind(const RowKeys& row, int64_t column) {
  int64_t low = 0, high = row.num_runs;
  while (low < high) {
    const int64_t middle = low + (high - low) / 2;
    if (row.runs[middle].last > column) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  return low;
}

// The lowest position from `position` on that lies in the span and in a run; kNoKey if there is none.
inline int64_t NextInSpanAndRuns(const KeySource& source, const RowKeys& row, int64_t position) {
  if (!HasKeys(row.span)) return kNoKey;
  if (position < row.span.first) position = row.span.first;
  if (position >= row.span.last) return kNoKey;
  if (row.runs == nullptr) return position;
  const int64_t column = position - source.base + source.first_column;
  const int64_t run = FirstRunBehind(row, column);
  if (run == row.num_runs) return kNoKey;
  if (row.runs[run].first > column) position += row.runs[run].first - column;
  return position < row.span.last ? position : kNoKey;
}

// The same for the row of several that comes first.
inline int64_t NextInSpanAndRuns(const KeySource& source, const RowKeys* rows, size_t num_rows, int64_t position) {
  int64_t next = kNoKey;
  for (size_t r = 0; r < num_rows; ++r) {
    const int64_t candidate = NextInSpanAndRuns(source, rows[r], position);
    if (candidate < next) next = candidate;
  }
  return next;
}

inline bool IsShownByMask(const KeySource& source, const RowKeys& row, int64_t column) {
  if (row.mask == nullptr) return true;
  if (source.mask_type == MaskType::kBytes) return row.mask[column * source.mask_stride_bytes] != 0;
  return (row.mask[column / 8] >> (column % 8) & 1) != 0;
}

inline bool IsAdmitted(const KeySource& source, const RowKeys& row, int64_t position) {
  return NextInSpanAndRuns(source, row, position) == position &&
         IsShownByMask(source, row, position - source.base + source.first_column);
}

inline const void* RowAt(const void* first, int64_t stride_bytes, int64_t row) {
  return static_cast<const unsigned char*>(first) + row * stride_bytes;
}

// The row of a position, of keys or of values, by what kernel_table.h says of KeyPlaces.
inline const void* RowOfPosition(const KeySource& source, const void* rows, int64_t stride_bytes,
                                 int64_t page_stride_bytes, int64_t position) {
  const KeyPlaces& places = source.places;
  if (places.page_len == 0) return RowAt(rows, stride_bytes, position - source.base);
  int64_t slot = position;
  if (places.ring_len > 0) {
    const int64_t rounds = slot < places.ring_keep ? 0 : (slot - places.ring_keep) / places.ring_len;
    slot -= rounds * places.ring_len;
  }
  if (places.pages == nullptr) return RowAt(rows, stride_bytes, slot);
  const int64_t page = slot / places.page_len;
  return RowAt(RowAt(rows, page_stride_bytes, places.pages[page]), stride_bytes, slot - page * places.page_len);
}

inline const void* KeyAt(const KeySource& source, int64_t position) {
  return RowOfPosition(source, source.k, source.k_stride_bytes, source.places.k_page_stride_bytes, position);
}

inline const void* ValueAt(const KeySource& source, int64_t position) {
  return RowOfPosition(source, source.v, source.v_stride_bytes, source.places.v_page_stride_bytes, position);
}

}  // namespace
}  // namespace etalon

#endif  // ETALON_ARCH_XSIMD_KEYS_INL_H_
