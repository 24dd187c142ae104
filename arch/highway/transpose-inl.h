// transpose-inl.h: kLanes x kLanes transposes in registers. They decide the speed of short prompts: queries come in and
// outputs go out row by row, while the kernels in between keep queries in lanes.
#if defined(ETALON_ARCH_HIGHWAY_TRANSPOSE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ETALON_ARCH_HIGHWAY_TRANSPOSE_INL_H_
#undef ETALON_ARCH_HIGHWAY_TRANSPOSE_INL_H_
#else
#define ETALON_ARCH_HIGHWAY_TRANSPOSE_INL_H_
#endif

#include "arch/highway/math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace etalon {
namespace HWY_NAMESPACE {
#if ETALON_HIGHWAY_EXACT

// Four rows become four vectors; block b (of 128 bits) of vector i holds column 4 b + i.
HWY_INLINE void Transpose4(VF* r) {
  const DF d;
  const hn::RepartitionToWide<DU> pairs;
  const auto wide = [&](VF x) HWY_ATTR { return hn::BitCast(pairs, x); };
  const auto low01 = wide(hn::InterleaveLower(d, r[0], r[1])), high01 = wide(hn::InterleaveUpper(d, r[0], r[1]));
  const auto low23 = wide(hn::InterleaveLower(d, r[2], r[3])), high23 = wide(hn::InterleaveUpper(d, r[2], r[3]));
  r[0] = hn::BitCast(d, hn::InterleaveLower(pairs, low01, low23));
  r[1] = hn::BitCast(d, hn::InterleaveUpper(pairs, low01, low23));
  r[2] = hn::BitCast(d, hn::InterleaveLower(pairs, high01, high23));
  r[3] = hn::BitCast(d, hn::InterleaveUpper(pairs, high01, high23));
}

// r[i][j] becomes r[j][i].
HWY_INLINE void TransposeSquare(VF* r) {
  static_assert(kLanes == 4 || kLanes == 8 || kLanes == 16, "vectors of 128, 256 or 512 bits");
  const DF d;
  (void)d;
  HWY_UNROLL(4)
  for (size_t g = 0; g < kLanes; g += 4) Transpose4(r + g);
#if HWY_TARGET == HWY_AVX2
  HWY_UNROLL(4)
  for (size_t i = 0; i < 4; ++i) {
    const VF low = r[i], high = r[4 + i];
    r[i] = hn::ConcatLowerLower(d, high, low);
    r[4 + i] = hn::ConcatUpperUpper(d, high, low);
  }
#elif HWY_TARGET == HWY_AVX3
  HWY_UNROLL(4)
  for (size_t i = 0; i < 4; ++i) {
    // The 128-bit blocks of these four vectors are a 4 x 4 matrix, transposed in two steps.
    const VF r0 = r[i], r1 = r[4 + i], r2 = r[8 + i], r3 = r[12 + i];
    const VF t0 = hn::ConcatLowerLower(d, r2, r0), t1 = hn::ConcatLowerLower(d, r3, r1);
    const VF t2 = hn::ConcatUpperUpper(d, r2, r0), t3 = hn::ConcatUpperUpper(d, r3, r1);
    r[i] = hn::OddEvenBlocks(hn::SwapAdjacentBlocks(t1), t0);
    r[4 + i] = hn::OddEvenBlocks(t1, hn::SwapAdjacentBlocks(t0));
    r[8 + i] = hn::OddEvenBlocks(hn::SwapAdjacentBlocks(t3), t2);
    r[12 + i] = hn::OddEvenBlocks(t3, hn::SwapAdjacentBlocks(t2));
  }
#endif
}

#endif  // ETALON_HIGHWAY_EXACT
}  // namespace HWY_NAMESPACE
}  // namespace etalon
HWY_AFTER_NAMESPACE();

#endif  // include guard
