// error_sum.h: how far the elements of a kernel are from their exact values, all together.
#ifndef ETALON_CLI_CHECK_ERROR_SUM_H_
#define ETALON_CLI_CHECK_ERROR_SUM_H_

#include <algorithm>
#include <cmath>

namespace etalon::cli {

// |got - exact|. Where one of them is no finite number that is infinite: a NaN would get lost in a comparison.
inline double ErrorOf(double difference) { return std::isfinite(difference) ? std::fabs(difference) : HUGE_VAL; }

// Of its bound. An element that is exact has used nothing of it, be it 0; one that is not finite has left any.
inline double ShareOfBound(double error, double bound) {
  if (error == 0.0) return 0.0;
  const double share = error / bound;
  return std::isfinite(error) && !std::isnan(share) ? share : HUGE_VAL;
}

class ErrorSum {
 public:
  // Of one element, in absolute terms and in units of the last place.
  void Add(double error, double ulp, double exact) {
    max_abs_ = std::max(max_abs_, error);
    max_ulp_ = std::max(max_ulp_, ulp);
    error_squares_ += error * error;
    exact_squares_ += exact * exact;
  }

  double max_abs() const { return max_abs_; }
  double max_ulp() const { return max_ulp_; }
  // Root of sum error^2 / sum exact^2.
  double rms_error() const { return exact_squares_ > 0.0 ? std::sqrt(error_squares_ / exact_squares_) : 0.0; }

 private:
  double max_abs_ = 0.0;
  double max_ulp_ = 0.0;
  double error_squares_ = 0.0;
  double exact_squares_ = 0.0;
};

}  // namespace etalon::cli

#endif  // ETALON_CLI_CHECK_ERROR_SUM_H_
