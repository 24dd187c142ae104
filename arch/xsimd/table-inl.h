// table-inl.h: the kernels of one target, joined. Include it once in each file of a target, after ETALON_XSIMD_ARCH.
//
// This backend is a second, independent implementation: from docs/numerics.md and arch/kernel_table.h alone, not tuned,
// so that its agreement with the others in every bit is evidence for the text. Keep it so: no code of another backend,
// and what looks slow but is plain stays.
#ifndef ETALON_ARCH_XSIMD_TABLE_INL_H_
#define ETALON_ARCH_XSIMD_TABLE_INL_H_

#include "arch/kernel_table.h"
#include "arch/xsimd/attend-inl.h"
#include "arch/xsimd/functions-inl.h"
#include "arch/xsimd/merge-inl.h"
#include "arch/xsimd/score-inl.h"
#include "arch/xsimd/scratch-inl.h"
#include "arch/xsimd/softmax-inl.h"
#include "arch/xsimd/state-inl.h"
#include "arch/xsimd/values-inl.h"

namespace etalon {
namespace {

constexpr KernelTable MakeTable(const char* name, CpuFeatures required) {
  return {name, required, SizeOfScratch, Scores, Softmax, WeightedSum, Attend, BlockStates, Fold, Merge,
          nullptr,  // widen and narrow are integer code, of which one
                    // form is enough
          nullptr, ExpOfArray, LogOfArray, TanhOfArray, FmaOfArrays};
}

}  // namespace
}  // namespace etalon

#endif  // ETALON_ARCH_XSIMD_TABLE_INL_H_
