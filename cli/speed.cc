#include "cli/speed.h"

#include <algorithm>
#include <functional>

#include "bench/support/limits.h"
#include "bench/support/loops.h"
#include "bench/support/timing.h"
#include "cli/plain_loop.h"

namespace etalon::cli {
namespace {

constexpr double kPlainSeconds = 0.1;  // of the plain loop in each round
constexpr double kSampleSeconds = 0.01;
constexpr double kTotalSeconds = 4.0;  // after which there are no more rounds

// Rows in the middle, where a causal row is as long as the average one, as many as take about kPlainSeconds.
Rows PlainRows(PlainLoop* plain, int64_t len) {
  int64_t count = 1;
  for (;;) {
    const Rows rows = {(len - count) / 2, (len - count) / 2 + count};
    const double start = bench::Seconds(bench::Clock::kThread);
    plain->Run(rows);
    const double seconds = bench::Seconds(bench::Clock::kThread) - start;
    if (seconds >= kPlainSeconds / 2 || count == len) return rows;
    count = std::min(len, 2 * count);
  }
}

}  // namespace

SideBySide TimeSideBySide(const std::string& table, const Problem& problem) {
  const bench::PinnedThread pin;
  PlannedAttention attention(table, problem, {0, problem.q.len}, 1);
  PlainLoop plain(problem);
  SideBySide result;
  result.plain_rows = PlainRows(&plain, problem.q.len);
  const bench::Limit fma = bench::FmaLimit(bench::LoopsForTable(table));

  std::vector<std::function<void()>> works = {[&] { attention.Run(); }, [&] { plain.Run(result.plain_rows); }};
  if (fma.run) works.push_back(fma.run);
  bench::TimingOptions options;
  options.sample_seconds = kSampleSeconds;
  options.row_seconds = kTotalSeconds;
  const bench::InTurn times = bench::TimeInTurn(works, bench::Clock::kThread, options);

  const double flop = Flop(problem, {0, problem.q.len});
  const double plain_flop = Flop(problem, result.plain_rows);
  result.rounds = times.rounds;
  result.seconds = times.seconds[0].median;
  result.gflops = flop / result.seconds * 1e-9;
  result.plain_gflops = plain_flop / times.seconds[1].median * 1e-9;
  result.times_plain = plain_flop > 0.0 ? times.ratios[1].median * flop / plain_flop : 0.0;
  result.plain_out = plain.out();
  if (fma.run) {
    const double percent = 100.0 * flop / fma.work;  // of a ratio of 1 between the times
    result.fma = fma.name;
    result.percent_of_fma = percent * times.ratios[2].median;
    result.percent_of_fma_min = percent * times.ratios[2].min;
    result.percent_of_fma_max = percent * times.ratios[2].max;
  }
  return result;
}

}  // namespace etalon::cli
