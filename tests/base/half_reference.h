// half_reference.h: f16 and bf16 by their definition: a code is an integer times a power of two, and narrowing picks
// the nearer of the two codes around a value. Nothing here looks at the bits of an f32, as the conversions of the
// library do.
#ifndef ETALON_TESTS_BASE_HALF_REFERENCE_H_
#define ETALON_TESTS_BASE_HALF_REFERENCE_H_

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "lib/base/types.h"

namespace etalon::test {

class HalfReference {
 public:
  explicit HalfReference(DType type)
      : type_(type),
        mantissa_bits_(type == DType::kF16 ? 10 : 7),
        bias_(type == DType::kF16 ? 15 : 127),
        infinity_(type == DType::kF16 ? 0x7C00 : 0x7F80) {
    for (int code = 0; code <= infinity_; ++code) values_.push_back(Magnitude(code));
    for (int code = 0; code < infinity_; ++code) {
      // Two neighbours add up exactly in binary64, so that comparing twice a value with the sum is exact as well.
      sums_.push_back(values_[static_cast<size_t>(code)] + values_[static_cast<size_t>(code) + 1]);
    }
  }

  DType type() const { return type_; }
  int infinity() const { return infinity_; }
  uint16_t canonical_nan() const { return type_ == DType::kF16 ? 0x7E00 : 0x7FC0; }
  bool IsNaN(uint16_t code) const { return (code & 0x7FFF) > infinity_; }

  // The value of a code that is not NaN.
  double Value(uint16_t code) const {
    const int magnitude = code & 0x7FFF;
    const double value = magnitude == infinity_ ? HUGE_VAL : values_[static_cast<size_t>(magnitude)];
    return (code & 0x8000) != 0 ? -value : value;
  }

  // Halfway between a finite code and the next; exact in f32.
  float Midpoint(int code) const { return static_cast<float>(sums_[static_cast<size_t>(code)] / 2); }

  // True if the magnitude x rounds to a code above `code`. Beyond the last finite code stands the power of two that
  // would come next: what rounds to it overflows.
  bool RoundsAbove(int code, double x) const {
    const double sum = sums_[static_cast<size_t>(code)];
    return 2 * x > sum || (2 * x == sum && code % 2 != 0);
  }

  // The code of the magnitude x >= 0, not NaN, found by search.
  int NarrowMagnitude(double x) const {
    const int above = static_cast<int>(std::upper_bound(values_.begin(), values_.end(), x) - values_.begin());
    const int below = above - 1;
    if (below >= infinity_) return infinity_;
    return RoundsAbove(below, x) ? above : below;
  }

  uint16_t Narrow(float x) const {
    if (std::isnan(x)) return canonical_nan();
    const int magnitude = NarrowMagnitude(std::fabs(static_cast<double>(x)));
    return static_cast<uint16_t>(magnitude | (std::signbit(x) ? 0x8000 : 0));
  }

 private:
  // Of the code of infinity: 2^(largest exponent + 1).
  double Magnitude(int code) const {
    const int exponent = code >> mantissa_bits_;
    const int mantissa = code & ((1 << mantissa_bits_) - 1);
    if (exponent == 0) return std::ldexp(mantissa, 1 - bias_ - mantissa_bits_);
    return std::ldexp(mantissa + (1 << mantissa_bits_), exponent - bias_ - mantissa_bits_);
  }

  DType type_;
  int mantissa_bits_;
  int bias_;
  int infinity_;
  std::vector<double> values_;
  std::vector<double> sums_;
};

}  // namespace etalon::test

#endif  // ETALON_TESTS_BASE_HALF_REFERENCE_H_
