// types.h: storage types, and their exact conversions to and from f32 in integer code (docs/numerics.md#types).
//
// The hardware conversions are not used here: VCVTNEPS2BF16 flushes subnormals, and others follow the rounding mode.
#ifndef ETALON_LIB_BASE_TYPES_H_
#define ETALON_LIB_BASE_TYPES_H_

#include <cfloat>
#include <cstddef>
#include <cstdint>
#include <cstring>

#if defined(__FAST_MATH__) || (defined(__FINITE_MATH_ONLY__) && __FINITE_MATH_ONLY__ > 0)
#error \
    "etalon sources must not be compiled with -ffast-math or -ffinite-math-only: cmake/EtalonFlags.cmake turns them off"
#endif
static_assert(FLT_EVAL_METHOD == 0,
              "etalon needs f32 operations that round to f32 (on 32-bit x86: -msse2 -mfpmath=sse)");

namespace etalon {

enum class DType : uint8_t { kF32 = 0, kF16 = 1, kBF16 = 2 };

// Functions here and in arithmetic.h are `static`, not plain `inline`: the same header is compiled with different
// target flags (scalar and scalar-fma), and a linker may keep any one copy of an inline function. With internal linkage
// no code that needs FMA can end up in a table that does not.
static inline size_t ElementSize(DType type) { return type == DType::kF32 ? 4 : 2; }

static inline uint32_t Bits(float x) {
  uint32_t bits;
  std::memcpy(&bits, &x, sizeof bits);
  return bits;
}

static inline float FromBits(uint32_t bits) {
  float x;
  std::memcpy(&x, &bits, sizeof x);
  return x;
}

constexpr uint32_t kCanonicalNaN = 0x7FC00000u;
constexpr uint16_t kCanonicalNaNF16 = 0x7E00u;
constexpr uint16_t kCanonicalNaNBF16 = 0x7FC0u;

static inline float WidenF16(uint16_t h) {
  const uint32_t sign = static_cast<uint32_t>(h & 0x8000u) << 16;
  const uint32_t magnitude = h & 0x7FFFu;
  // Subnormals are magnitude * 2^-24: an exact product of two normal numbers, so no flush mode can touch it.
  const uint32_t subnormal = Bits(static_cast<float>(static_cast<int32_t>(magnitude)) * 0x1p-24f);
  const uint32_t normal = (magnitude << 13) + (magnitude >= 0x7C00u ? 0x70000000u : 0x38000000u);
  return FromBits(sign | (magnitude < 0x0400u ? subnormal : normal));
}

static inline float WidenBF16(uint16_t h) { return FromBits(static_cast<uint32_t>(h) << 16); }

static inline uint16_t NarrowF16(float x) {
  const uint32_t bits = Bits(x);
  const uint32_t sign = (bits >> 16) & 0x8000u;
  const uint32_t magnitude = bits & 0x7FFFFFFFu;
  if (magnitude > 0x7F800000u) return kCanonicalNaNF16;
  if (magnitude >= 0x477FF000u) return static_cast<uint16_t>(sign | 0x7C00u);  // 65520 and more round to infinity
  if (magnitude >= 0x38800000u) {                                              // normal in f16: drop 13 bits
    const uint32_t rounded = magnitude - 0x38000000u + 0x0FFFu + ((magnitude >> 13) & 1u);
    return static_cast<uint16_t>(sign | (rounded >> 13));
  }
  if (magnitude <= 0x33000000u) return static_cast<uint16_t>(sign);  // 2^-25 and less: zero, the tie goes to even
  // Subnormal in f16: the value is mantissa * 2^(exponent - 150), one unit of the result is 2^-24.
  const uint32_t mantissa = (magnitude & 0x7FFFFFu) | 0x800000u;
  const uint32_t shift = 126u - (magnitude >> 23);  // 14 ... 24
  const uint32_t half = (1u << (shift - 1u)) - 1u;
  return static_cast<uint16_t>(sign | ((mantissa + half + ((mantissa >> shift) & 1u)) >> shift));
}

static inline uint16_t NarrowBF16(float x) {
  const uint32_t bits = Bits(x);
  if ((bits & 0x7FFFFFFFu) > 0x7F800000u) return kCanonicalNaNBF16;
  return static_cast<uint16_t>((bits + 0x7FFFu + ((bits >> 16) & 1u)) >> 16);
}

// Element i of an array of any storage type; the pointer is aligned to the element, no more.
static inline float LoadElement(DType type, const void* data, size_t i) {
  if (type == DType::kF32) return static_cast<const float*>(data)[i];
  const uint16_t h = static_cast<const uint16_t*>(data)[i];
  return type == DType::kF16 ? WidenF16(h) : WidenBF16(h);
}

// x as it is written to memory: one NaN (docs/numerics.md#written).
static inline float Canonical(float x) { return x != x ? FromBits(kCanonicalNaN) : x; }

static inline void StoreElement(DType type, void* data, size_t i, float x) {
  if (type == DType::kF32) {
    static_cast<float*>(data)[i] = Canonical(x);
  } else {
    static_cast<uint16_t*>(data)[i] = type == DType::kF16 ? NarrowF16(x) : NarrowBF16(x);
  }
}

// Element i of an output array, where zeros are positive (docs/numerics.md#written): a negative number that narrows to
// zero too.
static inline void StoreOutput(DType type, void* data, size_t i, float x) {
  StoreElement(type, data, i, x + 0.0f);
  if (type != DType::kF32 && static_cast<uint16_t*>(data)[i] == 0x8000u) static_cast<uint16_t*>(data)[i] = 0;
}

}  // namespace etalon

#endif  // ETALON_LIB_BASE_TYPES_H_
