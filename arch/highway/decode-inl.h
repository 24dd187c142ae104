// decode-inl.h: the kernels for few query rows, which no lanes of queries would fill. Scores: lanes are keys, of which
// four channels at a time are transposed in registers; each key has its one chain. Values: lanes are channels. A block
// of rows shares what is loaded, so keys and values are read once for all query heads of a group.
#if defined(ETALON_ARCH_HIGHWAY_DECODE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ETALON_ARCH_HIGHWAY_DECODE_INL_H_
#undef ETALON_ARCH_HIGHWAY_DECODE_INL_H_
#else
#define ETALON_ARCH_HIGHWAY_DECODE_INL_H_
#endif

#include "arch/highway/rows-inl.h"
#include "arch/highway/tile-inl.h"
#include "arch/highway/transpose-inl.h"
#include "arch/kernel_table.h"
#include "lib/base/parallel.h"

HWY_BEFORE_NAMESPACE();
namespace etalon {
namespace HWY_NAMESPACE {
#if ETALON_HIGHWAY_EXACT

constexpr size_t kRowScores = static_cast<size_t>(kChunk);  // room for the scores of a row of a chunk

// The elements of a query, scaled, and zeros up to a whole vector; zeros alone if it must not be read.
inline void ScaleRow(const void* q, bool reads, const ScoreOptions& options, size_t head_dim, float* to) {
  const DF d;
  const VF scale = hn::Set(d, options.scale);
  ForVectors(head_dim, [&](size_t c, size_t count) HWY_ATTR {
    const VF x = reads ? LoadElementsN(options.q_type, q, c, count) : hn::Zero(d);
    hn::Store(hn::Mul(x, scale), d, to + c);
  });
}

// kLanes consecutive keys, and where the scores of the first row against them go.
struct KeyVector {
  const float* first;
  ptrdiff_t stride;  // floats, from key to key
  float* s;
};

// The keys from t on. Where fewer than a vector are left it begins earlier: the same scores come out once more.
HWY_INLINE KeyVector KeyVectorAt(const FloatRows& k, size_t num_keys, size_t t, float* s) {
  if (num_keys - t < kLanes) t = num_keys < kLanes ? 0 : num_keys - kLanes;
  return {k.data + static_cast<ptrdiff_t>(t) * k.stride, k.stride, s + t};
}

// Fewer keys than a vector has lanes: a copy in which the last is repeated. The copy may be where the keys are.
inline FloatRows FillVector(const FloatRows& k, size_t num_keys, size_t head_dim, float* copy) {
  const size_t stride = CopyStride(head_dim);
  for (size_t i = 0; i < kLanes; ++i) {
    const ptrdiff_t key = static_cast<ptrdiff_t>(i < num_keys ? i : num_keys - 1);
    const float* row = k.data + key * k.stride;
    if (row != copy + i * stride) WidenRow(DType::kF32, row, head_dim, copy + i * stride);
  }
  return {copy, static_cast<ptrdiff_t>(stride)};
}

// Channels c ... c + 3 of the keys, as vectors of one channel each. (Eight at a time with vectors of 256 bits take half
// the loads and a half more shuffles: slower.)
HWY_INLINE void LoadFourChannels(const KeyVector& keys, size_t c, VF* channels) {
  const DF d;
  ETALON_UNROLL for (size_t i = 0; i < 4; ++i) {
    const auto load = [&](size_t block) HWY_ATTR {
      return hn::LoadDup128(d, keys.first + static_cast<ptrdiff_t>(4 * block + i) * keys.stride + c);
    };
#if HWY_TARGET == HWY_AVX3
    const VF low = hn::OddEvenBlocks(load(1), load(0)), high = hn::OddEvenBlocks(load(3), load(2));
    channels[i] = hn::ConcatUpperLower(d, high, low);
#elif HWY_TARGET == HWY_AVX2
    channels[i] = hn::ConcatUpperLower(d, load(1), load(0));
#else
    channels[i] = load(0);
#endif
  }
  Transpose4(channels);
}

// Scores of NR query rows and NK vectors of keys: row r begins at q + r * q_stride, its scores at s + r * s_stride.
template <size_t NR, size_t NK>
HWY_INLINE void ScoreKeys(const float* HWY_RESTRICT q, size_t q_stride, const KeyVector* keys, size_t head_dim,
                          size_t s_stride) {
  const DF d;
  VF acc[NR][NK];
  ETALON_UNROLL for (size_t r = 0; r < NR; ++r) {
    ETALON_UNROLL for (size_t j = 0; j < NK; ++j) acc[r][j] = hn::Zero(d);
  }
  size_t c = 0;
  for (; c + 4 <= head_dim; c += 4) {
    ETALON_UNROLL for (size_t j = 0; j < NK; ++j) {
      VF channels[4];
      LoadFourChannels(keys[j], c, channels);
      ETALON_UNROLL for (size_t i = 0; i < 4; ++i) {
        ETALON_UNROLL for (size_t r = 0; r < NR; ++r) {
          acc[r][j] = hn::MulAdd(hn::Set(d, q[r * q_stride + c + i]), channels[i], acc[r][j]);
        }
      }
    }
  }
  for (; c < head_dim; ++c) {
    ETALON_UNROLL for (size_t j = 0; j < NK; ++j) {
      alignas(64) float channel[kLanes];
      for (size_t i = 0; i < kLanes; ++i)
        channel[i] = keys[j].first[static_cast<ptrdiff_t>(i) * keys[j].stride + static_cast<ptrdiff_t>(c)];
      const VF k = hn::Load(d, channel);
      ETALON_UNROLL for (size_t r = 0; r < NR; ++r) {
        acc[r][j] = hn::MulAdd(hn::Set(d, q[r * q_stride + c]), k, acc[r][j]);
      }
    }
  }
  ETALON_UNROLL for (size_t r = 0; r < NR; ++r) {
    ETALON_UNROLL for (size_t j = 0; j < NK; ++j) hn::StoreU(acc[r][j], d, keys[j].s + r * s_stride);
  }
}

// Key vectors beside NR rows: as many chains as hide the latency of one.
template <size_t NR>
constexpr size_t kKeyVectors = NR == 1 ? 4 : 2;
constexpr size_t kMostKeyVectors = 4;

// The same for num_vectors <= kMostKeyVectors.
template <size_t NR>
HWY_INLINE void ScoreVectors(const float* q, size_t q_stride, const KeyVector* keys, size_t num_vectors,
                             size_t head_dim, size_t s_stride) {
  size_t j = 0;
  for (; j + kKeyVectors<NR> <= num_vectors; j += kKeyVectors<NR>) {
    ScoreKeys<NR, kKeyVectors<NR>>(q, q_stride, keys + j, head_dim, s_stride);
  }
  for (; j < num_vectors; ++j) ScoreKeys<NR, 1>(q, q_stride, keys + j, head_dim, s_stride);
}

// Adds the weighted rows of num_keys keys to NC vectors of channels, of which the last holds `last_count`; sum has room
// for whole vectors. From zero if `from_zero`.
template <size_t NR, size_t NC, bool kWhole>
HWY_INLINE void SumChannels(const float* HWY_RESTRICT p, size_t p_stride, const float* HWY_RESTRICT v,
                            ptrdiff_t v_stride, size_t num_keys, size_t last_count, bool from_zero,
                            float* HWY_RESTRICT sum, size_t sum_stride) {
  const DF d;
  VF acc[NR][NC];
  ETALON_UNROLL for (size_t r = 0; r < NR; ++r) {
    ETALON_UNROLL for (size_t j = 0; j < NC; ++j) {
      acc[r][j] = from_zero ? hn::Zero(d) : hn::Load(d, sum + r * sum_stride + j * kLanes);
    }
  }
  for (size_t t = 0; t < num_keys; ++t) {
    VF x[NC];
    ETALON_UNROLL for (size_t j = 0; j < NC; ++j) {
      x[j] = kWhole || j + 1 < NC ? hn::LoadU(d, v + j * kLanes) : hn::LoadN(d, v + j * kLanes, last_count);
    }
    ETALON_UNROLL for (size_t r = 0; r < NR; ++r) {
      const VF weight = hn::Set(d, p[r * p_stride + t]);
      ETALON_UNROLL for (size_t j = 0; j < NC; ++j) acc[r][j] = hn::MulAdd(weight, x[j], acc[r][j]);
    }
    v += v_stride;
  }
  ETALON_UNROLL for (size_t r = 0; r < NR; ++r) {
    ETALON_UNROLL for (size_t j = 0; j < NC; ++j) hn::Store(acc[r][j], d, sum + r * sum_stride + j * kLanes);
  }
}

// Vectors of channels beside NR rows.
template <size_t NR>
constexpr size_t kChannelVectors = NR == 1   ? 8
                                   : NR == 2 ? 4
                                             : 2;

template <size_t NR>
HWY_INLINE void SumAllChannels(const float* p, size_t p_stride, const float* v, ptrdiff_t v_stride, size_t num_keys,
                               size_t value_dim, bool from_zero, float* sum, size_t sum_stride) {
  constexpr size_t kChannels = kChannelVectors<NR> * kLanes;
  size_t c = 0;
  for (; c + kChannels <= value_dim; c += kChannels) {
    SumChannels<NR, kChannelVectors<NR>, true>(p, p_stride, v + c, v_stride, num_keys, kLanes, from_zero, sum + c,
                                               sum_stride);
  }
  for (; c + kLanes <= value_dim; c += kLanes) {
    SumChannels<NR, 1, true>(p, p_stride, v + c, v_stride, num_keys, kLanes, from_zero, sum + c, sum_stride);
  }
  if (c < value_dim) {
    SumChannels<NR, 1, false>(p, p_stride, v + c, v_stride, num_keys, value_dim - c, from_zero, sum + c, sum_stride);
  }
}

// One row where keys of weight -0 are absent: their values may be anything.
inline void SumSelected(const float* p, const FloatRows& v, size_t num_keys, size_t value_dim, float* sum) {
  const DF d;
  for (size_t c = 0; c < value_dim; c += kLanes) {
    const size_t count = value_dim - c < kLanes ? value_dim - c : kLanes;
    VF acc = hn::Zero(d);
    for (size_t t = 0; t < num_keys; ++t) {
      if (Bits(p[t]) == 0x80000000u) continue;
      const float* row = v.data + static_cast<ptrdiff_t>(t) * v.stride;
      acc = hn::MulAdd(hn::Set(d, p[t]), hn::LoadN(d, row + c, count), acc);
    }
    hn::Store(acc, d, sum + c);
  }
}

// Calls kernel.Run<rows>(first row) for the rows 0 ... num_rows - 1, in blocks of at most four.
template <class Kernel>
HWY_INLINE void ForRowBlocks(size_t num_rows, const Kernel& kernel) {
  size_t r = 0;
  for (; r + 4 <= num_rows; r += 4) kernel.template Run<4>(r);
  switch (num_rows - r) {
    case 3:
      return kernel.template Run<3>(r);
    case 2:
      return kernel.template Run<2>(r);
    case 1:
      return kernel.template Run<1>(r);
    default:
      return;
  }
}

// For ForRowBlocks: the scores of rows, [row][kRowScores], against some key vectors.
struct RowScores {
  const float* q;  // [row][head_dim rounded up]
  const KeyVector* keys;
  size_t num_vectors;
  size_t head_dim;
  template <size_t NR>
  HWY_INLINE void Run(size_t r) const {
    const size_t stride = RoundUp(head_dim);
    KeyVector moved[kMostKeyVectors];
    for (size_t j = 0; j < num_vectors; ++j) {
      moved[j] = keys[j];
      moved[j].s += r * kRowScores;
    }
    ScoreVectors<NR>(q + r * stride, stride, moved, num_vectors, head_dim, kRowScores);
  }
};

#endif  // ETALON_HIGHWAY_EXACT
}  // namespace HWY_NAMESPACE
}  // namespace etalon
HWY_AFTER_NAMESPACE();

#endif  // include guard
