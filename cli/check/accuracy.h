// accuracy.h: how far each kernel of a table is from f64, on standard-normal data and over the ranges of its functions.
#ifndef ETALON_CLI_CHECK_ACCURACY_H_
#define ETALON_CLI_CHECK_ACCURACY_H_

#include <string>
#include <vector>

namespace etalon::cli {

struct KernelError {
  std::string kernel;      // "attention", "exp"
  double max_abs = 0.0;    // largest |got - exact|
  double rms_error = 0.0;  // root of sum (got - exact)^2 / sum exact^2
  // Largest |got - exact| in units of the last place of f32: of the exact value for functions of one number, of the
  // largest element of the row for kernels that sum, since a sum that cancels has no digits of its own.
  double max_ulp = 0.0;
  std::string limited;  // what the limit is on: "ulp" or "rms"
  double limit = 0.0;
  bool ok = false;
};

// Every kernel of the table called `table`, which is available.
std::vector<KernelError> MeasureAccuracy(const std::string& table);

}  // namespace etalon::cli

#endif  // ETALON_CLI_CHECK_ACCURACY_H_
