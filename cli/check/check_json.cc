// What `etalon check --json` prints; docs/tool.md has the fields.
#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "cli/check/check_report.h"

namespace etalon::cli {
namespace {

using nlohmann::ordered_json;

// The largest of one member over some kernels.
double Worst(const std::vector<KernelError>& errors, double KernelError::* member) {
  double worst = 0.0;
  for (const KernelError& e : errors) worst = std::max(worst, e.*member);
  return worst;
}

ordered_json ToJson(const FamilyError& e) {
  return {{"kernel", e.kernel},
          {"family", e.family},
          {"elements", e.histogram.total()},
          {"max_abs", e.max_abs},
          {"rms_error", e.rms_error},
          {"max_ulp", e.max_ulp},
          {"of_bound", e.of_bound},
          {"ok", e.ok()},
          {"histogram", e.histogram.counts()}};
}

ordered_json ToJson(const TableReport& r, const CheckReport& report) {
  ordered_json j;
  j["name"] = r.table.name;
  j["available"] = r.table.available;
  if (!r.table.available) {
    j["reason"] = r.table.reason;
    for (const char* name : {"bits_equal", "digest", "max_abs", "rms_error", "max_ulp"}) j[name] = nullptr;
    j["cases"] = {{"passed", 0}, {"failed", 0}, {"skipped", report.num_cases}};
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
  if (!report.full) return j;
  j["full"] = ordered_json::array();
  for (const FamilyError& e : r.full.errors) {
    j["full"].push_back(ToJson(e));
    j["hashes"]["full/" + e.kernel + "/" + e.family] = DigestText(e.hash);
  }
  return j;
}

}  // namespace

void PrintCheckJson(const CheckReport& report) {
  ordered_json j;
  j["version"] = LibraryVersion();
  j["arithmetic"] = ArithmeticVersion();
  j["digest"] = DigestText(GoldenDigest());
  j["ok"] = report.ok();
  j["cpu"] = {{"name", CpuName()}, {"features", CpuFeatureNames()}};
  if (report.full) {
    j["histogram_limits"] = UlpHistogram::kLimits;
    j["histogram_limits"].push_back(nullptr);  // the last bucket has none
  }
  j["tables"] = ordered_json::array();
  for (const TableReport& r : report.tables) j["tables"].push_back(ToJson(r, report));
  std::printf("%s\n", j.dump(2).c_str());
}

}  // namespace etalon::cli
