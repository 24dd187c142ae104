// full.h: every kernel of several tables against double-double truth, over all families of inputs.
#ifndef ETALON_CLI_CHECK_FULL_H_
#define ETALON_CLI_CHECK_FULL_H_

#include <cstdint>
#include <string>
#include <vector>

#include "cli/check/ulp_histogram.h"
#include "cli/named_array.h"
#include "cli/report.h"

namespace etalon::cli {

// One kernel on one family.
struct FamilyError {
  std::string kernel;
  std::string family;      // "range" for functions of one number
  double max_abs = 0.0;    // largest |got - exact|
  double rms_error = 0.0;  // root of sum (got - exact)^2 / sum exact^2
  double max_ulp = 0.0;    // as KernelError::max_ulp
  double of_bound = 0.0;   // largest |got - exact| / bound of the element: above 1 something is wrong
  UlpHistogram histogram;  // of |got - exact| in the same units
  uint64_t hash = 0;       // of all bytes that the kernel wrote

  bool ok() const { return of_bound <= 1.0; }
};

// The row with the largest error in units of the last place over all families.
struct WorstInput {
  std::string kernel;
  std::string family;
  double ulp = -1.0;
  std::vector<NamedArray> arrays;  // what the row depends on, then `out`, what the table gave, and `exact`
};

struct FullResult {
  std::vector<FamilyError> errors;  // by kernel, then by family
  // By kernel. Of tables after the first only where its bytes are other ones.
  std::vector<WorstInput> worst;
};

struct FullOptions {
  std::vector<std::string> families;  // empty: all
  std::vector<std::string> kernels;   // empty: all
  bool keep_worst = false;
};

std::vector<std::string> FullFamilyNames();
std::vector<std::string> FullKernelNames();

// False where the kernels are not measured on any of the families: functions of one number are on "range", others not.
bool MeasuresAnything(const FullOptions& options);

// False, with *error: the inputs of a family that is asked for cannot be had, or nothing is known of them.
bool HasInputs(const FullOptions& options, std::string* error);

// How much Progress::Finish will be told.
double FullWork(const FullOptions& options);

// Of tables that are available, one result each. False, with *error, as HasInputs.
bool MeasureInFull(const std::vector<std::string>& tables, const FullOptions& options, Progress* progress,
                   std::vector<FullResult>* results, std::string* error);

}  // namespace etalon::cli

#endif  // ETALON_CLI_CHECK_FULL_H_
