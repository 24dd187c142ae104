// rows-inl.h: keys and values as f32 rows that the tiles can walk: as they lie where that is good, else a copy.
#if defined(ETALON_ARCH_HIGHWAY_ROWS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ETALON_ARCH_HIGHWAY_ROWS_INL_H_
#undef ETALON_ARCH_HIGHWAY_ROWS_INL_H_
#else
#define ETALON_ARCH_HIGHWAY_ROWS_INL_H_
#endif

#include <cstring>

#include "arch/highway/math-inl.h"
#include "arch/key_rows.h"
#include "lib/base/workspace.h"

HWY_BEFORE_NAMESPACE();
namespace etalon {
namespace HWY_NAMESPACE {
#if ETALON_HIGHWAY_EXACT

struct FloatRows {
  const float* data;
  ptrdiff_t stride;  // floats
};

// Rows whose distance is a multiple of this fall into few sets of a cache: a walk down a column misses each time.
constexpr int64_t kAliasBytes = 1024;

// Floats between the rows of a copy.
inline size_t CopyStride(size_t dim) {
  const size_t stride = RoundUp(dim);
  return stride * sizeof(float) % kAliasBytes == 0 ? stride + kWorkspaceAlignment / sizeof(float) : stride;
}

// n elements as f32.
HWY_INLINE void WidenRow(DType type, const void* row, size_t n, float* to) {
  size_t c = 0;
  for (; c + kLanes <= n; c += kLanes) hn::StoreU(LoadElements(type, row, c), DF(), to + c);
  if (c < n) hn::StoreN(LoadElementsN(type, row, c, n - c), DF(), to + c, n - c);
}

// f32 rows that lie well, or that are walked only once, stay where they are.
HWY_INLINE bool StayInPlace(DType type, int64_t stride_bytes, bool walked_again) {
  return type == DType::kF32 && (!walked_again || stride_bytes == 0 || stride_bytes % kAliasBytes != 0);
}

// Rows go to `copy`, CopyStride(dim) floats apart.
HWY_INLINE void CopyRows(DType type, const RowRun& rows, int64_t stride_bytes, size_t dim, float* copy) {
  // Rows may be pages of memory apart: what finds the page of one while others are copied saves waiting for it.
  constexpr int64_t kAhead = 8;
  const size_t stride = CopyStride(dim), row_bytes = dim * ElementSize(type);
  for (int64_t i = 0; i < rows.count; ++i) {
    const unsigned char* row = rows.first + i * stride_bytes;
    if (i + kAhead < rows.count) {
      const unsigned char* next = row + kAhead * stride_bytes;
      for (size_t c = 0; c < row_bytes; c += kWorkspaceAlignment) __builtin_prefetch(next + c);
    }
    WidenRow(type, row, dim, copy + static_cast<size_t>(i) * stride);
  }
}

HWY_INLINE FloatRows LoadRows(DType type, const void* first, int64_t stride_bytes, size_t num_rows, size_t dim,
                              bool walked_again, float* copy) {
  if (num_rows == 1) stride_bytes = 0;  // it may be anything, too much to multiply even
  if (StayInPlace(type, stride_bytes, walked_again)) {
    return {static_cast<const float*>(first),
            static_cast<ptrdiff_t>(stride_bytes / static_cast<int64_t>(sizeof(float)))};
  }
  CopyRows(type, {static_cast<const unsigned char*>(first), static_cast<int64_t>(num_rows)}, stride_bytes, dim, copy);
  return {copy, static_cast<ptrdiff_t>(CopyStride(dim))};
}

// The rows of positions keys.first ... keys.last - 1, wherever they lie.
HWY_INLINE FloatRows LoadRowsOf(const KeySource& source, const RowPlaces& places, DType type, const Span& keys,
                                size_t dim, bool walked_again, float* copy) {
  RowRun run = RowsFrom(source, places, keys.first, keys.last);
  if (run.count == keys.last - keys.first) {
    return LoadRows(type, run.first, places.stride_bytes, static_cast<size_t>(run.count), dim, walked_again, copy);
  }
  const size_t stride = CopyStride(dim);
  float* to = copy;
  for (int64_t position = keys.first; position < keys.last; position += run.count) {
    run = RowsFrom(source, places, position, keys.last);
    CopyRows(type, run, run.count == 1 ? 0 : places.stride_bytes, dim, to);
    to += static_cast<size_t>(run.count) * stride;
  }
  return {copy, static_cast<ptrdiff_t>(stride)};
}
HWY_INLINE FloatRows LoadKeys(const KeySource& source, const Span& keys, size_t head_dim, bool again, float* copy) {
  return LoadRowsOf(source, KeyPlacesOf(source), source.k_type, keys, head_dim, again, copy);
}
HWY_INLINE FloatRows LoadValues(const KeySource& source, const Span& keys, size_t value_dim, bool again, float* copy) {
  return LoadRowsOf(source, ValuePlacesOf(source), source.v_type, keys, value_dim, again, copy);
}

// Loads what nobody wants yet, so that it is in a cache when it is wanted.
HWY_INLINE void Touch(const void* line) {
  const uint8_t byte = *static_cast<const uint8_t*>(line);
  __asm__ volatile("" : : "r"(byte));
}

// Touches each line of the rows, before a walk across them. What prefetchers of the hardware follow is a line after the
// other, and a few such streams at once bring more than one: 13 GB/s against 8 from the memory of a Zen 3. Prefetch
// instructions do not help there: they are dropped while a dozen are under way. A row of each stream in turn; a line of
// each in turn took up to 1.6 times as long.
constexpr size_t kStreams = 4;
HWY_INLINE void TouchRow(const void* row, size_t row_bytes) {
  for (size_t i = 0; i < row_bytes; i += kWorkspaceAlignment) Touch(static_cast<const unsigned char*>(row) + i);
}

HWY_INLINE void FetchRows(const void* first, int64_t stride_bytes, size_t num_rows, size_t row_bytes) {
  const size_t part = (num_rows + kStreams - 1) / kStreams;
  for (size_t i = 0; i < part; ++i) {
    for (size_t t = i; t < num_rows; t += part) {
      TouchRow(static_cast<const unsigned char*>(first) + static_cast<int64_t>(t) * stride_bytes, row_bytes);
    }
  }
}
HWY_INLINE void FetchRows(const FloatRows& rows, size_t num_rows, size_t dim) {
  const int64_t element = sizeof(float);
  FetchRows(rows.data, rows.stride * element, num_rows, dim * sizeof(float));
}

HWY_INLINE bool AnyNaN(VF x) { return !hn::AllFalse(DF(), hn::IsNaN(x)); }

// Whether num_rows rows of dim elements hold no infinity and no NaN.
HWY_INLINE bool AllFinite(const FloatRows& rows, size_t num_rows, size_t dim) {
  const DF d;
  VF probe = hn::Zero(d);  // x * 0 is NaN for those
  for (size_t t = 0; t < num_rows; ++t) {
    const float* row = rows.data + static_cast<ptrdiff_t>(t) * rows.stride;
    size_t c = 0;
    for (; c + kLanes <= dim; c += kLanes) probe = hn::MulAdd(hn::LoadU(d, row + c), hn::Zero(d), probe);
    if (c < dim) probe = hn::MulAdd(hn::LoadN(d, row + c, dim - c), hn::Zero(d), probe);
  }
  return !AnyNaN(probe);
}

#endif  // ETALON_HIGHWAY_EXACT
}  // namespace HWY_NAMESPACE
}  // namespace etalon
HWY_AFTER_NAMESPACE();

#endif  // include guard
