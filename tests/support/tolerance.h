// tolerance.h: how far a result may be from the f64 truth, as formulas in size and type, and reports that print the
// achieved error beside the allowed one.
#ifndef ETALON_TESTS_SUPPORT_TOLERANCE_H_
#define ETALON_TESTS_SUPPORT_TOLERANCE_H_

#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

#include "tests/support/kernel_case.h"
#include "tests/support/reference.h"

namespace etalon::test {

constexpr double kUnitRoundoff = 0x1p-24;  // of f32

// Half the distance between neighbours of x in an output type; the one of f32 is part of the formulas below.
inline double HalfUlp(DType type, double x) {
  if (type == DType::kF32 || x == 0 || !std::isfinite(x)) return 0.0;
  const int digits = type == DType::kF16 ? 11 : 8;
  const int smallest = type == DType::kF16 ? -24 : -133;
  const int exponent = std::ilogb(x) - digits + 1;
  return std::ldexp(0.5, exponent > smallest ? exponent : smallest);
}

// The field cases' default: a score of size s is known to about s * 2^-24 * a few, which moves a weight by that much
// relatively and the output by as much of the values' size.
inline double OutTolerance(double max_score, double max_value, DType type, double exact) {
  return (1.0 + max_score) * 1e-6 * max_value + HalfUlp(type, exact) + 0x1p-110;  // weights below e^-87.3 are 0
}
inline double LseTolerance(double exact) { return std::fmax(1e-5, 1e-6 * std::fabs(exact)); }
constexpr double kWeightTolerance = 1e-6;

// A chain of head_dim fused steps over terms whose absolute values add up to `size`, the rounding of q * scale, and one
// rounding for each option: the textbook bound, which no input can break.
inline double ScoreTolerance(int64_t head_dim, double size, double exact, bool softcap) {
  const double steps = static_cast<double>(head_dim) + 6.0;
  // tanh is known to 2 ulp, which are at most 4 units of roundoff.
  return steps * kUnitRoundoff * size + (softcap ? 8 * kUnitRoundoff * std::fabs(exact) : 0.0) + 0x1p-140 * steps;
}

// A chunk is a chain of 128, and the chunk sums are another chain.
inline double SumTolerance(int64_t num_keys, double size, DType type, double exact) {
  const double steps = 128.0 + static_cast<double>(num_keys) / 128.0 + 1.0;
  return steps * kUnitRoundoff * size + HalfUlp(type, exact) + 0x1p-140;
}

// Empty if every got[i] is within allowed(i) of exact[i], else the worst element. NaN must be NaN, infinities must be
// equal.
template <typename Allowed>
std::string ErrorReport(const std::vector<double>& got, const std::vector<double>& exact, Allowed allowed) {
  if (got.size() != exact.size()) return "sizes differ";
  double worst = 1.0;
  std::string report;
  for (size_t i = 0; i < got.size(); ++i) {
    double ratio;
    if (std::isnan(exact[i]) || std::isnan(got[i]) || std::isinf(exact[i]) || std::isinf(got[i])) {
      const bool same = (std::isnan(exact[i]) && std::isnan(got[i])) || exact[i] == got[i];
      ratio = same ? 0.0 : HUGE_VAL;
    } else {
      const double error = std::fabs(got[i] - exact[i]);
      ratio = error <= allowed(i) ? 0.0 : error / allowed(i);
    }
    if (ratio <= worst) continue;
    worst = ratio;
    char line[200];
    std::snprintf(line, sizeof line, "element %zu: got %.9g, exact %.9g, error %.3g, allowed %.3g", i, got[i], exact[i],
                  std::fabs(got[i] - exact[i]), allowed(i));
    report = line;
  }
  return report;
}

inline std::string OutReport(const AttentionResult& got, const TrueAttention& exact) {
  const size_t value_dim = exact.out.size() / exact.lse.size();
  return ErrorReport(TrueValues(got.out), exact.out, [&](size_t i) {
    const size_t r = i / value_dim;
    return OutTolerance(exact.max_score[r], exact.max_value[r], got.out.type(), exact.out[i]);
  });
}

inline std::string LseReport(const std::vector<float>& got, const std::vector<double>& exact) {
  return ErrorReport(TrueValues(got), exact, [&](size_t i) { return LseTolerance(exact[i]); });
}

// Against expected values that a field case states.
inline std::string NearReport(const std::vector<double>& got, const std::vector<double>& expected, double allowed) {
  return ErrorReport(got, expected, [&](size_t) { return allowed; });
}

}  // namespace etalon::test

#endif  // ETALON_TESTS_SUPPORT_TOLERANCE_H_
