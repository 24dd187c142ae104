#include "bench/report.h"

#include <cstdio>
#include <string>

namespace etalon::bench {
namespace {

using Run = benchmark::BenchmarkReporter::Run;

// Benchmark 1.8 renamed the field.
template <typename R>
auto Failed(const R& run, int) -> decltype(run.error_occurred) {
  return run.error_occurred;
}
template <typename R>
auto Failed(const R& run, long) -> decltype(run.skipped != decltype(run.skipped){}) {
  return run.skipped != decltype(run.skipped){};
}
template <typename R>
auto Message(const R& run, int) -> decltype(run.error_message) {
  return run.error_message;
}
template <typename R>
auto Message(const R& run, long) -> decltype(run.skip_message) {
  return run.skip_message;
}

std::string TimeText(double seconds) {
  const struct {
    double from;
    double scale;
    const char* unit;
  } units[] = {{1, 1, "s"}, {1e-3, 1e3, "ms"}, {1e-6, 1e6, "us"}, {0, 1e9, "ns"}};
  const auto* unit = units;
  while (seconds < unit->from) ++unit;
  char text[40];
  std::snprintf(text, sizeof text, "%.4g %s", seconds * unit->scale, unit->unit);
  return text;
}

std::string RateText(const Run& run) {
  for (const char* unit : {"GFLOP/s", "GB/s", "Gelem/s", "Mcalls/s"}) {
    const auto found = run.counters.find(unit);
    if (found == run.counters.end()) continue;
    char text[40];
    std::snprintf(text, sizeof text, "%.4g %s", found->second.value, unit);
    return text;
  }
  return "";
}

std::string ErrorText(const Run& run) {
  const auto found = run.counters.find("rms");
  if (found == run.counters.end()) return "-";
  char text[40];
  std::snprintf(text, sizeof text, "%.1e", found->second.value);
  return text;
}

}  // namespace

bool TableReporter::ReportContext(const Context& context) {
  (void)context;
  std::printf("%-*s  %10s  %14s  %9s  %s\n", static_cast<int>(name_width_), "row", "time", "rate", "rel. RMS",
              "timed in turn with it: median [min .. max]");
  return true;
}

void TableReporter::ReportRuns(const std::vector<Run>& runs) {
  for (const Run& run : runs) {
    if (run.run_type != Run::RT_Iteration) continue;
    const int width = static_cast<int>(name_width_);
    const std::string& name = run.run_name.function_name;
    if (Failed(run, 0)) {
      ++failures_;
      std::printf("%-*s  check FAILED, not timed: %s\n", width, name.c_str(), Message(run, 0).c_str());
    } else {
      const double seconds = run.real_accumulated_time / static_cast<double>(run.iterations);
      std::printf("%-*s  %10s  %14s  %9s  %s\n", width, name.c_str(), TimeText(seconds).c_str(), RateText(run).c_str(),
                  ErrorText(run).c_str(), run.report_label.c_str());
    }
    std::fflush(stdout);
  }
}

}  // namespace etalon::bench
