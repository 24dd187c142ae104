// options-inl.h: what happens to the scores of one row between the dot product and the softmax, with keys in lanes.
#if defined(ETALON_ARCH_HIGHWAY_OPTIONS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ETALON_ARCH_HIGHWAY_OPTIONS_INL_H_
#undef ETALON_ARCH_HIGHWAY_OPTIONS_INL_H_
#else
#define ETALON_ARCH_HIGHWAY_OPTIONS_INL_H_
#endif

#include "arch/highway/math-inl.h"
#include "arch/kernel_table.h"

HWY_BEFORE_NAMESPACE();
namespace etalon {
namespace HWY_NAMESPACE {
#if ETALON_HIGHWAY_EXACT

HWY_INLINE bool HasOptions(const ScoreOptions& options, const RowKeys& keys) {
  return options.softcap > 0 || options.alibi || keys.bias != nullptr || keys.mask != nullptr;
}

// |a - b| without overflow, rounded to f32 once.
inline float Distance(int64_t a, int64_t b) {
  const uint64_t ua = static_cast<uint64_t>(a), ub = static_cast<uint64_t>(b);
  return static_cast<float>(a > b ? ua - ub : ub - ua);
}

// s[0 ... count - 1]: dot products of the keys from position `first` on become scores; those that mask or span exclude
// become -inf, and so does the rest of the last vector.
inline void ApplyRowOptions(const QueryRow& row, const RowKeys& keys, const KeySource& source,
                            const ScoreOptions& options, int64_t first, size_t count, float* s) {
  const DF d;
  const VF cap = hn::Set(d, options.softcap), slope = hn::Set(d, options.alibi ? row.slope : 0.0f);
  const unsigned char* bias_data = static_cast<const unsigned char*>(keys.bias);
  for (size_t i = 0; i < count; i += kLanes) {
    const size_t lanes = count - i < kLanes ? count - i : kLanes;
    const int64_t position = first + static_cast<int64_t>(i);
    alignas(64) float distance[kLanes] = {}, bias[kLanes] = {};
    VF x = hn::LoadU(d, s + i);
    if (options.softcap > 0) x = hn::Mul(cap, Tanh(hn::Div(x, cap)));
    if (options.alibi) {
      for (size_t j = 0; j < lanes; ++j) distance[j] = -Distance(row.position, position + static_cast<int64_t>(j));
      x = hn::MulAdd(slope, hn::Load(d, distance), x);
    }
    if (bias_data != nullptr) {
      for (size_t j = 0; j < lanes; ++j) {
        const int64_t at = position + static_cast<int64_t>(j) - source.base;
        bias[j] = LoadElement(source.bias_type, bias_data + at * source.bias_stride_bytes, 0);
      }
      const VF b = hn::Load(d, bias);
      x = hn::IfThenElse(hn::Eq(b, NegativeInfinities()), b, hn::Add(x, b));
    }
    hn::StoreU(x, d, s + i);
    for (size_t j = 0; j < kLanes; ++j) {
      const int64_t t = position + static_cast<int64_t>(j);
      const bool inside = j < lanes && keys.span.first <= t && t < keys.span.last;
      const bool masked =
          inside && keys.mask != nullptr && keys.mask[(t - source.base) * source.mask_stride_bytes] == 0;
      if (!inside || masked) s[i + j] = FromBits(0xFF800000u);
    }
  }
}

#endif  // ETALON_HIGHWAY_EXACT
}  // namespace HWY_NAMESPACE
}  // namespace etalon
HWY_AFTER_NAMESPACE();

#endif  // include guard
