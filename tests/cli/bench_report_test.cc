// How `etalon bench` tells what it found; no program and no time is needed for that.
#include "cli/bench_report.h"

#include <doctest/doctest.h>

#include <string>

namespace etalon::cli {
namespace {

BenchReport Small() {
  BenchRow good;
  good.name = "prefill f32 full h1 n256 d64";
  good.table = "scalar";
  good.seconds = 0.0125;
  good.gflops = 50.0;
  good.limit = "fma avx2";
  good.percent = 50.04;
  good.percent_min = 49.0;
  good.percent_max = 51.0;
  good.rms_error = 0.0;  // exact is an error, too
  good.rounds = 11;
  BenchRow wrong;
  wrong.name = "wrong";
  wrong.table = "scalar";
  wrong.failure = "row 3, element 5";
  wrong.rms_error = 0.5;
  BenchRow slow;
  slow.name = "slow";
  slow.table = "scalar";
  slow.skipped = "one run takes 9 s";
  BenchReport report;
  report.cpu = "CPU";
  report.rounds = 11;
  report.limits.fma_gflops = {{"avx2", 100.0}, {"avx512", 180.0}};
  report.limits.fma_width = "avx2";
  report.limits.memory = {{"L1", 16384, 200.0, 0, 90.0}, {"DRAM", size_t{128} << 20, 12.5, 10.0, 9.0}};
  report.rows = {good, wrong, slow};
  return report;
}

std::string LineWith(const std::string& text, const std::string& word) {
  const size_t at = text.find(word);
  if (at == std::string::npos) return "";
  const size_t begin = text.rfind('\n', at) + 1;
  return text.substr(begin, text.find('\n', at) - begin);
}

TEST_CASE("a failed check is told and makes the report not ok, a skipped row does not") {
  BenchReport report = Small();
  CHECK(!report.ok());
  const std::string text = BenchRowsText(report, false);
  CHECK(LineWith(text, "wrong").find("FAILED") != std::string::npos);
  CHECK(LineWith(text, "wrong").find("check FAILED, not timed: row 3, element 5") != std::string::npos);
  CHECK(LineWith(text, "slow").find("skipped: one run takes 9 s") != std::string::npos);
  CHECK(LineWith(text, "slow").find("FAILED") == std::string::npos);
  CHECK(LineWith(text, "prefill").find("FAILED") == std::string::npos);
  CHECK(text.find('\x1b') == std::string::npos);
  CHECK(BenchRowsText(report, true).find("\x1b[1;31m") != std::string::npos);

  const nlohmann::ordered_json j = BenchJson(report, "1.2.3", 1);
  CHECK(j["ok"] == false);
  CHECK(j["rows"][1]["failure"] == "row 3, element 5");
  CHECK(j["rows"][1]["seconds"].is_null());
  CHECK(j["rows"][1]["rms_error"] == 0.5);
  CHECK(j["rows"][2]["skipped"] == "one run takes 9 s");
  CHECK(j["rows"][2]["rms_error"].is_null());
  report.rows.erase(report.rows.begin() + 1);
  CHECK(report.ok());
  CHECK(BenchJson(report, "1.2.3", 1)["ok"] == true);
}

TEST_CASE("numbers have their units, and null or a dash where there is none") {
  const BenchReport report = Small();
  const std::string text = BenchRowsText(report, false);
  const std::string row = LineWith(text, "prefill");
  CHECK(row == "prefill f32 full h1 n256 d64  scalar   12.50    50.00     -   50.0  [49.0 .. 51.0]  fma avx2  0.0e+00");
  const nlohmann::ordered_json j = BenchJson(report, "1.2.3", 1);
  CHECK(j.begin().key() == "version");
  CHECK(j["rows"][0]["gbps"].is_null());
  CHECK(j["rows"][0]["rms_error"] == 0.0);
  CHECK(j["limits"]["fma_gflops"] == 100.0);
  CHECK(j["limits"]["fma_gflops_by_width"]["avx512"] == 180.0);
  CHECK(j["limits"]["read_gbps"]["l1"] == 200.0);
  CHECK(j["limits"]["read_gbps"]["dram"] == 12.5);
  CHECK(j["limits"]["read_gbps"]["l3"].is_null());
  CHECK(j["limits"]["store_gbps"]["l1"].is_null());
  const std::string limits = BenchLimitsText(report.limits, false);
  CHECK(LineWith(limits, "DRAM") == "DRAM     128 MiB  12.50  10.00   9.000");
  CHECK(LineWith(limits, "avx512") == "fma    avx512  180.0  GFLOP/s");
}

TEST_CASE("fewer rounds than usual are told") {
  BenchReport report = Small();
  report.rows[0].rounds = 1;
  CHECK(LineWith(BenchRowsText(report, false), "prefill").find("  1 round") != std::string::npos);
  report.rows[0].rounds = 3;
  CHECK(LineWith(BenchRowsText(report, false), "prefill").find("  3 rounds") != std::string::npos);
}

}  // namespace
}  // namespace etalon::cli
