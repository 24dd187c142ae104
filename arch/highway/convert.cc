// Whole arrays through the conversions and functions of math-inl.h.
#include "arch/highway/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "arch/highway/convert.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "arch/highway/math-inl.h"
#include "arch/highway/stages.h"

HWY_BEFORE_NAMESPACE();
namespace etalon {
namespace HWY_NAMESPACE {
#if ETALON_HIGHWAY_EXACT

void Widen(DType type, const void* in, float* out, size_t n) {
  ForVectors(
      n, [&](size_t i, size_t count) HWY_ATTR { hn::StoreN(LoadElementsN(type, in, i, count), DF(), out + i, count); });
}

void Narrow(DType type, const float* in, void* out, size_t n) {
  ForVectors(
      n, [&](size_t i, size_t count) HWY_ATTR { StoreElementsN(type, out, i, hn::LoadN(DF(), in + i, count), count); });
}

// Lanes beyond the end hold 1, for which every function is defined.
HWY_INLINE VF LoadForMap(const float* x, size_t count) { return hn::LoadNOr(SetBits(0x3F800000u), DF(), x, count); }

void MapExp(const float* x, float* y, size_t n) {
  ForVectors(n,
             [&](size_t i, size_t count) HWY_ATTR { hn::StoreN(Exp(LoadForMap(x + i, count)), DF(), y + i, count); });
}

void MapLog(const float* x, float* y, size_t n) {
  ForVectors(n,
             [&](size_t i, size_t count) HWY_ATTR { hn::StoreN(Log(LoadForMap(x + i, count)), DF(), y + i, count); });
}

void MapTanh(const float* x, float* y, size_t n) {
  ForVectors(n,
             [&](size_t i, size_t count) HWY_ATTR { hn::StoreN(Tanh(LoadForMap(x + i, count)), DF(), y + i, count); });
}

void MapFma(const float* a, const float* b, const float* c, float* y, size_t n) {
  ForVectors(n, [&](size_t i, size_t count) HWY_ATTR {
    const VF fma = hn::MulAdd(LoadForMap(a + i, count), LoadForMap(b + i, count), LoadForMap(c + i, count));
    hn::StoreN(fma, DF(), y + i, count);
  });
}

#endif  // ETALON_HIGHWAY_EXACT
}  // namespace HWY_NAMESPACE
}  // namespace etalon
HWY_AFTER_NAMESPACE();
