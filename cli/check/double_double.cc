#include "cli/check/double_double.h"

#include <array>
#include <cmath>

namespace etalon::cli {
namespace {

// ln 2 in three parts. The third counts where a multiple of ln 2 nearly cancels.
constexpr double kLn2[] = {0x1.62e42fefa39efp-1, 0x1.abc9e3b39803fp-56, 0x1.7b57a079a1934p-111};

DoubleDouble TimesLn2(double n) { return TwoProduct(n, kLn2[0]) + (TwoProduct(n, kLn2[1]) + n * kLn2[2]); }

// For |x| <= ln 2 / 2 the 27th term is below 2^-130 of the first.
constexpr int kTerms = 26;

// exp(x) - 1 by its series, exact relative to itself: |x| <= ln 2 / 2.
DoubleDouble SmallExpMinusOne(DoubleDouble x) {
  static const std::array<DoubleDouble, kTerms + 1> inverse_factorials = [] {
    std::array<DoubleDouble, kTerms + 1> f;
    f[1] = 1.0;
    for (int n = 2; n <= kTerms; ++n)
      f[static_cast<size_t>(n)] = f[static_cast<size_t>(n - 1)] / static_cast<double>(n);
    return f;
  }();
  DoubleDouble p = inverse_factorials[kTerms];
  for (size_t n = kTerms - 1; n >= 1; --n) p = p * x + inverse_factorials[n];
  return p * x;
}

}  // namespace

DoubleDouble Exp(DoubleDouble x) {
  if (x.hi < -700.0) return 0.0;
  const double n = std::floor(x.hi / kLn2[0] + 0.5);
  const DoubleDouble e = SmallExpMinusOne(x - TimesLn2(n)) + 1.0;
  return {std::ldexp(e.hi, static_cast<int>(n)), std::ldexp(e.lo, static_cast<int>(n))};
}

// With x = 2^e m and s = (m - 1) / (m + 1): log(x) = e ln 2 + 2 (s + s^3 / 3 + s^5 / 5 + ...). sqrt(1/2) <= m < sqrt(2)
// makes s^2 less than .0295, of which the 23rd power is below 2^-116.
DoubleDouble Log(DoubleDouble x) {
  int e;
  double m = std::frexp(x.hi, &e);
  if (m < 0.70710678) --e;
  const DoubleDouble mantissa = {std::ldexp(x.hi, -e), std::ldexp(x.lo, -e)};
  const DoubleDouble s = (mantissa - 1.0) / (mantissa + 1.0);
  const DoubleDouble square = s * s;
  DoubleDouble p;
  for (int n = 45; n >= 1; n -= 2) p = p * square + DoubleDouble(1.0) / static_cast<double>(n);
  return TimesLn2(e) + p * s * 2.0;
}

DoubleDouble Tanh(DoubleDouble x) {
  if (x.hi < 0.0) return -Tanh(-x);
  if (x.hi > 350.0) return 1.0;  // to far more digits than there are
  // Near 0 what is left of 1 - exp(-2 x) would have no digits.
  if (x.hi < 0.15) {
    const DoubleDouble e = SmallExpMinusOne(x * 2.0);
    return e / (e + 2.0);
  }
  const DoubleDouble t = Exp(x * -2.0);
  return (DoubleDouble(1.0) - t) / (t + 1.0);
}

}  // namespace etalon::cli
