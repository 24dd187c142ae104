#include "tests/support/reference.h"

#include <cmath>
#include <cstring>
#include <limits>

namespace etalon::test {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr double kLost = 100.0;  // exp(-100) of the largest weight: below everything that f32 can show

double Decode(uint32_t word, int exponent_bits, int mantissa_bits) {
  const uint32_t mantissa = word & ((1u << mantissa_bits) - 1u);
  const uint32_t all_ones = (1u << exponent_bits) - 1u;
  const uint32_t exponent = (word >> mantissa_bits) & all_ones;
  const double sign = (word >> (exponent_bits + mantissa_bits)) != 0 ? -1.0 : 1.0;
  const int bias = (1 << (exponent_bits - 1)) - 1;
  if (exponent == all_ones) return mantissa != 0 ? kNaN : sign * kInfinity;
  if (exponent == 0) return sign * std::ldexp(static_cast<double>(mantissa), 1 - bias - mantissa_bits);
  const double significand = static_cast<double>(mantissa + (1u << mantissa_bits));
  return sign * std::ldexp(significand, static_cast<int>(exponent) - bias - mantissa_bits);
}

bool InSpanAndMask(const std::vector<Span>& spans, const std::vector<uint8_t>& mask, int64_t row, int64_t num_keys,
                   int64_t position, int64_t index) {
  if (!spans.empty()) {
    const Span& span = spans[static_cast<size_t>(row)];
    if (position < span.first || position >= span.last) return false;
  }
  return mask.empty() || mask[static_cast<size_t>(row * num_keys + index)] != 0;
}

double DistanceInF64(int64_t a, int64_t b) { return std::fabs(static_cast<double>(a) - static_cast<double>(b)); }

// Decoded once a source: the loops below would else spend their time in Decode.
struct Decoded {
  std::vector<double> q, k, v, bias;
};

Decoded DecodeCase(const AttentionCase& c, const SourceData& source) {
  return {TrueValues(c.q), TrueValues(source.k), TrueValues(source.v), TrueValues(source.bias)};
}

struct OneScore {
  double s;
  double size;     // see TrueScores
  double largest;  // of |s| after each step
};

OneScore ScoreInF64(const AttentionCase& c, const SourceData& source, const Decoded& d, int64_t r, int64_t i) {
  if (!InSpanAndMask(source.spans, source.mask, r, source.num_keys, source.base + i, i)) return {-kInfinity, 0, 0};
  const double* q = d.q.data() + r * c.head_dim;
  const double* k = d.k.data() + i * c.head_dim;
  const double scale = static_cast<double>(c.scale);
  double s = 0, size = 0;
  for (int64_t j = 0; j < c.head_dim; ++j) {
    const double term = q[j] * scale * k[j];
    s += term;
    size += std::fabs(term);
  }
  if (c.softcap > 0) s = static_cast<double>(c.softcap) * std::tanh(s / static_cast<double>(c.softcap));
  double largest = std::fabs(s);
  if (!c.slopes.empty()) {
    const int64_t q_pos = (c.q_pos.empty() ? 0 : c.q_pos[static_cast<size_t>(r)]) + source.q_shift;
    const double term = static_cast<double>(c.slopes[static_cast<size_t>(r)]) * DistanceInF64(q_pos, source.base + i);
    s -= term;
    size += std::fabs(term);
    largest = std::fmax(largest, std::fabs(s));
  }
  if (!d.bias.empty()) {
    const double bias = d.bias[static_cast<size_t>(r * source.num_keys + i)];
    if (bias == -kInfinity) return {-kInfinity, 0, 0};
    s += bias;
    size += std::fabs(bias);
    largest = std::fmax(largest, std::fabs(s));
  }
  return {s, size, largest};
}

}  // namespace

double TrueValue(DType type, uint32_t word) {
  switch (type) {
    case DType::kF16:
      return Decode(word, 5, 10);
    case DType::kBF16:
      return Decode(word, 8, 7);
    default:
      return Decode(word, 8, 23);
  }
}

std::vector<double> TrueValues(const Array& array) {
  std::vector<double> values(static_cast<size_t>(array.size()));
  for (int64_t i = 0; i < array.size(); ++i) values[static_cast<size_t>(i)] = TrueValue(array.type(), array.Word(i));
  return values;
}

std::vector<double> TrueValues(const std::vector<float>& values) { return {values.begin(), values.end()}; }

TrueScores ScoresInF64(const AttentionCase& c, size_t source_index) {
  const SourceData& source = c.sources[source_index];
  const Decoded d = DecodeCase(c, source);
  TrueScores result;
  for (int64_t r = 0; r < c.rows; ++r) {
    for (int64_t i = 0; i < source.num_keys; ++i) {
      const OneScore score = ScoreInF64(c, source, d, r, i);
      result.s.push_back(score.s);
      result.size.push_back(score.size);
    }
  }
  return result;
}

