// expect.h: what a call that is right must write, from the arithmetic's order of operations
// (tests/kernels/order_model.h) and the meaning of descriptors as etalon.h has it. Shares no code with lib but exp, log
// and the conversions.
#ifndef ETALON_TESTS_FUZZ_EXPECT_H_
#define ETALON_TESTS_FUZZ_EXPECT_H_

#include "tests/fuzz/judge.h"

namespace etalon::fuzz {

// Enters in the blocks of the call which bytes its outputs must become, and which of all others it may touch. Every
// block has been remembered. False if numerics.md does not say which bytes: a sum of a state that no sum can be.
bool Expect(const Call& call, const Judged& judged);

// The slope of ALiBi that head `head` of so many has.
float StandardSlope(int64_t head, int64_t num_heads);

// What a plan tells of a call, from the definition in etalon.h.
struct KeyCount {
  int64_t chunks = 0;
  int64_t keys = 0;
};
struct Work {
  int64_t key_tiles = 0;
  int64_t bytes_read = 0;

  void Add(const KeyCount& count, int64_t key_bytes) {
    key_tiles += count.chunks;
    bytes_read += count.keys * key_bytes;
  }
};
struct Counts {
  int64_t tiles = 0;
  Work least, most;
};
Counts Count(const Call& call, const Judged& judged, int64_t tile_rows);

}  // namespace etalon::fuzz

#endif  // ETALON_TESTS_FUZZ_EXPECT_H_
