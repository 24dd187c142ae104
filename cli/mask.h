// mask.h: which key a query row sees, said once more and independently of lib/attention, so that it can check it.
#ifndef ETALON_CLI_MASK_H_
#define ETALON_CLI_MASK_H_

#include <algorithm>
#include <cstdint>
#include <string>

namespace etalon::cli {

enum class MaskKind { kNone, kCausal, kWindow };

// Row i and key t are counted from the first of each. Causal: t <= i. Window: also i - t < window, so that a row's own
// key is one of `window`.
struct Mask {
  MaskKind kind = MaskKind::kNone;
  int64_t window = 0;  // >= 1; read for kWindow only
};

inline bool Sees(const Mask& mask, int64_t row, int64_t key) {
  if (mask.kind == MaskKind::kNone) return true;
  return key <= row && (mask.kind == MaskKind::kCausal || row - key < mask.window);
}

inline int64_t VisiblePairs(const Mask& mask, int64_t rows, int64_t keys) {
  if (mask.kind == MaskKind::kNone) return rows * keys;
  int64_t pairs = 0;
  for (int64_t i = 0; i < rows; ++i) {
    const int64_t first = mask.kind == MaskKind::kWindow ? std::max<int64_t>(0, i - (mask.window - 1)) : 0;
    pairs += std::max<int64_t>(0, std::min(i + 1, keys) - first);
  }
  return pairs;
}

inline std::string MaskText(const Mask& mask) {
  if (mask.kind == MaskKind::kNone) return "none";
  return mask.kind == MaskKind::kCausal ? "causal" : "window " + std::to_string(mask.window);
}

}  // namespace etalon::cli

#endif  // ETALON_CLI_MASK_H_
