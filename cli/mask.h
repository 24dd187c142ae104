// mask.h: which key a query row sees, said once more and independently of lib/attention, so that it can check it.
#ifndef ETALON_CLI_MASK_H_
#define ETALON_CLI_MASK_H_

#include <algorithm>
#include <cstdint>
#include <string>

namespace etalon::cli {

// Row i stands at position i + q_offset, key t at position t; the row sees the key if -left <= t - (i + q_offset) <=
// right, where a negative left or right is no limit on that side; right does not limit keys at positions below prefix.
struct Mask {
  int64_t left = -1;
  int64_t right = -1;
  int64_t q_offset = 0;
  int64_t prefix = 0;
};

inline Mask CausalMask() { return {-1, 0}; }

// Causal, and each row's own key is one of the `size` last ones that it sees.
inline Mask WindowMask(int64_t size) { return {size - 1, 0}; }

inline bool Sees(const Mask& mask, int64_t row, int64_t key) {
  const int64_t distance = key - (row + mask.q_offset);
  return (mask.left < 0 || distance >= -mask.left) && (mask.right < 0 || distance <= mask.right || key < mask.prefix);
}

// The keys that a row sees are neighbours, those of the prefix too, for the left limit holds for all: first ... last -
// 1, none if last <= first.
struct KeySpan {
  int64_t first;
  int64_t last;
};

inline KeySpan VisibleKeys(const Mask& mask, int64_t row, int64_t keys) {
  const int64_t position = row + mask.q_offset;
  // No sum that could overflow: positions are small, left and right may be anything.
  const int64_t first = mask.left < 0 || mask.left >= position ? 0 : position - mask.left;
  const int64_t last = mask.right < 0 || mask.right >= keys - position ? keys : position + mask.right + 1;
  return {first, std::min(std::max(last, mask.prefix), keys)};
}

// Of rows first ... last - 1.
inline int64_t VisiblePairs(const Mask& mask, int64_t first, int64_t last, int64_t keys) {
  if (mask.left < 0 && mask.right < 0) return (last - first) * keys;
  int64_t pairs = 0;
  for (int64_t i = first; i < last; ++i) {
    const KeySpan seen = VisibleKeys(mask, i, keys);
    pairs += std::max<int64_t>(0, seen.last - seen.first);
  }
  return pairs;
}

inline std::string MaskText(const Mask& mask) {
  std::string text;
  if (mask.left < 0 && mask.right < 0) return "none";
  if (mask.left < 0 && mask.right == 0) {
    text = "causal";
  } else if (mask.right == 0 && mask.left < INT64_MAX) {
    text = "window " + std::to_string(mask.left + 1);
  } else {
    text = (mask.left < 0 ? "all" : std::to_string(mask.left)) + " left, " +
           (mask.right < 0 ? "all" : std::to_string(mask.right)) + " right";
  }
  if (mask.prefix > 0) text += ", prefix of " + std::to_string(mask.prefix);
  return mask.q_offset == 0 ? text : text + ", rows from " + std::to_string(mask.q_offset);
}

}  // namespace etalon::cli

#endif  // ETALON_CLI_MASK_H_
