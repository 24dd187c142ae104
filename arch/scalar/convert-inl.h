// convert-inl.h: whole arrays through the conversions and functions of lib/base. Numerics: types, functions.
#ifndef ETALON_ARCH_SCALAR_CONVERT_INL_H_
#define ETALON_ARCH_SCALAR_CONVERT_INL_H_

#include "lib/base/arithmetic.h"

namespace etalon {
namespace {

void Widen(DType type, const void* in, float* out, size_t n) {
  for (size_t i = 0; i < n; ++i) out[i] = LoadElement(type, in, i);
}

void Narrow(DType type, const float* in, void* out, size_t n) {
  for (size_t i = 0; i < n; ++i) StoreElement(type, out, i, in[i]);
}

template <float (*function)(float)>
void Map(const float* x, float* y, size_t n) {
  for (size_t i = 0; i < n; ++i) y[i] = function(x[i]);
}

void MapFma(const float* a, const float* b, const float* c, float* y, size_t n) {
  for (size_t i = 0; i < n; ++i) y[i] = Fma(a[i], b[i], c[i]);
}

}  // namespace
}  // namespace etalon

#endif  // ETALON_ARCH_SCALAR_CONVERT_INL_H_
