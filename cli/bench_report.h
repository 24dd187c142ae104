// bench_report.h: what `etalon bench` found, as text and as JSON.
#ifndef ETALON_CLI_BENCH_REPORT_H_
#define ETALON_CLI_BENCH_REPORT_H_

#include <cstddef>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace etalon::cli {

// In all of these a rate of 0 means that there is no such number: the CPU has no loop for it, or it does not apply.

struct BenchMemory {
  std::string level;  // "L1"
  size_t bytes = 0;   // of what was read, written or copied
  double read_gbps = 0;
  double store_gbps = 0;
  double memcpy_gbps = 0;  // bytes read and bytes written
};

struct BenchLimits {
  struct Rate {
    std::string of;  // vectors or table
    double rate;
  };
  std::vector<Rate> fma_gflops;  // of each width that this CPU has
  std::string fma_width;         // the widest vectors of the tables that are measured; may be none of them
  std::vector<Rate> exp_gelements;
  std::vector<BenchMemory> memory;
};

struct BenchRow {
  std::string name;
  std::string table;
  std::string failure;  // of the self-check; nothing was timed then
  std::string skipped;  // why it was not even tried
  double seconds = 0;   // of one run, median
  double gflops = 0;
  double gbps = 0;
  std::string limit;  // that binds: "fma avx2"
  double percent = 0, percent_min = 0, percent_max = 0;
  double rms_error = -1;  // relative, against f64; negative: there is none
  int rounds = 0;
};

struct BenchReport {
  std::string cpu;
  std::vector<std::string> features;
  int usable_cpus = 0;
  std::string compiler;
  bool quick = false;
  int rounds = 0;  // of a row that is not too slow for so many
  BenchLimits limits;
  std::vector<BenchRow> rows;

  bool ok() const;  // no check failed
};

nlohmann::ordered_json BenchJson(const BenchReport& report, const std::string& version, int arithmetic);

std::string BenchMachineText(const BenchReport& report);
std::string BenchLimitsText(const BenchLimits& limits, bool colour);
std::string BenchRowsText(const BenchReport& report, bool colour);

}  // namespace etalon::cli

#endif  // ETALON_CLI_BENCH_REPORT_H_
