// vector-inl.h: the vectors of one target, by xsimd, and the few operations on them that docs/numerics.md needs.
//
// Each file of a target (avx2.cc, ...) names its xsimd architecture and includes all headers of this folder once; all
// of it has internal linkage, and xsimd's own functions are inlined whatever the optimisation.
#ifndef ETALON_ARCH_XSIMD_VECTOR_INL_H_
#define ETALON_ARCH_XSIMD_VECTOR_INL_H_

#include <cstddef>
#include <cstdint>
#include <xsimd/xsimd.hpp>

#include "lib/base/types.h"

#if !defined(ETALON_XSIMD_ARCH)
#error "define ETALON_XSIMD_ARCH before the first header of arch/xsimd"
#endif
#if XSIMD_VERSION_MAJOR < 13
#error "xsimd 13 or newer is needed"
#endif

namespace etalon {
namespace {

using Arch = ETALON_XSIMD_ARCH;
static_assert(Arch::supported(), "the flags of this file do not offer its xsimd architecture");
#if defined(__aarch64__) && !defined(__ARM_FEATURE_FMA)
#error "without this feature xsimd's fma rounds twice"
#endif

using F32 = xsimd::batch<float, Arch>;
using I32 = xsimd::batch<int32_t, Arch>;
using U32 = xsimd::batch<uint32_t, Arch>;
using Lanes = xsimd::batch_bool<float, Arch>;

constexpr size_t kLanes = F32::size;

inline F32 Constant(uint32_t bits) { return F32(FromBits(bits)); }
inline F32 MinusInfinity() { return Constant(0xFF800000u); }

inline F32 Load(const float* from) { return F32::load_unaligned(from); }
inline void Store(F32 x, float* to) { x.store_unaligned(to); }

inline U32 BitsOf(F32 x) { return xsimd::bitwise_cast<uint32_t>(x); }
inline F32 FloatOf(U32 bits) { return xsimd::bitwise_cast<float>(bits); }

inline F32 Fma(F32 a, F32 b, F32 c) { return xsimd::fma(a, b, c); }

// xsimd 13 divides f32 on Arm by a reciprocal and Newton's steps, which is not the rounded quotient.
inline F32 Divide(F32 a, F32 b) {
#if defined(__aarch64__)
  return F32(vdivq_f32(a, b));
#else
  return a / b;
#endif
}

inline F32 Select(Lanes condition, F32 yes, F32 no) { return xsimd::select(condition, yes, no); }

// By the sign bit: 0 - x would give +0 for +0.
inline F32 Negate(F32 x) { return FloatOf(BitsOf(x) ^ U32(0x80000000u)); }

inline Lanes IsNaN(F32 x) { return x != x; }

// True where a score is visible: NaN is (docs/numerics.md#score-options).
inline Lanes IsVisible(F32 s) { return s != MinusInfinity(); }
inline bool IsVisible(float s) { return s != FromBits(0xFF800000u); }

inline F32 CanonicalNaN(F32 x) { return Select(IsNaN(x), Constant(kCanonicalNaN), x); }

inline float FirstLane(F32 x) {
  float lanes[kLanes];
  Store(x, lanes);
  return lanes[0];
}

// Any of the largest; with a NaN among them, whatever.
inline float LargestLane(F32 x) {
  float lanes[kLanes];
  Store(x, lanes);
  float largest = lanes[0];
  for (size_t i = 1; i < kLanes; ++i) largest = lanes[i] > largest ? lanes[i] : largest;
  return largest;
}

inline size_t RoundUpToLanes(size_t n) { return (n + kLanes - 1) / kLanes * kLanes; }

inline size_t AtMostLanes(size_t n) { return n < kLanes ? n : kLanes; }

// The first n <= kLanes elements from element i on, zeros behind them.
inline F32 LoadSome(DType type, const void* data, size_t i, size_t n) {
  if (type == DType::kF32 && n == kLanes) return Load(static_cast<const float*>(data) + i);
  float lanes[kLanes] = {};
  for (size_t lane = 0; lane < n; ++lane) lanes[lane] = LoadElement(type, data, i + lane);
  return Load(lanes);
}

inline F32 LoadSome(const float* from, size_t n) { return LoadSome(DType::kF32, from, 0, n); }

inline void StoreSome(F32 x, float* to, size_t n) {
  if (n == kLanes) return Store(x, to);
  float lanes[kLanes];
  Store(x, lanes);
  for (size_t lane = 0; lane < n; ++lane) to[lane] = lanes[lane];
}

// Elements of an out, where every zero is +0 and every NaN the one.
inline void StoreSomeOutputs(DType type, void* out, size_t i, size_t n, F32 x) {
  if (type == DType::kF32) return StoreSome(CanonicalNaN(x + F32(0.0f)), static_cast<float*>(out) + i, n);
  float lanes[kLanes];
  Store(x, lanes);
  for (size_t lane = 0; lane < n; ++lane) StoreOutput(type, out, i + lane, lanes[lane]);
}

}  // namespace
}  // namespace etalon

#endif  // ETALON_ARCH_XSIMD_VECTOR_INL_H_
