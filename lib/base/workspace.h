// workspace.h: one layout both sizes and carves a caller's scratch memory, so that the two can never disagree.
//
//   size_t size = 0;
//   const size_t scores = ReserveBytes(&size, kChunk * sizeof(float));
//   ... `size` bytes are needed; At<float>(workspace, scores) is the part.
//
// Functions, not a class: members would be inline with external linkage (types.h says why that must not be).
#ifndef ETALON_LIB_BASE_WORKSPACE_H_
#define ETALON_LIB_BASE_WORKSPACE_H_

#include <cstddef>
#include <cstdint>

namespace etalon {

constexpr size_t kWorkspaceAlignment = 64;  // a cache line, and the widest vector

// Byte offset of a new part of `bytes` bytes; *size grows by it. The caller has checked that nothing overflows.
static inline size_t ReserveBytes(size_t* size, size_t bytes) {
  const size_t offset = *size;
  *size += (bytes + kWorkspaceAlignment - 1) / kWorkspaceAlignment * kWorkspaceAlignment;
  return offset;
}

// The same for `count` >= 0 elements; *fits becomes false, and the size useless, if that is too much for size_t.
static inline size_t ReserveArray(size_t* size, int64_t count, size_t element_bytes, bool* fits) {
  size_t bytes, end;
  if (__builtin_mul_overflow(count, element_bytes, &bytes) || __builtin_add_overflow(*size, bytes, &end) ||
      __builtin_add_overflow(end, kWorkspaceAlignment, &end) || end > SIZE_MAX / 2) {  // no object is larger
    *fits = false;
    return *size;
  }
  return ReserveBytes(size, bytes);
}

template <typename T>
static inline T* At(void* workspace, size_t offset) {
  return reinterpret_cast<T*>(static_cast<unsigned char*>(workspace) + offset);
}

}  // namespace etalon

#endif  // ETALON_LIB_BASE_WORKSPACE_H_
