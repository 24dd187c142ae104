// The truth against the f64 loops of the other tests, its bounds against what they are to cover, and the histogram.
#include "cli/check/truth.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "cli/check/error_sum.h"
#include "cli/check/ulp_histogram.h"
#include "tests/support/generate.h"
#include "tests/support/reference.h"
#include "tests/support/targets.h"

namespace etalon::cli {
namespace {

test::AttentionCase SmallCase() {
  test::Random random(3);
  test::AttentionCase c;
  c.rows = 3;
  c.head_dim = 24;
  c.value_dim = 5;
  c.scale = 0.3f;
  c.q = test::Array(DType::kF32, random.Normals(c.rows * c.head_dim));
  c.sources.resize(1);
  c.sources[0].num_keys = 700;
  c.sources[0].k = test::Array(DType::kBF16, random.Normals(700 * c.head_dim));
  c.sources[0].v = test::Array(DType::kF16, random.Normals(700 * c.value_dim));
  return c;
}

void CheckClose(const std::vector<DoubleDouble>& truth, const std::vector<double>& f64) {
  REQUIRE(truth.size() == f64.size());
  for (size_t i = 0; i < f64.size(); ++i) CHECK(std::fabs(truth[i].hi - f64[i]) <= 1e-13 * (1.0 + std::fabs(f64[i])));
}

TEST_CASE("attention is what f64 says") {
  test::AttentionCase c = SmallCase();
  const Truth scores = TrueScores(c);
  CheckClose(scores.value, test::ScoresInF64(c).s);
  const std::vector<double> v = test::TrueValues(c.sources[0].v);
  for (const KeyRange keys : {KeyRange{0, 700}, KeyRange{0, 1}, KeyRange{512, 700}}) {
    Truth out, lse;
    for (int64_t r = 0; r < c.rows; ++r) {
      const TrueRow row = TrueAttention(scores, r, v, c.value_dim, keys);
      out.Append(row.out);
      lse.Append(row.lse);
    }
    c.sources[0].spans.assign(3, {keys.first, keys.last});
    const test::TrueAttention f64 = test::AttentionInF64(c);
    CheckClose(out.value, f64.out);
    CheckClose(lse.value, f64.lse);
    CHECK(out.rows() == 3);
    CHECK(out.row_size() == 5);
  }
}

TEST_CASE("softmax, weighted sum and merge are what f64 says") {
  test::Random random(4);
  test::SoftmaxCase softmax;
  softmax.rows = 2;
  softmax.num_keys = 300;
  softmax.s = random.Normals(600, 8.0f);
  CheckClose(TrueSoftmax(softmax).value, test::SoftmaxInF64(softmax).w);
  test::WeightedSumCase sum;
  sum.rows = 2;
  sum.num_keys = 300;
  sum.value_dim = 7;
  sum.w = random.Normals(600);
  sum.v = test::Array(DType::kF32, random.Normals(2100));
  CheckClose(TrueWeightedSum(sum).value, test::WeightedSumInF64(sum).out);
  test::MergeCase merge;
  merge.rows = 4;
  merge.value_dim = 6;
  merge.out1 = test::Array(DType::kF32, random.Normals(24));
  merge.out2 = test::Array(DType::kF32, random.Normals(24));
  merge.lse1 = random.Normals(4, 5.0f);
  merge.lse2 = random.Normals(4, 5.0f);
  CheckClose(TrueMerge(merge).value, test::MergeInF64(merge).out);
}

// A bound that is nothing, or far beyond the roundings that there are, would be none.
TEST_CASE("bounds are as large as the roundings that they count") {
  const test::AttentionCase c = SmallCase();
  const Truth scores = TrueScores(c);
  const std::vector<double> size = test::ScoresInF64(c).size;
  for (size_t i = 0; i < size.size(); ++i) {
    CHECK(scores.bound[i] >= 25.0 * 0x1p-24 * size[i]);
    CHECK(scores.bound[i] <= 25.1 * 0x1p-24 * size[i]);
  }
  const TrueRow row = TrueAttention(scores, 0, test::TrueValues(c.sources[0].v), c.value_dim, {0, 700});
  for (size_t i = 0; i < 5; ++i) {
    CHECK(row.out.bound[i] > 128.0 * 0x1p-24 * std::fabs(row.out.value[i].hi));
    CHECK(row.out.bound[i] < 1e-3);
  }
  const std::vector<float> x = {-1.0f, -2.0f};
  const Truth exp = TrueFunction(Exp, 2.0, x);
  CHECK(exp.bound[0] == 2.0 * Ulp(std::exp(-1.0)));
  CHECK(exp.bound[1] == 2.0 * Ulp(std::exp(-2.0)));
}

// Below exp(-87.3) the arithmetic has no weights.
TEST_CASE("a weight that exp drops is within the bound, however small") {
  test::SoftmaxCase c;
  c.rows = 1;
  c.num_keys = 2;
  c.s = {0.0f, -88.0f};
  const Truth truth = TrueSoftmax(c);
  CHECK(truth.value[1].hi > 0.0);
  CHECK(truth.bound[1] >= truth.value[1].hi);
  CHECK(truth.bound[1] <= 1.01 * truth.value[1].hi + 0x1p-149);
  c.s[1] = -80.0f;
  const Truth kept = TrueSoftmax(c);
  CHECK(kept.bound[1] < 1e-4 * kept.value[1].hi);
}

// q and scale whose product is just above the half of the smallest number, and is rounded up to it: twice of what it
// is.
TEST_CASE("the bound of a score holds where q times scale is subnormal") {
  test::AttentionCase c;
  c.rows = 1;
  c.head_dim = 128;
  c.value_dim = 1;
  c.scale = 0x1p-75f;
  c.q = test::Array(DType::kF32, std::vector<float>(128, 0x1.000002p-75f));
  c.sources.resize(1);
  c.sources[0].num_keys = 1;
  std::vector<float> k(128, 0x1.000002p76f);
  k[0] = 0x1p100f;
  c.sources[0].k = test::Array(DType::kF32, k);
  c.sources[0].v = test::Array(DType::kF32, std::vector<float>{0.0f});
  const Truth truth = TrueScores(c);
  const std::vector<float> got = test::RunScores(test::Tables().front(), c);
  CHECK(ErrorOf((DoubleDouble(got[0]) - truth.value[0]).hi) <= truth.bound[0]);
  CHECK(truth.bound[0] < 1.01 * std::fabs(truth.value[0].hi));
}

// A score of .38 that cancels from numbers of 8e6: the kernel has 1.55 for it, so that its sum of weights is a third of
// what it should be, and what underflows counts three times as much.
TEST_CASE("the bound of an output holds where the sum of the weights is off and values underflow") {
  test::AttentionCase c;
  c.rows = 1;
  c.head_dim = 2;
  c.value_dim = 1;
  c.scale = 0x1.555556p-2f;
  c.q = test::Array(DType::kF32, std::vector<float>{0x1.8037dep+11f, -0x1.021cfep+11f});
  c.sources.resize(1);
  c.sources[0].num_keys = 128;
  std::vector<float> k(2 * 128, 0.0f), v(128, 0x1p-148f);
  k[10] = 0x1.00225ep+13f;
  k[11] = 0x1.7d45b8p+13f;
  v[5] = 0.0f;
  c.sources[0].k = test::Array(DType::kF32, k);
  c.sources[0].v = test::Array(DType::kF32, v);
  const TrueRow row = TrueAttention(TrueScores(c), 0, test::TrueValues(c.sources[0].v), 1, {0, 128}, false);
  const test::StatesResult states = test::RunBlockStates(test::Tables().front(), c);
  const double got = static_cast<double>(states.o[0]) / static_cast<double>(states.l[0]);
  CHECK(ErrorOf((DoubleDouble(got) - row.out.value[0]).hi) <= row.out.bound[0]);
  CHECK(row.out.bound[0] < 128.0 * 0x1p-149);
}

// Scores of 1e9 have errors of hundreds: no weight is known, but a mean lies among its values.
TEST_CASE("bounds of huge scores are finite and hold of any weights") {
  test::AttentionCase c = SmallCase();
  for (int64_t i = 0; i < c.q.size(); ++i)
    c.q.SetWord(i, test::Array(DType::kF32, std::vector<float>{3e10f * c.q[i]}).Word(0));
  const std::vector<double> v = test::TrueValues(c.sources[0].v);
  const TrueRow row = TrueAttention(TrueScores(c), 0, v, c.value_dim, {0, 700});
  for (size_t i = 0; i < 5; ++i) {
    double largest = 0.0;
    for (size_t t = 0; t < 700; ++t) largest = std::max(largest, std::fabs(v[t * 5 + i]));
    CHECK(row.out.bound[i] >= 2.0 * largest);
    CHECK(row.out.bound[i] <= 2.01 * largest);
  }
  // The maximum may be as far off as a score, and the sum be that of 1 key or 700.
  const Truth scores = TrueScores(c);
  const double score_error = *std::max_element(scores.bound.begin(), scores.bound.begin() + 700);
  CHECK(std::isfinite(row.lse.bound[0]));
  CHECK(row.lse.bound[0] >= std::log(700.0) + score_error);
  CHECK(row.lse.bound[0] <= 1.01 * (std::log(700.0) + score_error) + 1e-6 * std::fabs(row.lse.value[0].hi));
  test::SoftmaxCase softmax;
  softmax.rows = 1;
  softmax.num_keys = 3;
  softmax.s = {1e30f, -3e38f, 1e30f};
  for (const double bound : TrueSoftmax(softmax).bound) CHECK(bound < 1e-6);
  test::MergeCase merge;
  merge.rows = 1;
  merge.value_dim = 1;
  merge.out1 = test::Array(DType::kF32, std::vector<float>{1.0f});
  merge.out2 = test::Array(DType::kF32, std::vector<float>{2.0f});
  merge.lse1 = {3e38f};
  merge.lse2 = {-3e38f};
  CHECK(TrueMerge(merge).bound[0] < 1e-6);
}

TEST_CASE("an ulp is the distance between f32 neighbours") {
  CHECK(Ulp(1.0) == 0x1p-23);
  CHECK(Ulp(-1.999) == 0x1p-23);
  CHECK(Ulp(0.999) == 0x1p-24);
  CHECK(Ulp(0x1p-126) == 0x1p-149);
  CHECK(Ulp(0x1p-140) == 0x1p-149);
  CHECK(Ulp(0.0) == 0x1p-149);
}

TEST_CASE("a histogram counts by upper ends, and loses nothing") {
  UlpHistogram histogram;
  CHECK(histogram.used() == 0);
  CHECK(histogram.Share(0) == 0.0);
  for (const double ulp : {0.0, 1e-9, 0.125, 0.1251, 0.5, 0.75, 1.0, 1.5, 64.0}) histogram.Add(ulp);
  const auto& counts = histogram.counts();
  CHECK(counts[0] == 1);  // no error at all
  CHECK(counts[1] == 2);  // up to 1/8
  CHECK(counts[2] == 1);
  CHECK(counts[3] == 1);
  CHECK(counts[4] == 2);
  CHECK(counts[5] == 1);
  CHECK(counts[10] == 1);
  CHECK(counts[11] == 0);
  CHECK(histogram.used() == 11);
  histogram.Add(64.1);
  histogram.Add(std::numeric_limits<double>::infinity());
  histogram.Add(std::numeric_limits<double>::quiet_NaN());
  CHECK(counts[11] == 3);
  CHECK(histogram.total() == 12);
  CHECK(histogram.used() == UlpHistogram::kBuckets);
  CHECK(histogram.Share(11) == 0.25);
  CHECK(UlpHistogram::Name(0) == "0");
  CHECK(UlpHistogram::Name(1) == "1/8");
  CHECK(UlpHistogram::Name(4) == "1");
  CHECK(UlpHistogram::Name(11) == "more");
}

}  // namespace
}  // namespace etalon::cli
