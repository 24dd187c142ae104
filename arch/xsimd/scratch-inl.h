// scratch-inl.h: what the kernels keep in the caller's scratch memory. One function both sizes and carves it.
#ifndef ETALON_ARCH_XSIMD_SCRATCH_INL_H_
#define ETALON_ARCH_XSIMD_SCRATCH_INL_H_

#include <cstddef>
#include <cstdint>

#include "arch/xsimd/vector-inl.h"
#include "lib/base/workspace.h"

namespace etalon {
namespace {

constexpr int64_t kChunkKeys = 128;
constexpr int64_t kBlockKeys = 512;
constexpr size_t kGroupRows = 8;  // rows that share the packed keys and the widened values

// Arrays over value channels have room for whole vectors: RoundUpToLanes(value_dim) elements for each row.
struct Scratch {
  float* queries;  // [kGroupRows][head_dim], scaled
  float* keys;     // [head_dim][kLanes]
  float* scores;   // [kGroupRows][kChunkKeys]
  float* weights;  // [kGroupRows][kChunkKeys]
  float* value;    // one row, widened
  float* chunk;    // o of a state: [kGroupRows][...]
  float* block;
  float* total;
};

// The parts inside `memory`, which may be null if only the size is wanted.
inline size_t LayOutScratch(size_t head_dim, size_t value_dim, void* memory, Scratch* parts) {
  const size_t channels = RoundUpToLanes(value_dim), chunk = static_cast<size_t>(kChunkKeys);
  float** const slots[] = {&parts->queries, &parts->keys,  &parts->scores, &parts->weights,
                           &parts->value,   &parts->chunk, &parts->block,  &parts->total};
  const size_t counts[] = {
      kGroupRows * head_dim, head_dim * kLanes,     kGroupRows * chunk,   kGroupRows * chunk, channels,
      kGroupRows * channels, kGroupRows * channels, kGroupRows * channels};
  size_t size = 0;
  for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); ++i) {
    const size_t offset = ReserveBytes(&size, counts[i] * sizeof(float));
    if (memory != nullptr) *slots[i] = At<float>(memory, offset);
  }
  return size;
}

inline Scratch CarveScratch(size_t head_dim, size_t value_dim, void* memory) {
  Scratch parts = {};
  LayOutScratch(head_dim, value_dim, memory, &parts);
  return parts;
}

size_t SizeOfScratch(size_t head_dim, size_t value_dim) {
  Scratch unused = {};
  return LayOutScratch(head_dim, value_dim, nullptr, &unused);
}

}  // namespace
}  // namespace etalon

#endif  // ETALON_ARCH_XSIMD_SCRATCH_INL_H_
