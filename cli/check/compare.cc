#include "cli/check/compare.h"

#include <algorithm>
#include <set>

#include "cli/text.h"

namespace etalon::cli {
namespace {

// What a report calls a file.
std::string Named(const SavedReport& report) { return PrintablePath(report.path); }

std::set<std::string> CasesOf(const SavedReport& report) {
  std::set<std::string> names;
  for (const SavedTable& table : report.tables) {
    for (const auto& [name, hash] : table.hashes) names.insert(name);
  }
  return names;
}

// Who gave which hash of a case, if there is more than one; empty where all agree.
std::string DifferenceOf(const std::string& name, const SavedReport& a, const SavedReport& b) {
  std::map<std::string, std::vector<std::string>> tables_by_hash;
  for (const SavedReport* report : {&a, &b}) {
    for (const SavedTable& table : report->tables) {
      const auto hash = table.hashes.find(name);
      if (hash != table.hashes.end()) tables_by_hash[hash->second].push_back(table.name + " of " + Named(*report));
    }
  }
  if (tables_by_hash.size() < 2) return "";
  std::vector<std::string> parts;
  for (const auto& [hash, tables] : tables_by_hash) parts.push_back(hash + " by " + Join(tables, ", "));
  return name + ": " + Join(parts, "; ");
}

void CompareHeads(const SavedReport& a, const SavedReport& b, std::vector<std::string>* differences) {
  if (a.arithmetic != b.arithmetic) {
    differences->push_back("arithmetic " + std::to_string(a.arithmetic) + " and " + std::to_string(b.arithmetic) +
                           ": these versions promise different bits");
  }
  if (a.digest != b.digest) {
    differences->push_back("the two builds demand different digests: " + a.digest + " and " + b.digest);
  }
  for (const SavedReport* report : {&a, &b}) {
    for (const SavedTable& table : report->tables) {
      if (!table.available) continue;
      const std::string named = table.name + " of " + Named(*report);
      if (table.digest != report->digest) {
        differences->push_back(named + " has the digest " + table.digest + ", not " + report->digest);
      }
      if (!table.bits_equal) differences->push_back(named + " does not give the bits that were demanded of it");
    }
  }
}

std::string Missing(const SavedTable& table, const SavedReport& report, const std::set<std::string>& all) {
  std::vector<std::string> names;
  for (const std::string& name : all) {
    if (table.hashes.count(name) == 0) names.push_back(name);
  }
  if (names.empty()) return "";
  constexpr size_t kNamed = 5;
  const size_t count = names.size();
  if (count > kNamed) names.resize(kNamed);
  return table.name + " of " + Named(report) + " lacks " + std::to_string(count) +
         (count == 1 ? " case: " : " cases: ") + Join(names, ", ") + (count > kNamed ? ", ..." : "");
}

}  // namespace

Comparison CompareReports(const SavedReport& a, const SavedReport& b) {
  Comparison result;
  CompareHeads(a, b, &result.differences);
  const std::set<std::string> of_a = CasesOf(a), of_b = CasesOf(b);
  std::set<std::string> all = of_a;
  all.insert(of_b.begin(), of_b.end());
  for (const std::string& name : all) {
    result.common_cases += of_a.count(name) * of_b.count(name);
    const std::string difference = DifferenceOf(name, a, b);
    if (!difference.empty()) result.differences.push_back(difference);
  }
  for (const SavedReport* report : {&a, &b}) {
    for (const SavedTable& table : report->tables) {
      const std::string missing = table.available ? Missing(table, *report, all) : "";
      if (!missing.empty()) result.only_in_one.push_back(missing);
    }
  }
  return result;
}

}  // namespace etalon::cli
