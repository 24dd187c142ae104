// reference.h: attention in f64 by the shortest possible loops, sharing no code with the library, and the error that
// f32 rounding is expected to make on the same rows.
#ifndef ETALON_CLI_REFERENCE_H_
#define ETALON_CLI_REFERENCE_H_

#include <cstdint>
#include <vector>

#include "cli/engine.h"

namespace etalon::cli {

// Up to `count` query rows of a sequence of `len`, spread from the first to the last.
std::vector<int64_t> SpreadRows(int64_t len, int64_t count);

struct Accuracy {
  int64_t heads = 0;          // of all sequences
  int64_t rows = 0;           // of each of these heads
  double max_abs = 0.0;       // largest |out - exact|
  double relative_rms = 0.0;  // root of sum (out - exact)^2 / sum exact^2
  double predicted_relative_rms = 0.0;
  int64_t not_finite = 0;  // elements that are finite in one of the two only, those aside that are
  int64_t beyond_f16 = 0;  // infinite in an f16 output, as they must be there
  bool ok = false;         // relative_rms within a factor kAllowed of the prediction, and not_finite is 0
};

// The model takes roundings as independent; they are not quite, and a small layer has few of them to average over. A
// wrong step of the arithmetic shows up as a factor of thousands.
constexpr double kAllowed = 8.0;

// Compares out [batch, q heads, q len, value dim], all rows present, with exact attention at the given rows.
Accuracy Compare(const Problem& problem, const std::vector<float>& out, const std::vector<int64_t>& rows);

// The same for some heads, counted over all sequences, of an output that may be f16: then rounding to that is expected.
Accuracy Compare(const Problem& problem, const Array& out, const std::vector<int64_t>& rows,
                 const std::vector<int64_t>& heads);

}  // namespace etalon::cli

#endif  // ETALON_CLI_REFERENCE_H_
