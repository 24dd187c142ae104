// columns.h: what is added to scores, or hides keys, dense in memory: a number or a bit for each query and key.
#ifndef ETALON_LIB_ATTENTION_COLUMNS_H_
#define ETALON_LIB_ATTENTION_COLUMNS_H_

#include <cstdint>

#include "arch/kernel_table.h"
#include "lib/base/view.h"

namespace etalon {

// [batch, num_q_heads, q_len, columns], any stride 0. No data = none. Column 0 is the first key of the source's tensor,
// padding on the left included.
struct ColumnsView {
  TensorView rows;              // its type is that of a bias
  int64_t column_stride_bytes;  // of a bias, or of a mask of bytes
  MaskType mask_type;           // of a mask
};

}  // namespace etalon

#endif  // ETALON_LIB_ATTENTION_COLUMNS_H_
