// double_double.h: numbers of about 106 bits as the sum of two f64, for the truth that kernels are measured against. An
// f64 reference is itself off by its own roundings times the length of a sum and the size of a logit. Here each
// operation and function is off by less than 1e-29 of its exact result (a logarithm near 0: by less than 1e-29). Only
// +, -, * and / of f64 are used, no function of the C library whose last bits differ between machines: what is measured
// is the same everywhere.
#ifndef ETALON_CLI_CHECK_DOUBLE_DOUBLE_H_
#define ETALON_CLI_CHECK_DOUBLE_DOUBLE_H_

#include <cfloat>

// Every line below is an identity that such a compiler would simplify to nothing.
#if defined(__FAST_MATH__) || (defined(FLT_EVAL_METHOD) && FLT_EVAL_METHOD != 0)
#error "double_double.h needs IEEE 754 binary64, rounded after each operation: see cmake/EtalonFlags.cmake"
#endif

namespace etalon::cli {

// hi + lo, hi being the sum rounded to f64. Finite numbers only; no exponent near the ends of f64's range.
struct DoubleDouble {
  double hi = 0.0;
  double lo = 0.0;

  constexpr DoubleDouble() = default;
  constexpr DoubleDouble(double high, double low = 0.0) : hi(high), lo(low) {}  // not explicit: an f64 is one
};

// a + b exactly (Knuth, "The Art of Computer Programming", volume 2, 4.2.2).
inline DoubleDouble TwoSum(double a, double b) {
  const double sum = a + b;
  const double b_part = sum - a;
  return {sum, (a - (sum - b_part)) + (b - b_part)};
}

// The same where |a| >= |b| or a is 0 (Dekker, "A floating-point technique for extending the available precision",
// 1971).
inline DoubleDouble QuickTwoSum(double a, double b) {
  const double sum = a + b;
  return {sum, b - (sum - a)};
}

// a * b exactly, by halves of the two factors (Veltkamp, Dekker) and not by fma, which is a call into the C library
// where the target has no such instruction.
inline DoubleDouble TwoProduct(double a, double b) {
  constexpr double kSplitter = 0x1p27 + 1.0;
  const double a_large = kSplitter * a, b_large = kSplitter * b;
  const double a_high = a_large - (a_large - a), b_high = b_large - (b_large - b);
  const double a_low = a - a_high, b_low = b - b_high;
  const double product = a * b;
  return {product, ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low};
}

inline DoubleDouble operator-(DoubleDouble a) { return {-a.hi, -a.lo}; }

inline DoubleDouble operator+(DoubleDouble a, DoubleDouble b) {
  DoubleDouble high = TwoSum(a.hi, b.hi);
  const DoubleDouble low = TwoSum(a.lo, b.lo);
  high = QuickTwoSum(high.hi, high.lo + low.hi);
  return QuickTwoSum(high.hi, high.lo + low.lo);
}

inline DoubleDouble operator-(DoubleDouble a, DoubleDouble b) { return a + -b; }

inline DoubleDouble operator*(DoubleDouble a, DoubleDouble b) {
  const DoubleDouble product = TwoProduct(a.hi, b.hi);
  return QuickTwoSum(product.hi, product.lo + (a.hi * b.lo + a.lo * b.hi));
}

// Three digits of the quotient, each an f64.
inline DoubleDouble operator/(DoubleDouble a, DoubleDouble b) {
  const double first = a.hi / b.hi;
  DoubleDouble rest = a - b * first;
  const double second = rest.hi / b.hi;
  rest = rest - b * second;
  return QuickTwoSum(first, second) + rest.hi / b.hi;
}

inline bool operator<(DoubleDouble a, DoubleDouble b) { return a.hi < b.hi || (a.hi == b.hi && a.lo < b.lo); }

DoubleDouble Exp(DoubleDouble x);   // 0 below -700; x <= 700
DoubleDouble Log(DoubleDouble x);   // x > 0
DoubleDouble Tanh(DoubleDouble x);  // of any size

}  // namespace etalon::cli

#endif  // ETALON_CLI_CHECK_DOUBLE_DOUBLE_H_
