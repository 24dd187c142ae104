#include "cli/check/truth.h"

#include <algorithm>
#include <cmath>

#include "cli/check/ulp_histogram.h"
#include "tests/support/reference.h"

namespace etalon::cli {
namespace {

constexpr double kU = 0x1p-24;                 // one rounding, relative to the result
constexpr double kExp = 2.0 * kU;              // exp and log: below one unit in the last place
constexpr double kTiny = 0x1p-150;             // one rounding to a subnormal number
constexpr double kWeightLost = 86.0;           // exp gives 0 from 87.3 on
constexpr int64_t kChunkKeys = 128;            // keys of one chain
constexpr int64_t kBlockChunks = 4;            // chunks that are folded before blocks are
constexpr double kMergeRoundings = 2.0;        // a sum, and a product and an fma above it
constexpr double kBoundSlack = 1.0 + 0x1p-40;  // the bounds themselves are computed in f64

// (1 + u)^n - 1 at most.
double Gamma(double n) { return n * kU / (1.0 - n * kU); }

double Largest(const std::vector<DoubleDouble>& values, size_t first) {
  double largest = 0.0;
  for (size_t i = first; i < values.size(); ++i) largest = std::max(largest, std::fabs(values[i].hi));
  return largest;
}

// A weight exp(s - M) as chunks, folds and merges compute it: how far it can be from the exact one, which is `weight`.
// `shift` is |s - M| and more: on its way up to M a score passes other maxima, whose differences add up to it. `steps`
// is how many exp it may pass, `roundings` how many other operations; `score` bounds the error of s.
double WeightError(DoubleDouble weight, double s_minus_max, double shift, double steps, double roundings,
                   double score) {
  const double exponent = score + kU * shift + steps * kExp + Gamma(roundings);
  // Of huge scores the weight is 0 and the factor infinite.
  const double error = exponent < 1.0 ? weight.hi * std::expm1(exponent) : std::exp(s_minus_max + exponent);
  return shift < kWeightLost ? error : std::max(error, weight.hi);
}

// Errors of weights that leave nothing of their sum.
bool AllMayBeLost(double denominator) { return !(denominator < 0.5); }

// What any mean with weights that are not negative is off by: it and the exact one lie among values up to `largest`.
double MeanError(double largest, double roundings) { return 2.0 * largest * (1.0 + 2.0 * Gamma(roundings)); }

// sum w x / sum w from weights with errors, if the exact value is `value`: numerator is sum |x| error and denominator
// is sum error, both over sum w. `mean_error` is what holds anyway.
double QuotientError(double value, double numerator, double denominator, double mean_error) {
  if (AllMayBeLost(denominator)) return mean_error;
  return (numerator + std::fabs(value) * denominator) / (1.0 - denominator);
}

double RoundedBound(double value, double error) {
  return (error + kU * (std::fabs(value) + error) + kTiny) * kBoundSlack;
}

}  // namespace

void Truth::Append(const Truth& rows) {
  value.insert(value.end(), rows.value.begin(), rows.value.end());
  bound.insert(bound.end(), rows.bound.begin(), rows.bound.end());
  largest.insert(largest.end(), rows.largest.begin(), rows.largest.end());
}

Truth TrueScores(const test::AttentionCase& c) {
  const std::vector<double> q = test::TrueValues(c.q), k = test::TrueValues(c.sources[0].k);
  const double scale = static_cast<double>(c.scale);
  const double dim = static_cast<double>(c.head_dim);
  Truth truth;
  for (int64_t r = 0; r < c.rows; ++r) {
    const size_t row_start = truth.value.size();
    for (int64_t t = 0; t < c.sources[0].num_keys; ++t) {
      DoubleDouble sum;
      double size = 0.0, key_size = 0.0;
      for (int64_t i = 0; i < c.head_dim; ++i) {
        const double key = k[static_cast<size_t>(t * c.head_dim + i)];
        const double product = q[static_cast<size_t>(r * c.head_dim + i)] * key;  // exact: of two f32
        const DoubleDouble step = TwoSum(sum.hi, product);
        sum = {step.hi, sum.lo + step.lo};
        size += std::fabs(product);
        key_size += std::fabs(key);
      }
      truth.value.push_back(QuickTwoSum(sum.hi, sum.lo) * scale);
      // q * scale is rounded, then each step of the chain is; either may be subnormal, and q * scale as large as what
      // it is off by.
      const double underflow = kTiny * (dim + key_size) * (1.0 + Gamma(dim));
      truth.bound.push_back((Gamma(dim + 1.0) * std::fabs(scale) * size + underflow) * kBoundSlack);
    }
    truth.largest.push_back(Largest(truth.value, row_start));
  }
  return truth;
}

TrueRow TrueAttention(const Truth& scores, int64_t row, const std::vector<double>& values, int64_t value_dim,
                      KeyRange keys, bool divided) {
  const size_t dim = static_cast<size_t>(value_dim);
  const size_t start = static_cast<size_t>(row) * scores.row_size();
  const auto score = [&](int64_t t) { return scores.value[start + static_cast<size_t>(t)]; };
  DoubleDouble max = score(keys.first);
  double score_error = 0.0;  // the largest: that of the maximum, whichever key it is of
  for (int64_t t = keys.first; t < keys.last; ++t) {
    max = max < score(t) ? score(t) : max;
    score_error = std::max(score_error, scores.bound[start + static_cast<size_t>(t)]);
  }
  const double num_keys = static_cast<double>(keys.last - keys.first);
  const int64_t chunks = (keys.last - 1) / kChunkKeys - keys.first / kChunkKeys + 1;
  const int64_t blocks = (keys.last - 1) / (kBlockChunks * kChunkKeys) - keys.first / (kBlockChunks * kChunkKeys) + 1;
  const double folds = static_cast<double>(std::min(chunks, kBlockChunks) - 1 + blocks - 1);
  const double roundings = std::min(num_keys, static_cast<double>(kChunkKeys)) + 2.0 * folds;

  DoubleDouble sum;
  double sum_error = 0.0;
  std::vector<DoubleDouble> out(dim);
  std::vector<double> out_error(dim, 0.0), largest(dim, 0.0);
  for (int64_t t = keys.first; t < keys.last; ++t) {
    const DoubleDouble weight = Exp(score(t) - max);
    const double own_error = scores.bound[start + static_cast<size_t>(t)];
    const double shift = (max.hi - score(t).hi) + own_error + score_error;
    const double error = WeightError(weight, (score(t) - max).hi, shift, 1.0 + folds, roundings, own_error);
    sum = sum + weight;
    sum_error += error;
    for (size_t i = 0; i < dim; ++i) {
      const double value = values[static_cast<size_t>(t) * dim + i];
      out[i] = out[i] + weight * value;
      out_error[i] += error * std::fabs(value);
      largest[i] = std::max(largest[i], std::fabs(value));
    }
  }
  TrueRow result;
  const double underflow = (num_keys + 2.0 * folds) * kTiny;  // of sums whose largest weight is 1
  const double denominator = (sum_error + underflow) / sum.hi;
  for (size_t i = 0; i < dim; ++i) {
    const DoubleDouble exact = out[i] / sum;
    // What underflows is divided by the sum that was computed, of which no more is known than that it is 1 or more.
    const double error =
        QuotientError(exact.hi, out_error[i] / sum.hi, denominator, MeanError(largest[i], roundings)) + underflow;
    result.out.value.push_back(exact);
    result.out.bound.push_back(divided ? RoundedBound(exact.hi, error) : error * kBoundSlack);
  }
  result.out.largest = {Largest(result.out.value, 0)};
  // m + log(l). Where the two cancel, the sum has no digits of its own.
  const DoubleDouble log_sum = Log(sum);
  const DoubleDouble lse = max + log_sum;
  // If all weights may be lost, m is as near to M as scores are, and l is from 1 to the number of keys.
  const double of_sum = AllMayBeLost(denominator) ? score_error + std::log(num_keys) + 2.0 * Gamma(roundings)
                                                  : denominator / (1.0 - denominator);
  result.lse.value = {lse};
  result.lse.bound = {RoundedBound(lse.hi, of_sum + kExp * (std::fabs(log_sum.hi) + of_sum))};
  result.lse.largest = {std::max(std::fabs(max.hi), std::fabs(log_sum.hi))};
  return result;
}

Truth TrueSoftmax(const test::SoftmaxCase& c) {
  Truth truth;
  // Sixteen sums of eight in a chunk, a tree over them, and the chunks one after the other.
  const double adds = 7.0 + 4.0 + std::ceil(static_cast<double>(c.num_keys) / static_cast<double>(kChunkKeys));
  for (int64_t r = 0; r < c.rows; ++r) {
    const float* s = c.s.data() + r * c.num_keys;
    const double max = static_cast<double>(*std::max_element(s, s + c.num_keys));
    std::vector<DoubleDouble> weights;
    std::vector<double> errors;
    DoubleDouble sum;
    double sum_error = 0.0;
    for (int64_t j = 0; j < c.num_keys; ++j) {
      const double shift = max - static_cast<double>(s[j]);
      weights.push_back(Exp(TwoSum(static_cast<double>(s[j]), -max)));
      errors.push_back(WeightError(weights.back(), -shift, shift, 1.0, adds, 0.0));
      sum = sum + weights.back();
      sum_error += errors.back();
    }
    const size_t row_start = truth.value.size();
    for (int64_t j = 0; j < c.num_keys; ++j) {
      const DoubleDouble w = weights[static_cast<size_t>(j)] / sum;
      const double own_error = errors[static_cast<size_t>(j)] / sum.hi;
      // 1 / l is rounded, and so is the product.
      const double before = QuotientError(w.hi, own_error, sum_error / sum.hi, MeanError(1.0, adds));
      truth.value.push_back(w);
      truth.bound.push_back(RoundedBound(w.hi, before + kU * (w.hi + before)));
    }
    truth.largest.push_back(Largest(truth.value, row_start));
  }
  return truth;
}

Truth TrueWeightedSum(const test::WeightedSumCase& c) {
  const std::vector<double> v = test::TrueValues(c.v);
  const size_t dim = static_cast<size_t>(c.value_dim);
  const double chunks = std::ceil(static_cast<double>(c.num_keys) / static_cast<double>(kChunkKeys));
  const double roundings = std::min(static_cast<double>(c.num_keys), static_cast<double>(kChunkKeys)) + chunks;
  Truth truth;
  for (int64_t r = 0; r < c.rows; ++r) {
    std::vector<DoubleDouble> sum(dim);
    std::vector<double> size(dim, 0.0);
    for (size_t j = 0; j < static_cast<size_t>(c.num_keys); ++j) {
      const double weight = static_cast<double>(c.w[static_cast<size_t>(r * c.num_keys) + j]);
      for (size_t i = 0; i < dim; ++i) {
        const double product = weight * v[j * dim + i];  // exact: of two f32
        const DoubleDouble step = TwoSum(sum[i].hi, product);
        sum[i] = {step.hi, sum[i].lo + step.lo};
        size[i] += std::fabs(product);
      }
    }
    const size_t row_start = truth.value.size();
    for (size_t i = 0; i < dim; ++i) {
      truth.value.push_back(QuickTwoSum(sum[i].hi, sum[i].lo));
      const double underflow = kTiny * (static_cast<double>(c.num_keys) + chunks);
      truth.bound.push_back((Gamma(roundings) * size[i] + underflow) * kBoundSlack);
    }
    truth.largest.push_back(Largest(truth.value, row_start));
  }
  return truth;
}

Truth TrueMerge(const test::MergeCase& c) {
  const std::vector<double> out1 = test::TrueValues(c.out1), out2 = test::TrueValues(c.out2);
  const size_t dim = static_cast<size_t>(c.value_dim);
  Truth truth;
  for (size_t r = 0; r < static_cast<size_t>(c.rows); ++r) {
    const double lse1 = static_cast<double>(c.lse1[r]), lse2 = static_cast<double>(c.lse2[r]);
    const double max = std::max(lse1, lse2);
    const DoubleDouble a = Exp(TwoSum(lse1, -max)), b = Exp(TwoSum(lse2, -max));
    const DoubleDouble sum = a + b;
    const double a_error = WeightError(a, lse1 - max, max - lse1, 1.0, kMergeRoundings, 0.0);
    const double b_error = WeightError(b, lse2 - max, max - lse2, 1.0, kMergeRoundings, 0.0);
    const double denominator = (a_error + b_error) / sum.hi;
    const size_t row_start = truth.value.size();
    for (size_t i = 0; i < dim; ++i) {
      const double x1 = out1[r * dim + i], x2 = out2[r * dim + i];
      const DoubleDouble exact = (a * x1 + b * x2) / sum;
      const double numerator = a_error * std::fabs(x1) + b_error * std::fabs(x2) + 2.0 * kTiny;
      const double mean_error = MeanError(std::max(std::fabs(x1), std::fabs(x2)), kMergeRoundings) + 2.0 * kTiny;
      truth.value.push_back(exact);
      truth.bound.push_back(
          RoundedBound(exact.hi, QuotientError(exact.hi, numerator / sum.hi, denominator, mean_error)));
    }
    truth.largest.push_back(Largest(truth.value, row_start));
  }
  return truth;
}

Truth TrueFunction(DoubleDouble (*function)(DoubleDouble), double max_ulp, const std::vector<float>& x) {
  Truth truth;
  for (const float one : x) {
    const DoubleDouble exact = function(static_cast<double>(one));
    truth.value.push_back(exact);
    truth.bound.push_back(max_ulp * Ulp(exact.hi));
    truth.largest.push_back(std::fabs(exact.hi));
  }
  return truth;
}

}  // namespace etalon::cli
