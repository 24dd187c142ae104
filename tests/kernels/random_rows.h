// random_rows.h: random calls of the primitives over rows.
#ifndef ETALON_TESTS_KERNELS_RANDOM_ROWS_H_
#define ETALON_TESTS_KERNELS_RANDOM_ROWS_H_

#include <cstdint>
#include <string>

#include "tests/kernels/random_parts.h"

namespace etalon::test {

// Each runs the call of that seed and returns what was written, with the memory around it; *text says what it is.
ByteVector RandomSoftmaxRows(uint64_t seed, const KernelTable& table, std::string* text);
ByteVector RandomWeightedSumRows(uint64_t seed, const KernelTable& table, std::string* text);
ByteVector RandomMergeRows(uint64_t seed, const KernelTable& table, std::string* text);

}  // namespace etalon::test

#endif  // ETALON_TESTS_KERNELS_RANDOM_ROWS_H_
