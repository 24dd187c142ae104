// Every f32 narrowed to f16 and bf16 by every table.
#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <vector>

#include "lib/base/types.h"
#include "tests/base/half_reference.h"
#include "tests/base/sweep.h"
#include "tests/support/targets.h"

namespace etalon::test {
namespace {

constexpr uint32_t kBlockSize = 4096;

void CheckBlock(const HalfReference& reference, const std::vector<KernelTable>& tables, uint32_t first, bool negative,
                Failures* failures) {
  const uint32_t sign = negative ? 0x80000000u : 0u;
  const uint16_t sign16 = negative ? 0x8000 : 0;
  float x[kBlockSize];
  uint16_t expected[kBlockSize];
  uint16_t narrowed[kBlockSize];
  // Codes ascend with magnitudes: one search for the first, then at most a few steps.
  int code = std::isnan(FromBits(first)) ? reference.infinity() : reference.NarrowMagnitude(FromBits(first));
  for (uint32_t i = 0; i < kBlockSize; ++i) {
    const float magnitude = FromBits(first + i);
    while (code < reference.infinity() && reference.RoundsAbove(code, magnitude)) ++code;
    expected[i] = std::isnan(magnitude) ? reference.canonical_nan() : static_cast<uint16_t>(code | sign16);
    x[i] = FromBits((first + i) | sign);
  }
  for (const KernelTable& table : tables) {
    Guarded([&] { table.narrow(reference.type(), x, narrowed, kBlockSize); });
    if (std::memcmp(narrowed, expected, sizeof narrowed) == 0) continue;
    for (uint32_t i = 0; i < kBlockSize; ++i) {
      if (narrowed[i] != expected[i]) {
        failures->Add("%s: %08X gave %04X, not %04X", table.name, Bits(x[i]), narrowed[i], expected[i]);
      }
    }
  }
}

void CheckAll(DType type, bool negative) {
  const HalfReference reference(type);
  const std::vector<KernelTable> tables = Tables();
  const Failures failures = Sweep<Failures>((uint64_t{1} << 31) / kBlockSize, [&](Failures* own, uint64_t block) {
    CheckBlock(reference, tables, static_cast<uint32_t>(block) * kBlockSize, negative, own);
  });
  ETALON_CHECK_NONE(failures);
}

}  // namespace

TEST_SUITE_BEGIN("base types, exhaustive");

TEST_CASE("f16 positive") { CheckAll(DType::kF16, false); }
TEST_CASE("f16 negative") { CheckAll(DType::kF16, true); }
TEST_CASE("bf16 positive") { CheckAll(DType::kBF16, false); }
TEST_CASE("bf16 negative") { CheckAll(DType::kBF16, true); }

TEST_SUITE_END();

}  // namespace etalon::test
