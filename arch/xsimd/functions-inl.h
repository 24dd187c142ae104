// functions-inl.h: exp, log, tanh in vectors, operation by operation as docs/numerics.md#functions writes them.
#ifndef ETALON_ARCH_XSIMD_FUNCTIONS_INL_H_
#define ETALON_ARCH_XSIMD_FUNCTIONS_INL_H_

#include <cstddef>
#include <cstdint>

#include "arch/xsimd/vector-inl.h"

namespace etalon {
namespace {

// t <= 0.
inline F32 Exp(F32 t) {
  const F32 magic = Constant(0x4B400000u);
  const F32 z = Fma(t, Constant(0x3FB8AA3Bu), magic);
  const U32 e = BitsOf(z) << 23;
  const F32 minus_n = Negate(z - magic);
  F32 f = Fma(minus_n, Constant(0x3F317200u), t);
  f = Fma(minus_n, Constant(0x35BFBE8Eu), f);
  F32 p = Constant(0x3AB5BDDEu);
  p = Fma(p, f, Constant(0x3C09182Bu));
  p = Fma(p, f, Constant(0x3D2AAB3Eu));
  p = Fma(p, f, Constant(0x3E2AAA51u));
  p = Fma(p, f, Constant(0x3F000000u));
  p = Fma(p, f, Constant(0x3F800000u));
  p = Fma(p, f, Constant(0x3F800000u));
  const F32 result = Select(t < Constant(0xC2AE999Au), F32(0.0f), FloatOf(BitsOf(p) + e));
  return Select(IsNaN(t), t, result);
}

// x positive and normal.
inline F32 Log(F32 x) {
  const U32 k = BitsOf(x) - U32(0x3F3504F3u);
  const I32 e = xsimd::bitwise_cast<int32_t>(k) >> 23;
  const F32 m = FloatOf((k & U32(0x7FFFFFu)) + U32(0x3F3504F3u));
  const F32 f = m - F32(1.0f);
  const F32 scale = xsimd::to_float(e);
  F32 q = Constant(0x3D8A3D30u);
  q = Fma(q, f, Constant(0xBDEF0A2Eu));
  q = Fma(q, f, Constant(0x3DF36335u));
  q = Fma(q, f, Constant(0xBDFE134Cu));
  q = Fma(q, f, Constant(0x3E119D95u));
  q = Fma(q, f, Constant(0xBE2AAE26u));
  q = Fma(q, f, Constant(0x3E4CD23Du));
  q = Fma(q, f, Constant(0xBE800003u));
  q = Fma(q, f, Constant(0x3EAAAAA4u));
  q = Fma(q, f, Constant(0xBF000000u));
  const F32 hi = Fma(scale, Constant(0x3F317200u), f);
  F32 lo = Fma(scale, Constant(0x3F317200u), Negate(hi)) + f;
  lo = Fma(scale, Constant(0x35BFBE8Eu), lo);
  lo = Fma(q, f * f, lo);
  return Select(IsNaN(x), x, hi + lo);
}

inline F32 Tanh(F32 x) {
  const U32 sign = BitsOf(x) & U32(0x80000000u);
  const F32 a = FloatOf(BitsOf(x) ^ sign);
  const F32 u = a * a;
  F32 p = Constant(0xBBBAB68Au);
  p = Fma(p, u, Constant(0x3CA9051Du));
  p = Fma(p, u, Constant(0xBD5C1BC9u));
  p = Fma(p, u, Constant(0x3E08837Fu));
  p = Fma(p, u, Constant(0xBEAAAA99u));
  const F32 near_zero = Fma(p, a * u, a);
  const F32 t = Exp(F32(-2.0f) * a);
  const F32 far_off = Divide(F32(1.0f) - t, F32(1.0f) + t);
  const F32 r = Select(a < Constant(0x3F200000u), near_zero, far_off);
  return FloatOf(BitsOf(r) | sign);
}

inline float Exp(float t) { return FirstLane(Exp(F32(t))); }
inline float Log(float x) { return FirstLane(Log(F32(x))); }
inline float Fma(float a, float b, float c) { return FirstLane(Fma(F32(a), F32(b), F32(c))); }

// The functions by themselves, of the table.

void ExpOfArray(const float* x, float* y, size_t n) {
  for (size_t i = 0; i < n; i += kLanes) {
    const size_t count = AtMostLanes(n - i);
    StoreSome(Exp(LoadSome(x + i, count)), y + i, count);
  }
}

void LogOfArray(const float* x, float* y, size_t n) {
  for (size_t i = 0; i < n; i += kLanes) {
    const size_t count = AtMostLanes(n - i);
    StoreSome(Log(LoadSome(x + i, count)), y + i, count);
  }
}

void TanhOfArray(const float* x, float* y, size_t n) {
  for (size_t i = 0; i < n; i += kLanes) {
    const size_t count = AtMostLanes(n - i);
    StoreSome(Tanh(LoadSome(x + i, count)), y + i, count);
  }
}

void FmaOfArrays(const float* a, const float* b, const float* c, float* y, size_t n) {
  for (size_t i = 0; i < n; i += kLanes) {
    const size_t count = AtMostLanes(n - i);
    StoreSome(Fma(LoadSome(a + i, count), LoadSome(b + i, count), LoadSome(c + i, count)), y + i, count);
  }
}

}  // namespace
}  // namespace etalon

#endif  // ETALON_ARCH_XSIMD_FUNCTIONS_INL_H_
