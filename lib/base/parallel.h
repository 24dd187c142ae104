// parallel.h: cuts a range of tasks into equal parts. libetalon owns no threads; a caller's loop runs the parts.
#ifndef ETALON_LIB_BASE_PARALLEL_H_
#define ETALON_LIB_BASE_PARALLEL_H_

#include <cstdint>

namespace etalon {

struct Range {
  int64_t first;
  int64_t last;  // one past
};

static inline int64_t Smaller(int64_t a, int64_t b) { return a < b ? a : b; }
static inline int64_t Larger(int64_t a, int64_t b) { return a > b ? a : b; }

// a / b, rounded up; a >= 0, b > 0.
static inline int64_t DivideUp(int64_t a, int64_t b) { return a / b + (a % b != 0 ? 1 : 0); }

// Part `part` of `parts` of [0, count): sizes differ by one at most, the larger ones first. Any parts >= 1.
static inline Range PartOfRange(int64_t count, int64_t part, int64_t parts) {
  const int64_t size = count / parts;
  const int64_t larger = count % parts;
  const int64_t first = part * size + (part < larger ? part : larger);
  return {first, first + size + (part < larger ? 1 : 0)};
}

}  // namespace etalon

#endif  // ETALON_LIB_BASE_PARALLEL_H_
