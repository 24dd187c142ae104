// cycles.h: work in clock cycles, by the CPU's counter where the system lets us read it, else beside a chain of
// dependent instructions whose latency is the same on all CPUs.
#ifndef ETALON_BENCH_SUPPORT_CYCLES_H_
#define ETALON_BENCH_SUPPORT_CYCLES_H_

#include <functional>
#include <string>
#include <vector>

namespace etalon::bench {

struct Cycles {
  std::string unknown;         // why there is no clock; empty = there is one
  std::string how;             // "cycle counter" or "chains of add and imul"
  double ghz = 0;              // of the best sample
  std::vector<double> of_one;  // cycles of one call of each work, the fewest of all samples
};

// Samples are short, so that some fall between the interrupts, and many: what others do on a shared machine can only
// make them longer. Each work takes about 20 to 200 us.
Cycles CountCycles(const std::vector<std::function<void()>>& works, double seconds);

}  // namespace etalon::bench

#endif  // ETALON_BENCH_SUPPORT_CYCLES_H_