TrueAttention AttentionInF64(const AttentionCase& c) {
  std::vector<Decoded> decoded;
  for (const SourceData& source : c.sources) decoded.push_back(DecodeCase(c, source));
  TrueAttention result;
  for (int64_t r = 0; r < c.rows; ++r) {
    struct Seen {
      OneScore score;
      const double* v;
    };
    std::vector<Seen> seen;
    double max = -kInfinity;
    for (size_t n = 0; n < c.sources.size(); ++n) {
      for (int64_t i = 0; i < c.sources[n].num_keys; ++i) {
        const OneScore score = ScoreInF64(c, c.sources[n], decoded[n], r, i);
        if (score.s == -kInfinity) continue;
        seen.push_back({score, decoded[n].v.data() + i * c.value_dim});
        max = std::fmax(max, score.s);
      }
    }
    const double sink = c.sinks.empty() ? -kInfinity : static_cast<double>(c.sinks[static_cast<size_t>(r)]);
    max = std::fmax(max, sink);
    double l = sink == -kInfinity ? 0.0 : std::exp(sink - max);
    double max_score = sink == -kInfinity ? 0.0 : std::fabs(sink), max_value = 0;
    std::vector<double> o(static_cast<size_t>(c.value_dim));
    for (const Seen& key : seen) {
      const double p = std::exp(key.score.s - max);
      l += p;
      for (int64_t j = 0; j < c.value_dim; ++j) o[static_cast<size_t>(j)] += p * key.v[j];
      if (key.score.s < max - kLost) continue;
      max_score = std::fmax(max_score, key.score.largest);
      for (int64_t j = 0; j < c.value_dim; ++j) max_value = std::fmax(max_value, std::fabs(key.v[j]));
    }
    const bool empty = seen.empty() && sink == -kInfinity;
    for (double x : o) result.out.push_back(empty ? 0.0 : x / l);
    result.lse.push_back(empty ? -kInfinity : max + std::log(l));
    result.max_score.push_back(max_score);
    result.max_value.push_back(max_value);
  }
  return result;
}

TrueSoftmax SoftmaxInF64(const SoftmaxCase& c) {
  TrueSoftmax result;
  for (int64_t r = 0; r < c.rows; ++r) {
    const auto visible = [&](int64_t j) {
      return InSpanAndMask(c.spans, c.mask, r, c.num_keys, j, j) &&
             static_cast<double>(c.s[static_cast<size_t>(r * c.num_keys + j)]) != -kInfinity;
    };
    double max = -kInfinity, l = 0;
    bool any = false;
    for (int64_t j = 0; j < c.num_keys; ++j) {
      if (!visible(j)) continue;
      any = true;
      max = std::fmax(max, static_cast<double>(c.s[static_cast<size_t>(r * c.num_keys + j)]));
    }
    const auto p = [&](int64_t j) {
      return std::exp(static_cast<double>(c.s[static_cast<size_t>(r * c.num_keys + j)]) - max);
    };
    for (int64_t j = 0; j < c.num_keys; ++j) l += visible(j) ? p(j) : 0.0;
    for (int64_t j = 0; j < c.num_keys; ++j) result.w.push_back(visible(j) ? p(j) / l : 0.0);
    result.lse.push_back(any ? max + std::log(l) : -kInfinity);
  }
  return result;
}

TrueSum WeightedSumInF64(const WeightedSumCase& c) {
  const std::vector<double> v = TrueValues(c.v);
  TrueSum result;
  for (int64_t r = 0; r < c.rows; ++r) {
    for (int64_t i = 0; i < c.value_dim; ++i) {
      double sum = 0, size = 0;
      for (int64_t j = 0; j < c.num_keys; ++j) {
        if (!InSpanAndMask(c.spans, c.mask, r, c.num_keys, j, j)) continue;
        const double term = static_cast<double>(c.w[static_cast<size_t>(r * c.num_keys + j)]) *
                            v[static_cast<size_t>(j * c.value_dim + i)];
        sum += term;
        size += std::fabs(term);
      }
      result.out.push_back(sum);
      result.size.push_back(size);
    }
  }
  return result;
}

TrueAttention MergeInF64(const MergeCase& c) {
  const std::vector<double> out1 = TrueValues(c.out1), out2 = TrueValues(c.out2);
  TrueAttention result;
  for (int64_t r = 0; r < c.rows; ++r) {
    const double lse1 = static_cast<double>(c.lse1[static_cast<size_t>(r)]);
    const double lse2 = static_cast<double>(c.lse2[static_cast<size_t>(r)]);
    const double max = std::fmax(lse1, lse2);
    const bool empty = lse1 == -kInfinity && lse2 == -kInfinity;
    const double a = lse1 == -kInfinity ? 0.0 : std::exp(lse1 - max),
                 b = lse2 == -kInfinity ? 0.0 : std::exp(lse2 - max);
    double max_value = 0;
    for (int64_t j = 0; j < c.value_dim; ++j) {
      const size_t at = static_cast<size_t>(r * c.value_dim + j);
      // An empty side may hold anything.
      const double x = (lse1 == -kInfinity ? 0.0 : a * out1[at]) + (lse2 == -kInfinity ? 0.0 : b * out2[at]);
      result.out.push_back(empty ? 0.0 : x / (a + b));
      if (a > 0) max_value = std::fmax(max_value, std::fabs(out1[at]));
      if (b > 0) max_value = std::fmax(max_value, std::fabs(out2[at]));
    }
    result.lse.push_back(empty ? -kInfinity : max + std::log(a + b));
    result.max_score.push_back(0.0);
    result.max_value.push_back(max_value);
  }
  return result;
}

}  // namespace etalon::test
