// loops.h: the fixed loops whose speed is the limit of a kernel: fused multiply-adds out of registers, and vector loads
// and stores. One set for each instruction set, none for CPUs that we have no vectors for.
#ifndef ETALON_BENCH_SUPPORT_LOOPS_H_
#define ETALON_BENCH_SUPPORT_LOOPS_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace etalon::bench {

struct Loops {
  const char* name;      // "avx2"
  const char* features;  // that a CPU needs, as etalon_cpu_feature_name spells them, with blanks between
  int lanes;             // floats of a vector

  // fma_per_step fused operations on vectors, in as many independent chains as hide any latency, `steps` times. The
  // chains begin at different values, so that no compiler can merge them, and stay finite and normal.
  int fma_per_step;
  void (*fma)(int64_t steps);

  // Each reads every byte once; bytes is a multiple of 512, data of 64. One loop in ascending order, one that also asks
  // for what comes 8 KiB later, one in four places at a time: which is fastest depends on the CPU and on where the data
  // is.
  void (*read[3])(const void* data, size_t bytes);

  // Each writes every byte once: through the cache and, where there are such instructions, past it (else null).
  void (*store[2])(void* data, size_t bytes);
};

// Sets that this CPU can run, the widest last.
std::vector<const Loops*> AvailableLoops();

// The set that is the limit of a kernel table: of the widest vectors that the table's features include. A table without
// any is measured against the widest of this CPU. Null if there is none.
const Loops* LoopsForTable(const std::string& table);

}  // namespace etalon::bench

#endif  // ETALON_BENCH_SUPPORT_LOOPS_H_
