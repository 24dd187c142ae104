// digest.h: one number for the whole arithmetic: hashes of the outputs of a fixed set of shapes and options.
#ifndef ETALON_TESTS_GOLDEN_DIGEST_H_
#define ETALON_TESTS_GOLDEN_DIGEST_H_

#include <cstdint>
#include <string>
#include <vector>

#include "arch/kernel_table.h"

namespace etalon::test {

struct DigestLine {
  std::string name;
  uint64_t hash;
};

// One line a case, then a line "digest" over all of them and the arithmetic version. Inputs come from integer code.
std::vector<DigestLine> ComputeDigest(const KernelTable& table);

// "name 0123456789ABCDEF\n" for each line.
std::string FormatDigest(const std::vector<DigestLine>& lines);

}  // namespace etalon::test

#endif  // ETALON_TESTS_GOLDEN_DIGEST_H_
