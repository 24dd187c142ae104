// exp, log and tanh of every table: accurate at a stride, special values, and the bits of the definition everywhere.
#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <limits>
#include <string>
#include <vector>

#include "lib/base/arithmetic.h"
#include "tests/base/sweep.h"
#include "tests/base/ulp.h"
#include "tests/support/kernel_case.h"
#include "tests/support/targets.h"

namespace etalon::test {
namespace {

using Map = void (*KernelTable::*)(const float*, float*, size_t);

struct Function {
  const char* name;
  Map map;
  float (*definition)(float);
  bool (*defined)(float);  // where docs/numerics.md promises bits; elsewhere a table may return anything
};

const Function kFunctions[] = {
    {"exp", &KernelTable::exp, Exp, [](float x) { return !(x > 0); }},
    {"log", &KernelTable::log, Log, [](float x) { return std::isnan(x) || (std::isnormal(x) && x > 0); }},
    {"tanh", &KernelTable::tanh, Tanh, [](float) { return true; }},
};

// Words first, first + stride ... up to last.
std::vector<float> Strided(uint32_t first, uint32_t last, uint32_t stride) {
  std::vector<float> x;
  for (uint64_t word = first; word <= last; word += stride) x.push_back(FromBits(static_cast<uint32_t>(word)));
  return x;
}

// Against the C library's binary64 function, whose error is below 2^-28 of an f32's ulp.
void CheckAccuracy(const char* name, Map map, double (*exact)(double), double bound, const std::vector<float>& x) {
  std::vector<double> expected;
  for (const float value : x) expected.push_back(exact(value));
  for (const KernelTable& table : Tables()) {
    const std::vector<float> y = RunMap(table, map, x);
    double worst = 0;
    float worst_input = 0;
    for (size_t i = 0; i < x.size(); ++i) {
      const double error = UlpError(y[i], expected[i]);
      if (error <= worst) continue;
      worst = std::isnan(error) ? std::numeric_limits<double>::infinity() : error;  // else NaN would hide all after it
      worst_input = x[i];
    }
    std::printf("%s: %s at %zu values: worst %.4f ulp of %g at %08X\n", table.name, name, x.size(), worst, bound,
                Bits(worst_input));
    CHECK_MESSAGE(worst <= bound, std::string(table.name), " ", std::string(name), " at ", worst_input, ": ", worst,
                  " ulp");
  }
}

float One(const KernelTable& table, Map map, uint32_t word) {
  // Five times, so that the vector body and the tail of a table both see it.
  const std::vector<float> y = RunMap(table, map, std::vector<float>(5, FromBits(word)));
  for (const float value : y) CHECK(SameFloat(value, y[0]));
  return y[0];
}

const uint32_t kNaNs[] = {0x7FC00000u, 0xFFC00000u, 0x7F800001u, 0xFFFFFFFFu, 0x7FFFFFFFu, 0xFF800001u};

}  // namespace

TEST_SUITE_BEGIN("base functions");

TEST_CASE("exp is within 1 ulp on [-87.3, 0]") {
  CheckAccuracy(
      "exp", &KernelTable::exp, [](double x) { return std::exp(x); }, 1, Strided(0x80000000u, 0xC2AE999Au, 1021));
}

TEST_CASE("log is within 1 ulp on [2^-24, 2^40]") {
  CheckAccuracy(
      "log", &KernelTable::log, [](double x) { return std::log(x); }, 1, Strided(0x33800000u, 0x53800000u, 509));
  // Near 1 the result is small, and cancellation would show.
  CheckAccuracy(
      "log near 1", &KernelTable::log, [](double x) { return std::log(x); }, 1, Strided(0x3F7F8000u, 0x3F804000u, 1));
}

TEST_CASE("tanh is within 2 ulp everywhere") {
  std::vector<float> x = Strided(0, 0x7F800000u, 4093);
  const std::vector<float> negative = Strided(0x80000000u, 0xFF800000u, 4091);
  x.insert(x.end(), negative.begin(), negative.end());
  CheckAccuracy("tanh", &KernelTable::tanh, [](double v) { return std::tanh(v); }, 2, x);
  CheckAccuracy(
      "tanh in [1/8, 16]", &KernelTable::tanh, [](double v) { return std::tanh(v); }, 2,
      Strided(0x3E000000u, 0x41800000u, 127));
}

TEST_CASE("special values of exp") {
  for (const KernelTable& table : Tables()) {
    CAPTURE(std::string(table.name));
    const Map exp = &KernelTable::exp;
    CHECK(Bits(One(table, exp, 0x00000000u)) == 0x3F800000u);
    CHECK(Bits(One(table, exp, 0x80000000u)) == 0x3F800000u);
    CHECK(One(table, exp, 0xC2AE999Au) >= 0x1p-126f);  // -87.3f: the last that is not zero, still normal
    for (const uint32_t word : {0xC2AE999Bu, 0xC2AEAC50u, 0xC2CFF1B5u, 0xC3000000u, 0xFF7FFFFFu, 0xFF800000u}) {
      CAPTURE(word);
      CHECK(Bits(One(table, exp, word)) == 0);
    }
    for (const uint32_t word : kNaNs) CHECK(std::isnan(One(table, exp, word)));
  }
}

TEST_CASE("special values of log") {
  for (const KernelTable& table : Tables()) {
    CAPTURE(std::string(table.name));
    CHECK(Bits(One(table, &KernelTable::log, 0x3F800000u)) == 0);
    for (const uint32_t word : kNaNs) CHECK(std::isnan(One(table, &KernelTable::log, word)));
  }
}

TEST_CASE("special values of tanh") {
  for (const KernelTable& table : Tables()) {
    CAPTURE(std::string(table.name));
    const Map tanh = &KernelTable::tanh;
    CHECK(Bits(One(table, tanh, 0x00000000u)) == 0x00000000u);
    CHECK(Bits(One(table, tanh, 0x80000000u)) == 0x80000000u);
    CHECK(Bits(One(table, tanh, 0x7F800000u)) == 0x3F800000u);
    CHECK(Bits(One(table, tanh, 0xFF800000u)) == 0xBF800000u);
    CHECK(Bits(One(table, tanh, 0x7F7FFFFFu)) == 0x3F800000u);
    CHECK(Bits(One(table, tanh, 0x00000001u)) == 0x00000001u);
    CHECK(Bits(One(table, tanh, 0x807FFFFFu)) == 0x807FFFFFu);
    for (const uint32_t word : kNaNs) CHECK(std::isnan(One(table, tanh, word)));
  }
}

TEST_CASE("tanh is odd in bits") {
  const std::vector<float> x = Strided(0, 0x7F800000u, 2039);
  std::vector<float> negative;
  for (const float value : x) negative.push_back(FromBits(Bits(value) | 0x80000000u));
  for (const KernelTable& table : Tables()) {
    const std::vector<float> y = RunMap(table, &KernelTable::tanh, x);
    const std::vector<float> z = RunMap(table, &KernelTable::tanh, negative);
    Failures failures;
    for (size_t i = 0; i < x.size(); ++i) {
      if (Bits(z[i]) != (Bits(y[i]) ^ 0x80000000u)) {
        failures.Add("%s: tanh of +-%08X: %08X and %08X", table.name, Bits(x[i]), Bits(y[i]), Bits(z[i]));
      }
    }
    ETALON_CHECK_NONE(failures);
  }
}

TEST_CASE("every table has the bits of the definition at a stride over all f32 for which they are promised") {
  std::vector<float> x = Strided(0, 0xFFFFFFFFu, 4099);
  for (const uint32_t word : kNaNs) x.push_back(FromBits(word));
  // Where the functions change their formula.
  for (const uint32_t edge : {0u, 0x00800000u, 0x3F200000u, 0x3F3504F3u, 0x3F800000u, 0x42AE999Au, 0x7F800000u}) {
    for (uint32_t i = 0; i < 64; ++i) {
      x.push_back(FromBits(edge + i - 32));
      x.push_back(FromBits((edge + i - 32) ^ 0x80000000u));
    }
  }
  for (const Function& f : kFunctions) {
    std::vector<float> expected(x.size());
    Guarded([&] {
      for (size_t i = 0; i < x.size(); ++i) expected[i] = f.definition(x[i]);
    });
    for (const KernelTable& table : Tables()) {
      const std::vector<float> y = RunMap(table, f.map, x);
      Failures failures;
      for (size_t i = 0; i < x.size(); ++i) {
        if (f.defined(x[i]) && !SameFloat(y[i], expected[i])) {
          failures.Add("%s: %s of %08X: %08X, not %08X", table.name, f.name, Bits(x[i]), Bits(y[i]), Bits(expected[i]));
        }
      }
      ETALON_CHECK_NONE(failures);
    }
  }
}

TEST_CASE("the functions are the same in the body and the tail of an array and write nothing beyond it") {
  const float untouched = FromBits(0xA5A5A5A5u);
  for (const Function& f : kFunctions) {
    for (const KernelTable& table : Tables()) {
      Failures failures;
      for (size_t length = 0; length <= 40; ++length) {
        std::vector<float> x(length), expected(length), y(length + 64, untouched);
        for (size_t i = 0; i < length; ++i) x[i] = FromBits(static_cast<uint32_t>((length * 41 + i) * 0x0573A7C1u));
        Guarded([&] {
          for (size_t i = 0; i < length; ++i) expected[i] = f.definition(x[i]);
          (table.*f.map)(x.data(), y.data(), length);
        });
        for (size_t i = 0; i < y.size(); ++i) {
          if (i < length && !f.defined(x[i])) continue;
          if (!SameFloat(y[i], i < length ? expected[i] : untouched)) {
            failures.Add("%s: %s, length %zu, element %zu: %08X", table.name, f.name, length, i, Bits(y[i]));
          }
        }
      }
      ETALON_CHECK_NONE(failures);
    }
  }
}

TEST_SUITE_END();

}  // namespace etalon::test
