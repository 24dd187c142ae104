// family_sum.h: collects what a kernel gave on the cases of one family.
#ifndef ETALON_CLI_CHECK_FAMILY_SUM_H_
#define ETALON_CLI_CHECK_FAMILY_SUM_H_

#include <cstddef>
#include <string>
#include <utility>

#include "cli/check/error_sum.h"
#include "cli/check/full.h"
#include "cli/check/kernel_job.h"
#include "cli/check/truth.h"

namespace etalon::cli {

class FamilySum {
 public:
  FamilySum(const std::string& kernel, const std::string& family);

  // One case. The row with its largest error, and that in units of the last place.
  std::pair<size_t, double> Add(const Truth& truth, const KernelOutput& output);

  FamilyError Of() const;

 private:
  FamilyError error_;  // but for what sum_ knows
  ErrorSum sum_;
};

}  // namespace etalon::cli

#endif  // ETALON_CLI_CHECK_FAMILY_SUM_H_
