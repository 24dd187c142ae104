// arithmetic.h: the constants and scalar functions of the one arithmetic (docs/numerics.md). Each backend repeats them
// in vectors; these are the definition. Everything here has internal linkage (types.h says why).
#ifndef ETALON_LIB_BASE_ARITHMETIC_H_
#define ETALON_LIB_BASE_ARITHMETIC_H_

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "lib/base/types.h"

namespace etalon {

constexpr uint32_t kArithmeticVersion = 1;

constexpr int64_t kChunk = 128;  // keys of one chunk: one maximum, one sum, one chain per channel
constexpr int64_t kBlock = 512;  // keys of one block: four chunks folded left

static inline float Infinity() { return FromBits(0x7F800000u); }
static inline float NegativeInfinity() { return FromBits(0xFF800000u); }

// fma through binary64, for targets without the instruction. The product of two f32 is exact in f64; the sum is made
// round-to-odd with the error of TwoSum, after which narrowing to f32 rounds as if from the exact value (Boldo and
// Melquiond, "Emulation of FMA and correctly rounded sums: proved algorithms using rounding to odd", 2008).
static inline float FmaThroughF64(float a, float b, float c) {
  const double p = static_cast<double>(a) * static_cast<double>(b);
  const double addend = static_cast<double>(c);
  double s = p + addend;
  const double addend_part = s - p;
  const double error = (p - (s - addend_part)) + (addend - addend_part);
  uint64_t bits;
  std::memcpy(&bits, &s, sizeof bits);
  const bool finite = (bits & 0x7FF0000000000000u) != 0x7FF0000000000000u;
  if (error != 0 && finite && (bits & 1u) == 0) {  // an odd s already is the round-to-odd result
    bits += ((error > 0) == (s > 0)) ? 1u : ~uint64_t{0};
    std::memcpy(&s, &bits, sizeof s);
  }
  return static_cast<float>(s);
}

// a * b + c with one rounding. Never libm's fmaf: without hardware it is a slow call, and some are not exact.
// clang on x86 defines only __FMA__.
static inline float Fma(float a, float b, float c) {
#if defined(__FP_FAST_FMAF) || defined(__FMA__) || defined(__ARM_FEATURE_FMA)
  return __builtin_fmaf(a, b, c);
#else
  return FmaThroughF64(a, b, c);
#endif
}

// exp(t) for t <= 0, max .904 ulp on [-87.3f, 0]; below that +0. t > 0 occurs only in rows that are NaN anyway.
static inline float Exp(float t) {
  if (t != t) return t;
  if (t < FromBits(0xC2AE999Au)) return 0.0f;
  const float magic = FromBits(0x4B400000u);  // 1.5 * 2^23: adding it rounds to an integer that lies in the low bits
  const float z = Fma(t, FromBits(0x3FB8AA3Bu), magic);
  const uint32_t exponent = Bits(z) << 23;
  const float n = z - magic;
  float f = Fma(-n, FromBits(0x3F317200u), t);  // ln 2 in two parts, so that n * high part is exact
  f = Fma(-n, FromBits(0x35BFBE8Eu), f);
  float p = FromBits(0x3AB5BDDEu);
  p = Fma(p, f, FromBits(0x3C09182Bu));
  p = Fma(p, f, FromBits(0x3D2AAB3Eu));
  p = Fma(p, f, FromBits(0x3E2AAA51u));
  p = Fma(p, f, FromBits(0x3F000000u));
  p = Fma(p, f, FromBits(0x3F800000u));
  p = Fma(p, f, FromBits(0x3F800000u));
  return FromBits(Bits(p) + exponent);
}

// log(x) for positive normal x, max .824 ulp; log(1) = +0.
static inline float Log(float x) {
  if (x != x) return x;
  const uint32_t k = Bits(x) - 0x3F3504F3u;  // sqrt(1/2): the mantissa m comes to lie in [sqrt(1/2), sqrt(2))
  const uint32_t e = (k >> 23) | ((k & 0x80000000u) != 0 ? 0xFFFFFE00u : 0u);  // arithmetic shift of the signed value
  int32_t exponent;
  std::memcpy(&exponent, &e, sizeof exponent);
  const float f = FromBits((k & 0x7FFFFFu) + 0x3F3504F3u) - 1.0f;
  const float scale = static_cast<float>(exponent);
  float q = FromBits(0x3D8A3D30u);
  q = Fma(q, f, FromBits(0xBDEF0A2Eu));
  q = Fma(q, f, FromBits(0x3DF36335u));
  q = Fma(q, f, FromBits(0xBDFE134Cu));
  q = Fma(q, f, FromBits(0x3E119D95u));
  q = Fma(q, f, FromBits(0xBE2AAE26u));
  q = Fma(q, f, FromBits(0x3E4CD23Du));
  q = Fma(q, f, FromBits(0xBE800003u));
  q = Fma(q, f, FromBits(0x3EAAAAA4u));
  q = Fma(q, f, FromBits(0xBF000000u));
  const float hi = Fma(scale, FromBits(0x3F317200u), f);
  float lo = Fma(scale, FromBits(0x3F317200u), -hi) + f;
  lo = Fma(scale, FromBits(0x35BFBE8Eu), lo);
  lo = Fma(q, f * f, lo);
  return hi + lo;
}

// tanh(x), max 1.509 ulp, odd, +-1 at +-inf.
static inline float Tanh(float x) {
  if (x != x) return x;
  const uint32_t sign = Bits(x) & 0x80000000u;
  const float a = FromBits(Bits(x) ^ sign);
  float r;
  if (a < FromBits(0x3F200000u)) {
    const float u = a * a;
    float p = FromBits(0xBBBAB68Au);
    p = Fma(p, u, FromBits(0x3CA9051Du));
    p = Fma(p, u, FromBits(0xBD5C1BC9u));
    p = Fma(p, u, FromBits(0x3E08837Fu));
    p = Fma(p, u, FromBits(0xBEAAAA99u));
    r = Fma(p, a * u, a);
  } else {
    const float t = Exp(-2.0f * a);
    r = (1.0f - t) / (1.0f + t);
  }
  return FromBits(Bits(r) | sign);
}

// The larger of two maxima that are not both from an empty state. Which operand survives a NaN does not matter: the sum
// of such a row is NaN, and emptiness is never read off a maximum.
static inline float Max(float a, float b) { return b > a ? b : a; }

// The weights that bring two non-empty states to a common maximum (docs/numerics.md#fold).
struct FoldWeights {
  float max;
  float a;
  float b;
};

static inline FoldWeights WeightsOfFold(float m1, float m2) {
  const float max = Max(m1, m2);
  return {max, Exp(m1 - max), Exp(m2 - max)};
}

}  // namespace etalon

#endif  // ETALON_LIB_BASE_ARITHMETIC_H_
