// `etalon bench`: how fast this device is, and how much of that each kernel reaches.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <memory>

#include "bench/subjects/device_rows.h"
#include "bench/subjects/subjects.h"
#include "bench/support/measure.h"
#include "cli/bench_report.h"
#include "cli/build.h"
#include "cli/command.h"
#include "cli/engine.h"
#include "cli/exit_code.h"
#include "cli/report.h"
#include "cli/tables.h"
#include "cli/text.h"

namespace etalon::cli {
namespace {

struct BenchOptions {
  std::string filter;  // empty: all rows
  std::string target;  // empty: the table that plans get by default
  bool as_json = false;
  bool quick = false;
  bool list = false;
  // To try the command out. Not to measure: what is called DRAM then lies in a cache.
  int64_t shrink = 1;
  double sample_seconds = -1.0;  // negative: as usual
  double slowest_run = -1.0;     // negative: as usual
  std::string broken;            // the check of these rows fails
};

// How long a run may take altogether decides these: under a minute with a vector table, quick a quarter of that.
struct Budget {
  bench::TimingOptions timing;
  double slowest_run;  // a row is skipped if one run of it takes longer
};

Budget BudgetOf(const BenchOptions& options) {
  Budget budget;
  budget.timing.rounds = options.quick ? 5 : 11;
  budget.timing.sample_seconds = options.quick ? 0.004 : 0.02;
  budget.timing.row_seconds = options.quick ? 0.2 : 0.8;
  budget.slowest_run = options.quick ? 0.5 : 2.0;
  if (options.sample_seconds >= 0) budget.timing.sample_seconds = options.sample_seconds;
  if (options.slowest_run >= 0) budget.slowest_run = options.slowest_run;
  return budget;
}

// A row on a table, and what is known about it before it is measured.
struct Planned {
  const bench::DeviceRow* row;
  std::string table;
  double run_seconds;  // of one run, about
  double all_seconds;  // of making, checking and timing it
  std::string skipped;
};

bool Contains(const std::string& text, const std::string& part) {
  return LowerCase(text).find(LowerCase(part)) != std::string::npos;
}

Planned Plan(const bench::DeviceRow& row, const std::string& table, const bench::Sizes& sizes, const Budget& budget) {
  Planned planned = {&row, table, bench::EstimateRun(row, table, sizes), 0.0, ""};
  if (row.threads > UsableCpus()) {
    planned.skipped = "this process may use " + std::to_string(UsableCpus()) + " CPU";
  } else if (planned.run_seconds > budget.slowest_run) {
    planned.skipped = "one run takes " + General(planned.run_seconds, 2) + " s";
  } else {
    // One run for the check and one before the rounds; each round has the row and one or two limits.
    const double round =
        std::max(planned.run_seconds, budget.timing.sample_seconds) + 1.5 * budget.timing.sample_seconds;
    planned.all_seconds = 0.1 + 4e-9 * row.bytes + 2 * planned.run_seconds +
                          std::max(round, std::min(round * budget.timing.rounds, budget.timing.row_seconds));
  }
  return planned;
}

double Rate(const bench::Subject& subject, const bench::TimingOptions& timing) {
  return subject.run ? bench::Measure(subject, timing).rate : 0.0;
}

BenchLimits MeasureLimits(const std::vector<std::string>& tables, const bench::Sizes& sizes,
                          const bench::TimingOptions& timing) {
  BenchLimits limits;
  const bench::Loops* widest = nullptr;
  for (const std::string& table : tables) {
    const bench::Loops* loops = bench::LoopsForTable(table);
    if (widest == nullptr || (loops != nullptr && loops->lanes > widest->lanes)) widest = loops;
    limits.exp_gelements.push_back({table, Rate(bench::ExpSubject(table), timing)});
  }
  for (const bench::Loops* loops : bench::AvailableLoops()) {
    limits.fma_gflops.push_back({loops->name, Rate(bench::FmaSubject(loops), timing)});
  }
  limits.fma_width = widest == nullptr ? "" : widest->name;
  for (const bench::Place& place : bench::Places()) {
    BenchMemory memory;
    memory.level = place.name;
    memory.bytes = place.bytes;
    if (!place.in_cache) memory.bytes = place.bytes / static_cast<size_t>(sizes.shrink) / 4096 * 4096;
    memory.read_gbps = Rate(bench::ReadSubject(widest, memory.bytes), timing);
    memory.store_gbps = Rate(bench::StoreSubject(widest, memory.bytes), timing);
    memory.memcpy_gbps = Rate(bench::CopySubject(memory.bytes), timing);
    limits.memory.push_back(memory);
  }
  return limits;
}

BenchRow MeasureRow(const Planned& planned, const BenchOptions& options, const Budget& budget) {
  BenchRow row;
  row.name = planned.row->name;
  row.table = planned.table;
  row.skipped = planned.skipped;
  if (!row.skipped.empty()) return row;
  bench::Subject subject = planned.row->make(planned.table, bench::Sizes{options.shrink});
  if (!options.broken.empty() && Contains(row.name, options.broken)) {
    subject.check = [] { return bench::Check{"asked for by --break", 1.0}; };
  }
  const bench::Measured measured = bench::Measure(subject, budget.timing);
  row.failure = measured.failure;
  row.rms_error = measured.rms;
  if (!row.failure.empty()) return row;
  row.seconds = measured.seconds;
  row.gflops = planned.row->flop / measured.seconds * 1e-9;
  row.gbps = planned.row->bytes / measured.seconds * 1e-9;
  row.rounds = measured.rounds;
  if (const bench::Share* binding = measured.Binding()) {
    row.limit = binding->limit;
    row.percent = binding->percent.median;
    row.percent_min = binding->percent.min;
    row.percent_max = binding->percent.max;
  }
  return row;
}

int Fail(int code, const std::string& error) {
  std::fprintf(stderr, "etalon bench: %s\n", error.c_str());
  return code;
}

int Bench(const BenchOptions& options) {
  std::string error;
  std::vector<TableState> selected;
  if (!SelectTables(options.target, &selected, &error)) return Fail(kExitBadInput, error);
  std::vector<std::string> tables;
  for (const TableState& table : selected) tables.push_back(table.name);

  const bench::Sizes sizes{options.shrink};
  const std::vector<bench::DeviceRow> all = bench::DeviceRows(sizes);
  std::vector<const bench::DeviceRow*> shown;
  std::string names;
  for (const bench::DeviceRow& row : all) {
    names += "\n  " + row.name;
    if (Contains(row.name, options.filter)) shown.push_back(&row);
  }
  if (shown.empty()) {
    return Fail(kExitUsage, "no row's name contains '" + Printable(options.filter, 60) + "'; the rows are" + names);
  }
  if (options.list) {
    for (const bench::DeviceRow* row : shown) std::printf("%s\n", row->name.c_str());
    return kExitOk;
  }

  BenchReport report;
  report.cpu = CpuName();
  report.features = CpuFeatureNames();
  report.usable_cpus = UsableCpus();
  report.compiler = ThisBuild().compiler;
  report.quick = options.quick;
  const Budget budget = BudgetOf(options);
  report.rounds = budget.timing.rounds;

  double total = 0;
  std::vector<Planned> plan;
  Progress().Say("how long will each row take?");
  for (const std::string& table : tables) {
    for (const bench::DeviceRow* row : shown) {
      plan.push_back(Plan(*row, table, sizes, budget));
      total += plan.back().all_seconds;
    }
  }
  const double limit_seconds =
      0.5 + (static_cast<double>(tables.size()) + 14) * budget.timing.rounds * budget.timing.sample_seconds;
  Progress progress(total + limit_seconds);
  progress.Say("the limits of this machine");
  report.limits = MeasureLimits(tables, sizes, budget.timing);
  progress.Finish(limit_seconds);
  if (!options.as_json) {
    progress.Clear();
    std::printf("etalon %s, arithmetic %d\n%s\n%s\n", LibraryVersion().c_str(), ArithmeticVersion(),
                BenchMachineText(report).c_str(), BenchLimitsText(report.limits, WantsColour(stdout)).c_str());
    std::fflush(stdout);
  }
  for (const Planned& planned : plan) {
    if (planned.skipped.empty()) progress.Say(planned.row->name + (tables.size() > 1 ? ", " + planned.table : ""));
    report.rows.push_back(MeasureRow(planned, options, budget));
    progress.Finish(planned.all_seconds);
  }
  progress.Clear();
  if (options.as_json) {
    std::printf("%s\n", BenchJson(report, LibraryVersion(), ArithmeticVersion()).dump(2).c_str());
  } else {
    std::fputs(BenchRowsText(report, WantsColour(stdout)).c_str(), stdout);
  }
  return report.ok() ? kExitOk : kExitCheckFailed;
}

}  // namespace

Command AddBench(CLI::App* tool) {
  const auto values = std::make_shared<BenchOptions>();
  CLI::App* options = tool->add_subcommand(
      "bench", "How fast this device is, and how much of that each kernel reaches: time, share of the limit, error");
  options->add_option("FILTER", values->filter, "Only rows whose name contains this, in upper or lower case");
  options->add_flag("--json", values->as_json, "Print JSON");
  options->add_flag("--quick", values->quick, "A quarter of the time, and more noise");
  options->add_flag("--list", values->list, "Print the names of the rows")->excludes("--json");
  options
      ->add_option("--target", values->target,
                   "Kernel tables, with commas between, or all. Default: ETALON_TARGET, or the best one")
      ->type_name("NAME");
  options->add_option("--shrink", values->shrink)->check(CLI::Range(1, 4096))->group("");
  options->add_option("--sample", values->sample_seconds)->check(CLI::Range(0.0, 10.0))->group("");
  options->add_option("--slowest", values->slowest_run)->check(CLI::Range(0.0, 1000.0))->group("");
  options->add_option("--break", values->broken)->group("");
  options->footer(
      "Each kernel is checked, then timed in turn with its limit. The share is the median of the rounds' ratios, with\n"
      "the least and the greatest beside it: a wide bracket means that others used the machine, so repeat.\n"
      "Example:\n  etalon bench\n  etalon bench decode --quick --json");
  return {options, [values] { return Bench(*values); }};
}

}  // namespace etalon::cli
