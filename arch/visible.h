// visible.h: which keys a row sees by span, runs and mask: of a chunk as bits, and where the next ones are. Plain code,
// compiled for the baseline too (internal linkage, as lib/base/types.h explains).
#ifndef ETALON_ARCH_VISIBLE_H_
#define ETALON_ARCH_VISIBLE_H_

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "arch/kernel_table.h"
#include "lib/base/parallel.h"

namespace etalon {

// Up to 128 keys: bit i % 64 of word[i / 64].
struct VisibleBits {
  uint64_t word[2];
};

// Of ascending runs the one that holds the column, or else the next; num_runs if there is none.
static inline int64_t RunAt(const Span* runs, int64_t num_runs, int64_t column) {
  int64_t first = 0, last = num_runs;
  while (first < last) {
    const int64_t middle = first + (last - first) / 2;
    if (runs[middle].last <= column) {
      first = middle + 1;
    } else {
      last = middle;
    }
  }
  return first;
}

// The first position from `position` on that span and runs show; span.last or more if there is none.
static inline int64_t NextVisible(const RowKeys& keys, const KeySource& source, int64_t position) {
  const int64_t from = Larger(position, keys.span.first);
  if (keys.runs == nullptr || from >= keys.span.last) return from;
  const int64_t shift = source.first_column - source.base, run = RunAt(keys.runs, keys.num_runs, from + shift);
  return run == keys.num_runs ? keys.span.last : Larger(from, keys.runs[run].first - shift);
}

// Bits first ... last - 1; 0 <= first, last <= 128.
static inline VisibleBits BitRange(int64_t first, int64_t last) {
  const auto below = [](int64_t n) { return n <= 0 ? 0 : n >= 64 ? ~uint64_t{0} : (uint64_t{1} << n) - 1; };
  return {{below(last) & ~below(first), below(last - 64) & ~below(first - 64)}};
}

// Bit i: whether byte i is not 0; count <= 64.
static inline uint64_t BitsOfBytes(const uint8_t* bytes, int64_t count) {
  uint64_t bits = 0;
  int64_t i = 0;
  for (; i + 8 <= count; i += 8) {
    uint64_t eight;
    std::memcpy(&eight, bytes + i, sizeof eight);
    const uint64_t low = 0x7F7F7F7F7F7F7F7Fu;
    const uint64_t ones = ((((eight & low) + low) | eight) & ~low) >> 7;  // a byte of 1 for each that is not 0
    bits |=
        (ones * 0x0102040810204080u) >> 56 << i;  // the product brings bit 8 j to bit 56 + j, and nothing else there
  }
  for (; i < count; ++i) bits |= static_cast<uint64_t>(bytes[i] != 0) << i;
  return bits;
}

// Bits first ... first + count - 1 of packed ones; count <= 64. Reads no byte without one of them.
static inline uint64_t BitsOfBits(const uint8_t* packed, int64_t first, int64_t count) {
  if (count <= 0) return 0;
  const uint8_t* byte = packed + first / 8;
  const int64_t skip = first % 8, last_byte = (skip + count - 1) / 8;
  uint64_t bits = 0;
  std::memcpy(&bits, byte, static_cast<size_t>(last_byte < 8 ? last_byte + 1 : 8));  // little-endian
  bits >>= skip;
  if (last_byte == 8) bits |= static_cast<uint64_t>(byte[8]) << (64 - skip);  // only if skip > 0
  return bits;
}
static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "bits are read as words");

// What the mask of a row shows of positions first ... first + count - 1; count <= 64. Bits beyond are any.
static inline uint64_t MaskBits(const RowKeys& keys, const KeySource& source, int64_t first, int64_t count) {
  const int64_t column = first - source.base + source.first_column, stride = source.mask_stride_bytes;
  if (source.mask_type == MaskType::kBits) return BitsOfBits(keys.mask, column, count);
  if (stride == 1) return BitsOfBytes(keys.mask + column, count);
  uint64_t bits = 0;
  for (int64_t i = 0; i < count; ++i) bits |= static_cast<uint64_t>(keys.mask[(column + i) * stride] != 0) << i;
  return bits;
}

