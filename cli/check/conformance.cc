#include "cli/check/conformance.h"

#include <sstream>
#include <stdexcept>

#include "arch/dispatch.h"
#include "tests/golden/digest.h"
#include "tests/golden/vector_check.h"
#include "tests/golden/vector_file.h"

namespace etalon::cli {

// Of the files in tests/golden, by embed.cmake.
extern const unsigned char kGoldenDigest[];
extern const size_t kGoldenDigestSize;
extern const unsigned char kGoldenVectors[];
extern const size_t kGoldenVectorsSize;

namespace {

KernelTable TableNamed(const std::string& name) {
  KernelTable table;
  if (ChooseTable(name.c_str(), &table) != TableChoice::kOk) throw std::logic_error("no table " + name);
  return table;
}

std::vector<test::DigestLine> GoldenLines() {
  std::istringstream text(std::string(kGoldenDigest, kGoldenDigest + kGoldenDigestSize));
  std::vector<test::DigestLine> lines;
  std::string name, hash;
  while (text >> name >> hash) lines.push_back({name, std::stoull(hash, nullptr, 16)});
  if (lines.empty()) throw std::logic_error("the golden digest is empty");
  return lines;
}

const std::vector<test::VectorCase>& ModelCases() {
  static const std::vector<test::VectorCase> cases = [] {
    std::istringstream text(std::string(kGoldenVectors, kGoldenVectors + kGoldenVectorsSize));
    return test::ReadVectors(&text, "the vectors compiled in");
  }();
  return cases;
}

}  // namespace

uint64_t GoldenDigest() { return GoldenLines().back().hash; }

std::vector<CaseResult> RunDigest(const std::string& name) {
  const std::vector<test::DigestLine> golden = GoldenLines();
  const std::vector<test::DigestLine> got = test::ComputeDigest(TableNamed(name));
  std::vector<CaseResult> results;
  for (size_t i = 0; i < got.size(); ++i) {
    const bool known = i < golden.size() && golden[i].name == got[i].name;
    CaseResult result = {got[i].name, got[i].hash, ""};
    if (!known) {
      result.difference = "the golden digest has no such line";
    } else if (golden[i].hash != got[i].hash) {
      result.difference = "its hash is not the golden one";
    }
    results.push_back(result);
  }
  if (got.size() != golden.size()) results.back().difference = "the golden digest has other lines";
  return results;
}

std::vector<CaseResult> RunModelCases(const std::string& name) {
  const KernelTable table = TableNamed(name);
  std::vector<CaseResult> results;
  for (const test::VectorCase& c : ModelCases()) {
    const test::VectorResult result = test::CheckVector(c, table);
    results.push_back({c.name, result.hash, result.difference});
  }
  return results;
}

}  // namespace etalon::cli
