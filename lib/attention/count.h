// count.h: the keys that the tiles of a call read, counted without a look at every tile unless a mask asks for it.
#ifndef ETALON_LIB_ATTENTION_COUNT_H_
#define ETALON_LIB_ATTENTION_COUNT_H_

#include <cstdint>

#include "lib/attention/sequences.h"
#include "lib/attention/tiles.h"

namespace etalon {

// Of many tiles together; held at the end of the range.
struct KeyCount {
  int64_t chunks = 0;  // chunks of kChunk keys of which a tile may see one
  int64_t keys = 0;    // keys of the tiles' spans; with a mask, keys that some row of a tile may see
};

// Of all tiles of one key/value head of a sequence, whose mask is not looked at. The time does not depend on any size.
KeyCount CountKeys(const RowTiles& tiles, const Sequences& sequences, int64_t batch);

// The same with the prepared mask: walks the tiles, and the runs of their rows.
KeyCount CountMaskedKeys(const RowTiles& tiles, const Sequences& sequences, int64_t batch, int64_t kv_head);

// Of all tiles, one source. O(batch) without a prepared mask.
KeyCount CountAllKeys(const RowTiles& tiles, const Sequences& sequences);

// a * b, held at the end of the range; a, b >= 0.
int64_t MultiplySaturated(int64_t a, int64_t b);

}  // namespace etalon

#endif  // ETALON_LIB_ATTENTION_COUNT_H_
