// stages.h: the kernels of this folder, one set of functions for each target, named as the members of KernelTable.
// table.cc joins them to tables.
#ifndef ETALON_ARCH_HIGHWAY_STAGES_H_
#define ETALON_ARCH_HIGHWAY_STAGES_H_

#include "arch/kernel_table.h"

#define ETALON_DECLARE_STAGES(target_namespace)                                    \
  namespace target_namespace {                                                     \
  size_t ScratchBytes(size_t head_dim, size_t value_dim);                          \
  size_t FoldScratchBytes(size_t value_dim);                                       \
  size_t ScoresScratchBytes(size_t head_dim);                                      \
  size_t WeightedSumScratchBytes(size_t value_dim);                                \
  void Scores(const ScoresArgs& args);                                             \
  void Softmax(const SoftmaxArgs& args);                                           \
  void WeightedSum(const WeightedSumArgs& args);                                   \
  void Attend(const AttendArgs& args);                                             \
  void BlockStates(const BlockStatesArgs& args);                                   \
  void FoldStates(const FoldArgs& args);                                           \
  void Merge(const MergeArgs& args);                                               \
  void Widen(DType type, const void* in, float* out, size_t n);                    \
  void Narrow(DType type, const float* in, void* out, size_t n);                   \
  void MapExp(const float* x, float* y, size_t n);                                 \
  void MapLog(const float* x, float* y, size_t n);                                 \
  void MapTanh(const float* x, float* y, size_t n);                                \
  void MapFma(const float* a, const float* b, const float* c, float* y, size_t n); \
  }

namespace etalon {
ETALON_DECLARE_STAGES(N_AVX2)
ETALON_DECLARE_STAGES(N_AVX3)
ETALON_DECLARE_STAGES(N_NEON_WITHOUT_AES)
}  // namespace etalon

#undef ETALON_DECLARE_STAGES

#endif  // ETALON_ARCH_HIGHWAY_STAGES_H_
