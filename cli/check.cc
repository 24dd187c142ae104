// `etalon check`: does every kernel table of this build give the demanded bits on this machine, and how far is each
// kernel from the exact result?
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <memory>

#include "cli/check/check_report.h"
#include "cli/check/compare.h"
#include "cli/check/full_files.h"
#include "cli/command.h"
#include "cli/engine.h"
#include "cli/exit_code.h"
#include "cli/output_file.h"
#include "cli/report.h"
#include "cli/tables.h"

namespace etalon::cli {
namespace {

struct Options {
  std::string target;  // empty: all tables of this build
  bool as_json = false;
  bool full = false;
  FullOptions measured;
  std::string report;                // empty: none
  std::string worst;                 // empty: none
  std::vector<std::string> compare;  // empty, or two
};

TableReport Run(const TableState& table, Progress* progress) {
  TableReport report;
  report.table = table;
  if (!table.available) return report;
  progress->Say(table.name + ": digest");
  report.digest = RunDigest(table.name);
  progress->Finish(1.0);
  progress->Say(table.name + ": cases of the model");
  report.model = RunModelCases(table.name);
  progress->Finish(1.0);
  progress->Say(table.name + ": error against f64");
  report.errors = MeasureAccuracy(table.name);
  progress->Finish(1.0);
  return report;
}

bool RunFull(const std::vector<std::string>& available, const FullOptions& options, Progress* progress,
             CheckReport* report, std::string* error) {
  std::vector<FullResult> results;
  if (!MeasureInFull(available, options, progress, &results, error)) return false;
  auto result = results.begin();
  for (TableReport& r : report->tables) {
    if (r.table.available) r.full = std::move(*result++);
  }
  return true;
}

int Fail(int code, const std::string& error) {
  std::fprintf(stderr, "etalon check: %s\n", error.c_str());
  return code;
}

int Check(const Options& options) {
  if (!options.compare.empty()) return RunCompare(options.compare[0], options.compare[1], options.as_json);
  LetWritesFail();

  std::string error;
  std::vector<TableState> tables;
  if (options.target.empty()) {
    tables = Tables(&error);
  } else {
    SelectTables(options.target, &tables, &error);
  }
  if (!error.empty()) return Fail(kExitBadInput, error);
  if (!MeasuresAnything(options.measured)) {
    return Fail(kExitUsage,
                "exp, log and tanh are measured on the family `range` and all others are not: nothing is left");
  }
  std::vector<std::string> available;
  for (const TableState& table : tables) {
    if (table.available) available.push_back(table.name);
  }
  if (available.empty()) return Fail(kExitBadInput, "no kernel table can run on this CPU");

  // What --full reads and writes is looked at before anything is measured.
  FullOptions measured = options.measured;
  measured.keep_worst = !options.worst.empty();
  FullFiles files;
  const int prepared =
      files.Prepare(options.report, options.worst, measured.kernels.empty() ? FullKernelNames() : measured.kernels,
                    available, &error);
  if (prepared != kExitOk) return Fail(prepared, error);
  if (options.full && !HasInputs(measured, &error)) return Fail(kExitBadInput, error);
  CheckReport report;
  report.full = options.full;
  {
    Progress progress(3.0 * static_cast<double>(available.size()) + (options.full ? FullWork(measured) : 0.0));
    for (const TableState& table : tables) report.tables.push_back(Run(table, &progress));
    if (options.full && !RunFull(available, measured, &progress, &report, &error)) return Fail(kExitBadInput, error);
  }
  for (const TableReport& r : report.tables) {
    report.num_cases = std::max(report.num_cases, r.digest.size() + r.model.size());
  }
  if (options.as_json) {
    PrintCheckJson(report);
  } else {
    PrintCheckText(report);
  }
  if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) return kExitBadInput;  // main says so
  if (options.full && !files.Write(report, &error)) return Fail(kExitBadInput, error);
  return report.ok() ? kExitOk : kExitCheckFailed;
}

void AddFullOptions(CLI::App* options, Options* values) {
  CLI::Option* full = options->add_flag(
      "--full", values->full,
      "Every kernel on hard inputs against double-double: errors, proved bounds and a histogram; takes half a minute");
  options->add_option("--report", values->report, "Also write what --full finds as Markdown")
      ->type_name("FILE.md")
      ->check(EmptyProblem)
      ->needs(full);
  options->add_option("--worst", values->worst, "Save the input with the largest error of each kernel here, as .npz")
      ->type_name("FOLDER")
      ->check(EmptyProblem)
      ->needs(full);
  options->add_option("--kernel", values->measured.kernels, "Of --full only these kernels, with commas between")
      ->delimiter(',')
      ->check(CLI::IsMember(FullKernelNames()))
      ->needs(full);
  options->add_option("--family", values->measured.families, "Of --full only these inputs, with commas between")
      ->delimiter(',')
      ->check(CLI::IsMember(FullFamilyNames()))
      ->needs(full);
}

}  // namespace

Command AddCheck(CLI::App* tool) {
  const auto values = std::make_shared<Options>();
  CLI::App* options = tool->add_subcommand(
      "check", "Every kernel table: the golden digest, the cases of the model, the error against the exact result");
  options->add_flag("--json", values->as_json, "Print JSON, with a hash of each case, to compare machines by");
  CLI::Option* target = options
                            ->add_option("--target", values->target,
                                         "Kernel tables, with commas between. Default: all that this CPU can run")
                            ->type_name("NAME");
  AddFullOptions(options, values.get());
  CLI::Option* compare =
      options->add_option("--compare", values->compare, "Run nothing; compare two outputs of `etalon check --json`")
          ->type_name("A.json B.json")
          ->expected(2);
  compare->excludes(target)->excludes(options->get_option("--full"));
  options->footer(
      "Exit code 1 if any bit differs from what the arithmetic demands, or from the other machine.\n"
      "Examples:\n  etalon check\n  etalon check --json > this_machine.json\n"
      "  etalon check --compare this_machine.json other_machine.json\n"
      "  etalon check --full --report accuracy.md");
  return {options, [values] { return Check(*values); }};
}

}  // namespace etalon::cli
