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

namespace etalon {

constexpr size_t kWorkspaceAlignment = 64;  // a cache line, and the widest vector

// Byte offset of a new part of `bytes` bytes; *size grows by it. The caller has checked that nothing overflows.
static inline size_t ReserveBytes(size_t* size, size_t bytes) {
  const size_t offset = *size;
  *size += (bytes + kWorkspaceAlignment - 1) / kWorkspaceAlignment * kWorkspaceAlignment;
  return offset;
}

template <typename T>
static inline T* At(void* workspace, size_t offset) {
  return reinterpret_cast<T*>(static_cast<unsigned char*>(workspace) + offset);
}

}  // namespace etalon

#endif  // ETALON_LIB_BASE_WORKSPACE_H_
