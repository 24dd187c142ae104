// view.h: an array somebody else owns: pointer, type, shape, byte strides.
#ifndef ETALON_LIB_BASE_VIEW_H_
#define ETALON_LIB_BASE_VIEW_H_

#include <cstdint>

#include "lib/base/types.h"

namespace etalon {

// [batch, heads, len, dim]; the innermost stride is the element size. Outer strides are bytes: 0 broadcasts, negative
// walks backwards.
struct TensorView {
  const void* data = nullptr;
  DType type = DType::kF32;
  int64_t batch_stride_bytes = 0;
  int64_t head_stride_bytes = 0;
  int64_t row_stride_bytes = 0;

  const void* Row(int64_t batch, int64_t head, int64_t row) const {
    return static_cast<const unsigned char*>(data) + batch * batch_stride_bytes + head * head_stride_bytes +
           row * row_stride_bytes;
  }
};

struct MutableTensorView {
  void* data = nullptr;
  DType type = DType::kF32;
  int64_t batch_stride_bytes = 0;
  int64_t head_stride_bytes = 0;
  int64_t row_stride_bytes = 0;

  void* Row(int64_t batch, int64_t head, int64_t row) const {
    return static_cast<unsigned char*>(data) + batch * batch_stride_bytes + head * head_stride_bytes +
           row * row_stride_bytes;
  }
};

}  // namespace etalon

#endif  // ETALON_LIB_BASE_VIEW_H_
