// tile-inl.h: the two register tiles of prefill, in which lanes are queries. All the floating-point work of a long
// prompt happens here, so they are written for the number of registers: everything else may be plain.
//
// Scores: kKeys keys x NV vectors of queries; an element of a key is broadcast and multiplied with the vectors of that
// channel of the transposed queries. Values: kKeys channels x NV vectors; an element of a value row is broadcast and
// multiplied with the vectors of that key's weights. Keys and values are read as they lie, and each (query, key) or
// (query, channel) is one chain, in the order that docs/numerics.md demands.
#if defined(ETALON_ARCH_HIGHWAY_TILE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ETALON_ARCH_HIGHWAY_TILE_INL_H_
#undef ETALON_ARCH_HIGHWAY_TILE_INL_H_
#else
#define ETALON_ARCH_HIGHWAY_TILE_INL_H_
#endif

#include "arch/highway/math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace etalon {
namespace HWY_NAMESPACE {
#if ETALON_HIGHWAY_EXACT

// g++ keeps an array of vectors in registers only if every loop over it is unrolled.
#define ETALON_UNROLL _Pragma("GCC unroll 16")

constexpr size_t kUnroll = 4;  // channels (or keys) a turn: the loop's own instructions count, too

// acc += x * y. With 16 registers a tile leaves one to spare, and compilers lose their way: g++ folds loads that are
// used once a row into every use and moves accumulators to the stack, clang hoists all broadcasts of a tile and spills
// them. An instruction that names its registers leaves them no such choice (60 -> 80 GF/s of 95, Zen 3, next to a busy
// hyperthread). With 32 registers they do well by themselves.
HWY_INLINE void Accumulate(VF x, VF y, VF* acc) {
#if HWY_TARGET == HWY_AVX2
  __asm__("vfmadd231ps {%2, %1, %0|%0, %1, %2}" : "+x"(acc->raw) : "x"(x.raw), "x"(y.raw));  // AT&T's or Intel's order
#else
  *acc = hn::MulAdd(x, y, *acc);
#endif
}

// Keeps a load that follows from moving up.
HWY_INLINE void HoldLoads() {
#if HWY_TARGET == HWY_AVX2 && HWY_COMPILER_CLANG
  __asm__ volatile("" ::: "memory");
#endif
}

// A distance that the compiler knows nothing about, so that it stays the index of an address and does not become a
// second pointer.
HWY_INLINE ptrdiff_t Opaque(ptrdiff_t x) {
  __asm__("" : "+r"(x));
  return x;
}

// Vectors of queries in a full tile, and keys (or channels) beside NV of them: NV * keys accumulators, NV vectors of
// queries and a broadcast fill 16 or 32 registers. docs/kernels.md has what else was tried.
#if HWY_TARGET == HWY_AVX2
constexpr size_t kVectors = 3;
template <size_t NV>
constexpr size_t kTileKeys = NV == 3   ? 4
                             : NV == 2 ? 6
                                       : 8;
#elif HWY_TARGET == HWY_AVX3
constexpr size_t kVectors = 2;
template <size_t NV>
constexpr size_t kTileKeys = NV == 2 ? 8 : 12;
#else
constexpr size_t kVectors = 3;
template <size_t NV>
constexpr size_t kTileKeys = NV == 3 ? 8 : 12;
#endif
constexpr size_t kWidth = kVectors * kLanes;  // queries of a full tile

// kUnroll = 4 or 1 steps of all chains: acc[i] += scalar (i, step) * vectors of that step. The scalar lies at
// scalars + offset[i] + step if kRows (scores: a row each), else at scalars + offset[step] + i (values: a column each);
// offsets are bytes.
template <bool kRows, size_t kSteps, size_t NK, size_t NV>
HWY_INLINE void Turn(const float* vectors, const float* scalars, const ptrdiff_t* offset, VF (&acc)[NK][NV]) {
  const DF d;
  ETALON_UNROLL for (size_t u = 0; u < kSteps; ++u) {
    VF x[NV];
    ETALON_UNROLL for (size_t j = 0; j < NV; ++j) x[j] = hn::Load(d, vectors + (u * NV + j) * kLanes);
    ETALON_UNROLL for (size_t i = 0; i < NK; ++i) {
      const char* row = reinterpret_cast<const char*>(scalars) + offset[kRows ? i : u];
      HoldLoads();
      const VF y = hn::Set(d, reinterpret_cast<const float*>(row)[kRows ? u : i]);
      ETALON_UNROLL for (size_t j = 0; j < NV; ++j) Accumulate(y, x[j], &acc[i][j]);
    }
  }
}

// The chains of a tile, n steps from 0. Rows of scalars are `stride` floats apart.
template <bool kRows, size_t NK, size_t NV>
HWY_INLINE void Chains(size_t n, const float* HWY_RESTRICT vectors, const float* HWY_RESTRICT scalars, ptrdiff_t stride,
                       VF (&acc)[NK][NV]) {
  constexpr size_t kApart = kRows ? NK : kUnroll;
  ptrdiff_t offset[kApart];
  ETALON_UNROLL for (size_t i = 0; i < kApart; ++i) {
    offset[i] = Opaque(static_cast<ptrdiff_t>(i * sizeof(float)) * stride);
  }
  ETALON_UNROLL for (size_t i = 0; i < NK; ++i) {
    ETALON_UNROLL for (size_t j = 0; j < NV; ++j) acc[i][j] = hn::Zero(DF());
  }
  for (; n >= kUnroll; n -= kUnroll) {
    Turn<kRows, kUnroll>(vectors, scalars, offset, acc);
    vectors += kUnroll * NV * kLanes;
    scalars += kRows ? static_cast<ptrdiff_t>(kUnroll) : static_cast<ptrdiff_t>(kUnroll) * stride;
  }
  for (; n > 0; --n) {
    Turn<kRows, 1>(vectors, scalars, offset, acc);
    vectors += NV * kLanes;
    scalars += kRows ? 1 : stride;
  }
}

// s[i][lanes] = scores of NK keys; max and probe take them up. probe becomes NaN if any score is not finite.
template <size_t NK, size_t NV>
HWY_INLINE void ScoreTile(const float* q, const float* k, ptrdiff_t k_stride, size_t head_dim, float* s, VF* max,
                          VF* probe) {
  const DF d;
  VF acc[NK][NV];
  Chains<true>(head_dim, q, k, k_stride, acc);
  ETALON_UNROLL for (size_t i = 0; i < NK; ++i) {
    ETALON_UNROLL for (size_t j = 0; j < NV; ++j) {
      hn::Store(acc[i][j], d, s + (i * NV + j) * kLanes);
      max[j] = MaxOf(acc[i][j], max[j]);
      probe[j] = hn::MulAdd(acc[i][j], hn::Zero(d), probe[j]);
    }
  }
}

// Scores of num_keys keys. Where the last tile is not full it starts earlier: the same scores come out once more.
template <size_t NV>
HWY_INLINE void ScoreTiles(const float* q, const float* k, ptrdiff_t k_stride, size_t num_keys, size_t head_dim,
                           float* s, VF* max, VF* probe) {
  constexpr size_t kKeys = kTileKeys<NV>;
  const auto row = [&](size_t i) HWY_ATTR { return k + static_cast<ptrdiff_t>(i) * k_stride; };
  if (num_keys < kKeys) {
    for (size_t i = 0; i < num_keys; ++i) {
      ScoreTile<1, NV>(q, row(i), k_stride, head_dim, s + i * NV * kLanes, max, probe);
    }
    return;
  }
  for (size_t i = 0; i < num_keys; i += kKeys) {
    const size_t first = i + kKeys <= num_keys ? i : num_keys - kKeys;
    ScoreTile<kKeys, NV>(q, row(first), k_stride, head_dim, s + first * NV * kLanes, max, probe);
  }
}

// How the sums of a chunk join what is there: o = o * a + sum * b, or o = sum.
struct JoinChunk {
  bool first;
  const VF* a;  // [NV]
  const VF* b;
};

// Weighted sums where keys whose weight is -0 are absent: their value may be anything.
template <size_t NC, size_t NV>
HWY_INLINE void SelectedChains(size_t n, const float* p, const float* v, ptrdiff_t v_stride, VF (&acc)[NC][NV]) {
  const DF d;
  for (auto& row : acc) {
    for (VF& x : row) x = hn::Zero(d);
  }
  for (size_t t = 0; t < n; ++t) {
    for (size_t j = 0; j < NV; ++j) {
      const VF pt = hn::Load(d, p + (t * NV + j) * kLanes);
      const auto absent = hn::RebindMask(d, hn::Eq(hn::BitCast(DU(), pt), hn::Set(DU(), 0x80000000u)));
      for (size_t i = 0; i < NC; ++i) {
        const VF vt = hn::Set(d, v[static_cast<ptrdiff_t>(t) * v_stride + static_cast<ptrdiff_t>(i)]);
        acc[i][j] = hn::IfThenElse(absent, acc[i][j], hn::MulAdd(vt, pt, acc[i][j]));
      }
    }
  }
}

// NC channels of the weighted sums of num_keys value rows.
template <size_t NC, size_t NV, bool kSelect>
HWY_INLINE void ValueTile(const float* p, const float* v, ptrdiff_t v_stride, size_t num_keys, float* o,
                          const JoinChunk& join) {
  const DF d;
  VF acc[NC][NV];
  if constexpr (kSelect) {
    SelectedChains(num_keys, p, v, v_stride, acc);
  } else {
    Chains<false>(num_keys, p, v, v_stride, acc);
  }
  if (join.first) {
    ETALON_UNROLL for (size_t i = 0; i < NC; ++i) {
      ETALON_UNROLL for (size_t j = 0; j < NV; ++j) hn::Store(acc[i][j], d, o + (i * NV + j) * kLanes);
    }
    return;
  }
  ETALON_UNROLL for (size_t i = 0; i < NC; ++i) {
    ETALON_UNROLL for (size_t j = 0; j < NV; ++j) {
      float* at = o + (i * NV + j) * kLanes;
      hn::Store(hn::MulAdd(hn::Load(d, at), join.a[j], hn::Mul(acc[i][j], join.b[j])), d, at);
    }
  }
}

template <size_t NV, bool kSelect>
HWY_INLINE void ValueTiles(const float* p, const float* v, ptrdiff_t v_stride, size_t num_keys, size_t value_dim,
                           float* o, const JoinChunk& join) {
  constexpr size_t kChannels = kSelect ? 1 : kTileKeys<NV>;
  size_t c = 0;
  for (; c + kChannels <= value_dim; c += kChannels) {
    ValueTile<kChannels, NV, kSelect>(p, v + c, v_stride, num_keys, o + c * NV * kLanes, join);
  }
  if constexpr (kChannels > 4) {
    for (; c + 4 <= value_dim; c += 4) {
      ValueTile<4, NV, kSelect>(p, v + c, v_stride, num_keys, o + c * NV * kLanes, join);
    }
  }
  if constexpr (kChannels > 1) {
    for (; c + 2 <= value_dim; c += 2) {
      ValueTile<2, NV, kSelect>(p, v + c, v_stride, num_keys, o + c * NV * kLanes, join);
    }
    for (; c < value_dim; ++c) {
      ValueTile<1, NV, kSelect>(p, v + c, v_stride, num_keys, o + c * NV * kLanes, join);
    }
  }
}

#endif  // ETALON_HIGHWAY_EXACT
}  // namespace HWY_NAMESPACE
}  // namespace etalon
HWY_AFTER_NAMESPACE();

#endif  // include guard
