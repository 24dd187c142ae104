#include "cli/demo_layer.h"

#include <algorithm>
#include <chrono>
#include <cstring>

namespace etalon::cli {
namespace {

constexpr size_t kMostRuns = 25;            // on all threads
constexpr double kRunSeconds = 0.5;         // after which they are not repeated
constexpr double kOtherTableSeconds = 5.0;  // what another table may take for the comparison of one layer
constexpr int64_t kRunRows = 32;            // rows of one run of a limited comparison
constexpr double kTimingWork = 4.0;         // that the timing in turn takes, in the work of the other steps

uint64_t HashOf(const std::vector<float>& values, uint64_t hash) {
  return Fnv1aBytes(values.data(), values.size() * sizeof(float), hash);
}

// Calls work and returns the seconds that it took.
template <typename Work>
double Timed(const Work& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// At most kReferenceRows of them.
std::vector<int64_t> SomeRows(Rows rows) {
  std::vector<int64_t> some = SpreadRows(rows.last - rows.first, kReferenceRows);
  for (int64_t& row : some) row += rows.first;
  return some;
}

Problem ProblemOf(const Layer& layer) { return {layer.q, layer.k, layer.v, layer.mask, layer.scale}; }

// Runs the chosen table on the whole layer, often enough for a median unless that takes too long.
std::vector<float> RunChosen(const std::string& table, const Problem& problem, int threads, LayerReport* report) {
  PlannedAttention attention(table, problem, {0, problem.q.len}, threads);
  std::vector<double> times;
  double total = 0.0;
  while (times.empty() || (times.size() < kMostRuns && total < kRunSeconds)) {
    times.push_back(Timed([&] { attention.Run(); }));
    total += times.back();
  }
  std::sort(times.begin(), times.end());
  report->runs = static_cast<int>(times.size());
  report->seconds = times[times.size() / 2];
  return attention.out().Floats();
}

// Compares another table with the chosen one's output; on some rows only, if all of them would take too long.
OtherTable RunOther(const std::string& table, const Problem& problem, const std::vector<float>& chosen, int threads) {
  OtherTable other;
  other.name = table;
  const int64_t len = problem.q.len;
  other.rows = {{0, len}};
  if (len > kRunRows) {
    // In the middle, where a causal row is as long as the average one.
    const int64_t first = (len - kRunRows) / 2;
    const double seconds = Timed([&] { Attend(table, problem, {first, first + kRunRows}, threads); });
    const double pieces = kOtherTableSeconds / std::max(seconds, 1e-9);
    const double all = static_cast<double>(len) / static_cast<double>(kRunRows);
    if (pieces < all) other.rows = SpreadRuns(len, kRunRows, std::max<int64_t>(2, static_cast<int64_t>(pieces)));
  }
  for (const Rows& rows : other.rows) {
    const std::vector<float> mine = Attend(table, problem, rows, threads);
    const std::vector<float> theirs = TakeRows(chosen, problem.q.heads, len, problem.v.dim, rows);
    other.hash = HashOf(mine, other.hash);
    other.chosen_hash = HashOf(theirs, other.chosen_hash);
    if (std::memcmp(mine.data(), theirs.data(), mine.size() * sizeof(float)) != 0) other.same_bits = false;
  }
  return other;
}

}  // namespace

LayerReport RunLayer(const Layer& layer, const std::vector<TableState>& tables, int threads, Progress* progress) {
  LayerReport report;
  report.layer = &layer;
  const Problem problem = ProblemOf(layer);
  report.visible_pairs = layer.q.heads * VisiblePairs(layer.mask, 0, layer.q.len, layer.k.len);
  const std::string chosen = ChosenOf(tables);

  progress->Say(layer.name + ": " + chosen + " in turn with a plain loop");
  report.one_thread = TimeSideBySide(chosen, problem);
  progress->Finish(kTimingWork);

  progress->Say(layer.name + ": " + chosen + " on all threads");
  const std::vector<float> out = RunChosen(chosen, problem, threads, &report);
  report.gflops = Flop(problem, {0, layer.q.len}) / std::max(report.seconds, 1e-9) * 1e-9;
  report.hash = HashOf(out, kFnvStart);
  progress->Finish(1.0);

  progress->Say(layer.name + ": exact values in f64");
  report.accuracy = Compare(problem, out, SpreadRows(layer.q.len, kReferenceRows));
  report.plain_accuracy = Compare(problem, report.one_thread.plain_out, SomeRows(report.one_thread.plain_rows));
  report.ok = report.accuracy.ok;
  progress->Finish(1.0);

  for (const TableState& table : tables) {
    if (!table.available || table.chosen) continue;
    progress->Say(layer.name + ": the same bits from " + table.name + "?");
    report.others.push_back(RunOther(table.name, problem, out, threads));
    report.ok = report.ok && report.others.back().same_bits;
    progress->Finish(1.0);
  }
  return report;
}

double LayerWork(const std::vector<TableState>& tables) {
  const auto runs = [](const TableState& table) { return table.available; };
  return kTimingWork + 1.0 + static_cast<double>(std::count_if(tables.begin(), tables.end(), runs));
}

std::vector<Rows> SpreadRuns(int64_t len, int64_t size, int64_t pieces) {
  if (pieces < 1 || pieces >= len / size) return {{0, len}};
  std::vector<Rows> runs;
  for (int64_t i = 0; i < pieces; ++i) {
    const int64_t first = pieces == 1 ? 0 : i * (len - size) / (pieces - 1);
    runs.push_back({first, first + size});
  }
  return runs;
}

std::vector<float> TakeRows(const std::vector<float>& out, int64_t heads, int64_t len, int64_t dim, Rows rows) {
  std::vector<float> taken;
  for (int64_t head = 0; head < heads; ++head) {
    const auto begin = out.begin() + (head * len + rows.first) * dim;
    taken.insert(taken.end(), begin, begin + (rows.last - rows.first) * dim);
  }
  return taken;
}

}  // namespace etalon::cli
