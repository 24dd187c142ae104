// conformance.h: whether a kernel table gives the bits that the arithmetic demands: the golden digest, and the cases
// that an independent model in exact integers has computed (tests/golden, compiled into the tool).
#ifndef ETALON_CLI_CHECK_CONFORMANCE_H_
#define ETALON_CLI_CHECK_CONFORMANCE_H_

#include <cstdint>
#include <string>
#include <vector>

namespace etalon::cli {

struct CaseResult {
  std::string name;
  uint64_t hash = 0;       // of what the table gave
  std::string difference;  // empty = as demanded
};

// What the digest of this arithmetic is.
uint64_t GoldenDigest();

// On the table called `table`, which is available. A line of the digest is a case, the last one being the digest
// itself.
std::vector<CaseResult> RunDigest(const std::string& table);
std::vector<CaseResult> RunModelCases(const std::string& table);

}  // namespace etalon::cli

#endif  // ETALON_CLI_CHECK_CONFORMANCE_H_