// Bit i: whether the row sees position chunk.first + i. The chunk has at most 128 positions.
static inline VisibleBits VisibleOf(const RowKeys& keys, const KeySource& source, const Span& chunk) {
  const int64_t first = Larger(keys.span.first, chunk.first), last = Smaller(keys.span.last, chunk.last);
  if (first >= last) return {};
  VisibleBits bits = BitRange(first - chunk.first, last - chunk.first);
  if (keys.runs != nullptr) {
    const int64_t shift = source.first_column - source.base;
    VisibleBits in_runs = {};
    for (int64_t i = RunAt(keys.runs, keys.num_runs, first + shift);
         i < keys.num_runs && keys.runs[i].first - shift < last; ++i) {
      const VisibleBits run = BitRange(Larger(keys.runs[i].first - shift - chunk.first, 0),
                                       Smaller(keys.runs[i].last - shift, last) - chunk.first);
      in_runs = {{in_runs.word[0] | run.word[0], in_runs.word[1] | run.word[1]}};
    }
    bits = {{bits.word[0] & in_runs.word[0], bits.word[1] & in_runs.word[1]}};
  }
  for (int64_t w = 0; w < 2 && keys.mask != nullptr; ++w) {
    if (bits.word[w] == 0) continue;
    const int64_t from = Larger(first, chunk.first + 64 * w), to = Smaller(last, chunk.first + 64 * (w + 1));
    bits.word[w] &= MaskBits(keys, source, from, to - from) << (from - chunk.first - 64 * w);
  }
  return bits;
}

// The lowest and the highest bit that is set, the latter plus one; {128, 0} if there is none.
static inline int64_t FirstBit(const VisibleBits& bits) {
  if (bits.word[0] != 0) return __builtin_ctzll(bits.word[0]);
  return bits.word[1] != 0 ? 64 + __builtin_ctzll(bits.word[1]) : 128;
}
static inline int64_t LastBit(const VisibleBits& bits) {
  if (bits.word[1] != 0) return 128 - __builtin_clzll(bits.word[1]);
  return bits.word[0] != 0 ? 64 - __builtin_clzll(bits.word[0]) : 0;
}

// Whether two rows see the same, without looking at memory.
static inline bool SeeAlike(const RowKeys& a, const RowKeys& b) {
  return a.span.first == b.span.first && a.span.last == b.span.last && a.mask == b.mask && a.runs == b.runs &&
         a.num_runs == b.num_runs;
}

// The first position from `position` on that spans and runs let one of some rows see; INT64_MAX if there is none.
static inline int64_t NextSeen(const RowKeys* keys, size_t num_rows, const KeySource& source, int64_t position) {
  int64_t next = INT64_MAX;
  for (size_t r = 0; r < num_rows; ++r) {
    if (r > 0 && SeeAlike(keys[r], keys[r - 1])) continue;
    const int64_t of_row = NextVisible(keys[r], source, position);
    if (of_row < keys[r].span.last) next = Smaller(next, of_row);
  }
  return next;
}

// The smallest span that holds what the row sees of at most 128 positions; empty if that is nothing.
static inline Span SeenOf(const RowKeys& keys, const KeySource& source, const Span& chunk) {
  const VisibleBits bits = VisibleOf(keys, source, chunk);
  return {chunk.first + FirstBit(bits), chunk.first + LastBit(bits)};
}

// Whether the row sees all of these positions for certain.
static inline bool SeesAll(const RowKeys& keys, const Span& positions) {
  return keys.mask == nullptr && keys.runs == nullptr && keys.span.first <= positions.first &&
         positions.last <= keys.span.last;
}

}  // namespace etalon

#endif  // ETALON_ARCH_VISIBLE_H_
