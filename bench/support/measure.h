// measure.h: checks and times a subject, and says it in words and numbers.
#ifndef ETALON_BENCH_SUPPORT_MEASURE_H_
#define ETALON_BENCH_SUPPORT_MEASURE_H_

#include <map>
#include <string>
#include <vector>

#include "bench/support/subject.h"

namespace etalon::bench {

// The kernel's rate in percent of a limit's.
struct Share {
  std::string limit;  // "fma avx2"
  Spread percent;
};

struct Measured {
  std::string failure;  // of the check; nothing was timed then
  double seconds = 0;   // of one call, median
  double rate = 0;      // work / seconds
  std::string unit;     // of rate: "GFLOP/s"
  double rms = -1;
  int rounds = 0;
  std::vector<Share> shares;               // of each rival that is a limit
  std::string versus;                      // "92.1 [91.3 .. 92.8] % of fma avx2"; rivals are separated by "; "
  std::map<std::string, double> counters;  // the same as numbers, for JSON

  // The limit that binds is the one that the kernel comes closest to. Null if there is none.
  const Share* Binding() const;
};

Measured Measure(const Subject& subject, const TimingOptions& options);

}  // namespace etalon::bench

#endif  // ETALON_BENCH_SUPPORT_MEASURE_H_
