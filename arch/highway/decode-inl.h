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

// Calls kernel.Run<type>().
template <class Kernel>
HWY_INLINE void WithType(DType type, const Kernel& kernel) {
  if (type == DType::kF32) return kernel.template Run<DType::kF32>();
  if (type == DType::kF16) return kernel.template Run<DType::kF16>();
  return kernel.template Run<DType::kBF16>();
}

// kLanes consecutive keys as they are stored, and where the scores of the first row against them go.
struct KeyVector {
  const unsigned char* first;
  int64_t stride;  // bytes, from key to key
  float* s;
};

// Bytes of room for the keys of a vector, of any type.
HWY_INLINE size_t KeyVectorBytes(size_t head_dim) { return kLanes * CopyStride(head_dim) * sizeof(float); }

// Key t of `keys` and those behind it, with scores from s on. Where fewer than a vector are left it begins earlier: the
// same scores come out once more. Where there are fewer at all the last is repeated. Keys that do not lie one after the
// other are copied.
HWY_INLINE KeyVector KeyVectorAt(const KeySource& source, const Span& keys, size_t t, size_t head_dim, float* s,
                                 unsigned char* copy) {
  const size_t num_keys = static_cast<size_t>(keys.last - keys.first), count = num_keys < kLanes ? num_keys : kLanes;
  if (num_keys - t < kLanes) t = num_keys - count;
  const int64_t first = keys.first + static_cast<int64_t>(t);
  const RowRun run = RowsFrom(source, KeyPlacesOf(source), first, first + static_cast<int64_t>(count));
  if (run.count == static_cast<int64_t>(kLanes)) return {run.first, source.k_stride_bytes, s + t};
  const size_t row_bytes = head_dim * ElementSize(source.k_type), stride = CopyStride(head_dim) * sizeof(float);
  for (size_t i = 0; i < kLanes; ++i) {
    const void* key = KeyRow(source, first + static_cast<int64_t>(i < count ? i : count - 1));
    std::memcpy(copy + i * stride, key, row_bytes);
  }
  return {copy, static_cast<int64_t>(stride), s + t};
}

// Block b of 128 bits of the vector holds what stands at byte `offset` of key 4 b + i, for i < 4.
template <class D>
HWY_INLINE hn::Vec<D> LoadBlocks(D d, const KeyVector& keys, size_t i, size_t offset) {
  const auto load = [&](size_t block) HWY_ATTR {
    const unsigned char* at = keys.first + static_cast<int64_t>(4 * block + i) * keys.stride + offset;
    return hn::LoadDup128(d, reinterpret_cast<const hn::TFromD<D>*>(at));
  };
#if HWY_TARGET == HWY_AVX3
  const auto low = hn::OddEvenBlocks(load(1), load(0)), high = hn::OddEvenBlocks(load(3), load(2));
  return hn::ConcatUpperLower(d, high, low);
#elif HWY_TARGET == HWY_AVX2
  return hn::ConcatUpperLower(d, load(1), load(0));
#else
  return load(0);
#endif
}

// Touches the rows of some key vectors, each a stream.
HWY_INLINE void FetchKeys(const KeyVector* keys, size_t num_vectors, size_t row_bytes) {
  for (int64_t i = 0; i < static_cast<int64_t>(kLanes); ++i) {
    for (size_t j = 0; j < num_vectors; ++j) TouchRow(keys[j].first + i * keys[j].stride, row_bytes);
  }
}

// Channels of a key that are loaded at once: 128 bits.
template <DType kType>
constexpr size_t kBlockChannels = kType == DType::kF32 ? 4 : 8;

// Channels c ... c + kBlockChannels - 1 of the keys, as vectors of one channel each. (f32: eight at a time with vectors
// of 256 bits take half the loads and a half more shuffles: slower.)
template <DType kType>
HWY_INLINE void LoadChannels(const KeyVector& keys, size_t c, VF* channels) {
  if constexpr (kType == DType::kF32) {
    ETALON_UNROLL for (size_t i = 0; i < 4; ++i) channels[i] = LoadBlocks(DF(), keys, i, c * sizeof(float));
  } else {
    ETALON_UNROLL for (size_t i = 0; i < 4; ++i) {
      const V16Full x = LoadBlocks(D16Full(), keys, i, c * sizeof(uint16_t));
      const WidenedBlocks wide = kType == DType::kF16 ? WidenBlocksF16(x) : WidenBlocksBF16(x);
      channels[i] = wide.low;
      channels[4 + i] = wide.high;
    }
    Transpose4(channels + 4);
  }
  Transpose4(channels);
}

