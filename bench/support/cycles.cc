#include "bench/support/cycles.h"

#include <cstdint>
#include <cstring>

#include "bench/support/timing.h"

#if defined(__linux__)
#include <linux/perf_event.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

#include <algorithm>
#include <cmath>

namespace etalon::bench {
namespace {

// The counter of cycles that this thread spends outside the kernel.
class Counter {
 public:
#if defined(__linux__)
  Counter() {
    perf_event_attr attributes;
    std::memset(&attributes, 0, sizeof attributes);
    attributes.size = sizeof attributes;
    attributes.type = PERF_TYPE_HARDWARE;
    attributes.config = PERF_COUNT_HW_CPU_CYCLES;
    attributes.exclude_kernel = attributes.exclude_hv = 1;
    file_ = static_cast<int>(syscall(SYS_perf_event_open, &attributes, 0, -1, -1, 0));
  }
  ~Counter() {
    if (file_ >= 0) close(file_);
  }
  bool Read(uint64_t* cycles) const { return file_ >= 0 && read(file_, cycles, sizeof *cycles) == sizeof *cycles; }
#else
  bool Read(uint64_t*) const { return false; }
#endif
  Counter(const Counter&) = delete;
  Counter& operator=(const Counter&) = delete;

 private:
  int file_ = -1;
};

constexpr int64_t kChainSteps = 2000;
constexpr int kPerStep = 16;

#define ETALON_4_TIMES(x) x x x x
#define ETALON_16_TIMES(x) ETALON_4_TIMES(ETALON_4_TIMES(x))

// One cycle an instruction. Registers, since some CPUs add small constants while they rename, in no time at all.
void AddChain() {
  uint64_t x = 1;
  const uint64_t y = 3;
  for (int64_t i = 0; i < kChainSteps; ++i) {
#if defined(__x86_64__)
    __asm__ volatile(ETALON_16_TIMES("add %1, %0\n\t") : "+r"(x) : "r"(y) : "cc");
#elif defined(__aarch64__)
    __asm__ volatile(ETALON_16_TIMES("add %0, %0, %1\n\t") : "+r"(x) : "r"(y));
#endif
  }
}

// Three cycles an instruction: on x86-64 CPUs since 2008.
void MulChain() {
  uint64_t x = 1;
  const uint64_t y = 3;
  for (int64_t i = 0; i < kChainSteps; ++i) {
#if defined(__x86_64__)
    __asm__ volatile(ETALON_16_TIMES("imul %1, %0\n\t") : "+r"(x) : "r"(y) : "cc");
#else
    (void)y;
    __asm__ volatile("" : "+r"(x));
#endif
  }
}

double SecondsOf(const std::function<void()>& work) {
  const double start = Seconds(Clock::kWall);
  work();
  return Seconds(Clock::kWall) - start;
}

}  // namespace

Cycles CountCycles(const std::vector<std::function<void()>>& works, double seconds) {
  Cycles result;
  result.of_one.assign(works.size(), INFINITY);
  const PinnedThread pin;
  const Counter counter;
  std::vector<double> best(works.size(), INFINITY);
  double add = INFINITY, mul = INFINITY;
  uint64_t before = 0, after = 0;
  const bool counts = counter.Read(&before) && before != 0;
  for (const double end = Seconds(Clock::kWall) + seconds; Seconds(Clock::kWall) < end;) {
    add = std::min(add, SecondsOf(AddChain));
    mul = std::min(mul, SecondsOf(MulChain));
    for (size_t i = 0; i < works.size(); ++i) {
      if (counts) (void)counter.Read(&before);
      best[i] = std::min(best[i], SecondsOf(works[i]));
      if (counts && counter.Read(&after))
        result.of_one[i] = std::min(result.of_one[i], static_cast<double>(after - before));
    }
  }
  constexpr double kChainCycles = static_cast<double>(kChainSteps * kPerStep);
  result.ghz = kChainCycles / add * 1e-9;
  if (counts) {
    result.how = "cycle counter";
    return result;
  }
#if defined(__x86_64__)
  result.how = "chains of add and imul";
  // Two latencies that agree: then the clock was steady, and this CPU has the latencies that we count on.
  if (std::fabs(mul / add / 3 - 1) > 0.02) result.unknown = "no cycle counter, and chains of add and imul disagree";
#elif defined(__aarch64__)
  result.how = "chain of add";
#else
  result.unknown = "no cycle counter";
#endif
  for (size_t i = 0; i < works.size(); ++i) result.of_one[i] = best[i] / add * kChainCycles;
  return result;
}

}  // namespace etalon::bench
