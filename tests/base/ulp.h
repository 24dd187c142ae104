// ulp.h: the error of an f32 in units of the last place of the exact value's binade.
#ifndef ETALON_TESTS_BASE_ULP_H_
#define ETALON_TESTS_BASE_ULP_H_

#include <cmath>
#include <cstdint>
#include <cstring>

namespace etalon::test {

// 2^-149 below the normal range of f32. From the exponent field, since ilogb and ldexp would cost more than the
// functions they judge.
inline double UlpAt(double exact) {
  uint64_t bits;
  std::memcpy(&bits, &exact, sizeof bits);
  uint64_t exponent = (bits >> 52) & 0x7FF;
  if (exponent < 1023 - 126) exponent = 1023 - 126;
  bits = (exponent - 23) << 52;
  double ulp;
  std::memcpy(&ulp, &bits, sizeof ulp);
  return ulp;
}

// NaN if got is NaN, which is not <= any bound.
inline double UlpError(float got, double exact) { return std::fabs(static_cast<double>(got) - exact) / UlpAt(exact); }

}  // namespace etalon::test

#endif  // ETALON_TESTS_BASE_ULP_H_
