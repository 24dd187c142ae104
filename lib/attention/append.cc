#include "lib/attention/append.h"

#include <cstring>

#include "arch/key_rows.h"
#include "lib/base/parallel.h"

namespace etalon {
namespace {

constexpr size_t kPart = 256;  // elements that are converted at a time

// One row into another type: exact, or rounded once.
void ConvertRow(const KernelTable& table, DType from_type, const unsigned char* from, DType to_type, unsigned char* to,
                size_t n) {
  alignas(64) float part[kPart];
  for (size_t i = 0; i < n; i += kPart) {
    const size_t count = n - i < kPart ? n - i : kPart;
    table.widen(from_type, from + i * ElementSize(from_type), part, count);
    if (to_type != DType::kF32) {
      table.narrow(to_type, part, to + i * ElementSize(to_type), count);
      continue;
    }
    for (size_t j = 0; j < count; ++j) part[j] = Canonical(part[j]);
    std::memcpy(to + i * sizeof(float), part, count * sizeof(float));
  }
}

void CopyRows(const KernelTable& table, const AppendedRows& rows, const unsigned char* from, unsigned char* to,
              int64_t count) {
  const int64_t row_bytes = static_cast<int64_t>(rows.dim * ElementSize(rows.to.type));
  const bool same = rows.from.type == rows.to.type;
  if (same && rows.from.row_stride_bytes == row_bytes && rows.to.row_stride_bytes == row_bytes) {
    std::memcpy(to, from, static_cast<size_t>(count * row_bytes));
    return;
  }
  for (int64_t i = 0; i < count; ++i) {
    const unsigned char* row = from + i * rows.from.row_stride_bytes;
    unsigned char* place = to + i * rows.to.row_stride_bytes;
    if (same) {
      std::memcpy(place, row, static_cast<size_t>(row_bytes));
    } else {
      ConvertRow(table, rows.from.type, row, rows.to.type, place, rows.dim);
    }
  }
}

}  // namespace

NewPositions PositionsOfAppend(const KeyPlaces& places, int64_t kv_len, int64_t new_len) {
  const int64_t last = kv_len + new_len;
  if (places.page_len == 0 || places.ring_len == 0) return {kv_len, last, last, last};
  const int64_t kept_last = Larger(kv_len, Smaller(last, places.ring_keep));
  return {kv_len, kept_last, Larger(kept_last, last - places.ring_len), last};
}

int64_t NumAppendTasks(const AppendProblem& p) { return p.new_len == 0 ? 0 : p.batch * p.heads; }

void AppendHead(const KernelTable& table, const AppendProblem& p, int64_t task) {
  const int64_t batch = task / p.heads, head = task % p.heads;
  const int64_t kv_len = p.kv_lens == nullptr ? 0 : p.kv_lens[batch];
  const NewPositions positions =
      PositionsOfAppend(p.places, kv_len, p.new_lens == nullptr ? p.new_len : p.new_lens[batch]);
  KeySource cache = {};
  cache.places = p.places;
  if (p.places.pages != nullptr) cache.places.pages += batch * p.pages_stride;
  for (const AppendedRows& rows : p.rows) {
    const RowPlaces places = {rows.to.Row(p.places.pages != nullptr ? 0 : batch, head, 0), rows.to.row_stride_bytes,
                              rows.to.batch_stride_bytes};
    const Span written[] = {{positions.first, positions.kept_last}, {positions.ring_first, positions.last}};
    for (const Span& span : written) {
      for (int64_t position = span.first; position < span.last;) {
        const RowRun run = RowsFrom(cache, places, position, span.last);
        const unsigned char* from =
            static_cast<const unsigned char*>(rows.from.Row(batch, head, position - positions.first));
        CopyRows(table, rows, from, const_cast<unsigned char*>(run.first), run.count);
        position += run.count;
      }
    }
  }
}

}  // namespace etalon
