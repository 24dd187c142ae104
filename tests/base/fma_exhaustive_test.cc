// The comparison of fma_test.cc on 134 million triples.
#include <doctest/doctest.h>

#include <cstdint>
#include <vector>

#include "lib/base/arithmetic.h"
#include "tests/base/fma_reference.h"
#include "tests/base/sweep.h"
#include "tests/support/targets.h"

namespace etalon::test {
namespace {

constexpr size_t kBlockSize = 4096;
constexpr uint64_t kNumBlocks = uint64_t{1} << 15;

}  // namespace

TEST_SUITE_BEGIN("base fma, many");

TEST_CASE("all forms equal the integers on 2^27 hard triples") {
  const std::vector<KernelTable> tables = Tables();
  const Failures failures = Sweep<Failures>(kNumBlocks, [&](Failures* own, uint64_t block) {
    float a[kBlockSize], b[kBlockSize], c[kBlockSize], expected[kBlockSize], y[kBlockSize];
    HardTriples hard(block * 0x9E3779B97F4A7C15u + 3);  // the number of the block is the seed
    for (size_t i = 0; i < kBlockSize; ++i) {
      const Triple t = hard.Next();
      a[i] = t.a;
      b[i] = t.b;
      c[i] = t.c;
      expected[i] = ExactFma::Of(t.a, t.b, t.c);
    }
    const auto check = [&](const char* form) {
      for (size_t i = 0; i < kBlockSize; ++i) {
        if (SameFloat(y[i], expected[i])) continue;
        own->Add("block %llu: %s of %08X %08X %08X: %08X, not %08X", static_cast<unsigned long long>(block), form,
                 Bits(a[i]), Bits(b[i]), Bits(c[i]), Bits(y[i]), Bits(expected[i]));
      }
    };
    Guarded([&] {
      for (size_t i = 0; i < kBlockSize; ++i) y[i] = FmaThroughF64(a[i], b[i], c[i]);
    });
    check("the f64 form");
    for (const KernelTable& table : tables) {
      Guarded([&] { table.fma(a, b, c, y, kBlockSize); });
      check(table.name);
    }
  });
  ETALON_CHECK_NONE(failures);
}

TEST_SUITE_END();

}  // namespace etalon::test
