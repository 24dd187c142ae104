// truth.h: what each kernel would give without rounding, in double-double, and how far off the arithmetic of
// docs/numerics.md may be. Shares no code with lib and arch.
//
// The bound of each element is proved, not fitted: it follows every rounding of docs/numerics.md from the inputs to the
// element, with u = 2^-24 for each operation, 2 u for an exp and 2^-150 for what underflows (docs/numerics.md#bounds).
#ifndef ETALON_CLI_CHECK_TRUTH_H_
#define ETALON_CLI_CHECK_TRUTH_H_

#include <cstdint>
#include <vector>

#include "cli/check/double_double.h"
#include "tests/support/kernel_case.h"

namespace etalon::cli {

struct Truth {
  std::vector<DoubleDouble> value;
  std::vector<double> bound;    // of |result - value|, one for each value
  std::vector<double> largest;  // of each row: the number whose last place is the unit of the row's errors

  size_t rows() const { return largest.size(); }
  size_t row_size() const { return value.size() / largest.size(); }
  void Append(const Truth& rows);
};

// [rows, num_keys], exact scores of all pairs of a row and a key of the only source. No options, spans or masks.
Truth TrueScores(const test::AttentionCase& c);

// Keys first ... last - 1 of one source.
struct KeyRange {
  int64_t first;
  int64_t last;
};

// One row of attention over some keys: out [value_dim], and its logsumexp. `scores` is what TrueScores gave for the
// whole case, `values` the case's v. Without `divided` the bound is that of o / l of a state, a division that the
// kernel does not make.
struct TrueRow {
  Truth out;
  Truth lse;
};
TrueRow TrueAttention(const Truth& scores, int64_t row, const std::vector<double>& values, int64_t value_dim,
                      KeyRange keys, bool divided = true);

// [rows, num_keys] and [rows, value_dim]; everything is visible. [rows, value_dim].
Truth TrueSoftmax(const test::SoftmaxCase& c);
Truth TrueWeightedSum(const test::WeightedSumCase& c);
Truth TrueMerge(const test::MergeCase& c);

// A function of one number, which is within so many units of the last place of the exact value.
Truth TrueFunction(DoubleDouble (*function)(DoubleDouble), double max_ulp, const std::vector<float>& x);

}  // namespace etalon::cli

#endif  // ETALON_CLI_CHECK_TRUTH_H_
