// `etalon check`: does every kernel table of this build give the demanded bits on this machine, and how far is each
// kernel from f64?
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/accuracy.h"
#include "cli/command.h"
#include "cli/conformance.h"
#include "cli/engine.h"
#include "cli/exit_code.h"
#include "cli/report.h"
#include "cli/tables.h"
#include "cli/text.h"

namespace etalon::cli {
namespace {

using nlohmann::ordered_json;

// As tests/golden/digest.txt has it.
std::string DigestText(uint64_t hash) {
  std::string text = Hex64(hash);
  for (char& c : text) c = c >= 'a' ? static_cast<char>(c - 'a' + 'A') : c;
  return text;
}

constexpr size_t kShownFailures = 5;  // of a table, as text; JSON has all

struct Options {
  std::string target;  // empty: all tables of this build
  bool as_json = false;
};

struct TableReport {
  TableState table;
  // All empty where the table is not available.
  std::vector<CaseResult> digest;  // the last one is the digest itself
  std::vector<CaseResult> model;
  std::vector<KernelError> errors;

  bool bits_equal() const { return failed() == 0; }
  size_t passed() const { return digest.size() + model.size() - failed(); }
  size_t failed() const {
    const auto differs = [](const CaseResult& c) { return !c.difference.empty(); };
    return static_cast<size_t>(std::count_if(digest.begin(), digest.end(), differs) +
                               std::count_if(model.begin(), model.end(), differs));
  }
  bool accurate() const {
    return std::all_of(errors.begin(), errors.end(), [](const KernelError& e) { return e.ok; });
  }
  bool ok() const { return !table.available || (bits_equal() && accurate()); }
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

// The largest of one member over some kernels.
double Worst(const std::vector<KernelError>& errors, double KernelError::* member) {
  double worst = 0.0;
  for (const KernelError& e : errors) worst = std::max(worst, e.*member);
  return worst;
}

// Each case by its own name, with what it is a case of.
template <typename Visit>
void ForEachCase(const TableReport& report, Visit visit) {
  for (const CaseResult& c : report.digest) visit("digest/" + c.name, c);
  for (const CaseResult& c : report.model) visit("model/" + c.name, c);
}

ordered_json ToJson(const TableReport& r, size_t num_cases) {
  ordered_json j;
  j["name"] = r.table.name;
  j["available"] = r.table.available;
  if (!r.table.available) {
    j["reason"] = r.table.reason;
    for (const char* name : {"bits_equal", "digest", "max_abs", "rms_error", "max_ulp"}) j[name] = nullptr;
    j["cases"] = {{"passed", 0}, {"failed", 0}, {"skipped", num_cases}};
    return j;
  }
  j["bits_equal"] = r.bits_equal();
  j["digest"] = DigestText(r.digest.back().hash);
  j["max_abs"] = Worst(r.errors, &KernelError::max_abs);
  j["rms_error"] = Worst(r.errors, &KernelError::rms_error);
  j["max_ulp"] = Worst(r.errors, &KernelError::max_ulp);
  j["cases"] = {{"passed", r.passed()}, {"failed", r.failed()}, {"skipped", 0}};
  j["kernels"] = ordered_json::array();
  for (const KernelError& e : r.errors) {
    j["kernels"].push_back({{"name", e.kernel},
                            {"max_abs", e.max_abs},
                            {"rms_error", e.rms_error},
                            {"max_ulp", e.max_ulp},
                            {"limit_" + e.limited, e.limit},
                            {"ok", e.ok}});
  }
  j["failures"] = ordered_json::object();
  j["hashes"] = ordered_json::object();
  ForEachCase(r, [&](const std::string& name, const CaseResult& c) {
    if (!c.difference.empty()) j["failures"][name] = c.difference;
    j["hashes"][name] = DigestText(c.hash);
  });
  return j;
}

void PrintJson(const std::vector<TableReport>& reports, size_t num_cases, bool ok) {
  ordered_json j;
  j["version"] = LibraryVersion();
  j["arithmetic"] = ArithmeticVersion();
  j["digest"] = DigestText(GoldenDigest());
  j["ok"] = ok;
  j["cpu"] = {{"name", CpuName()}, {"features", CpuFeatureNames()}};
  j["tables"] = ordered_json::array();
  for (const TableReport& r : reports) j["tables"].push_back(ToJson(r, num_cases));
  std::printf("%s\n", j.dump(2).c_str());
}

void PrintTables(const std::vector<TableReport>& reports, bool colour) {
  TextTable text;
  text.Column("table", "", TextTable::Align::kLeft);
  text.Column("digest", "", TextTable::Align::kLeft);
  text.Column("same bits", "", TextTable::Align::kLeft);
  text.Column("cases", "passed", TextTable::Align::kRight);
  text.Column("cases", "failed", TextTable::Align::kRight);
  text.Column("accuracy", "", TextTable::Align::kLeft);
  for (const TableReport& r : reports) {
    if (!r.table.available) continue;
    const Tone bits = r.bits_equal() ? Tone::kGood : Tone::kBad;
    text.Row({{r.table.name},
              {DigestText(r.digest.back().hash), bits},
              {r.bits_equal() ? "yes" : "NO", bits},
              {std::to_string(r.passed())},
              {std::to_string(r.failed()), bits},
              {r.accurate() ? "as promised" : "TOO FAR OFF", r.accurate() ? Tone::kGood : Tone::kBad}});
  }
  std::fputs(text.Text(colour).c_str(), stdout);
  for (const TableReport& r : reports) {
    if (!r.table.available) std::printf("table %s did not run: %s\n", r.table.name.c_str(), r.table.reason.c_str());
  }
}

// The worst of all tables: where their bits are equal, the errors are too.
void PrintErrors(const std::vector<TableReport>& reports, bool colour) {
  std::vector<KernelError> worst;
  for (const TableReport& r : reports) {
    if (worst.empty()) worst = r.errors;
    for (size_t i = 0; i < r.errors.size(); ++i) {
      worst[i].max_abs = std::max(worst[i].max_abs, r.errors[i].max_abs);
      worst[i].rms_error = std::max(worst[i].rms_error, r.errors[i].rms_error);
      worst[i].max_ulp = std::max(worst[i].max_ulp, r.errors[i].max_ulp);
      worst[i].ok = worst[i].ok && r.errors[i].ok;
    }
  }
  TextTable text;
  text.Column("kernel", "", TextTable::Align::kLeft);
  text.Column("error", "max abs", TextTable::Align::kRight);
  text.Column("error", "rel. RMS", TextTable::Align::kRight);
  text.Column("error", "max ulp", TextTable::Align::kRight);
  text.Column("limit", "", TextTable::Align::kLeft);
  for (const KernelError& e : worst) {
    const Tone tone = e.ok ? Tone::kGood : Tone::kBad;
    const bool ulp = e.limited == "ulp";
    text.Row({{e.kernel},
              {Scientific(e.max_abs, 1)},
              {Scientific(e.rms_error, 1), ulp ? Tone::kPlain : tone},
              {Fixed(e.max_ulp, 3), ulp ? tone : Tone::kPlain},
              {ulp ? General(e.limit, 3) + " ulp" : General(e.limit, 3) + " rel. RMS"}});
  }
  std::fputs(text.Text(colour).c_str(), stdout);
}

void PrintFailures(const std::vector<TableReport>& reports) {
  for (const TableReport& r : reports) {
    size_t shown = 0;
    ForEachCase(r, [&](const std::string& name, const CaseResult& c) {
      if (c.difference.empty() || ++shown > kShownFailures) return;
      std::printf("%s, %s: %s\n", r.table.name.c_str(), name.c_str(), c.difference.c_str());
    });
    if (shown > kShownFailures) {
      std::printf("%s: and %zu more; --json has them all\n", r.table.name.c_str(), shown - kShownFailures);
    }
  }
}

void PrintText(const std::vector<TableReport>& reports, size_t num_cases, bool ok) {
  const bool colour = WantsColour(stdout);
  std::printf("etalon %s, arithmetic %d, digest %s, %zu cases\n\n", LibraryVersion().c_str(), ArithmeticVersion(),
              DigestText(GoldenDigest()).c_str(), num_cases);
  PrintTables(reports, colour);
  std::printf("\nError against f64, the worst of the tables that ran:\n");
  PrintErrors(reports, colour);
  std::printf("\n");
  PrintFailures(reports);
  std::printf("%s\n", ok ? "ok: every table that can run here gives the demanded bits and is as accurate as promised"
                         : "FAILED: see above");
}

int Fail(const std::string& error) {
  std::fprintf(stderr, "etalon check: %s\n", error.c_str());
  return kExitBadInput;
}

int Check(const Options& options) {
  std::string error;
  std::vector<TableState> tables;
  if (options.target.empty()) {
    tables = Tables(&error);
  } else {
    SelectTables(options.target, &tables, &error);
  }
  if (!error.empty()) return Fail(error);
  std::vector<TableReport> reports;
  bool ok = true;
  {
    Progress progress(3.0 * static_cast<double>(std::count_if(tables.begin(), tables.end(),
                                                              [](const TableState& t) { return t.available; })));
    for (const TableState& table : tables) {
      reports.push_back(Run(table, &progress));
      ok = ok && reports.back().ok();
    }
  }
  size_t num_cases = 0;
  for (const TableReport& r : reports) num_cases = std::max(num_cases, r.digest.size() + r.model.size());
  if (num_cases == 0) return Fail("no kernel table can run on this CPU");
  if (options.as_json) {
    PrintJson(reports, num_cases, ok);
  } else {
    PrintText(reports, num_cases, ok);
  }
  return ok ? kExitOk : kExitCheckFailed;
}

}  // namespace

Command AddCheck(CLI::App* tool) {
  const auto values = std::make_shared<Options>();
  CLI::App* options = tool->add_subcommand(
      "check", "Every kernel table: the golden digest, the cases of the model, the error against f64");
  options->add_flag("--json", values->as_json, "Print JSON, with a hash of each case, to compare machines by");
  options
      ->add_option("--target", values->target, "Kernel tables, with commas between. Default: all that this CPU can run")
      ->type_name("NAME");
  options->footer(
      "Exit code 1 if any bit differs from what the arithmetic demands.\n"
      "Examples:\n  etalon check\n  etalon check --json > this_machine.json");
  return {options, [values] { return Check(*values); }};
}

}  // namespace etalon::cli
