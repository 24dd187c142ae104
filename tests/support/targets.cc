#include "tests/support/targets.h"

#include <cstdio>
#include <cstdlib>
#include <set>

#include "arch/dispatch.h"

namespace etalon::test {
namespace {

std::string selected;
std::set<std::string> ran;

KernelTable Named(const char* name) {
  KernelTable table;
  if (ChooseTable(name, &table) != TableChoice::kOk) {
    std::fprintf(stderr, "table %s cannot be chosen\n", name);
    std::abort();
  }
  return table;
}

}  // namespace

bool SelectTarget(const std::string& name) {
  KernelTable table;
  if (ChooseTable(name.c_str(), &table) != TableChoice::kOk) return false;
  selected = name;
  return true;
}

KernelTable FastDefinition() {
  KernelTable table;
  return ChooseTable("scalar-fma", &table) == TableChoice::kOk ? table : Definition();
}

std::vector<KernelTable> Tables() {
  std::vector<KernelTable> tables;
  for (size_t i = 0; i < NumTables(); ++i) {
    const TableInfo info = GetTableInfo(i);
    if (!info.available || (!selected.empty() && selected != info.name)) continue;
    tables.push_back(Named(info.name));
    ran.insert(info.name);
  }
  return tables;
}

KernelTable Definition() { return Named("scalar"); }

std::string TargetReport(bool* complete) {
  std::string report;
  *complete = true;
  bool any = false;
  for (size_t i = 0; i < NumTables(); ++i) {
    const TableInfo info = GetTableInfo(i);
    any = any || info.available;
    report += std::string("table ") + info.name + ": ";
    if (ran.count(info.name) != 0) {
      report += "ran";
    } else if (!selected.empty() && selected != info.name) {
      report += "skipped (--target=" + selected + ")";
    } else if (!info.available) {
      report += "skipped (missing";
      for (int bit = 0; bit < 63; ++bit) {
        const CpuFeatures feature = info.missing & (CpuFeatures{1} << bit);
        if (feature != 0) report += std::string(" ") + CpuFeatureName(feature);
      }
      report += ")";
    } else if (ran.empty()) {
      report += "not asked for by these tests";
    } else {
      report += "DID NOT RUN, though this CPU allows it";
      *complete = false;
    }
    report += "\n";
  }
  if (!any) {
    report += "NO TABLE can run: this build is for another CPU\n";
    *complete = false;
  }
  return report;
}

}  // namespace etalon::test
