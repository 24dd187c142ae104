// sequences.h: which keys of one source the queries of a call may see: lengths, padding, geometry, prefixes and a
// prepared mask, as one span a row and, where that is not all, a list of runs. Meaning: docs/semantics.md.
#ifndef ETALON_LIB_ATTENTION_SEQUENCES_H_
#define ETALON_LIB_ATTENTION_SEQUENCES_H_

#include <cstdint>

#include "arch/kernel_table.h"
#include "lib/attention/mask.h"
#include "lib/attention/prepared_mask.h"
#include "lib/attention/tiles.h"

namespace etalon {

// Null arrays: every sequence is as long as the tensors are, begins at their first key, and so on. All are [batch],
// kv_starts is [batch + 1].
struct Sequences {
  int64_t kv_len;  // of the tensors; of the longest sequence if ragged
  int64_t q_offset;
  const int64_t* q_lens;
  const int64_t* kv_lens;
  const int64_t* q_offsets;  // added to q_offset
  int64_t left;
  int64_t right;
  const int64_t* kv_firsts;
  const int64_t* kv_starts;
  const int64_t* prefix_lens;
  const PreparedMask* mask;
  int64_t ring_keep;  // of a ring (arch/kernel_table.h): later positions but the last ring_len are gone
  int64_t ring_len;   // 0 = no ring
};

// The row of k and v, in their tensors, that stands at position 0 of a sequence, and how many keys there are from it
// on.
int64_t FirstKeyRow(const Sequences& sequences, int64_t batch);
int64_t NumKeys(const Sequences& sequences, int64_t batch);

// Where the position 0 of a sequence is among the columns of bias and masks.
int64_t FirstColumn(const Sequences& sequences, int64_t batch);

int64_t PositionOf(const Sequences& sequences, int64_t batch, int64_t query);

// The positions of a sequence that a ring still has: two runs, of which the first may be empty.
struct RingRuns {
  Span of[2];
};
RingRuns RunsOfRing(const Sequences& sequences, int64_t batch);

// Whether a row may see both ends of a gap of the ring, so that its span does not say all.
bool RingHasGap(const Sequences& sequences);

// Positions whose slots (arch/kernel_table.h) are those of all keys that some of the first q_len queries may see, masks
// apart; with a ring all of its slots that hold keys. Empty if there is none.
Span SlotsInUse(const Sequences& sequences, int64_t batch, int64_t q_len);

// Whether nothing but a mask tells one sequence from another.
bool SequencesAreAlike(const Sequences& sequences);

// What a query sees, masks in memory (bias, mask) apart. Nothing if it is beyond its sequence's length.
struct Seen {
  Span span;         // positions; no larger than the runs need
  bool both_runs;    // of the ring: the runs are those of RunsOfRing, and `runs` is null
  const Span* runs;  // as in RowKeys; null = the whole span
  int64_t num_runs;
  const uint8_t* bits;  // of a prepared mask that is kept as bits (column 0), or null
};
Seen SeenBy(const Sequences& sequences, int64_t batch, int64_t head, int64_t query);

// The smallest span that holds those of all rows of the tile.
Span SpanOfTile(const RowTiles& tiles, const Tile& tile, const Sequences& sequences);

}  // namespace etalon

#endif  // ETALON_LIB_ATTENTION_SEQUENCES_H_
