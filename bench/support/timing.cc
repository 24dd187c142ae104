#include "bench/support/timing.h"

#include <time.h>
#if defined(__linux__)
#include <sched.h>
#endif

#include <algorithm>
#include <cmath>
#include <cstring>

namespace etalon::bench {
namespace {

double SecondsOf(const std::function<void()>& work, int64_t calls, Clock clock) {
  const double start = Seconds(clock);
  for (int64_t i = 0; i < calls; ++i) work();
  return Seconds(clock) - start;
}

// As many calls as fill a sample. Also warms up.
int64_t CallsFor(const std::function<void()>& work, Clock clock, double sample_seconds, double* seconds_of_one) {
  for (int64_t calls = 1;; calls *= 4) {
    const double seconds = SecondsOf(work, calls, clock);
    // A quarter is long enough to divide by, and a clock that does not move must not keep us here.
    if (seconds >= sample_seconds / 4 || calls > int64_t{1} << 30) {
      *seconds_of_one = seconds / static_cast<double>(calls);
      const double wanted = std::ceil(sample_seconds / std::max(*seconds_of_one, 1e-10));
      return std::max<int64_t>(1, static_cast<int64_t>(wanted));
    }
  }
}

}  // namespace

#if defined(__linux__)
PinnedThread::PinnedThread() {
  cpu_set_t all, one;
  const int cpu = sched_getcpu();
  if (cpu < 0 || sched_getaffinity(0, sizeof all, &all) != 0) return;
  CPU_ZERO(&one);
  CPU_SET(static_cast<size_t>(cpu), &one);
  if (sched_setaffinity(0, sizeof one, &one) != 0) return;
  before_.resize(sizeof all);
  std::memcpy(before_.data(), &all, sizeof all);
}

PinnedThread::~PinnedThread() {
  if (before_.empty()) return;
  cpu_set_t all;
  std::memcpy(&all, before_.data(), sizeof all);
  (void)sched_setaffinity(0, sizeof all, &all);
}
#else
PinnedThread::PinnedThread() = default;
PinnedThread::~PinnedThread() = default;
#endif

double Seconds(Clock clock) {
  timespec now = {};
  clock_gettime(clock == Clock::kThread ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

Spread SpreadOf(std::vector<double> values) {
  if (values.empty()) return {};
  std::sort(values.begin(), values.end());
  const size_t n = values.size();
  return {(values[(n - 1) / 2] + values[n / 2]) / 2, values.front(), values.back()};
}

InTurn TimeInTurn(const std::vector<std::function<void()>>& works, Clock clock, const TimingOptions& options) {
  std::vector<int64_t> calls;
  double round_seconds = 0;
  for (const auto& work : works) {
    double one = 0;
    calls.push_back(CallsFor(work, clock, options.sample_seconds, &one));
    round_seconds += one * static_cast<double>(calls.back());
  }
  InTurn result;
  result.rounds = options.rounds;
  if (round_seconds * options.rounds > options.row_seconds) {
    result.rounds = std::max(1, static_cast<int>(options.row_seconds / round_seconds));
  }
  std::vector<std::vector<double>> seconds(works.size()), ratios(works.size());
  for (int round = 0; round < result.rounds; ++round) {
    for (size_t i = 0; i < works.size(); ++i) {
      seconds[i].push_back(SecondsOf(works[i], calls[i], clock) / static_cast<double>(calls[i]));
      ratios[i].push_back(seconds[i].back() / seconds[0].back());
    }
  }
  for (size_t i = 0; i < works.size(); ++i) {
    result.seconds.push_back(SpreadOf(seconds[i]));
    result.ratios.push_back(SpreadOf(ratios[i]));
  }
  return result;
}

}  // namespace etalon::bench
