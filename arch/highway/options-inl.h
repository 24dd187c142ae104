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

HWY_INLINE float BiasAt(const RowKeys& keys, const KeySource& source, int64_t position) {
  const unsigned char* data = static_cast<const unsigned char*>(keys.bias);
  return LoadElement(source.bias_type, data + (position - source.base) * source.bias_stride_bytes, 0);
}

// Whether span and mask let the row see the key.
HWY_INLINE bool IsAllowed(const RowKeys& keys, const KeySource& source, int64_t position) {
  if (position < keys.span.first || position >= keys.span.last) return false;
  return keys.mask == nullptr || keys.mask[(position - source.base) * source.mask_stride_bytes] != 0;
}

// s[0 ... count - 1]: dot products of the keys from position `first` on become scores; those that mask or span exclude
// become -inf, and so does the rest of the last vector.
inline void ApplyRowOptions(const QueryRow& row, const RowKeys& keys, const KeySource& source,
                            const ScoreOptions& options, int64_t first, size_t count, float* s) {
  const DF d;
  const VF cap = hn::Set(d, options.softcap), slope = hn::Set(d, options.alibi ? row.slope : 0.0f);
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
    if (keys.bias != nullptr) {
      for (size_t j = 0; j < lanes; ++j) bias[j] = BiasAt(keys, source, position + static_cast<int64_t>(j));
      const VF b = hn::Load(d, bias);
      x = hn::IfThenElse(hn::Eq(b, NegativeInfinities()), b, hn::Add(x, b));
    }
    hn::StoreU(x, d, s + i);
    for (size_t j = 0; j < kLanes; ++j) {
      const bool allowed = j < lanes && IsAllowed(keys, source, position + static_cast<int64_t>(j));
      if (!allowed) s[i + j] = FromBits(0xFF800000u);
    }
  }
}

#endif  // ETALON_HIGHWAY_EXACT
}  // namespace HWY_NAMESPACE
}  // namespace etalon
HWY_AFTER_NAMESPACE();

#endif  // include guard
