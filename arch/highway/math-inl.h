// math-inl.h: the functions of the one arithmetic, in vectors of f32: lib/base/arithmetic.h operation by operation.
// Included once for each target, between HWY_BEFORE_NAMESPACE and HWY_AFTER_NAMESPACE of highway.h.
#if defined(ETALON_ARCH_HIGHWAY_MATH_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ETALON_ARCH_HIGHWAY_MATH_INL_H_
#undef ETALON_ARCH_HIGHWAY_MATH_INL_H_
#else
#define ETALON_ARCH_HIGHWAY_MATH_INL_H_
#endif

#include <hwy/highway.h>

#include <cstddef>
#include <cstdint>

#include "lib/base/arithmetic.h"

HWY_BEFORE_NAMESPACE();
namespace etalon {
namespace HWY_NAMESPACE {
#if ETALON_HIGHWAY_EXACT

namespace hn = hwy::HWY_NAMESPACE;

using DF = hn::ScalableTag<float>;
using DI = hn::RebindToSigned<DF>;
using DU = hn::RebindToUnsigned<DF>;
using D16 = hn::Rebind<uint16_t, DF>;  // as many 16-bit elements as a vector has f32
using VF = hn::Vec<DF>;
using VI = hn::Vec<DI>;
using V16 = hn::Vec<D16>;
using MF = hn::Mask<DF>;

// Lanes of a vector: a constant, for all of our targets have vectors of one size.
constexpr size_t kLanes = hn::MaxLanes(DF());

// n rounded up to whole vectors.
HWY_INLINE size_t RoundUp(size_t n) { return (n + kLanes - 1) / kLanes * kLanes; }

// Rows of queries (or weights) that are worth a vector with a row a lane; fewer leave too many lanes idle, and go with
// keys, then channels in lanes. Measured with 8 lanes: 5 rows are even, 7 take 3/4 of the time.
constexpr size_t kLeastRowsInLanes = kLanes / 2 + 1;

HWY_INLINE VF SetBits(uint32_t bits) { return hn::BitCast(DF(), hn::Set(DU(), bits)); }
HWY_INLINE VF NegativeInfinities() { return SetBits(0xFF800000u); }

// x = exp(x) for x <= 0 that are not NaN (-inf gives +0), step by step for all of them: exp is one long chain, and
// processors see too few instructions ahead to run many of them at once if they come one after the other.
template <size_t kCount>
HWY_INLINE void ExpOfNumbers(VF (&x)[kCount]) {
  const DF d;
  const DI di;
  const VF magic = SetBits(0x4B400000u);
  VI exponent[kCount];
  VF n[kCount], f[kCount], p[kCount];
  HWY_UNROLL(8)
  for (size_t i = 0; i < kCount; ++i) n[i] = hn::MulAdd(x[i], SetBits(0x3FB8AA3Bu), magic);
  HWY_UNROLL(8)
  for (size_t i = 0; i < kCount; ++i) exponent[i] = hn::ShiftLeft<23>(hn::BitCast(di, n[i]));
  HWY_UNROLL(8)
  for (size_t i = 0; i < kCount; ++i) n[i] = hn::Sub(n[i], magic);
  HWY_UNROLL(8)
  for (size_t i = 0; i < kCount; ++i) f[i] = hn::NegMulAdd(n[i], SetBits(0x3F317200u), x[i]);
  HWY_UNROLL(8)
  for (size_t i = 0; i < kCount; ++i) f[i] = hn::NegMulAdd(n[i], SetBits(0x35BFBE8Eu), f[i]);
  HWY_UNROLL(8)
  for (size_t i = 0; i < kCount; ++i) p[i] = hn::MulAdd(SetBits(0x3AB5BDDEu), f[i], SetBits(0x3C09182Bu));
  constexpr uint32_t kCoefficients[] = {0x3D2AAB3Eu, 0x3E2AAA51u, 0x3F000000u, 0x3F800000u, 0x3F800000u};
  HWY_UNROLL(8)
  for (const uint32_t coefficient : kCoefficients) {
    HWY_UNROLL(8)
    for (size_t i = 0; i < kCount; ++i) p[i] = hn::MulAdd(p[i], f[i], SetBits(coefficient));
  }
  HWY_UNROLL(8)
  for (size_t i = 0; i < kCount; ++i) {
    const VF e = hn::BitCast(d, hn::Add(hn::BitCast(di, p[i]), exponent[i]));
    x[i] = hn::IfThenElseZero(hn::Ge(x[i], SetBits(0xC2AE999Au)), e);
  }
}

// exp(t) for t <= 0 that is not NaN.
HWY_INLINE VF ExpOfNumbers(VF t) {
  VF x[] = {t};
  ExpOfNumbers(x);
  return x[0];
}

// exp(t) for t <= 0 or NaN, which stays a NaN.
HWY_INLINE VF Exp(VF t) { return hn::IfThenElse(hn::IsNaN(t), t, ExpOfNumbers(t)); }

// log(x) for positive normal x; a NaN stays a NaN.
HWY_INLINE VF Log(VF x) {
  const DF d;
  const DI di;
  const VI offset = hn::Set(di, 0x3F3504F3);
  const VI k = hn::Sub(hn::BitCast(di, x), offset);
  const VF scale = hn::ConvertTo(d, hn::ShiftRight<23>(k));
  const VF m = hn::BitCast(d, hn::Add(hn::And(k, hn::Set(di, 0x7FFFFF)), offset));
  const VF f = hn::Sub(m, SetBits(0x3F800000u));
  VF q = SetBits(0x3D8A3D30u);
  q = hn::MulAdd(q, f, SetBits(0xBDEF0A2Eu));
  q = hn::MulAdd(q, f, SetBits(0x3DF36335u));
  q = hn::MulAdd(q, f, SetBits(0xBDFE134Cu));
  q = hn::MulAdd(q, f, SetBits(0x3E119D95u));
  q = hn::MulAdd(q, f, SetBits(0xBE2AAE26u));
  q = hn::MulAdd(q, f, SetBits(0x3E4CD23Du));
  q = hn::MulAdd(q, f, SetBits(0xBE800003u));
  q = hn::MulAdd(q, f, SetBits(0x3EAAAAA4u));
  q = hn::MulAdd(q, f, SetBits(0xBF000000u));
  const VF ln2 = SetBits(0x3F317200u);
  const VF hi = hn::MulAdd(scale, ln2, f);
  VF lo = hn::Add(hn::MulSub(scale, ln2, hi), f);
  lo = hn::MulAdd(scale, SetBits(0x35BFBE8Eu), lo);
  lo = hn::MulAdd(q, hn::Mul(f, f), lo);
  return hn::IfThenElse(hn::IsNaN(x), x, hn::Add(hi, lo));
}

// tanh of |x| < .625.
HWY_INLINE VF SmallTanh(VF a) {
  const VF u = hn::Mul(a, a);
  VF p = SetBits(0xBBBAB68Au);
  p = hn::MulAdd(p, u, SetBits(0x3CA9051Du));
  p = hn::MulAdd(p, u, SetBits(0xBD5C1BC9u));
  p = hn::MulAdd(p, u, SetBits(0x3E08837Fu));
  p = hn::MulAdd(p, u, SetBits(0xBEAAAA99u));
  return hn::MulAdd(p, hn::Mul(a, u), a);
}

HWY_INLINE VF Tanh(VF x) {
  const VF sign = hn::And(x, SetBits(0x80000000u));
  const VF a = hn::Xor(x, sign);
  const VF one = SetBits(0x3F800000u);
  const auto is_small = hn::Lt(a, SetBits(0x3F200000u));
  const VF small = SmallTanh(a);
  if (hn::AllTrue(DF(), is_small)) return hn::Or(small, sign);  // of scores under a cap, most
  const VF t = ExpOfNumbers(hn::Mul(SetBits(0xC0000000u), a));
  const VF large = hn::Div(hn::Sub(one, t), hn::Add(one, t));
  const VF r = hn::IfThenElse(is_small, small, large);
  return hn::IfThenElse(hn::IsNaN(x), x, hn::Or(r, sign));
}

// The larger of two maxima; either may survive a NaN (lib/base/arithmetic.h).
HWY_INLINE VF MaxOf(VF a, VF b) { return hn::Max(a, b); }

// x as it is written to memory.
HWY_INLINE VF Canonical(VF x) { return hn::IfThenElse(hn::IsNaN(x), SetBits(kCanonicalNaN), x); }

// The weights of a fold, where either side may be empty (m = -inf): an empty side has weight 0, the other 1, which is
// to pass it through, but for the sign of zeros, which nothing that is written shows. Both empty: both 0.
struct VectorWeights {
  VF max;
  VF a;
  VF b;
};
HWY_INLINE VectorWeights WeightsOf(VF m1, VF m2) {
  const VF max = MaxOf(m1, m2);
  const VF finite = hn::IfThenElseZero(hn::Ne(max, NegativeInfinities()), max);  // -inf - -inf would be NaN
  return {max, Exp(hn::Sub(m1, finite)), Exp(hn::Sub(m2, finite))};
}

// --- Elements of any storage type ---

HWY_INLINE VF WidenF16(V16 h) {
  const hn::Rebind<hwy::float16_t, DF> d16;
  return hn::PromoteTo(DF(), hn::BitCast(d16, h));
}
// 16-bit elements in vectors of full size, of which each block of 128 bits has 8: the first four of each block, and the
// last four.
using D16Full = hn::Repartition<uint16_t, DF>;
using V16Full = hn::Vec<D16Full>;
struct WidenedBlocks {
  VF low;
  VF high;
};
HWY_INLINE WidenedBlocks WidenBlocksBF16(V16Full x) {
  const D16Full d;
  return {hn::BitCast(DF(), hn::InterleaveLower(d, hn::Zero(d), x)),
          hn::BitCast(DF(), hn::InterleaveUpper(d, hn::Zero(d), x))};
}
HWY_INLINE WidenedBlocks WidenBlocksF16(V16Full x) {
  // The halves of all blocks side by side, for the conversion takes neighbours.
  const hn::Repartition<hwy::float16_t, DF> d16;
  const hn::Repartition<uint64_t, DF> halves;
  const auto h = hn::BitCast(halves, x);
#if HWY_TARGET == HWY_AVX2
  const auto sorted = hn::BitCast(d16, hn::Per4LaneBlockShuffle<3, 1, 2, 0>(h));
#elif HWY_TARGET == HWY_AVX3
  const auto sorted =
      hn::BitCast(d16, hn::ConcatLowerLower(halves, hn::ConcatOdd(halves, h, h), hn::ConcatEven(halves, h, h)));
#else
  const auto sorted = hn::BitCast(d16, h);
#endif
  return {hn::PromoteLowerTo(DF(), sorted), hn::PromoteUpperTo(DF(), sorted)};
}
HWY_INLINE VF WidenBF16(V16 h) {
  const DU du;
  return hn::BitCast(DF(), hn::ShiftLeft<16>(hn::PromoteTo(du, h)));
}
// In integers as well, as lib/base/types.h has it: an emulator that we test with rounds ties in the hardware's
// conversion to odd, and no rounding mode matters.
HWY_INLINE V16 NarrowF16(VF x) {
  const DU du;
  const auto one = hn::Set(du, 1u);
  const auto bits = hn::BitCast(du, x);
  const auto magnitude = hn::And(bits, hn::Set(du, 0x7FFFFFFFu));
  const auto odd = hn::And(hn::ShiftRight<13>(magnitude), one);
  const auto normal =
      hn::ShiftRight<13>(hn::Add(hn::Sub(magnitude, hn::Set(du, 0x38000000u)), hn::Add(odd, hn::Set(du, 0x0FFFu))));
  // Subnormal in f16: mantissa * 2^(exponent - 150) in units of 2^-24; from a shift of 25 on nothing is left.
  const auto mantissa = hn::Or(hn::And(magnitude, hn::Set(du, 0x7FFFFFu)), hn::Set(du, 0x800000u));
  const auto exponent = hn::Min(hn::ShiftRight<23>(magnitude), hn::Set(du, 112u));
  const auto shift = hn::Min(hn::Sub(hn::Set(du, 126u), exponent), hn::Set(du, 25u));
  const auto half = hn::Sub(hn::Shl(one, hn::Sub(shift, one)), one);
  const auto odd_unit = hn::And(hn::Shr(mantissa, shift), one);
  const auto subnormal = hn::Shr(hn::Add(hn::Add(mantissa, half), odd_unit), shift);
  auto h = hn::IfThenElse(hn::Lt(magnitude, hn::Set(du, 0x38800000u)), subnormal, normal);
  h = hn::IfThenElse(hn::Lt(magnitude, hn::Set(du, 0x477FF000u)), h, hn::Set(du, 0x7C00u));
  h = hn::Or(h, hn::And(hn::ShiftRight<16>(bits), hn::Set(du, 0x8000u)));
  const auto nan = hn::Gt(magnitude, hn::Set(du, 0x7F800000u));
  return hn::TruncateTo(D16(), hn::IfThenElse(nan, hn::Set(du, uint32_t{kCanonicalNaNF16}), h));
}
// In integers: the hardware's conversion flushes subnormals.
HWY_INLINE V16 NarrowBF16(VF x) {
  const DU du;
  const auto bits = hn::BitCast(du, x);
  const auto odd = hn::And(hn::ShiftRight<16>(bits), hn::Set(du, 1u));
  const auto rounded = hn::ShiftRight<16>(hn::Add(bits, hn::Add(odd, hn::Set(du, 0x7FFFu))));
  const auto nan = hn::RebindMask(du, hn::IsNaN(x));
  return hn::TruncateTo(D16(), hn::IfThenElse(nan, hn::Set(du, uint32_t{kCanonicalNaNBF16}), rounded));
}

// Elements c ... c + kLanes - 1 of an array.
HWY_INLINE VF LoadElements(DType type, const void* data, size_t c) {
  if (type == DType::kF32) return hn::LoadU(DF(), static_cast<const float*>(data) + c);
  const V16 h = hn::LoadU(D16(), static_cast<const uint16_t*>(data) + c);
  return type == DType::kF16 ? WidenF16(h) : WidenBF16(h);
}
// The first n of them, n <= kLanes; zeros beyond, whose memory is not read.
HWY_INLINE VF LoadElementsN(DType type, const void* data, size_t c, size_t n) {
  if (n == kLanes) return LoadElements(type, data, c);
  if (type == DType::kF32) return hn::LoadN(DF(), static_cast<const float*>(data) + c, n);
  const V16 h = hn::LoadN(D16(), static_cast<const uint16_t*>(data) + c, n);
  return type == DType::kF16 ? WidenF16(h) : WidenBF16(h);
}

// The first n <= kLanes elements. Stores under a mask are slow, and compilers keep them if n is known to be kLanes.
template <class D>
HWY_INLINE void StoreFirst(hn::Vec<D> x, D d, hn::TFromD<D>* to, size_t n) {
  if (n == kLanes) {
    hn::StoreU(x, d, to);
  } else {
    hn::StoreN(x, d, to, n);
  }
}

// Narrowed, one NaN, zeros as they are.
HWY_INLINE void StoreElementsN(DType type, void* data, size_t c, VF x, size_t n) {
  if (type == DType::kF32) {
    StoreFirst(Canonical(x), DF(), static_cast<float*>(data) + c, n);
  } else {
    StoreFirst(type == DType::kF16 ? NarrowF16(x) : NarrowBF16(x), D16(), static_cast<uint16_t*>(data) + c, n);
  }
}

// The same for outputs, where zeros are positive: a negative number that narrows to zero too.
HWY_INLINE void StoreOutputsN(DType type, void* data, size_t c, VF x, size_t n) {
  const VF positive = hn::Add(x, hn::Zero(DF()));
  if (type == DType::kF32) {
    StoreFirst(Canonical(positive), DF(), static_cast<float*>(data) + c, n);
    return;
  }
  const V16 h = type == DType::kF16 ? NarrowF16(positive) : NarrowBF16(positive);
  const auto is_zero = hn::Eq(h, hn::Set(D16(), uint16_t{0x8000}));
  StoreFirst(hn::IfThenZeroElse(is_zero, h), D16(), static_cast<uint16_t*>(data) + c, n);
}

// function(first element, number of elements <= kLanes) over n elements.
template <class Function>
HWY_INLINE void ForVectors(size_t n, Function function) {
  size_t i = 0;
  for (; i + kLanes <= n; i += kLanes) function(i, kLanes);
  if (i < n) function(i, n - i);
}

#endif  // ETALON_HIGHWAY_EXACT
}  // namespace HWY_NAMESPACE
}  // namespace etalon
HWY_AFTER_NAMESPACE();

#endif  // include guard
