// reference.h: the exact answers, as f64 loops with one line per step of the definition. They say how accurate a kernel
// is, not which bits are right, and share nothing with lib and arch but the data structs: not even the conversions.
#ifndef ETALON_TESTS_SUPPORT_REFERENCE_H_
#define ETALON_TESTS_SUPPORT_REFERENCE_H_

#include <cstdint>
#include <vector>

#include "tests/support/kernel_case.h"

namespace etalon::test {

// The value of a stored element.
double TrueValue(DType type, uint32_t word);
std::vector<double> TrueValues(const Array& array);
std::vector<double> TrueValues(const std::vector<float>& values);

// Scores of one source, [rows, num_keys], -inf where not visible. size[i] bounds the terms that were rounded on the
// way: the sum of |q scale k|, and what ALiBi and bias added.
struct TrueScores {
  std::vector<double> s;
  std::vector<double> size;
};
TrueScores ScoresInF64(const AttentionCase& c, size_t source = 0);

// max_score and max_value are taken over the visible keys whose weight is not lost against the largest: what tolerances
// need.
struct TrueAttention {
  std::vector<double> out;        // [rows, value_dim]
  std::vector<double> lse;        // [rows]
  std::vector<double> max_score;  // [rows], largest |s|, and |s| before ALiBi and bias
  std::vector<double> max_value;  // [rows], largest |v|
};
TrueAttention AttentionInF64(const AttentionCase& c);

struct TrueSoftmax {
  std::vector<double> w;
  std::vector<double> lse;
};
TrueSoftmax SoftmaxInF64(const SoftmaxCase& c);

// size[i] is the sum of |w v|.
struct TrueSum {
  std::vector<double> out;
  std::vector<double> size;
};
TrueSum WeightedSumInF64(const WeightedSumCase& c);

// Of two (out, lse) pairs.
TrueAttention MergeInF64(const MergeCase& c);

}  // namespace etalon::test

#endif  // ETALON_TESTS_SUPPORT_REFERENCE_H_
