// report.h: Google Benchmark's results as one aligned table.
#ifndef ETALON_BENCH_REPORT_H_
#define ETALON_BENCH_REPORT_H_

#include <benchmark/benchmark.h>

#include <cstddef>
#include <vector>

namespace etalon::bench {

class TableReporter : public benchmark::BenchmarkReporter {
 public:
  explicit TableReporter(size_t name_width) : name_width_(name_width) {}
  bool ReportContext(const Context& context) override;
  void ReportRuns(const std::vector<Run>& runs) override;
  size_t failures() const { return failures_; }

 private:
  size_t name_width_;
  size_t failures_ = 0;
};

}  // namespace etalon::bench

#endif  // ETALON_BENCH_REPORT_H_
