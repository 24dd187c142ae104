#include "cli/reference.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "cli/widen.h"

namespace etalon::cli {
namespace {

// Mean square of the relative error of one rounding to f32, for mantissas that are uniform in their logarithm:
// (2^-23)^2 / 12 times the mean of 1/m^2 over 1 <= m < 2, which is 3/8 / ln 2.
constexpr double kRounding = 0x1p-46 / 12.0 * 0.541;
// Mean square of rounding to a subnormal number, whose steps are all the same.
constexpr double kSubnormalRounding = 0x1p-298 / 12.0;
// The same for f16, whose steps are 2^13 times as wide, and the mean square of rounding to its subnormal numbers.
constexpr double kRoundingF16 = 0x1p26 * kRounding;
constexpr double kSubnormalRoundingF16 = 0x1p-48 / 12.0;
constexpr double kLargestF16 = 65504.0;
constexpr int64_t kChunkKeys = 128;  // one chain of sums each

// Heads of all sequences are counted in one row.
std::vector<double> HeadAsDoubles(const Array& array, int64_t head) {
  const std::vector<float> values = WidenedHead(array, head);
  return {values.begin(), values.end()};
}

// One row of exact attention, and the variance of each output channel under independent roundings of the library's
// steps.
struct ExactRow {
  std::vector<double> out;
  std::vector<double> variance;
};

// Of a chain of sums, each rounded. Where the same number is added again and again the sums are off by the same again
// and again, too: such errors add up, others only their squares.
class ChainError {
 public:
  // `roundings` of the new sum.
  void Add(double addend, double sum, double roundings) {
    if (static_cast<float>(addend) != last_) EndRun();
    last_ = static_cast<float>(addend);
    run_ += std::sqrt(roundings * kRounding) * std::fabs(sum);
  }

  double Variance() {
    EndRun();
    return variance_;
  }

 private:
  void EndRun() {
    variance_ += run_ * run_;
    run_ = 0.0;
  }

  double variance_ = 0.0;
  double run_ = 0.0;
  float last_ = std::numeric_limits<float>::quiet_NaN();  // no number is equal to it
};

struct WeighedKey {
  int64_t chunk;
  double score;
  double variance;  // of the score, absolute
  const double* value;
};

// The slopes that models are trained with, from their definition: 2^(-8 h / n) for n = 2^m heads, h = 1 ... n; of more
// heads than such an n, the others are every other slope of 2n heads.
double StandardSlope(int64_t heads, int64_t head) {
  int64_t n = 1;
  while (2 * n <= heads) n *= 2;
  const double power = head < n ? static_cast<double>(head + 1) / static_cast<double>(n)
                                : static_cast<double>(2 * (head - n) + 1) / static_cast<double>(2 * n);
  return static_cast<double>(static_cast<float>(std::exp2(-8.0 * power)));
}

// A score and the variance of it, from step to step.
struct Score {
  double s;
  double variance;

  void Round() { variance += kRounding * s * s; }

  void Cap(double cap) {
    s /= cap;
    variance /= cap * cap;
    Round();
    s = std::tanh(s);
    const double slope = 1.0 - s * s;
    variance = slope == 0.0 ? 0.0 : variance * slope * slope;  // of an infinite score, too
    for (int i = 0; i < 3; ++i) Round();                       // of a sum, a difference and a quotient
    s *= cap;
    variance *= cap * cap;
    Round();
  }

