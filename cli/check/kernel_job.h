// kernel_job.h: one kernel on one input: how a table runs it, and what it should give.
#ifndef ETALON_CLI_CHECK_KERNEL_JOB_H_
#define ETALON_CLI_CHECK_KERNEL_JOB_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "arch/kernel_table.h"
#include "cli/check/families.h"
#include "cli/check/truth.h"
#include "cli/named_array.h"

namespace etalon::cli {

struct KernelOutput {
  std::vector<double> values;  // one for each of the truth's
  uint64_t hash = 0;           // of all bytes that the kernel wrote
};

struct KernelJob {
  std::string kernel;
  Truth truth;
  std::function<KernelOutput(const KernelTable&)> run;
  // What one row of the truth depends on, for a file: q, k and v, and scale where that is attention.
  std::function<std::vector<NamedArray>(size_t row)> input;
  bool output_is_f32 = true;  // false: the values are quotients of what the kernel wrote
};

// All that a family is measured by, then the functions of one number, which have no family.
const std::vector<std::string>& FamilyKernels();
const std::vector<std::string>& FunctionKernels();

using Wanted = std::function<bool(const std::string& kernel)>;

// Whether JobsOf gives any for this type.
bool MeasuresType(DType type, const Wanted& wanted);

// Kernels of `wanted` on a case whose q, k and v are stored as `type`. What comes before a kernel in attention (scores
// before softmax, weights before the weighted sum) is the truth, rounded to f32.
std::vector<KernelJob> JobsOf(const FamilyCase& family_case, DType type, const Wanted& wanted);

// Over the ranges for which docs/numerics.md#functions promises something.
std::vector<KernelJob> FunctionJobs(const Wanted& wanted);

}  // namespace etalon::cli

#endif  // ETALON_CLI_CHECK_KERNEL_JOB_H_
