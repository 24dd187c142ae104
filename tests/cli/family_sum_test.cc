// A verdict of `etalon check --full`: what is off by more than its bound, or no number, makes it fail.
#include "cli/check/family_sum.h"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "cli/check/check_report.h"

namespace etalon::cli {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

// Two rows of two elements.
Truth SomeTruth() {
  Truth truth;
  truth.value = {1.0, 0.0, -2.0, 4.0};
  truth.bound = {0x1p-20, 0.0, 0x1p-20, 0x1p-20};
  truth.largest = {1.0, 4.0};
  return truth;
}

FamilyError ErrorWith(const std::vector<double>& values, const Truth& truth = SomeTruth()) {
  FamilySum sum("attention", "long");
  sum.Add(truth, {values, 1});
  return sum.Of();
}

bool ReportIsOk(const FamilyError& error) {
  TableReport table;
  table.table.available = true;
  table.full.errors = {error};
  CheckReport report;
  report.full = true;
  report.tables = {table};
  return report.ok();
}

TEST_CASE("within the bounds") {
  const FamilyError exact = ErrorWith({1.0, 0.0, -2.0, 4.0});
  CHECK(exact.of_bound == 0.0);
  CHECK(exact.kernel == "attention");
  CHECK(exact.family == "long");
  const FamilyError off = ErrorWith({1.0, 0.0, -2.0 + 0x1p-21, 4.0 - 0x1p-22});
  CHECK(off.of_bound == 0.5);
  CHECK(off.max_abs == 0x1p-21);
  CHECK(ReportIsOk(off));
}

TEST_CASE("beyond one bound of any element") {
  for (size_t i = 0; i < 4; ++i) {
    std::vector<double> values = {1.0, 0.0, -2.0, 4.0};
    for (const double wrong : {0x1p-19, kNan, kInfinity, -kInfinity}) {
      values[i] = SomeTruth().value[i].hi + wrong;
      CAPTURE(i);
      CAPTURE(wrong);
      const FamilyError error = ErrorWith(values);
      CHECK(error.of_bound > 1.0);
      CHECK(error.max_abs > 0.0);
      CHECK(error.max_ulp > 0.0);
      CHECK_FALSE(error.ok());
      CHECK_FALSE(ReportIsOk(error));
    }
  }
}

TEST_CASE("a truth or a bound that is no number is not met") {
  for (const double value : {kNan, kInfinity}) {
    Truth truth = SomeTruth();
    truth.value[2] = value;
    CHECK_FALSE(ErrorWith({1.0, 0.0, value, 4.0}, truth).ok());
  }
  Truth truth = SomeTruth();
  truth.bound[3] = kNan;
  CHECK_FALSE(ErrorWith({1.0, 0.0, -2.0, 4.5}, truth).ok());
}

TEST_CASE("one case that is wrong is not made good by the next") {
  FamilySum sum("attention", "long");
  sum.Add(SomeTruth(), {{1.0, 0.0, kNan, 4.0}, 1});
  const auto [row, ulp] = sum.Add(SomeTruth(), {{1.0, 0.0, -2.0, 4.0 + 0x1p-21}, 2});
  CHECK(row == 1);
  CHECK(ulp == 1.0);
  CHECK_FALSE(sum.Of().ok());
  CHECK(sum.Of().histogram.total() == 8);
}

}  // namespace
}  // namespace etalon::cli
