// How `etalon check --compare` shows two machines.
#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "cli/check/compare.h"
#include "cli/exit_code.h"
#include "cli/report.h"
#include "cli/text.h"

namespace etalon::cli {
namespace {

using nlohmann::ordered_json;

constexpr size_t kShownDifferences = 20;  // as text; JSON has all

const SavedTable* Find(const SavedReport& report, const std::string& name) {
  const auto found = std::find_if(report.tables.begin(), report.tables.end(),
                                  [&](const SavedTable& table) { return table.name == name; });
  return found == report.tables.end() ? nullptr : &*found;
}

// Of both files, in the order of the first, then the second.
std::vector<std::string> TableNames(const SavedReport& a, const SavedReport& b) {
  std::vector<std::string> names;
  for (const SavedReport* report : {&a, &b}) {
    for (const SavedTable& table : report->tables) {
      if (std::find(names.begin(), names.end(), table.name) == names.end()) names.push_back(table.name);
    }
  }
  return names;
}

// "-" unless both files have the table with a case in common; "in part" if one of them lacks cases of the other.
Cell SameBits(const SavedTable* a, const SavedTable* b) {
  if (a == nullptr || b == nullptr || !a->available || !b->available) return {"-"};
  bool same = a->digest == b->digest;
  size_t common = 0;
  for (const auto& [name, hash] : a->hashes) {
    const auto other = b->hashes.find(name);
    if (other == b->hashes.end()) continue;
    ++common;
    same = same && other->second == hash;
  }
  if (!same) return {"NO", Tone::kBad};
  if (common == 0) return {"-"};
  return common == a->hashes.size() && common == b->hashes.size() ? Cell{"yes", Tone::kGood} : Cell{"in part"};
}

void PrintMachines(const SavedReport& a, const SavedReport& b, bool colour) {
  TextTable text;
  text.Column("", "", TextTable::Align::kLeft);
  text.Column(PrintablePath(a.path), "", TextTable::Align::kLeft);
  text.Column(PrintablePath(b.path), "", TextTable::Align::kLeft);
  const auto row = [&](const char* name, const std::string& left, const std::string& right, bool may_differ) {
    const Tone tone = may_differ || left == right ? Tone::kPlain : Tone::kBad;
    text.Row({{name}, {left, tone}, {right, tone}});
  };
  row("CPU", a.cpu, b.cpu, true);
  row("version", a.version, b.version, true);
  row("arithmetic", std::to_string(a.arithmetic), std::to_string(b.arithmetic), false);
  row("digest", a.digest, b.digest, false);
  std::fputs(text.Text(colour).c_str(), stdout);
}

void PrintTables(const SavedReport& a, const SavedReport& b, bool colour) {
  TextTable text;
  text.Column("table", "", TextTable::Align::kLeft);
  text.Column("same bits", "", TextTable::Align::kLeft);
  for (const char* which : {"1st", "2nd"}) {
    text.Column(std::string(which) + ": digest", "", TextTable::Align::kLeft);
    text.Column("max abs", "", TextTable::Align::kRight);
    text.Column("rel. RMS", "", TextTable::Align::kRight);
    text.Column("max ulp", "", TextTable::Align::kRight);
  }
  for (const std::string& name : TableNames(a, b)) {
    std::vector<Cell> row = {{name}, SameBits(Find(a, name), Find(b, name))};
    for (const SavedReport* report : {&a, &b}) {
      const SavedTable* table = Find(*report, name);
      if (table == nullptr || !table->available) {
        row.insert(row.end(), {{table == nullptr ? "not in it" : "did not run"}, {"-"}, {"-"}, {"-"}});
      } else {
        row.insert(row.end(), {{table->digest},
                               {Scientific(table->max_abs, 1)},
                               {Scientific(table->rms_error, 1)},
                               {Fixed(table->max_ulp, 3)}});
      }
    }
    text.Row(row);
  }
  std::fputs(text.Text(colour).c_str(), stdout);
}

void PrintText(const SavedReport& a, const SavedReport& b, const Comparison& comparison) {
  const bool colour = WantsColour(stdout);
  PrintMachines(a, b, colour);
  std::printf("\n");
  PrintTables(a, b, colour);
  std::printf("\n%zu cases are in both files\n", comparison.common_cases);
  for (const std::string& line : comparison.only_in_one) std::printf("%s\n", line.c_str());
  for (size_t i = 0; i < std::min(kShownDifferences, comparison.differences.size()); ++i) {
    std::printf("DIFFERENT: %s\n", comparison.differences[i].c_str());
  }
  if (comparison.differences.size() > kShownDifferences) {
    std::printf("and %zu more; --json has them all\n", comparison.differences.size() - kShownDifferences);
  }
  std::printf("%s\n", comparison.differences.empty() ? "ok: no case differs between any two tables of the two machines"
                                                     : "FAILED: see above");
}

ordered_json ToJson(const SavedReport& report) {
  ordered_json j = {{"file", PrintablePath(report.path)},
                    {"version", report.version},
                    {"arithmetic", report.arithmetic},
                    {"digest", report.digest},
                    {"cpu", report.cpu},
                    {"tables", ordered_json::array()}};
  for (const SavedTable& table : report.tables) {
    ordered_json t = {{"name", table.name}, {"available", table.available}};
    if (table.available) {
      t["digest"] = table.digest;
      t["bits_equal"] = table.bits_equal;
      t["max_abs"] = table.max_abs;
      t["rms_error"] = table.rms_error;
      t["max_ulp"] = table.max_ulp;
    } else {
      t["reason"] = table.reason;
    }
    j["tables"].push_back(t);
  }
  return j;
}

}  // namespace

int RunCompare(const std::string& path_a, const std::string& path_b, bool as_json) {
  SavedReport a, b;
  std::string error;
  Comparison comparison;
  if (ReadSavedReport(path_a, &a, &error) && ReadSavedReport(path_b, &b, &error)) {
    comparison = CompareReports(a, b);
    if (comparison.common_cases == 0) {
      error = PrintablePath(path_a) + " and " + PrintablePath(path_b) + " have no case in common";
    }
  }
  if (!error.empty()) {
    std::fprintf(stderr, "etalon check: %s\n", error.c_str());
    return kExitBadInput;
  }
  if (as_json) {
    ordered_json j;
    j["version"] = a.version;
    j["arithmetic"] = a.arithmetic;
    j["ok"] = comparison.differences.empty();
    j["common_cases"] = comparison.common_cases;
    j["differences"] = comparison.differences;
    j["only_in_one"] = comparison.only_in_one;
    j["machines"] = {ToJson(a), ToJson(b)};
    std::printf("%s\n", j.dump(2).c_str());
  } else {
    PrintText(a, b, comparison);
  }
  return comparison.differences.empty() ? kExitOk : kExitCheckFailed;
}

}  // namespace etalon::cli
