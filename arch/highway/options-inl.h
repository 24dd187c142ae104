// options-inl.h: what happens to the scores of one row between the dot product and the softmax, with keys in lanes.
#if defined(ETALON_ARCH_HIGHWAY_OPTIONS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ETALON_ARCH_HIGHWAY_OPTIONS_INL_H_
#undef ETALON_ARCH_HIGHWAY_OPTIONS_INL_H_
#else
#define ETALON_ARCH_HIGHWAY_OPTIONS_INL_H_
#endif

#include "arch/highway/math-inl.h"
#include "arch/kernel_table.h"
#include "arch/visible.h"
#include "lib/base/arithmetic.h"

HWY_BEFORE_NAMESPACE();
namespace etalon {
namespace HWY_NAMESPACE {
#if ETALON_HIGHWAY_EXACT

HWY_INLINE bool HasOptions(const ScoreOptions& options, const RowKeys& keys) {
  return options.softcap > 0 || options.alibi || keys.bias != nullptr;
}

// |a - b| without overflow, rounded to f32 once.
inline float Distance(int64_t a, int64_t b) {
  const uint64_t ua = static_cast<uint64_t>(a), ub = static_cast<uint64_t>(b);
  return static_cast<float>(a > b ? ua - ub : ub - ua);
}

// Whether the distances of a position from a chunk of keys fit 32 bits: from there they are rounded as from 64.
inline bool IsNear(int64_t position, int64_t first_key) {
  constexpr int64_t kNear = int64_t{1} << 30;
  return position > first_key - kNear && position < first_key + kNear;
}

HWY_INLINE VF WithBias(VF s, VF bias) {
  return hn::IfThenElse(hn::Eq(bias, NegativeInfinities()), bias, hn::Add(s, bias));
}

HWY_INLINE float BiasAt(const RowKeys& keys, const KeySource& source, int64_t position) {
  const unsigned char* data = static_cast<const unsigned char*>(keys.bias);
  return LoadElement(source.bias_type, data + (position - source.base) * source.bias_stride_bytes, 0);
}

// Biases of some keys of a row, side by side as f32. Whole vectors are written.
inline void CopyBiases(const RowKeys& row, const KeySource& source, const Span& keys, float* to) {
  const DF d;
  const size_t count = static_cast<size_t>(keys.last - keys.first);
  if (source.bias_stride_bytes != static_cast<int64_t>(ElementSize(source.bias_type))) {
    for (size_t t = 0; t < count; ++t) to[t] = BiasAt(row, source, keys.first + static_cast<int64_t>(t));
    for (size_t t = count; t % kLanes != 0; ++t) to[t] = 0.0f;
    return;
  }
  const unsigned char* from =
      static_cast<const unsigned char*>(row.bias) + (keys.first - source.base) * source.bias_stride_bytes;
  ForVectors(count,
             [&](size_t t, size_t n) HWY_ATTR { hn::Store(LoadElementsN(source.bias_type, from, t, n), d, to + t); });
}

// s[0 ... count - 1]: dot products of the keys from position `first` on become scores, visibility apart. s has room for
// a whole last vector.
inline void ApplyRowOptions(const QueryRow& row, const RowKeys& keys, const KeySource& source,
                            const ScoreOptions& options, int64_t first, size_t count, float* s) {
  const DF d;
  const DI di;
  const VF cap = hn::Set(d, options.softcap), slope = hn::Set(d, options.alibi ? row.slope : 0.0f);
  const bool near = options.alibi && IsNear(keys.position, first);
  const VI before = hn::Sub(hn::Set(di, near ? static_cast<int32_t>(keys.position - first) : 0), hn::Iota(di, 0));
  alignas(64) float biases[kChunk];
  if (keys.bias != nullptr) CopyBiases(keys, source, {first, first + static_cast<int64_t>(count)}, biases);
  for (size_t i = 0; i < count; i += kLanes) {
    const size_t lanes = count - i < kLanes ? count - i : kLanes;
    VF x = hn::LoadU(d, s + i);
    if (options.softcap > 0) x = hn::Mul(cap, Tanh(hn::Div(x, cap)));
    if (near) {
      const VF distance = hn::ConvertTo(d, hn::Abs(hn::Sub(before, hn::Set(di, static_cast<int32_t>(i)))));
      x = hn::NegMulAdd(slope, distance, x);
    } else if (options.alibi) {
      alignas(64) float distance[kLanes] = {};
      for (size_t j = 0; j < lanes; ++j) distance[j] = Distance(keys.position, first + static_cast<int64_t>(i + j));
      x = hn::NegMulAdd(slope, hn::Load(d, distance), x);
    }
    if (keys.bias != nullptr) x = WithBias(x, hn::Load(d, biases + i));
    hn::StoreU(x, d, s + i);
  }
}

// s[0 ... count - 1]: -inf where bit i is 0, and in the rest of the last vector.
inline void HideRowScores(const VisibleBits& bits, size_t count, float* s) {
  const DF d;
  const DI di;
  static_assert(64 % kLanes == 0 && kLanes <= 32, "the bits of a vector lie in one word");
  const VI mask = hn::Shl(hn::Set(di, 1), hn::Iota(di, 0));
  for (size_t i = 0; i < count; i += kLanes) {  // vectors begin at multiples of kLanes, which divides 64
    const VI word = hn::Set(di, static_cast<int32_t>(static_cast<uint32_t>(bits.word[i / 64] >> i % 64)));
    const auto seen = hn::RebindMask(d, hn::TestBit(word, mask));
    hn::StoreU(hn::IfThenElse(seen, hn::LoadU(d, s + i), NegativeInfinities()), d, s + i);
  }
}

#endif  // ETALON_HIGHWAY_EXACT
}  // namespace HWY_NAMESPACE
}  // namespace etalon
HWY_AFTER_NAMESPACE();

#endif  // include guard
