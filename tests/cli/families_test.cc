// The inputs of `etalon check --full`: each family is what its name says, in every type that it is stored in.
#include "cli/check/families.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "cli/check/truth.h"
#include "cli/check/ulp_histogram.h"
#include "cli/fnv.h"
#include "tests/support/reference.h"

namespace etalon::cli {
namespace {

constexpr DType kTypes[] = {DType::kF32, DType::kF16, DType::kBF16};

std::vector<FamilyCase> Make(Family family, DType type) {
  std::vector<FamilyCase> cases;
  std::string error;
  REQUIRE_MESSAGE(MakeFamily(family, type, &cases, &error), error);
  return cases;
}

// Of a few rows: all of them say the same.
Truth SomeScores(FamilyCase c) {
  c.attention.rows = std::min<int64_t>(4, c.attention.rows);
  c.attention.sources[0].num_keys = std::min<int64_t>(1000, c.attention.sources[0].num_keys);
  return TrueScores(c.attention);
}

double Deviation(const std::vector<double>& values) {
  double squares = 0.0;
  for (const double x : values) squares += x * x;
  return std::sqrt(squares / static_cast<double>(values.size()));
}

double Deviation(const Truth& truth) {
  std::vector<double> values;
  for (const DoubleDouble& x : truth.value) values.push_back(x.hi);
  return Deviation(values);
}

double SmallestNormal(DType type) { return type == DType::kF16 ? 0x1p-14 : 0x1p-126; }

bool AllSubnormal(const test::Array& array) {
  const std::vector<double> values = test::TrueValues(array);
  return std::all_of(values.begin(), values.end(),
                     [&](double x) { return std::fabs(x) < SmallestNormal(array.type()); }) &&
         std::count_if(values.begin(), values.end(), [](double x) { return x != 0.0; }) * 10 > array.size() * 9;
}

TEST_CASE("ordinary logits have deviation 1, large ones 30") {
  for (const DType type : kTypes) {
    const FamilyCase ordinary = Make(Family::kOrdinary, type).at(0);
    CHECK(Deviation(SomeScores(ordinary)) == doctest::Approx(1.0).epsilon(0.15));
    CHECK(Deviation(test::TrueValues(ordinary.attention.sources[0].v)) == doctest::Approx(1.0).epsilon(0.02));
    CHECK(Deviation(SomeScores(Make(Family::kLargeLogits, type).at(0))) == doctest::Approx(30.0).epsilon(0.15));
  }
}

TEST_CASE("long is long") {
  const FamilyCase c = Make(Family::kLong, DType::kF16).at(0);
  CHECK(c.attention.sources[0].num_keys == 65536);
  CHECK(c.positions.back() == 65535);
  CHECK(Deviation(SomeScores(c)) == doctest::Approx(1.0).epsilon(0.2));
}

TEST_CASE("near ties are scores that differ by units of the last place") {
  for (const DType type : kTypes) {
    const Truth scores = SomeScores(Make(Family::kNearTie, type).at(0));
    for (size_t r = 0; r < scores.rows(); ++r) {
      const auto row = scores.value.begin() + static_cast<std::ptrdiff_t>(r * scores.row_size());
      const auto [least, most] = std::minmax_element(row, row + static_cast<std::ptrdiff_t>(scores.row_size()));
      const double ulps = (*most - *least).hi / Ulp(scores.largest[r]);
      CAPTURE(r);
      CHECK(ulps > 1.0);
      CHECK(ulps < 24.0);
      CHECK(scores.largest[r] > 4.0);
    }
  }
}

TEST_CASE("subnormal scores, and then subnormal values") {
  for (const DType type : kTypes) {
    const std::vector<FamilyCase> cases = Make(Family::kSubnormal, type);
    REQUIRE(cases.size() == 2);
    if (type == DType::kF16) {
      CHECK(AllSubnormal(cases[0].attention.q));
      CHECK(AllSubnormal(cases[0].attention.sources[0].k));
    } else {
      const Truth scores = SomeScores(cases[0]);
      CHECK(*std::max_element(scores.largest.begin(), scores.largest.end()) < 0x1p-126);
      CHECK(Deviation(scores) > 0x1p-149);
    }
    CHECK(AllSubnormal(cases[1].attention.sources[0].v));
    CHECK(Deviation(SomeScores(cases[1])) == doctest::Approx(1.0).epsilon(0.15));
  }
}

TEST_CASE("wide exponents reach over many binades and leave the scores logits") {
  for (const DType type : kTypes) {
    const FamilyCase c = Make(Family::kWideExponent, type).at(0);
    const auto binades = [](const test::Array& array) {
      int least = 10000, most = -10000;
      for (const double x : test::TrueValues(array)) {
        REQUIRE(std::isfinite(x));
        if (x == 0.0) continue;
        least = std::min(least, std::ilogb(x));
        most = std::max(most, std::ilogb(x));
      }
      return most - least;
    };
    CHECK(binades(c.attention.q) > (type == DType::kF16 ? 10 : 80));
    CHECK(binades(c.attention.sources[0].k) > (type == DType::kF16 ? 10 : 80));
    CHECK(binades(c.attention.sources[0].v) > (type == DType::kF16 ? 20 : 160));
    const double deviation = Deviation(SomeScores(c));
    CHECK(deviation > 0.5);
    CHECK(deviation < 4.0);
  }
}

TEST_CASE("real layers are those that are shipped, every head") {
  const std::vector<FamilyCase> cases = Make(Family::kReal, DType::kF16);
  CHECK(cases.size() == 24);
  for (const FamilyCase& c : cases) {
    CHECK(c.attention.rows == 24);
    CHECK(c.attention.scale == doctest::Approx(1.0 / std::sqrt(static_cast<double>(c.attention.head_dim))));
    CHECK(Deviation(test::TrueValues(c.attention.q)) > 0.1);
  }
  CHECK(Make(Family::kReal, DType::kF32).at(0).attention.q[5] == cases[0].attention.q[5]);  // widening is exact
}

TEST_CASE("inputs are the same on every machine") {
  uint64_t hash = kFnvStart;
  for (const Family family : kFamilies) {
    for (const FamilyCase& c : Make(family, DType::kF32)) {
      for (const test::Array* array : {&c.attention.q, &c.attention.sources[0].k, &c.attention.sources[0].v}) {
        hash = Fnv1aBytes(array->data(), static_cast<size_t>(array->size()) * sizeof(float), hash);
      }
    }
  }
  CHECK(hash == 0xB5A1F9D863EECDE7u);
}

}  // namespace
}  // namespace etalon::cli
