// scratch-inl.h: the one layout of scratch memory, for every kernel of this table. A kernel that gets scratch for a
// head_dim or value_dim of 0 uses none of the parts of that size.
#ifndef ETALON_ARCH_SCALAR_SCRATCH_INL_H_
#define ETALON_ARCH_SCALAR_SCRATCH_INL_H_

#include "lib/base/arithmetic.h"
#include "lib/base/workspace.h"

namespace etalon {
namespace {

struct Scratch {
  float* q_scaled;  // head_dim
  float* scores;    // of one chunk
  float* o[3];      // value_dim each: of a chunk, a block, a row
};

// Sets *needed, and the pointers if there is memory.
Scratch LayOut(void* memory, size_t head_dim, size_t value_dim, size_t* needed) {
  *needed = 0;
  const size_t q_scaled = ReserveBytes(needed, head_dim * sizeof(float));
  const size_t scores = ReserveBytes(needed, static_cast<size_t>(kChunk) * sizeof(float));
  size_t o[3];
  for (size_t& part : o) part = ReserveBytes(needed, value_dim * sizeof(float));
  if (memory == nullptr) return {};
  return {At<float>(memory, q_scaled),
          At<float>(memory, scores),
          {At<float>(memory, o[0]), At<float>(memory, o[1]), At<float>(memory, o[2])}};
}

size_t ScalarScratchBytes(size_t head_dim, size_t value_dim) {
  size_t needed;
  LayOut(nullptr, head_dim, value_dim, &needed);
  return needed;
}

Scratch Carve(void* memory, size_t head_dim, size_t value_dim) {
  size_t needed;
  return LayOut(memory, head_dim, value_dim, &needed);
}

}  // namespace
}  // namespace etalon

#endif  // ETALON_ARCH_SCALAR_SCRATCH_INL_H_
