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

// y = function(x). Whole vectors are loaded and stored as such: some processors take a dozen cycles for a masked store.
template <class Function>
HWY_INLINE void MapVectors(const float* x, float* y, size_t n, Function function) {
  const DF d;
  size_t i = 0;
  for (; i + kLanes <= n; i += kLanes) hn::StoreU(function(hn::LoadU(d, x + i)), d, y + i);
  if (i < n) hn::StoreN(function(LoadForMap(x + i, n - i)), d, y + i, n - i);
}

void MapExp(const float* x, float* y, size_t n) {
  const DF d;
  // As softmax has it, so that benchmarks may take it for the limit of softmax: four vectors step by step.
  constexpr size_t kBatch = 4;
  size_t i = 0;
  for (; i + kBatch * kLanes <= n; i += kBatch * kLanes) {
    VF t[kBatch], e[kBatch];
    for (size_t j = 0; j < kBatch; ++j) e[j] = t[j] = hn::LoadU(d, x + i + j * kLanes);
    ExpOfNumbers(e);
    for (size_t j = 0; j < kBatch; ++j) {
      hn::StoreU(hn::IfThenElse(hn::IsNaN(t[j]), t[j], e[j]), d, y + i + j * kLanes);
    }
  }
  MapVectors(x + i, y + i, n - i, [](VF t) HWY_ATTR { return Exp(t); });
}

void MapLog(const float* x, float* y, size_t n) {
  MapVectors(x, y, n, [](VF t) HWY_ATTR { return Log(t); });
}

void MapTanh(const float* x, float* y, size_t n) {
  MapVectors(x, y, n, [](VF t) HWY_ATTR { return Tanh(t); });
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
