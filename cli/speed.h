// speed.h: one thread of attention beside what its core could do at best, and beside a plain loop, timed in turn.
#ifndef ETALON_CLI_SPEED_H_
#define ETALON_CLI_SPEED_H_

#include <cstdint>
#include <string>
#include <vector>

#include "cli/engine.h"

namespace etalon::cli {

struct SideBySide {
  int rounds = 0;
  double seconds = 0.0;  // of the whole problem on one thread, median
  double gflops = 0.0;
  std::string fma;              // which loop of fused multiply-adds is the limit; empty = none is known for this CPU
  double percent_of_fma = 0.0;  // median, smallest and largest of the rounds
  double percent_of_fma_min = 0.0;
  double percent_of_fma_max = 0.0;
  Rows plain_rows = {0, 0};  // that the plain loop ran on, of every head
  double plain_gflops = 0.0;
  double times_plain = 0.0;      // rate over the plain loop's rate, median
  std::vector<float> plain_out;  // as PlainLoop::out()
};

// The table called `table`, which is available, on one thread that stays on its CPU.
SideBySide TimeSideBySide(const std::string& table, const Problem& problem);

}  // namespace etalon::cli

#endif  // ETALON_CLI_SPEED_H_
