// etalon_attention with any of its options together, drawn at random (options_call.h): every table gives the bytes of
// the definition in one of all forms of a call, and they are near to f64.
//   options_differential_test [--rounds N] [--draws N] [--seed S] [--target=NAME]
// A round is a thousand draws. Each draw has a seed of its own, S + its number: --seed of one that failed and --draws 1
// repeat it.
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <string>

#include "tests/api/options_call.h"
#include "tests/support/draws.h"

namespace etalon::test {
namespace {

TEST_CASE("options: any of them together give the bits of the definition, in every form") {
  Draws draws = RequestedDraws();
  if (draws.count == 0) draws.count = ETALON_TEST_DRAWS;
  const auto start = std::chrono::steady_clock::now();
  int64_t calls = 0, rows = 0, empty_rows = 0;
  for (uint64_t seed = draws.seed; seed < draws.seed + static_cast<uint64_t>(draws.count); ++seed) {
    const OptionsCase c = RandomOptions(seed);
    const AttentionResult expected = Expected(c);
    INFO("--draws 1 --seed ", seed, ": ", Describe(c));
    CHECK(AccuracyReport(c, expected) == "");
    for (const float lse : expected.lse) {
      ++rows;
      if (std::isinf(lse)) ++empty_rows;
    }
    for (const KernelTable& table : Tables()) {
      if (std::strcmp(table.name, Definition().name) == 0 && seed % 8 != 0) continue;  // ten times slower
      const How& how = EveryForm()[(seed + static_cast<uint64_t>(calls)) % EveryForm().size()];
      INFO(std::string(table.name), " ", Describe(how));
      CHECK(Difference(Run(c, table, how), expected) == "");
      ++calls;
    }
  }
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  std::printf("options: seed %llu, %lld draws, %lld calls, %lld rows of which %lld see nothing, %.1f s\n",
              static_cast<unsigned long long>(draws.seed), static_cast<long long>(draws.count),
              static_cast<long long>(calls), static_cast<long long>(rows), static_cast<long long>(empty_rows), seconds);
}

}  // namespace
}  // namespace etalon::test
