// etalon_bench: every kernel's time, as a share of what the machine gives at the same minute, and its error. README.md
// beside this file says how to read it.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <etalon/etalon.hpp>
#include <string>
#include <vector>

#include "bench/report.h"
#include "bench/rows.h"
#include "bench/support/attention.h"
#include "bench/support/measure.h"

namespace etalon::bench {
namespace {

struct Options {
  bool reach = false;
  bool json = false;
  std::string target;  // empty = the default table
  Sizes sizes;
  TimingOptions timing;
};

constexpr char kUsage[] =
    "  --reach               only the rows of the reach table (bench/README.md)\n"
    "  --target=NAME,...     kernel tables, or all; else ETALON_TARGET, or the best one\n"
    "  --rounds=N            rounds of kernel and limits in turn, 11\n"
    "  --sample=SECONDS      length of one sample, 0.02\n"
    "  --row-seconds=SECONDS a row that would take longer gets fewer rounds, 20\n"
    "  --shrink=N            divides lengths and buffers: to try the benchmark out, not to measure\n"
    "and those of Google Benchmark, of which the useful ones are\n"
    "  --benchmark_filter=REGEX  --benchmark_list_tests  --benchmark_out=FILE.json  --benchmark_format=json\n";

bool Value(const char* argument, const char* option, const char** value) {
  const size_t n = std::strlen(option);
  if (std::strncmp(argument, option, n) != 0 || argument[n] != '=') return false;
  *value = argument + n + 1;
  return true;
}

// Takes our options out of argv.
void Parse(int* argc, char** argv, Options* options) {
  int kept = 1;
  for (int i = 1; i < *argc; ++i) {
    const char* value = nullptr;
    if (std::strcmp(argv[i], "--reach") == 0) {
      options->reach = true;
    } else if (std::strcmp(argv[i], "--help") == 0) {
      std::fputs(kUsage, stdout);
      std::exit(0);
    } else if (Value(argv[i], "--target", &value)) {
      options->target = value;
    } else if (Value(argv[i], "--rounds", &value)) {
      options->timing.rounds = std::max(1, std::atoi(value));
    } else if (Value(argv[i], "--sample", &value)) {
      options->timing.sample_seconds = std::atof(value);
    } else if (Value(argv[i], "--row-seconds", &value)) {
      options->timing.row_seconds = std::atof(value);
    } else if (Value(argv[i], "--shrink", &value)) {
      options->sizes.shrink = std::max(1, std::atoi(value));
    } else {
      if (Value(argv[i], "--benchmark_format", &value)) options->json = std::strcmp(value, "console") != 0;
      argv[kept++] = argv[i];
    }
  }
  *argc = kept;
}

// The table that a plan gets which asks for none.
std::string DefaultTarget() {
  AttentionDesc desc;
  desc.num_q_heads = desc.num_kv_heads = desc.head_dim = desc.value_dim = 1;
  desc.max_batch = desc.max_q_len = desc.max_kv_len = 1;
  desc.q_dtype = desc.k_dtype = desc.v_dtype = desc.out_dtype = ETALON_F32;
  Plan plan;
  PlanInfo info;
  Require(plan.Init(desc));
  Require(plan.GetInfo(nullptr, &info));
  return info.target;
}

bool IsAvailable(const std::string& name) {
  for (int32_t i = 0; i < etalon_num_targets(); ++i) {
    etalon_target target;
    if (etalon_get_target(i, &target) == ETALON_OK && name == target.name) return target.missing == 0;
  }
  return false;
}

std::vector<std::string> Targets(const std::string& names) {
  if (names.empty()) return {DefaultTarget()};
  std::vector<std::string> targets;
  if (names == "all") {
    for (int32_t i = 0; i < etalon_num_targets(); ++i) {
      etalon_target target;
      if (etalon_get_target(i, &target) == ETALON_OK && target.missing == 0) targets.push_back(target.name);
    }
    return targets;
  }
  for (size_t from = 0; from <= names.size();) {
    const size_t end = std::min(names.find(',', from), names.size());
    targets.push_back(names.substr(from, end - from));
    if (!IsAvailable(targets.back())) {
      std::fprintf(stderr, "--target: this build and CPU have no table called '%s'\n", targets.back().c_str());
      std::exit(2);
    }
    from = end + 1;
  }
  return targets;
}

std::vector<Row> AllRows(const Options& options) {
  std::vector<Row> rows;
  for (const std::string& target : Targets(options.target)) {
    AddLimitRows(target, options.sizes, &rows);
    AddPrefillRows(target, options.sizes, &rows);
    AddExtrasRows(target, options.sizes, &rows);
    AddDecodeRows(target, options.sizes, &rows);
    AddPagedRows(target, options.sizes, &rows);
    AddPrimitiveRows(target, options.sizes, &rows);
    AddOverheadRows(target, options.sizes, &rows);
    AddCaseRows(target, options.sizes, &rows);
  }
  std::vector<Row> kept;
  for (Row& row : rows) {
    if (options.reach && !row.reach) continue;
    // Two tables may share a limit, and shrunk lengths may become equal.
    const auto same = [&](const Row& other) { return other.name == row.name; };
    if (std::any_of(kept.begin(), kept.end(), same)) continue;
    kept.push_back(std::move(row));
  }
  return kept;
}

// One iteration of Google Benchmark is the whole measurement, whose median becomes its time: its own loop knows one
// function, and ours takes turns.
void Perform(benchmark::State& state, const Row& row, const TimingOptions& timing) {
  const Measured measured = Measure(row.make(), timing);
  if (!measured.failure.empty()) state.SkipWithError(measured.failure.c_str());
  for (auto iteration : state) {
    (void)iteration;
    state.SetIterationTime(measured.seconds);
  }
  if (!measured.failure.empty()) return;
  std::string label = measured.versus;
  if (measured.rounds < timing.rounds) label += " (" + std::to_string(measured.rounds) + " rounds)";
  state.SetLabel(label);
  for (const auto& [name, value] : measured.counters) state.counters[name] = value;
}

int Main(int argc, char** argv) {
  Options options;
  Parse(&argc, argv, &options);
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) {
    std::fputs(kUsage, stderr);
    return 2;
  }
  const std::vector<Row> rows = AllRows(options);
  size_t name_width = 0;
  for (const Row& row : rows) {
    name_width = std::max(name_width, row.name.size());
    benchmark::RegisterBenchmark(row.name.c_str(),
                                 [&row, &options](benchmark::State& state) { Perform(state, row, options.timing); })
        ->Iterations(1)
        ->UseManualTime();
  }
  benchmark::AddCustomContext("etalon_version", etalon_version());
  benchmark::AddCustomContext("etalon_arithmetic_version", std::to_string(etalon_arithmetic_version()));
  benchmark::AddCustomContext("etalon_shrink", std::to_string(options.sizes.shrink));
#if defined(__VERSION__)
  benchmark::AddCustomContext("compiler", __VERSION__);
#endif
  TableReporter table(name_width);
  benchmark::RunSpecifiedBenchmarks(options.json ? nullptr : &table);
  return table.failures() == 0 ? 0 : 1;
}

}  // namespace
}  // namespace etalon::bench

int main(int argc, char** argv) { return etalon::bench::Main(argc, argv); }
