// key_rows.h: where the rows of a source lie in memory. Plain code, compiled for the baseline too (internal linkage, as
// lib/base/types.h explains).
#ifndef ETALON_ARCH_KEY_ROWS_H_
#define ETALON_ARCH_KEY_ROWS_H_

#include <cstdint>

#include "arch/kernel_table.h"
#include "lib/base/parallel.h"

namespace etalon {

// Rows that lie one after the other, as far apart as the source says.
struct RowRun {
  const unsigned char* first;
  int64_t count;
};

// Keys, or values.
struct RowPlaces {
  const void* rows;
  int64_t stride_bytes;
  int64_t page_stride_bytes;
};
static inline RowPlaces KeyPlacesOf(const KeySource& s) {
  return {s.k, s.k_stride_bytes, s.places.k_page_stride_bytes};
}
static inline RowPlaces ValuePlacesOf(const KeySource& s) {
  return {s.v, s.v_stride_bytes, s.places.v_page_stride_bytes};
}

// Of pages or a ring: where a position lies in the one page or the chain of them.
struct Slot {
  int64_t index;
  int64_t until_wrap;  // positions from this one on whose slots follow
};
static inline Slot SlotOf(const KeyPlaces& places, int64_t position) {
  if (places.ring_len == 0) return {position, INT64_MAX};
  if (position < places.ring_keep) return {position, places.ring_keep - position};
  const int64_t in_ring = (position - places.ring_keep) % places.ring_len;
  return {places.ring_keep + in_ring, places.ring_len - in_ring};
}

// The row of `position` and those of the next ones, up to `last`. All of them have a page.
static inline RowRun RowsFrom(const KeySource& s, const RowPlaces& rows, int64_t position, int64_t last) {
  const unsigned char* first = static_cast<const unsigned char*>(rows.rows);
  const KeyPlaces& places = s.places;
  if (places.page_len == 0) return {first + (position - s.base) * rows.stride_bytes, last - position};
  const Slot slot = SlotOf(places, position);
  const int64_t most = Smaller(last - position, slot.until_wrap);
  if (places.pages == nullptr) return {first + slot.index * rows.stride_bytes, most};
  int64_t page = slot.index / places.page_len;
  const int64_t row = slot.index % places.page_len;
  first += places.pages[page] * rows.page_stride_bytes + row * rows.stride_bytes;
  int64_t count = places.page_len - row;
  // Pages that are neighbours in memory are one run.
  if (places.page_len * rows.stride_bytes == rows.page_stride_bytes) {
    for (; count < most && places.pages[page + 1] == places.pages[page] + 1; ++page) count += places.page_len;
  }
  return {first, Smaller(count, most)};
}

static inline const void* KeyRow(const KeySource& s, int64_t position) {
  return RowsFrom(s, KeyPlacesOf(s), position, position + 1).first;
}
static inline const void* ValueRow(const KeySource& s, int64_t position) {
  return RowsFrom(s, ValuePlacesOf(s), position, position + 1).first;
}

}  // namespace etalon

#endif  // ETALON_ARCH_KEY_ROWS_H_
