// Every f32 in the ranges of exp, log and tanh, through the table that is chosen by default: the bits of all tables are
// compared elsewhere, so one is enough, and the default is the fast one.
#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>
#include <cstdio>

#include "arch/dispatch.h"
#include "lib/base/types.h"
#include "tests/base/sweep.h"
#include "tests/base/ulp.h"

namespace etalon::test {
namespace {

constexpr uint32_t kBlockSize = 4096;

using Map = void (*)(const float*, float*, size_t);

struct Worst {
  double error = 0;
  uint32_t input = 0;
  Failures failures;

  // Negated, so that a NaN counts as worse than anything.
  void Note(double candidate, uint32_t word) {
    if (candidate <= error) return;
    error = std::isnan(candidate) ? HUGE_VAL : candidate;
    input = word;
  }

  void Merge(const Worst& other) {
    Note(other.error, other.input);
    failures.Merge(other.failures);
  }
};

KernelTable Table() {
  KernelTable table;
  REQUIRE(ChooseDefaultTable(&table) == TableChoice::kOk);
  return table;
}

// Words first ... last through map; error(y, x) in ulp. An odd function is also run on the negated block, whose results
// must be those of the first with the other sign.
template <typename Error>
void CheckRange(const char* what, const char* table, Map map, uint32_t first, uint32_t last, double bound, bool odd,
                Error error) {
  const uint64_t count = uint64_t{last} - first + 1;
  const Worst worst = Sweep<Worst>((count + kBlockSize - 1) / kBlockSize, [&](Worst* own, uint64_t block) {
    float x[kBlockSize], y[kBlockSize], z[kBlockSize];
    const uint64_t start = block * kBlockSize;
    const uint32_t n = static_cast<uint32_t>(count - start < kBlockSize ? count - start : kBlockSize);
    const uint32_t word = first + static_cast<uint32_t>(start);
    for (uint32_t i = 0; i < n; ++i) x[i] = FromBits(word + i);
    Guarded([&] { map(x, y, n); });
    for (uint32_t i = 0; i < n; ++i) own->Note(error(y[i], x[i]), word + i);
    if (!odd) return;
    for (uint32_t i = 0; i < n; ++i) x[i] = FromBits((word + i) ^ 0x80000000u);
    Guarded([&] { map(x, z, n); });
    for (uint32_t i = 0; i < n; ++i) {
      if (Bits(z[i]) != (Bits(y[i]) ^ 0x80000000u)) {
        own->failures.Add("%s, +-%08X: %08X and %08X", what, word + i, Bits(y[i]), Bits(z[i]));
      }
    }
  });
  std::printf("%s: %s, all %llu values: worst %.6f ulp of %g at %08X (%.9g)\n", table, what,
              static_cast<unsigned long long>(count), worst.error, bound, static_cast<unsigned>(worst.input),
              static_cast<double>(FromBits(worst.input)));
  CHECK(worst.error <= bound);
  ETALON_CHECK_NONE(worst.failures);
}

}  // namespace

TEST_SUITE_BEGIN("base functions, exhaustive");

TEST_CASE("exp") {
  const KernelTable table = Table();
  // The C library's binary64 functions err by less than 2^-28 of an f32's ulp.
  CheckRange("exp on [-87.3, -2^-26]", table.name, table.exp, 0xB2800000u, 0xC2AE999Au, 1, false,
             [](float y, float x) { return UlpError(y, std::exp(static_cast<double>(x))); });
  // Above -2^-26 exp(x) = 1 + x + r with 0 <= r < 2^-53, that is 2^-29 ulp; the exact value lies below 1, where the ulp
  // is 2^-24. y - 1 is exact for any y near 1.
  CheckRange(
      "exp on (-2^-26, -2^-149]", table.name, table.exp, 0x80000001u, 0xB27FFFFFu, 1, false,
      [](float y, float x) { return std::fabs((static_cast<double>(y) - 1) - static_cast<double>(x)) * 0x1p24; });
}

TEST_CASE("log") {
  const KernelTable table = Table();
  CheckRange("log on [2^-24, 2^40]", table.name, table.log, 0x33800000u, 0x53800000u, 1, false,
             [](float y, float x) { return UlpError(y, std::log(static_cast<double>(x))); });
}

TEST_CASE("tanh, small") {
  const KernelTable table = Table();
  // Four terms of the series: the fifth is 62 x^9 / 2835, relative to x below 2^-53, that is 2^-29 ulp.
  CheckRange("tanh below 2^-6", table.name, table.tanh, 0, 0x3C7FFFFFu, 2, true, [](float y, float x) {
    const double u = static_cast<double>(x) * static_cast<double>(x);
    const double series = 1 + u * (-1.0 / 3 + u * (2.0 / 15 + u * (-17.0 / 315)));
    return UlpError(y, static_cast<double>(x) * series);
  });
}

TEST_CASE("tanh, large") {
  const KernelTable table = Table();
  CheckRange("tanh on [2^-6, 20)", table.name, table.tanh, 0x3C800000u, 0x419FFFFFu, 2, true,
             [](float y, float x) { return UlpError(y, std::tanh(static_cast<double>(x))); });
  // From 20 on 1 - tanh(x) < 2 exp(-40) < 1e-9 ulp; the exact value lies below 1, where the ulp is 2^-24.
  CheckRange("tanh from 20 to infinity", table.name, table.tanh, 0x41A00000u, 0x7F800000u, 2, true,
             [](float y, float) { return std::fabs(static_cast<double>(y) - 1) * 0x1p24; });
  // The rest are NaN.
  const Failures failures = Sweep<Failures>(0x800000u / kBlockSize, [&](Failures* own, uint64_t block) {
    float x[kBlockSize], y[kBlockSize];
    for (const uint32_t sign : {0u, 0x80000000u}) {
      const uint32_t word = (0x7F800000u + static_cast<uint32_t>(block) * kBlockSize) | sign;
      for (uint32_t i = 0; i < kBlockSize; ++i) x[i] = FromBits(word + i);
      Guarded([&] { table.tanh(x, y, kBlockSize); });
      for (uint32_t i = 0; i < kBlockSize; ++i) {
        if (std::isnan(x[i]) != std::isnan(y[i])) own->Add("tanh of %08X: %08X", word + i, Bits(y[i]));
      }
    }
  });
  ETALON_CHECK_NONE(failures);
}

TEST_SUITE_END();

}  // namespace etalon::test
