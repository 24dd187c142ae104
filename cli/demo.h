// demo.h: parts of `etalon demo` that tests look at.
#ifndef ETALON_CLI_DEMO_H_
#define ETALON_CLI_DEMO_H_

#include <cstdint>
#include <string>
#include <vector>

#include "cli/engine.h"

namespace etalon::cli {

// FNV-1a, 64 bits, over the little-endian bytes of the values.
constexpr uint64_t kFnvStart = 0xCBF29CE484222325u;
uint64_t Fnv1a(const float* values, size_t count, uint64_t hash = kFnvStart);

// Rows that the comparison of a slow table is limited to: `pieces` runs of `size` rows, spread from the first row to
// the last, without overlap; all rows as one run if the pieces would cover them.
std::vector<Rows> SpreadRuns(int64_t len, int64_t size, int64_t pieces);

// The given rows of every head of an output [heads, len, dim].
std::vector<float> TakeRows(const std::vector<float>& out, int64_t heads, int64_t len, int64_t dim, Rows rows);

}  // namespace etalon::cli

#endif  // ETALON_CLI_DEMO_H_
