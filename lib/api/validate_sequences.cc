// Checks of the arrays that say where sequences lie, of how long they are, and of prepared masks.
#include "lib/api/validate.h"
#include "lib/base/parallel.h"

namespace etalon {
namespace {

etalon_status CheckOffset(int64_t offset, const Field& field, etalon_error* error) {
  if (offset >= -kLargestSize && offset <= kLargestSize) return ETALON_OK;
  return Fail(error, ETALON_BAD_VALUE, field, {"is ", offset, ", must be within ", kLargestSize, " of 0"});
}

etalon_status CheckOffsets(const CallerSequences& caller, int64_t batch, etalon_error* error) {
  ETALON_CHECK(CheckOffset(caller.q_offset, {caller.object, "q_offset"}, error));
  for (int64_t b = 0; caller.q_offsets != nullptr && b < batch; ++b) {
    const int64_t sum = AddSaturated(caller.q_offset, caller.q_offsets[b]);
    if (sum >= -kLargestSize && sum <= kLargestSize) continue;
    const Field offset = {caller.object, "q_offset"};
    return Fail(error, ETALON_BAD_VALUE, {caller.object, "q_offsets", b},
                {"is ", caller.q_offsets[b], ", with ", offset, " it must be within ", kLargestSize, " of 0"});
  }
  return ETALON_OK;
}

// The numbers of one sequence: where its keys begin and end, and its prefix.
etalon_status CheckSequence(const CallerSequences& caller, const Sequences& s, int64_t b, etalon_error* error) {
  int64_t end = s.kv_starts == nullptr ? s.kv_len : s.kv_starts[b + 1] - s.kv_starts[b];
  if (s.kv_lens != nullptr) {
    ETALON_CHECK(CheckLength(s.kv_lens[b], end, {caller.object, "kv_lens", b}, error));
    end = s.kv_lens[b];
  }
  if (s.kv_firsts != nullptr) ETALON_CHECK(CheckLength(s.kv_firsts[b], end, {caller.object, "kv_firsts", b}, error));
  if (s.prefix_lens == nullptr) return ETALON_OK;
  return CheckLength(s.prefix_lens[b], kLargestSize, {caller.object, "prefix_lens", b}, error);
}

etalon_status CheckMaskSize(int64_t made_for, int64_t size, const char* what, bool one_will_do, const Field& field,
                            etalon_error* error) {
  if (made_for == size || (made_for == 1 && one_will_do)) return ETALON_OK;
  return Fail(error, ETALON_BAD_SHAPE, field, {"was made for ", what, " = ", made_for, ", but here it is ", size});
}

}  // namespace

etalon_status CheckLength(int64_t length, int64_t most, const Field& field, etalon_error* error) {
  if (length >= 0 && length <= most) return ETALON_OK;
  return Fail(error, ETALON_BAD_VALUE, field, {"is ", length, ", must be 0 ... ", most});
}

etalon_status CheckArray(const int64_t* array, int64_t count, const Field& field, Hull* hull, etalon_error* error) {
  *hull = {};
  if (array == nullptr) return ETALON_OK;
  hull->first = reinterpret_cast<uintptr_t>(array);
  if (hull->first % alignof(int64_t) != 0) {
    return Fail(error, ETALON_MISALIGNED, field, {"is not aligned to its elements of 8 bytes"});
  }
  int64_t bytes;
  if (__builtin_mul_overflow(count, static_cast<int64_t>(sizeof *array), &bytes) ||
      __builtin_add_overflow(hull->first, bytes, &hull->last)) {
    return Fail(error, ETALON_OVERFLOW, field, {"reaches beyond the end of all addresses"});
  }
  return ETALON_OK;
}

etalon_status CheckStarts(const int64_t* starts, int64_t count, int64_t most, const Field& field, int64_t* longest,
                          etalon_error* error) {
  *longest = 0;
  for (int64_t i = 0; i <= count; ++i) {
    const Field here = {field.object, field.member, i}, before = {field.object, field.member, i - 1};
    ETALON_CHECK(CheckLength(starts[i], most, here, error));
    if (i == 0) continue;
    if (starts[i] < starts[i - 1]) {
      return Fail(error, ETALON_BAD_VALUE, here, {"is ", starts[i], ", but ", before, " is ", starts[i - 1]});
    }
    *longest = Larger(*longest, starts[i] - starts[i - 1]);
  }
  return ETALON_OK;
}

etalon_status CheckQueries(const int64_t* q_starts, const int64_t* q_lens, int64_t batch, int64_t rows,
                           Queries* queries, etalon_error* error) {
  *queries = {batch, rows, q_starts, q_lens, {}, {}};
  if (q_starts != nullptr) {
    ETALON_CHECK(CheckArray(q_starts, batch + 1, {"args", "q_starts"}, &queries->starts_hull, error));
    ETALON_CHECK(CheckStarts(q_starts, batch, rows, {"args", "q_starts"}, &queries->q_len, error));
  }
  ETALON_CHECK(CheckArray(q_lens, batch, {"args", "q_lens"}, &queries->lens_hull, error));
  for (int64_t b = 0; q_lens != nullptr && b < batch; ++b) {
    ETALON_CHECK(CheckLength(q_lens[b], queries->QLen(b), {"args", "q_lens", b}, error));
  }
  return ETALON_OK;
}

etalon_status CheckSequences(const CallerSequences& caller, const Queries& queries, int64_t rows, Sequences* sequences,
                             SequenceHulls* hulls, etalon_error* error) {
  const int64_t batch = queries.batch;
  const char* object = caller.object;
  *hulls = {};
  hulls->object = object;
  ETALON_CHECK(CheckArray(caller.q_offsets, batch, {object, "q_offsets"}, &hulls->q_offsets, error));
  ETALON_CHECK(CheckArray(caller.kv_lens, batch, {object, "kv_lens"}, &hulls->kv_lens, error));
  ETALON_CHECK(CheckArray(caller.kv_firsts, batch, {object, "kv_firsts"}, &hulls->kv_firsts, error));
  ETALON_CHECK(CheckArray(caller.prefix_lens, batch, {object, "prefix_lens"}, &hulls->prefix_lens, error));
  int64_t kv_len = rows;
  if (caller.kv_starts != nullptr) {
    ETALON_CHECK(CheckArray(caller.kv_starts, batch + 1, {object, "kv_starts"}, &hulls->kv_starts, error));
    ETALON_CHECK(CheckStarts(caller.kv_starts, batch, rows, {object, "kv_starts"}, &kv_len, error));
  }
  *sequences = {kv_len,
                caller.q_offset,
                queries.q_lens,
                caller.kv_lens,
                caller.q_offsets,
                caller.left,
                caller.right,
                caller.kv_firsts,
                caller.kv_starts,
                caller.prefix_lens,
                nullptr,
                0,
                0};
  const bool by_sequence = caller.kv_lens != nullptr || caller.kv_firsts != nullptr || caller.prefix_lens != nullptr;
  for (int64_t b = 0; by_sequence && b < batch; ++b) ETALON_CHECK(CheckSequence(caller, *sequences, b, error));
  return CheckOffsets(caller, batch, error);
}

etalon_status CheckPreparedMask(const etalon_mask* caller, const Field& field, const ColumnsShape& shape,
                                const PreparedMask** mask, Hull* hull, etalon_error* error) {
  *mask = nullptr;
  *hull = {};
  if (caller == nullptr) return ETALON_OK;
  hull->first = reinterpret_cast<uintptr_t>(caller);
  if (hull->first % alignof(PreparedMask) != 0) {
    return Fail(error, ETALON_MISALIGNED, field, {"is not aligned to ", alignof(PreparedMask), " bytes"});
  }
  const PreparedMask* prepared = reinterpret_cast<const PreparedMask*>(caller);
  if (prepared->magic != kMaskMagic || __builtin_add_overflow(hull->first, prepared->bytes, &hull->last)) {
    return Fail(error, ETALON_BAD_VALUE, field, {"was not made by etalon_mask_prepare of this library"});
  }
  ETALON_CHECK(CheckMaskSize(prepared->batch, shape.batch, "batch", true, field, error));
  ETALON_CHECK(CheckMaskSize(prepared->num_heads, shape.num_heads, "num_heads", true, field, error));
  ETALON_CHECK(CheckMaskSize(prepared->q_len, shape.q_len, "q_len", false, field, error));
  ETALON_CHECK(CheckMaskSize(prepared->kv_len, shape.kv_len, "kv_len", false, field, error));
  *mask = prepared;
  return ETALON_OK;
}

}  // namespace etalon
