// checking.h: how a result is judged: its bits by the scalar kernels, its error by f64 (tests/support/reference.h),
// both on a few rows, since checking all would take longer than measuring.
#ifndef ETALON_BENCH_SUPPORT_CHECKING_H_
#define ETALON_BENCH_SUPPORT_CHECKING_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "bench/support/subject.h"

namespace etalon::bench {

// The table that says which bits are right: the faster of the two scalar ones that can run.
const char* BitsTable();

// Up to five of 0 ... n - 1, the first and the last two among them.
std::vector<int64_t> SomeOf(int64_t n);

// Collects rows.
class Judge {
 public:
  // `got` and `wanted` are the same n floats from the table under test and from BitsTable(); `exact` the truth.
  void Row(const std::string& where, const float* got, const float* wanted, const double* exact, size_t n);
  Check Verdict() const;

 private:
  std::string failure_;
  double squares_of_errors_ = 0;
  double squares_ = 0;
};

}  // namespace etalon::bench

#endif  // ETALON_BENCH_SUPPORT_CHECKING_H_
