// vector_check.h: runs a case of the model's vectors on a kernel table and compares word by word.
#ifndef ETALON_TESTS_GOLDEN_VECTOR_CHECK_H_
#define ETALON_TESTS_GOLDEN_VECTOR_CHECK_H_

#include <cstdint>
#include <string>

#include "arch/kernel_table.h"
#include "tests/golden/vector_file.h"

namespace etalon::test {

struct VectorResult {
  std::string difference;  // empty = every word is the model's; else the first that is not
  uint64_t hash = 0;       // of all words that were compared, as the table gave them
  int64_t rows = 0;        // query rows compared; 0 for element-wise functions
};

// Throws std::runtime_error if the case is not well-formed.
VectorResult CheckVector(const VectorCase& c, const KernelTable& table);

}  // namespace etalon::test

#endif  // ETALON_TESTS_GOLDEN_VECTOR_CHECK_H_
