#include "lib/api/places.h"

#include <utility>

#include "arch/key_rows.h"
#include "lib/base/parallel.h"

namespace etalon {
namespace {

etalon_status CheckCount(int64_t count, const Field& field, etalon_error* error) {
  if (count >= 0 && count <= kLargestSize) return ETALON_OK;
  return Fail(error, ETALON_BAD_VALUE, field, {"is ", count, ", must be 0 ... ", kLargestSize});
}

etalon_status CheckIsZero(int64_t value, const Field& field, const Field& missing, etalon_error* error) {
  if (value == 0) return ETALON_OK;
  return Fail(error, ETALON_BAD_VALUE, field, {"is ", value, ", but ", missing, " is not set"});
}

int64_t Multiply(int64_t a, int64_t b) {
  int64_t product;
  return __builtin_mul_overflow(a, b, &product) ? kLargestSize : Smaller(product, kLargestSize);
}

}  // namespace

etalon_status CheckPlaces(const etalon_kv_places* caller, const PlacesNames& names, CheckedPlaces* places,
                          etalon_error* error) {
  *places = {};
  if (caller == nullptr) return ETALON_OK;
  const char* object = names.descriptor;
  etalon_kv_places full;
  ETALON_CHECK(CopyDescriptor(caller, object, &full, sizeof full, kFirstSizeOfPlaces, error));
  ETALON_CHECK(CheckCount(full.max_pages, {object, "max_pages"}, error));
  ETALON_CHECK(CheckCount(full.page_table_stride, {object, "page_table_stride"}, error));
  ETALON_CHECK(CheckCount(full.ring_keep, {object, "ring_keep"}, error));
  ETALON_CHECK(CheckCount(full.ring_len, {object, "ring_len"}, error));
  if (full.ring_len == 0) {
    ETALON_CHECK(CheckIsZero(full.ring_keep, {object, "ring_keep"}, {object, "ring_len"}, error));
  }
  if (full.page_table == nullptr) {
    ETALON_CHECK(CheckIsZero(full.max_pages, {object, "max_pages"}, {object, "page_table"}, error));
    ETALON_CHECK(CheckIsZero(full.page_table_stride, {object, "page_table_stride"}, {object, "page_table"}, error));
  } else if (reinterpret_cast<uintptr_t>(full.page_table) % alignof(int32_t) != 0) {
    return Fail(error, ETALON_MISALIGNED, {object, "page_table"}, {"is not aligned to its elements of 4 bytes"});
  }
  *places = {full.page_table != nullptr || full.ring_len > 0,
             full.page_table,
             full.page_table_stride,
             full.max_pages,
             full.ring_keep,
             full.ring_len,
             {}};
  return ETALON_OK;
}

etalon_status CheckSequencesOfPlaces(const CallerSequences& caller, const PlacesNames& names,
                                     const CheckedPlaces& places, etalon_error* error) {
  if (!places.any) return ETALON_OK;
  const Field why = {names.object, "places"};
  if (caller.kv_lens == nullptr) {
    return Fail(error, ETALON_NULL_POINTER, {names.object, "kv_lens"}, {"is NULL, but ", why, " is set"});
  }
  for (const auto& [array, member] :
       {std::pair<const int64_t*, const char*>{caller.kv_firsts, "kv_firsts"}, {caller.kv_starts, "kv_starts"}}) {
    if (array == nullptr) continue;
    return Fail(error, ETALON_UNSUPPORTED, {names.object, member}, {"is set beside ", why});
  }
  return ETALON_OK;
}

etalon_status CheckCapacity(const PlacesNames& names, const CheckedTensor& k, int64_t batch, CheckedPlaces* places,
                            int64_t* most, etalon_error* error) {
  *most = k.shape[2];
  if (!places->any) return ETALON_OK;
  if (places->paged()) {
    *most = Multiply(places->max_pages, k.shape[2]);
    const Field table = {names.descriptor, "page_table"};
    int64_t elements, bytes;
    const uintptr_t first = reinterpret_cast<uintptr_t>(places->page_table);
    if (__builtin_mul_overflow(Larger(batch - 1, 0), places->page_table_stride, &elements) ||
        __builtin_add_overflow(elements, places->max_pages, &elements) ||
        __builtin_mul_overflow(elements, static_cast<int64_t>(sizeof(int32_t)), &bytes) ||
        __builtin_add_overflow(first, static_cast<uintptr_t>(bytes), &places->table.last)) {
      return Fail(error, ETALON_OVERFLOW, table, {"reaches beyond the end of all addresses"});
    }
    places->table.first = batch == 0 ? places->table.last : first;
  }
  if (places->ring_len == 0) return ETALON_OK;
  if (places->ring_keep + places->ring_len > *most) {
    return Fail(error, ETALON_BAD_VALUE, {names.descriptor, "ring_len"},
                {"is ", places->ring_len, ", with ", Field{names.descriptor, "ring_keep"}, " = ", places->ring_keep,
                 " more than the ", *most, " rows of a sequence"});
  }
  *most = kLargestSize;
  return ETALON_OK;
}

KeyPlaces PlacesOf(const CheckedPlaces& places, const CheckedTensor& k) {
  if (!places.any) return {};
  return {Larger(k.shape[2], 1), places.page_table, 0, 0, places.ring_keep, places.ring_len};
}

etalon_status CheckPagesOf(const PlacesNames& names, const CheckedTensor& k, const CheckedPlaces& places, int64_t batch,
                           const Span& positions, etalon_error* error) {
  if (!places.paged()) return ETALON_OK;
  const KeyPlaces of_keys = PlacesOf(places, k);
  for (int64_t position = positions.first; position < positions.last;) {
    const Slot slot = SlotOf(of_keys, position);
    const int64_t index = batch * places.page_table_stride + slot.index / of_keys.page_len;
    const int64_t page = places.page_table[index];
    if (page < 0 || page >= k.shape[0]) {
      return Fail(error, ETALON_BAD_VALUE, {names.descriptor, "page_table", index},
                  {"is ", page, ", but holds key ", position, ", and ", k.Shape(0), " is ", k.shape[0]});
    }
    position += Smaller(of_keys.page_len - slot.index % of_keys.page_len, slot.until_wrap);
  }
  return ETALON_OK;
}

etalon_status CheckPages(const PlacesNames& names, const CheckedTensor& k, const Queries& queries,
                         const Sequences& sequences, const CheckedPlaces& places, etalon_error* error) {
  if (!places.paged()) return ETALON_OK;
  for (int64_t b = 0; b < queries.batch; ++b) {
    ETALON_CHECK(CheckPagesOf(names, k, places, b, SlotsInUse(sequences, b, queries.QLen(b)), error));
  }
  return ETALON_OK;
}

}  // namespace etalon
