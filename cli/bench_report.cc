#include "cli/bench_report.h"

#include <algorithm>

#include "cli/report.h"
#include "cli/text.h"

namespace etalon::cli {
namespace {

using nlohmann::ordered_json;

ordered_json OrNull(double x) { return x > 0 ? ordered_json(x) : ordered_json(); }

ordered_json OrNull(const std::string& text) { return text.empty() ? ordered_json() : ordered_json(text); }

double RateOf(const std::vector<BenchLimits::Rate>& rates, const std::string& of) {
  for (const BenchLimits::Rate& rate : rates) {
    if (rate.of == of) return rate.rate;
  }
  return 0;
}

ordered_json ToJson(const std::vector<BenchLimits::Rate>& rates) {
  ordered_json j = ordered_json::object();
  for (const BenchLimits::Rate& rate : rates) j[rate.of] = OrNull(rate.rate);
  return j;
}

// All four levels, null for what this machine has not.
ordered_json ToJson(const std::vector<BenchMemory>& memory, double BenchMemory::* rate) {
  ordered_json j = {{"l1", nullptr}, {"l2", nullptr}, {"l3", nullptr}, {"dram", nullptr}};
  for (const BenchMemory& m : memory) j[LowerCase(m.level)] = OrNull(m.*rate);
  return j;
}

ordered_json ToJson(const BenchLimits& limits) {
  ordered_json j;
  j["fma_gflops"] = OrNull(RateOf(limits.fma_gflops, limits.fma_width));
  j["fma_gflops_by_width"] = ToJson(limits.fma_gflops);
  j["read_gbps"] = ToJson(limits.memory, &BenchMemory::read_gbps);
  j["store_gbps"] = ToJson(limits.memory, &BenchMemory::store_gbps);
  j["memcpy_gbps"] = ToJson(limits.memory, &BenchMemory::memcpy_gbps);
  j["exp_gelements_by_table"] = ToJson(limits.exp_gelements);
  return j;
}

ordered_json ToJson(const BenchRow& row) {
  ordered_json j;
  j["name"] = row.name;
  j["table"] = row.table;
  j["seconds"] = OrNull(row.seconds);
  j["gflops"] = OrNull(row.gflops);
  j["gbps"] = OrNull(row.gbps);
  j["limit"] = OrNull(row.limit);
  j["percent_of_limit"] = OrNull(row.percent);
  j["percent_min"] = OrNull(row.percent_min);
  j["percent_max"] = OrNull(row.percent_max);
  j["rms_error"] = row.rms_error >= 0 ? ordered_json(row.rms_error) : ordered_json();
  j["rounds"] = row.rounds > 0 ? ordered_json(row.rounds) : ordered_json();
  j["failure"] = OrNull(row.failure);
  j["skipped"] = OrNull(row.skipped);
  return j;
}

// Four digits whatever the size, "-" for what does not apply.
std::string RateText(double x) {
  if (!(x > 0)) return "-";
  return Fixed(x, x < 1 ? 4 : x < 10 ? 3 : x < 100 ? 2 : 1);
}

std::string SizeText(size_t bytes) {
  const bool mega = bytes >= size_t{1} << 20;
  return Fixed(static_cast<double>(bytes) / (mega ? 1048576.0 : 1024.0), 0) + (mega ? " MiB" : " KiB");
}

std::string NoteText(const BenchRow& row, int rounds) {
  if (!row.failure.empty()) return "check FAILED, not timed: " + row.failure;
  if (!row.skipped.empty()) return "skipped: " + row.skipped;
  if (row.rounds < rounds) return std::to_string(row.rounds) + (row.rounds == 1 ? " round" : " rounds");
  return "";
}

}  // namespace

bool BenchReport::ok() const {
  return std::all_of(rows.begin(), rows.end(), [](const BenchRow& row) { return row.failure.empty(); });
}

ordered_json BenchJson(const BenchReport& report, const std::string& version, int arithmetic) {
  ordered_json j;
  j["version"] = version;
  j["arithmetic"] = arithmetic;
  j["machine"] = {{"cpu", report.cpu},
                  {"features", report.features},
                  {"usable_cpus", report.usable_cpus},
                  {"compiler", report.compiler}};
  j["quick"] = report.quick;
  j["limits"] = ToJson(report.limits);
  j["rows"] = ordered_json::array();
  for (const BenchRow& row : report.rows) j["rows"].push_back(ToJson(row));
  j["ok"] = report.ok();
  return j;
}

std::string BenchMachineText(const BenchReport& report) {
  return "cpu       " + report.cpu + ", " + std::to_string(report.usable_cpus) + " usable\n" + "features  " +
         Join(report.features, " ") + "\n" + "compiler  " + report.compiler + "\n";
}

std::string BenchLimitsText(const BenchLimits& limits, bool colour) {
  TextTable rates;
  for (const char* name : {"limit", "of"}) rates.Column(name, "", TextTable::Align::kLeft);
  rates.Column("rate", "", TextTable::Align::kRight);
  rates.Column("unit", "", TextTable::Align::kLeft);
  for (const auto& rate : limits.fma_gflops) rates.Row({{"fma"}, {rate.of}, {RateText(rate.rate)}, {"GFLOP/s"}});
  for (const auto& rate : limits.exp_gelements) rates.Row({{"exp"}, {rate.of}, {RateText(rate.rate)}, {"Gelements/s"}});

  TextTable memory;
  memory.Column("memory", "", TextTable::Align::kLeft);
  memory.Column("of which", "", TextTable::Align::kRight);
  for (const char* name : {"read", "store", "memcpy"}) memory.Column(name, "GB/s", TextTable::Align::kRight);
  for (const BenchMemory& m : limits.memory) {
    memory.Row(
        {{m.level}, {SizeText(m.bytes)}, {RateText(m.read_gbps)}, {RateText(m.store_gbps)}, {RateText(m.memcpy_gbps)}});
  }
  return rates.Text(colour) + "\n" + memory.Text(colour);
}

std::string BenchRowsText(const BenchReport& report, bool colour) {
  TextTable text;
  text.Column("row", "", TextTable::Align::kLeft);
  text.Column("table", "", TextTable::Align::kLeft);
  text.Column("time", "ms", TextTable::Align::kRight);
  text.Column("rate", "GFLOP/s", TextTable::Align::kRight);
  text.Column("rate", "GB/s", TextTable::Align::kRight);
  text.Column("share", "%", TextTable::Align::kRight);
  text.Column("min .. max", "%", TextTable::Align::kLeft);
  text.Column("of limit", "", TextTable::Align::kLeft);
  text.Column("error", "rel. RMS", TextTable::Align::kLeft);
  text.Column("", "", TextTable::Align::kLeft);
  for (const BenchRow& row : report.rows) {
    const bool timed = row.seconds > 0, shared = !row.limit.empty();
    const Tone tone = row.failure.empty() ? Tone::kPlain : Tone::kBad;
    text.Row({{row.name},
              {row.table},
              {timed                 ? RateText(row.seconds * 1e3)
               : row.failure.empty() ? "-"
                                     : "FAILED",
               tone},
              {RateText(row.gflops)},
              {RateText(row.gbps)},
              {shared ? Fixed(row.percent, 1) : "-"},
              {shared ? "[" + Fixed(row.percent_min, 1) + " .. " + Fixed(row.percent_max, 1) + "]" : ""},
              {row.limit},
              {row.rms_error >= 0 ? Scientific(row.rms_error, 1) : "-", tone},
              {NoteText(row, report.rounds), tone}});
  }
  return text.Text(colour);
}

}  // namespace etalon::cli
