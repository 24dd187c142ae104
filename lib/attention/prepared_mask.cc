#include "lib/attention/prepared_mask.h"

namespace etalon {
namespace {

const unsigned char* Bytes(const PreparedMask& mask) { return reinterpret_cast<const unsigned char*>(&mask); }

}  // namespace

MaskRow RowOfMask(const PreparedMask& mask, int64_t batch, int64_t head, int64_t query) {
  const int64_t group = (mask.batch == 1 ? 0 : batch) * mask.num_heads + (mask.num_heads == 1 ? 0 : head);
  const int64_t of_head = mask.q_block == 1 ? query : query / mask.q_block;
  const int64_t at = group * mask.entries_of_head + of_head;
  const MaskEntry& entry = reinterpret_cast<const MaskEntry*>(Bytes(mask) + mask.entries)[at];
  MaskRow row = {entry.hull, nullptr, 0, nullptr};
  if (mask.bits != 0) {
    row.bits = Bytes(mask) + mask.bits + at * mask.row_bytes;
  } else {
    row.runs = reinterpret_cast<const Span*>(Bytes(mask) + mask.runs) + entry.first_run;
    row.num_runs = entry.num_runs;
  }
  return row;
}

}  // namespace etalon
