// mask.h: geometry (causal, window, lengths) as one span of visible keys a row. Kernels never hear "causal".
// Meaning: docs/numerics.md, geometry.
#ifndef ETALON_LIB_ATTENTION_MASK_H_
#define ETALON_LIB_ATTENTION_MASK_H_

#include <cstdint>

#include "arch/kernel_table.h"

namespace etalon {

// Row i stands at position i + q_offset. A key at position t is inside iff -left <= t - (i + q_offset) <= right, where
// a negative left or right means no limit on that side. The row's own position is not counted: "a window of W keys,
// itself included" is left = W - 1. Causal is right = 0.
struct Geometry {
  int64_t q_offset = 0;  // 0 aligns causal masks top-left, kv_len - q_len bottom-right
  int64_t left = -1;
  int64_t right = -1;
  int64_t prefix = 0;  // `right` does not limit keys at positions below it; 0 or less: it limits all
};

// a + b, held at the ends of the range.
int64_t AddSaturated(int64_t a, int64_t b);

// Position of row i; saturates.
int64_t RowPosition(const Geometry& geometry, int64_t row);

// The span of row i among the keys at positions kv_first ... kv_last - 1. Any values: sums saturate.
Span VisibleSpan(const Geometry& geometry, int64_t row, int64_t kv_first, int64_t kv_last);

}  // namespace etalon

#endif  // ETALON_LIB_ATTENTION_MASK_H_
