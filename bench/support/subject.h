// subject.h: one thing to be measured, with its check and with what it is compared to.
#ifndef ETALON_BENCH_SUPPORT_SUBJECT_H_
#define ETALON_BENCH_SUPPORT_SUBJECT_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "bench/support/limits.h"
#include "bench/support/timing.h"

namespace etalon::bench {

// A kernel that fails its check is not timed.
struct Check {
  std::string failure;  // empty = passed
  double rms = -1;      // relative RMS error against f64; negative = there is no such number
};

// Something that is timed in turn with the kernel.
struct Rival {
  enum class Shown {
    kPercent,    // the kernel's rate in percent of a limit's
    kTimeRatio,  // the kernel's time over the rival's, both for the same work
    kSpeedup     // the other way round
  };
  Limit limit;
  double kernel_work = 0;  // of one call of the kernel, in the limit's unit
  Shown shown = Shown::kPercent;
  std::string wanted = {};  // "<= 0.65"; empty = nothing is
};

struct Subject {
  std::function<void()> run;     // one call
  std::function<Check()> check;  // empty = nothing to check: a limit by itself
  double work = 0;               // of one call
  std::string unit;              // of work, per second: "flop", "B", "elements", "calls"
  std::string note;              // shown before the rivals
  std::vector<Rival> rivals;     // those that this CPU has no loops for are dropped
  Clock clock = Clock::kThread;
  bool pinned = true;  // false for work of several threads
};

// A named row of the table, made when its turn comes: only then it takes memory.
struct Row {
  std::string name;
  bool reach = false;  // of the reach table (README)
  std::function<Subject()> make;
};

// Sizes of what is measured.
struct Sizes {
  int64_t shrink = 1;  // divides lengths and buffers, to try the benchmark itself out

  int64_t Length(int64_t n) const { return n / shrink > 0 ? n / shrink : 1; }
};

}  // namespace etalon::bench

#endif  // ETALON_BENCH_SUPPORT_SUBJECT_H_