// Scores of NR query rows and NK vectors of keys: row r begins at q + r * q_stride, its scores at s + r * s_stride.
template <DType kType, size_t NR, size_t NK>
HWY_INLINE void ScoreKeys(const float* HWY_RESTRICT q, size_t q_stride, const KeyVector* keys, size_t head_dim,
                          size_t s_stride) {
  const DF d;
  VF acc[NR][NK];
  ETALON_UNROLL for (size_t r = 0; r < NR; ++r) {
    ETALON_UNROLL for (size_t j = 0; j < NK; ++j) acc[r][j] = hn::Zero(d);
  }
  size_t c = 0;
  constexpr size_t kStep = kBlockChannels<kType>;
  for (; c + kStep <= head_dim; c += kStep) {
    ETALON_UNROLL for (size_t j = 0; j < NK; ++j) {
      VF channels[kStep];
      LoadChannels<kType>(keys[j], c, channels);
      ETALON_UNROLL for (size_t i = 0; i < kStep; ++i) {
        ETALON_UNROLL for (size_t r = 0; r < NR; ++r) {
          acc[r][j] = hn::MulAdd(hn::Set(d, q[r * q_stride + c + i]), channels[i], acc[r][j]);
        }
      }
    }
  }
  for (; c < head_dim; ++c) {
    ETALON_UNROLL for (size_t j = 0; j < NK; ++j) {
      alignas(64) float channel[kLanes];
      for (size_t i = 0; i < kLanes; ++i) {
        channel[i] = LoadElement(kType, keys[j].first + static_cast<int64_t>(i) * keys[j].stride, c);
      }
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
static_assert(kMostKeyVectors == kStreams, "a stream a vector");

// The same for num_vectors <= kMostKeyVectors.
template <DType kType, size_t NR>
HWY_INLINE void ScoreVectors(const float* q, size_t q_stride, const KeyVector* keys, size_t num_vectors,
                             size_t head_dim, size_t s_stride) {
  size_t j = 0;
  for (; j + kKeyVectors<NR> <= num_vectors; j += kKeyVectors<NR>) {
    ScoreKeys<kType, NR, kKeyVectors<NR>>(q, q_stride, keys + j, head_dim, s_stride);
  }
  for (; j < num_vectors; ++j) ScoreKeys<kType, NR, 1>(q, q_stride, keys + j, head_dim, s_stride);
}

// Adds the weighted rows of num_keys keys to NC vectors of channels, of which the last holds `last_count`; sum has room
// for whole vectors. From zero if `from_zero`.
template <DType kType, size_t NR, size_t NC, bool kWhole>
HWY_INLINE void SumChannels(const float* HWY_RESTRICT p, size_t p_stride, const unsigned char* HWY_RESTRICT v,
                            int64_t v_stride, size_t num_keys, size_t last_count, bool from_zero,
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
      x[j] =
          kWhole || j + 1 < NC ? LoadElements(kType, v, j * kLanes) : LoadElementsN(kType, v, j * kLanes, last_count);
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

template <DType kType, size_t NR>
HWY_INLINE void SumAllChannels(const float* p, size_t p_stride, const unsigned char* v, int64_t v_stride,
                               size_t num_keys, size_t value_dim, bool from_zero, float* sum, size_t sum_stride) {
  const auto channel = [&](size_t c) { return v + c * ElementSize(kType); };
  constexpr size_t kChannels = kChannelVectors<NR> * kLanes;
  size_t c = 0;
  for (; c + kChannels <= value_dim; c += kChannels) {
    SumChannels<kType, NR, kChannelVectors<NR>, true>(p, p_stride, channel(c), v_stride, num_keys, kLanes, from_zero,
                                                      sum + c, sum_stride);
  }
  for (; c + kLanes <= value_dim; c += kLanes) {
    SumChannels<kType, NR, 1, true>(p, p_stride, channel(c), v_stride, num_keys, kLanes, from_zero, sum + c,
                                    sum_stride);
  }
  if (c < value_dim) {
    SumChannels<kType, NR, 1, false>(p, p_stride, channel(c), v_stride, num_keys, value_dim - c, from_zero, sum + c,
                                     sum_stride);
  }
}

// One row where keys of weight -0 are absent: their values, which row_of(t) gives, may be anything.
template <class RowOf>
inline void SumSelected(const float* p, DType type, size_t num_keys, size_t value_dim, float* sum,
                        const RowOf& row_of) {
  const DF d;
  for (size_t c = 0; c < value_dim; c += kLanes) {
    const size_t count = value_dim - c < kLanes ? value_dim - c : kLanes;
    VF acc = hn::Zero(d);
    for (size_t t = 0; t < num_keys; ++t) {
      if (Bits(p[t]) == 0x80000000u) continue;
      acc = hn::MulAdd(hn::Set(d, p[t]), LoadElementsN(type, row_of(t), c, count), acc);
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
template <DType kType>
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
    ScoreVectors<kType, NR>(q + r * stride, stride, moved, num_vectors, head_dim, kRowScores);
  }
};

// All rows of some key vectors, of keys of the type.
struct ScoreAllRows {
  const float* q;
  size_t num_rows;
  const KeyVector* keys;
  size_t num_vectors;
  size_t head_dim;
  template <DType kType>
  HWY_INLINE void Run() const {
    ForRowBlocks(num_rows, RowScores<kType>{q, keys, num_vectors, head_dim});
  }
};

#endif  // ETALON_HIGHWAY_EXACT
}  // namespace HWY_NAMESPACE
}  // namespace etalon
HWY_AFTER_NAMESPACE();

#endif  // include guard
