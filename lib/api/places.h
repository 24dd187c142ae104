// places.h: keys and values that do not lie one after the other in their tensors: pages, rings, and both.
#ifndef ETALON_LIB_API_PLACES_H_
#define ETALON_LIB_API_PLACES_H_

#include "lib/api/validate.h"

namespace etalon {

// How messages call the etalon_kv_places of a source.
struct PlacesNames {
  const char* object;      // "args"
  const char* descriptor;  // "args.places"
};

struct CheckedPlaces {
  bool any;  // false: rows lie one after the other
  const int32_t* page_table;
  int64_t page_table_stride;
  int64_t max_pages;
  int64_t ring_keep;
  int64_t ring_len;
  Hull table;

  bool paged() const { return page_table != nullptr; }
};

// The descriptor by itself; `caller` may be null.
etalon_status CheckPlaces(const etalon_kv_places* caller, const PlacesNames& names, CheckedPlaces* places,
                          etalon_error* error);

// That the arrays which say where sequences begin fit it.
etalon_status CheckSequencesOfPlaces(const CallerSequences& caller, const PlacesNames& names,
                                     const CheckedPlaces& places, etalon_error* error);

// Positions that a sequence may have. Checks the ring against the rows of k, or the pages of a sequence.
etalon_status CheckCapacity(const PlacesNames& names, const CheckedTensor& k, int64_t batch, CheckedPlaces* places,
                            int64_t* most, etalon_error* error);

// As kernels take them, but for the page strides.
KeyPlaces PlacesOf(const CheckedPlaces& places, const CheckedTensor& k);

// That the pages of these positions, whose slots are in the table, are pages of the pool.
etalon_status CheckPagesOf(const PlacesNames& names, const CheckedTensor& k, const CheckedPlaces& places, int64_t batch,
                           const Span& positions, etalon_error* error);

// Pages that keys lie in which a query may see, masks apart. O(pages in use).
etalon_status CheckPages(const PlacesNames& names, const CheckedTensor& k, const Queries& queries,
                         const Sequences& sequences, const CheckedPlaces& places, etalon_error* error);

}  // namespace etalon

#endif  // ETALON_LIB_API_PLACES_H_