  void Add(double x) {
    s += x;
    Round();
  }
};

// What the library does to the dot product of the row and a key. q and k are those of the head.
Score ScoreOf(const Problem& p, const double* q, const double* k) {
  Score score = {0.0, 0.0};
  for (int64_t c = 0; c < p.q.dim; ++c) {
    const double term = q[c] * static_cast<double>(p.scale) * k[c];
    score.s += term;
    score.variance += kRounding * (score.s * score.s + term * term);  // the chain's rounding, and that of q * scale
  }
  if (p.options.softcap > 0.0f) score.Cap(static_cast<double>(p.options.softcap));
  return score;
}

// Values of the head's, and a zero for the sink.
std::vector<WeighedKey> VisibleScores(const Problem& p, int64_t head, const double* q, const std::vector<double>& k,
                                      const std::vector<double>& v, const std::vector<double>& zeros, int64_t row) {
  const ScoreOptions& options = p.options;
  const int64_t batch = head / p.q.heads, q_head = head % p.q.heads;
  const RowOptions row_options(p, batch, q_head, row);
  double slope = 0.0;
  if (options.alibi) {
    slope = IsGiven(options.slopes) ? static_cast<double>(HeadValue(options.slopes, batch, q_head))
                                    : StandardSlope(p.q.heads, q_head);
  }
  std::vector<WeighedKey> keys;
  const KeySpan seen = VisibleKeys(p.mask, row, p.k.len);
  for (int64_t t = seen.first; t < seen.last; ++t) {
    if (!row_options.Shows(t)) continue;
    Score score = ScoreOf(p, q, k.data() + t * p.k.dim);
    if (options.alibi) score.Add(-slope * std::fabs(static_cast<double>(t - (row + p.mask.q_offset))));
    if (IsGiven(options.bias)) score.Add(static_cast<double>(row_options.Bias(t)));
    if (std::isinf(score.s) && score.s < 0.0) continue;  // from q or k: not visible either
    keys.push_back({t / kChunkKeys, score.s, score.variance, v.data() + t * p.v.dim});
  }
  // A sink takes weight and has no value. A row that sees no key has no use for it.
  if (keys.empty() || !IsGiven(options.sinks)) return keys;
  const double sink = static_cast<double>(HeadValue(options.sinks, batch, q_head));
  if (sink != -std::numeric_limits<double>::infinity()) {
    keys.push_back({keys.back().chunk + 1, sink, 0.0, zeros.data()});
  }
  return keys;
}

ExactRow Exact(const Problem& p, int64_t head, const double* q, const std::vector<double>& k,
               const std::vector<double>& v, int64_t row) {
  const size_t dim = static_cast<size_t>(p.v.dim);
  ExactRow exact = {std::vector<double>(dim, 0.0), std::vector<double>(dim, 0.0)};
  const std::vector<double> zeros(dim, 0.0);
  std::vector<WeighedKey> keys = VisibleScores(p, head, q, k, v, zeros, row);
  if (keys.empty()) return exact;
  double max = -std::numeric_limits<double>::infinity();
  for (const WeighedKey& key : keys) max = std::isnan(key.score) || key.score > max ? key.score : max;

  // Chains run inside chunks and then over chunks; each partial sum is rounded once.
  double total = 0.0;
  double total_variance = 0.0;
  ChainError chunk_error, total_error;
  std::vector<double> chunk_sum(dim, 0.0);
  std::vector<double> sum_variance(dim, 0.0);
  double chunk_total = 0.0;
  for (size_t j = 0; j < keys.size(); ++j) {
    const double weight = keys[j].score = std::exp(keys[j].score - max);
    chunk_total += weight;
    chunk_error.Add(weight, chunk_total, 1.0);
    for (size_t c = 0; c < dim; ++c) {
      chunk_sum[c] += weight * keys[j].value[c];
      sum_variance[c] += kRounding * chunk_sum[c] * chunk_sum[c];
    }
    if (j + 1 < keys.size() && keys[j + 1].chunk == keys[j].chunk) continue;
    total += chunk_total;
    total_error.Add(chunk_total, total, 2.0);
    total_variance += chunk_error.Variance();
    chunk_error = ChainError();
    chunk_total = 0.0;
    for (size_t c = 0; c < dim; ++c) {
      exact.out[c] += chunk_sum[c];
      sum_variance[c] += 2.0 * kRounding * exact.out[c] * exact.out[c];
      chunk_sum[c] = 0.0;
    }
  }
  total_variance += total_error.Variance();
  for (double& x : exact.out) x /= total;

  // A weight that is off by a relative error e moves the output by e * weight * (value - output) / total. Subtracting
  // the maximum rounds too, and so does exp.
  for (const WeighedKey& key : keys) {
    const double weight = key.score / total;
    const double shifted = std::log(std::max(key.score, 1e-38));
    const double relative_variance = key.variance + kRounding * (shifted * shifted + 1.0);
    for (size_t c = 0; c < dim; ++c) {
      const double lever = weight * (key.value[c] - exact.out[c]);
      exact.variance[c] += relative_variance * lever * lever;
    }
  }
  // Each key's step of a chain, those over the chunks, and the division may end at a subnormal number.
  const double subnormal = kSubnormalRounding * (3.0 * static_cast<double>(keys.size()) + 1.0);
  for (size_t c = 0; c < dim; ++c) {
    exact.variance[c] += subnormal;
    const double square = exact.out[c] * exact.out[c];
    exact.variance[c] += (sum_variance[c] + total_variance * square) / (total * total) + kRounding * square;
  }
  return exact;
}

// head_of(head) gives out [q len, value dim] of a head.
template <typename HeadOf>
Accuracy CompareHeads(const Problem& p, const HeadOf& head_of, ElementKind out_type, const std::vector<int64_t>& rows,
                      const std::vector<int64_t>& heads) {
  Accuracy accuracy;
  accuracy.heads = static_cast<int64_t>(heads.size());
  accuracy.rows = static_cast<int64_t>(rows.size());
  double error_squares = 0.0;
  double exact_squares = 0.0;
  double variance = 0.0;
  const int64_t group = p.q.heads / p.k.heads;
  std::vector<double> k;
  std::vector<double> v;
  int64_t kv_head = -1;
  for (const int64_t head : heads) {
    if (head / group != kv_head) {
      kv_head = head / group;
      k = HeadAsDoubles(p.k, kv_head);
      v = HeadAsDoubles(p.v, kv_head);
    }
    const std::vector<double> q = HeadAsDoubles(p.q, head);
    const std::vector<double> out = head_of(head);
    for (const int64_t row : rows) {
      const ExactRow exact = Exact(p, head, q.data() + row * p.q.dim, k, v, row);
      const double* mine = out.data() + row * p.v.dim;
      for (size_t c = 0; c < exact.out.size(); ++c) {
        const double truth = exact.out[c];
        const double got = mine[c];
        if (out_type == ElementKind::kF16 && std::isfinite(truth) && std::fabs(truth) > kLargestF16 &&
            std::isinf(got) && std::signbit(got) == std::signbit(truth)) {
          ++accuracy.beyond_f16;
          continue;
        }
        if (std::isfinite(truth) != std::isfinite(got)) ++accuracy.not_finite;
        if (!std::isfinite(truth) || !std::isfinite(got)) continue;
        accuracy.max_abs = std::max(accuracy.max_abs, std::fabs(got - truth));
        error_squares += (got - truth) * (got - truth);
        exact_squares += truth * truth;
        variance += exact.variance[c];
        if (out_type == ElementKind::kF16) variance += kRoundingF16 * truth * truth + kSubnormalRoundingF16;
      }
    }
  }
  if (exact_squares > 0.0) {
    accuracy.relative_rms = std::sqrt(error_squares / exact_squares);
    accuracy.predicted_relative_rms = std::sqrt(variance / exact_squares);
  }
  // Where nothing had to be rounded there must be no error at all; a subnormal step is the least that can be asked.
  accuracy.ok = accuracy.not_finite == 0 &&
                (accuracy.relative_rms <= kAllowed * accuracy.predicted_relative_rms || accuracy.max_abs <= 0x1p-149);
  return accuracy;
}

}  // namespace

std::vector<int64_t> SpreadRows(int64_t len, int64_t count) {
  std::vector<int64_t> rows;
  count = std::min(len, count);
  for (int64_t i = 0; i < count; ++i) rows.push_back(count == 1 ? 0 : i * (len - 1) / (count - 1));
  return rows;
}

Accuracy Compare(const Problem& p, const std::vector<float>& out, const std::vector<int64_t>& rows) {
  const int64_t heads = p.q.batch * p.q.heads;
  const int64_t count = p.q.len * p.v.dim;
  const auto head_of = [&](int64_t head) {
    return std::vector<double>(out.begin() + head * count, out.begin() + (head + 1) * count);
  };
  return CompareHeads(p, head_of, ElementKind::kF32, rows, SpreadRows(heads, heads));
}

Accuracy Compare(const Problem& p, const Array& out, const std::vector<int64_t>& rows,
                 const std::vector<int64_t>& heads) {
  return CompareHeads(p, [&](int64_t head) { return HeadAsDoubles(out, head); }, out.type, rows, heads);
}

}  // namespace etalon::cli
