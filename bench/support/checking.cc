#include "bench/support/checking.h"

#include <etalon/etalon.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>

namespace etalon::bench {
namespace {

// Twice the worst of the accuracy table in README.md. It only has to find data or a reference that went wrong: the
// sharp check is that of the bits.
constexpr double kMaxRms = 8e-6;

}  // namespace

const char* BitsTable() {
  for (int32_t i = 0; i < etalon_num_targets(); ++i) {
    etalon_target target;
    if (etalon_get_target(i, &target) != ETALON_OK || target.missing != 0) continue;
    if (std::strcmp(target.name, "scalar-fma") == 0) return target.name;
  }
  return "scalar";
}

std::vector<int64_t> SomeOf(int64_t n) {
  std::vector<int64_t> some = {0, n / 3, n / 2, n - 2, n - 1};
  some.erase(std::remove_if(some.begin(), some.end(), [n](int64_t i) { return i < 0 || i >= n; }), some.end());
  std::sort(some.begin(), some.end());
  some.erase(std::unique(some.begin(), some.end()), some.end());
  return some;
}

void Judge::Row(const std::string& where, const float* got, const float* wanted, const double* exact, size_t n) {
  for (size_t i = 0; i < n; ++i) {
    if (std::memcmp(got + i, wanted + i, sizeof(float)) != 0 && failure_.empty()) {
      char text[160];
      std::snprintf(text, sizeof text, "%s, element %zu: %a, but %s says %a", where.c_str(), i,
                    static_cast<double>(got[i]), BitsTable(), static_cast<double>(wanted[i]));
      failure_ = text;
    }
    // A score of a masked key: there is no error to speak of if both say so, and the bits are compared above.
    if (std::isinf(exact[i]) && std::isinf(got[i])) continue;
    const double error = static_cast<double>(got[i]) - exact[i];
    squares_of_errors_ += error * error;
    squares_ += exact[i] * exact[i];
  }
}

Check Judge::Verdict() const {
  Check check;
  check.failure = failure_;
  check.rms = squares_ > 0 ? std::sqrt(squares_of_errors_ / squares_) : std::sqrt(squares_of_errors_);
  if (check.failure.empty() && !(check.rms <= kMaxRms)) {  // not `>`: NaN fails too
    char text[80];
    std::snprintf(text, sizeof text, "relative RMS error %.2g, above %.2g", check.rms, kMaxRms);
    check.failure = text;
  }
  return check;
}

}  // namespace etalon::bench
