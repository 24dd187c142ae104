// merge-inl.h: joins (out, lse) pairs. Numerics: merge of (out, lse).
#ifndef ETALON_ARCH_SCALAR_MERGE_INL_H_
#define ETALON_ARCH_SCALAR_MERGE_INL_H_

#include "arch/kernel_table.h"
#include "lib/base/arithmetic.h"

namespace etalon {
namespace {

// An empty side passes the other through, but for the two rules of everything that is written: one NaN, zeros are +0.
void CopyRow(DType type, const void* in, void* out, size_t n) {
  for (size_t c = 0; c < n; ++c) StoreOutput(type, out, c, LoadElement(type, in, c));
}

void MergeRow(const MergeArgs& a, size_t r) {
  const int64_t row = static_cast<int64_t>(r);
  const void* out1 = static_cast<const unsigned char*>(a.out1) + row * a.out1_stride_bytes;
  const void* out2 = static_cast<const unsigned char*>(a.out2) + row * a.out2_stride_bytes;
  void* out = static_cast<unsigned char*>(a.out) + row * a.out_stride_bytes;
  const float lse1 = a.lse1[r], lse2 = a.lse2[r];
  float lse;
  if (lse1 == NegativeInfinity() && lse2 == NegativeInfinity()) {
    for (size_t c = 0; c < a.value_dim; ++c) StoreOutput(a.type, out, c, 0.0f);
    lse = NegativeInfinity();
  } else if (lse2 == NegativeInfinity()) {
    CopyRow(a.type, out1, out, a.value_dim);
    lse = lse1;
  } else if (lse1 == NegativeInfinity()) {
    CopyRow(a.type, out2, out, a.value_dim);
    lse = lse2;
  } else {
    const FoldWeights w = WeightsOfFold(lse1, lse2);
    const float l = w.a + w.b;
    for (size_t c = 0; c < a.value_dim; ++c) {
      const float joined = Fma(LoadElement(a.type, out1, c), w.a, LoadElement(a.type, out2, c) * w.b);
      StoreOutput(a.type, out, c, joined / l);
    }
    lse = w.max + Log(l);
  }
  if (a.lse != nullptr) a.lse[r] = Canonical(lse);
}

void Merge(const MergeArgs& a) {
  for (size_t r = 0; r < a.num_rows; ++r) MergeRow(a, r);
}

}  // namespace
}  // namespace etalon

#endif  // ETALON_ARCH_SCALAR_MERGE_INL_H_
