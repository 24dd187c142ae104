// Every table against the vectors of the Python model, word by word. ETALON_VECTORS names the file (CMake sets it).
#include <doctest/doctest.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "tests/golden/vector_check.h"
#include "tests/golden/vector_file.h"
#include "tests/support/targets.h"

namespace etalon::test {
namespace {

// Off by one unit in the last place.
void WrongExp(const float* x, float* y, size_t n) {
  Definition().exp(x, y, n);
  for (size_t i = 0; i < n; ++i) y[i] = std::nextafter(y[i], 2.0f);
}

TEST_SUITE("golden") {
  TEST_CASE("a table that is wrong in the last place is noticed") {
    const std::vector<VectorCase> cases = ReadVectorFile(std::getenv("ETALON_VECTORS"));
    KernelTable wrong = Definition();
    wrong.exp = WrongExp;
    size_t exps = 0;
    for (const VectorCase& c : cases) {
      const VectorResult right = CheckVector(c, Definition());
      const VectorResult got = CheckVector(c, wrong);
      INFO("case ", c.name);
      CHECK(right.difference == "");
      CHECK((got.difference != "") == (c.op == "exp"));
      CHECK((got.hash != right.hash) == (c.op == "exp"));
      exps += c.op == "exp" ? 1 : 0;
    }
    CHECK(exps > 0);
  }

  TEST_CASE("every table gives the words of the model") {
    const char* path = std::getenv("ETALON_VECTORS");
    REQUIRE_MESSAGE(path != nullptr, "ETALON_VECTORS must name a vector file");
    const std::vector<VectorCase> cases = ReadVectorFile(path);
    REQUIRE(!cases.empty());
    for (const KernelTable& table : Tables()) {
      int64_t rows = 0;
      for (const VectorCase& c : cases) {
        INFO("table ", std::string(table.name), ", case ", c.name, " (line ", c.line, " of ", std::string(path), ")");
        const VectorResult result = CheckVector(c, table);
        CHECK(result.difference == "");
        rows += result.rows;
      }
      std::printf("%s: %zu cases, %lld query rows equal the model\n", table.name, cases.size(),
                  static_cast<long long>(rows));
      const char* at_least = std::getenv("ETALON_VECTORS_ROWS");
      if (at_least != nullptr) CHECK(rows >= std::atoll(at_least));
    }
  }
}

}  // namespace
}  // namespace etalon::test
