// count.h: the keys that the tiles of a call read, counted without a look at every tile.
#ifndef ETALON_LIB_ATTENTION_COUNT_H_
#define ETALON_LIB_ATTENTION_COUNT_H_

#include <cstdint>

#include "lib/attention/tiles.h"

namespace etalon {

// Of many tiles together; held at the end of the range.
struct KeyCount {
  int64_t chunks = 0;  // chunks of kChunk keys of which a tile may see one
  int64_t keys = 0;    // keys of the tiles' spans
};

// Of all tiles of one key/value head of a sequence. The time does not depend on any size.
KeyCount CountKeys(const RowTiles& tiles, const Sequences& sequences, int64_t batch);

// a * b, held at the end of the range; a, b >= 0.
int64_t MultiplySaturated(int64_t a, int64_t b);

}  // namespace etalon

#endif  // ETALON_LIB_ATTENTION_COUNT_H_
