// The arithmetic of the truth: against digits that everybody can look up, and against its own inverses.
#include "cli/check/double_double.h"

#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>
#include <string>

#include "tests/support/generate.h"

namespace etalon::cli {
namespace {

__extension__ typedef unsigned __int128 Wide;  // no such type in ISO C++

constexpr double kWanted = 0x1p-97;  // 6e-30, of the value

// "0.125" and the like; the digits as one whole number, divided once.
DoubleDouble FromDecimal(const std::string& text) {
  DoubleDouble digits, unit = 1.0;
  bool fraction = false;
  for (const char c : text) {
    if (c == '.') {
      fraction = true;
      continue;
    }
    digits = digits * 10.0 + static_cast<double>(c - '0');
    if (fraction) unit = unit * 10.0;
  }
  return digits / unit;
}

double RelativeError(DoubleDouble got, DoubleDouble exact) { return std::fabs(((got - exact) / exact).hi); }

TEST_CASE("sums and products lose nothing") {
  const DoubleDouble sum = TwoSum(1.0, 0x1p-80);
  CHECK(sum.hi == 1.0);
  CHECK(sum.lo == 0x1p-80);
  const DoubleDouble product = TwoProduct(1.0 + 0x1p-52, 1.0 + 0x1p-52);
  CHECK(product.hi == 1.0 + 0x1p-51);
  CHECK(product.lo == 0x1p-104);
  test::Random random(1);
  for (int i = 0; i < 10000; ++i) {
    const double a = static_cast<double>(random.Next() >> 11), b = static_cast<double>(random.Next() >> 11);
    const Wide exact = static_cast<Wide>(a) * static_cast<Wide>(b);
    const DoubleDouble p = TwoProduct(a, b);
    // hi + lo as whole numbers of 128 bits, which wrap as they should where lo is negative.
    const Wide low = p.lo < 0.0 ? ~static_cast<Wide>(-p.lo) + 1 : static_cast<Wide>(p.lo);
    REQUIRE(static_cast<Wide>(p.hi) + low == exact);
  }
}

TEST_CASE("a third has 106 bits") {
  const DoubleDouble third = DoubleDouble(1.0) / 3.0;
  CHECK(third.hi == 1.0 / 3.0);
  const DoubleDouble rest = DoubleDouble(1.0) - third * 3.0;
  CHECK(std::fabs(rest.hi) <= 0x1p-104);
  CHECK(RelativeError(DoubleDouble(2.0) / 7.0 * 7.0, 2.0) <= 0x1p-103);
}

TEST_CASE("exp, log and tanh have the digits of the tables") {
  CHECK(RelativeError(Exp(1.0), FromDecimal("2.71828182845904523536028747135266249775725")) <= kWanted);
  CHECK(RelativeError(Exp(-0.5), FromDecimal("0.606530659712633423603799534991180453441918")) <= kWanted);
  CHECK(RelativeError(Log(2.0), FromDecimal("0.693147180559945309417232121458176568075500")) <= kWanted);
  CHECK(RelativeError(Log(10.0), FromDecimal("2.30258509299404568401799145468436420760110")) <= kWanted);
  CHECK(RelativeError(Log(1.0 + 0x1p-20), FromDecimal("0.000000953673861659188233908415514963336144")) <= kWanted);
  CHECK(RelativeError(Tanh(1.0), FromDecimal("0.761594155955764888119458282604793590412769")) <= kWanted);
  CHECK(RelativeError(Tanh(0x1p-10), FromDecimal("0.000976562189559260218584075270146771762847")) <= kWanted);
  CHECK(RelativeError(Exp(-87.25), FromDecimal("1.28175923131474420534120123360789335671347") /
                                       FromDecimal("1" + std::string(38, '0'))) <= kWanted);
}

TEST_CASE("functions undo each other") {
  test::Random random(2);
  for (int i = 0; i < 2000; ++i) {
    const double a = 80.0 * static_cast<double>(random.Normal());
    CAPTURE(a);
    CHECK(RelativeError(Exp(a) * Exp(-a), 1.0) <= 2.0 * kWanted);
    // Absolute: near 0 the logarithm has what the number beside 1 has kept.
    CHECK(std::fabs((Log(Exp(a)) - a).hi) <= kWanted * (1.0 + std::fabs(a)));
  }
}

// The farther from 1 within its binade, the more terms a logarithm needs; its square is near 1 or 2 again.
TEST_CASE("log has terms enough") {
  for (const double x : {1.4140625, 0.70751953125, 1.25}) {
    CAPTURE(x);
    CHECK(RelativeError(Log(x) * 2.0, Log(x * x)) <= 0x1p-100);
  }
}

TEST_CASE("the two forms of tanh meet, and it is odd") {
  for (const double x : {0x1p-149, 1e-5, 0.1, 0.149, 0.151, 0.5, 3.0, 40.0}) {
    CAPTURE(x);
    const DoubleDouble twice = Tanh(x);  // tanh(2x) = 2 tanh(x) / (1 + tanh(x)^2)
    CHECK(RelativeError(Tanh(2.0 * x), twice * 2.0 / (twice * twice + 1.0)) <= kWanted);
    CHECK(Tanh(-x).hi == -twice.hi);
  }
  CHECK(Tanh(1e30).hi == 1.0);
  CHECK(Tanh(0.0).hi == 0.0);
}

TEST_CASE("ends of the ranges") {
  CHECK(Exp(0.0).hi == 1.0);
  CHECK(Exp(0.0).lo == 0.0);
  CHECK(Exp(-701.0).hi == 0.0);
  CHECK(Log(1.0).hi == 0.0);
  CHECK(DoubleDouble(1.0, -0x1p-60) < DoubleDouble(1.0));
  CHECK(!(DoubleDouble(1.0) < DoubleDouble(1.0)));
}

}  // namespace
}  // namespace etalon::cli
