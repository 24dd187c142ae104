// prepared_mask.h: a mask that was looked at once: for each query row (or block of them) either its runs of visible
// columns, or a span and packed bits, whichever is shorter for the whole mask. Lies in one piece of memory that holds
// no pointers.
#ifndef ETALON_LIB_ATTENTION_PREPARED_MASK_H_
#define ETALON_LIB_ATTENTION_PREPARED_MASK_H_

#include <cstddef>
#include <cstdint>

#include "arch/kernel_table.h"

namespace etalon {

// Tells a prepared mask from memory that is none. Changes with the layout.
constexpr uint64_t kMaskMagic = 0x3176'4B53'414D'5445u;

// The start of the memory. Offsets count from here.
struct PreparedMask {
  uint64_t magic;
  uint64_t bytes;     // of all of it
  int64_t batch;      // or 1
  int64_t num_heads;  // or 1
  int64_t q_len;
  int64_t kv_len;
  int64_t q_block;          // rows that share an entry
  int64_t entries_of_head;  // q_len / q_block, rounded up
  uint64_t entries;         // offset of MaskEntry[batch][num_heads][entries_of_head]
  uint64_t runs;            // offset of Span[]; 0 = kept as bits
  uint64_t bits;            // offset of the rows of bits, row_bytes each, in the order of the entries; 0 = kept as runs
  int64_t row_bytes;
};

struct MaskEntry {
  Span hull;  // columns; {0, 0} if nothing is visible
  int64_t first_run;
  int64_t num_runs;
};

// What a row sees by the mask alone.
struct MaskRow {
  Span hull;
  const Span* runs;  // null if kept as bits
  int64_t num_runs;
  const uint8_t* bits;  // null if kept as runs
};
MaskRow RowOfMask(const PreparedMask& mask, int64_t batch, int64_t head, int64_t query);

}  // namespace etalon

#endif  // ETALON_LIB_ATTENTION_PREPARED_MASK_H_
