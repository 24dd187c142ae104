// scratch.h: carves a kernel's scratch. The same walk with no memory adds up its size, so that the two cannot disagree.
#ifndef ETALON_ARCH_HIGHWAY_SCRATCH_H_
#define ETALON_ARCH_HIGHWAY_SCRATCH_H_

#include <cstddef>

#include "lib/base/workspace.h"

namespace etalon {

struct Carver {
  void* memory;  // null = only add up
  size_t bytes;
};

static inline float* CarveFloats(Carver* carver, size_t count) {
  const size_t offset = ReserveBytes(&carver->bytes, count * sizeof(float));
  return carver->memory == nullptr ? nullptr : At<float>(carver->memory, offset);
}

}  // namespace etalon

#endif  // ETALON_ARCH_HIGHWAY_SCRATCH_H_
