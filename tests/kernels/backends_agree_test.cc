// Every table equals the scalar one in bytes, over random cases of all kernels and options.
#include <doctest/doctest.h>

#include <cmath>
#include <string>

#include "tests/kernels/kernel_test.h"
#include "tests/support/targets.h"

namespace etalon::test {
namespace {

std::vector<KernelTable> Others() {
  std::vector<KernelTable> others;
  for (const KernelTable& table : Tables()) {
    if (std::string(table.name) != Definition().name) others.push_back(table);
  }
  return others;
}

TEST_CASE("attention kernels") {
  const KernelTable definition = Definition();
  const std::vector<KernelTable> others = Others();
  for (uint64_t seed = 5000; seed < 5400; ++seed) {
    RandomOptions options;
    options.specials = seed % 2 == 1;
    options.max_dim = seed % 16 == 0 ? 513 : 80;
    const AttentionCase c = RandomAttention(seed, options);
    INFO("seed ", seed, " ", Describe(c));
    const std::vector<float> scores = RunScores(definition, c);
    const AttentionResult attend = RunAttend(definition, c);
    const StatesResult states = RunBlockStates(definition, c);
    const AttentionResult folded = RunFold(definition, c, states);
    CHECK(Difference(folded, attend) == "");
    for (const KernelTable& table : others) {
      INFO(std::string(table.name));
      CHECK(Difference(RunScores(table, c), scores) == "");
      CHECK(Difference(RunAttend(table, c), attend) == "");
      CHECK(Difference(RunBlockStates(table, c), states) == "");
      CHECK(Difference(RunFold(table, c, states), folded) == "");
    }
  }
}

TEST_CASE("softmax, weighted sum, merge") {
  const KernelTable definition = Definition();
  for (uint64_t seed = 6000; seed < 6600; ++seed) {
    const bool specials = seed % 2 == 1;
    const SoftmaxCase softmax = RandomSoftmax(seed, specials);
    const WeightedSumCase sum = RandomWeightedSum(seed, specials);
    const MergeCase merge = RandomMerge(seed, specials);
    const SoftmaxResult weights = RunSoftmax(definition, softmax);
    const Array out = RunWeightedSum(definition, sum);
    const AttentionResult merged = RunMerge(definition, merge);
    for (const KernelTable& table : Others()) {
      INFO(std::string(table.name), " seed ", seed);
      CHECK(Difference(RunSoftmax(table, softmax), weights) == "");
      CHECK(Difference(RunSoftmax(table, softmax, true), weights) == "");
      CHECK(Difference(RunWeightedSum(table, sum), out) == "");
      CHECK(Difference(RunMerge(table, merge), merged) == "");
    }
  }
}

// NaN results of the plain functions may differ in payload.
std::vector<float> OneNaN(std::vector<float> values) {
  for (float& x : values) x = Canonical(x);
  return values;
}

TEST_CASE("exp, log, tanh, fma over random bit patterns") {
  const KernelTable definition = Definition();
  Random random(7000);
  std::vector<float> any, negative, positive, b, c;
  for (int i = 0; i < 20003; ++i) {
    any.push_back(FromBits(static_cast<uint32_t>(random.Next())));
    negative.push_back(-std::fabs(random.Normal()) * (i % 2 == 0 ? 1.0f : 30.0f));
    positive.push_back(
        FromBits(0x33800000u + static_cast<uint32_t>(random.Below(0x53800000 - 0x33800000))));  // 2^-24 ... 2^40
    b.push_back(FromBits(static_cast<uint32_t>(random.Next())));
    c.push_back(i % 3 == 0 ? -any.back() * b.back() : FromBits(static_cast<uint32_t>(random.Next())));
  }
  for (const KernelTable& table : Others()) {
    INFO(std::string(table.name));
    const auto same = [&](void (*KernelTable::*function)(const float*, float*, size_t), const std::vector<float>& x) {
      return Difference(OneNaN(RunMap(table, function, x)), OneNaN(RunMap(definition, function, x)));
    };
    CHECK(same(&KernelTable::exp, negative) == "");
    CHECK(same(&KernelTable::log, positive) == "");
    CHECK(same(&KernelTable::tanh, any) == "");
    CHECK(same(&KernelTable::tanh, negative) == "");
    CHECK(Difference(OneNaN(RunFma(table, any, b, c)), OneNaN(RunFma(definition, any, b, c))) == "");
  }
}

}  // namespace
}  // namespace etalon::test
