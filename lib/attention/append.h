// append.h: new keys and values into a cache, wherever its rows lie.
#ifndef ETALON_LIB_ATTENTION_APPEND_H_
#define ETALON_LIB_ATTENTION_APPEND_H_

#include <cstddef>
#include <cstdint>

#include "arch/kernel_table.h"
#include "lib/base/view.h"

namespace etalon {

// Keys, or values: new ones [batch, heads, new_len, dim] and the cache as in SourceProblem (lib/attention/attention.h).
// data may be null in tensors without elements.
struct AppendedRows {
  TensorView from;
  MutableTensorView to;
  size_t dim;
};

struct AppendProblem {
  int64_t batch;
  int64_t heads;
  int64_t new_len;
  AppendedRows rows[2];
  KeyPlaces places;  // but for the page strides, which `to` has; `pages` of the first sequence
  int64_t pages_stride;
  const int64_t* kv_lens;   // [batch], null = 0
  const int64_t* new_lens;  // [batch], null = new_len
};

// The positions first ... last - 1 that new tokens of a sequence have; in a ring without those that are gone at once.
struct NewPositions {
  int64_t first;
  int64_t kept_last;   // first ... kept_last - 1 are written,
  int64_t ring_first;  // and so are ring_first ... last - 1
  int64_t last;
};
NewPositions PositionsOfAppend(const KeyPlaces& places, int64_t kv_len, int64_t new_len);

int64_t NumAppendTasks(const AppendProblem& problem);  // a head of a sequence each
void AppendHead(const KernelTable& table, const AppendProblem& problem, int64_t task);

}  // namespace etalon

#endif  // ETALON_LIB_ATTENTION_APPEND_H_
