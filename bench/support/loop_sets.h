// loop_sets.h: the sets of loops that there are, each in a file of its own that compiles to nothing elsewhere.
#ifndef ETALON_BENCH_SUPPORT_LOOP_SETS_H_
#define ETALON_BENCH_SUPPORT_LOOP_SETS_H_

#include "bench/support/loops.h"

namespace etalon::bench {

extern const Loops kAvx2Loops;
extern const Loops kAvx512Loops;
extern const Loops kNeonLoops;

}  // namespace etalon::bench

#endif  // ETALON_BENCH_SUPPORT_LOOP_SETS_H_
