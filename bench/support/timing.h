// timing.h: how anything is timed here. Machines are shared and their clocks wander, so a time says little and a ratio
// of two times much, if both were taken in turn: kernel, limit, kernel, limit ..., medians over the rounds.
#ifndef ETALON_BENCH_SUPPORT_TIMING_H_
#define ETALON_BENCH_SUPPORT_TIMING_H_

#include <functional>
#include <vector>

namespace etalon::bench {

struct TimingOptions {
  int rounds = 11;
  double sample_seconds = 0.02;  // a sample repeats its work for so long
  double row_seconds = 20;       // a row that would take longer gets fewer rounds
};

// While it lives, the calling thread stays on the CPU that it is on. Threads that it makes inherit that.
class PinnedThread {
 public:
  PinnedThread();
  ~PinnedThread();
  PinnedThread(const PinnedThread&) = delete;
  PinnedThread& operator=(const PinnedThread&) = delete;

 private:
  std::vector<unsigned char> before_;  // the affinity mask; empty if it could not be changed
};

enum class Clock {
  kThread,  // time that this thread ran: others on the same CPU do not count
  kWall,    // for work of several threads
};

double Seconds(Clock clock);

struct Spread {
  double median = 0;
  double min = 0;
  double max = 0;
};
Spread SpreadOf(std::vector<double> values);

struct InTurn {
  int rounds = 0;
  std::vector<Spread> seconds;  // of one call of each
  std::vector<Spread> ratios;   // of the time of each to that of the first, within a round
};

// Times works[0] and the others in turn.
InTurn TimeInTurn(const std::vector<std::function<void()>>& works, Clock clock, const TimingOptions& options);

}  // namespace etalon::bench

#endif  // ETALON_BENCH_SUPPORT_TIMING_H_
