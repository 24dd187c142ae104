#include "cli/check/family_sum.h"

#include <algorithm>
#include <stdexcept>
#include <tuple>

#include "cli/fnv.h"

namespace etalon::cli {

FamilySum::FamilySum(const std::string& kernel, const std::string& family) {
  error_.kernel = kernel;
  error_.family = family;
}

std::pair<size_t, double> FamilySum::Add(const Truth& truth, const KernelOutput& output) {
  if (output.values.size() != truth.value.size()) {
    throw std::logic_error("a kernel gave the wrong number of elements");
  }
  size_t worst_row = 0;
  double worst_ulp = -1.0;
  const size_t n = truth.row_size();
  for (size_t i = 0; i < truth.value.size(); ++i) {
    const double off = ErrorOf((DoubleDouble(output.values[i]) - truth.value[i]).hi);
    const double ulp = off / Ulp(truth.largest[i / n]);
    error_.histogram.Add(ulp);
    sum_.Add(off, ulp, truth.value[i].hi);
    error_.of_bound = std::max(error_.of_bound, ShareOfBound(off, truth.bound[i]));
    if (ulp > worst_ulp) std::tie(worst_row, worst_ulp) = std::make_pair(i / n, ulp);
  }
  error_.hash = Fnv1aBytes(&output.hash, sizeof output.hash, error_.hash == 0 ? kFnvStart : error_.hash);
  return {worst_row, worst_ulp};
}

FamilyError FamilySum::Of() const {
  FamilyError result = error_;
  result.max_abs = sum_.max_abs();
  result.max_ulp = sum_.max_ulp();
  result.rms_error = sum_.rms_error();
  return result;
}

}  // namespace etalon::cli
