// Relative RMS error of attention against f64, for scores of several sizes: what a user may expect, not the worst case.
#include <doctest/doctest.h>

#include <cmath>
#include <cstdio>
#include <string>

#include "tests/kernels/kernel_test.h"
#include "tests/support/reference.h"
#include "tests/support/targets.h"

namespace etalon::test {
namespace {

struct Level {
  float logit_rms;
  double allowed;
};
constexpr Level kLevels[] = {{1.0f, 6e-7}, {3.0f, 2e-6}, {10.0f, 3e-6}};

AttentionCase Randn(uint64_t seed, int64_t rows, int64_t num_keys, int64_t dim, float logit_rms) {
  constexpr float kDeviation = 1.1547005f;  // of Normal()
  Random random(seed);
  const auto randn = [&](int64_t n, float factor) {
    return Array{DType::kF32, random.Normals(n, factor / kDeviation)};
  };
  Array q = randn(rows * dim, logit_rms), k = randn(num_keys * dim, 1.0f), v = randn(num_keys * dim, 1.0f);
  return PlainCase(q, k, v, dim, dim, ScaleOf(dim));
}

TEST_CASE("relative RMS error of attention over 2048 keys") {
  const std::vector<KernelTable> tables = Tables();
  for (int64_t dim : {64, 128, 256}) {
    for (const Level& level : kLevels) {
      const double allowed = level.allowed * (dim == 256 ? 1.3 : 1.0);
      std::vector<double> worst(tables.size());
      for (uint64_t seed = 1; seed <= 3; ++seed) {
        const AttentionCase c = Randn(seed, 64, 2048, dim, level.logit_rms);
        const TrueAttention exact = AttentionInF64(c);
        for (size_t i = 0; i < tables.size(); ++i) {
          // Without the instruction an fma is ten operations, and the bits are those of the other tables: one seed will
          // do.
          const bool slow = tables.size() > 1 && std::string(tables[i].name) == "scalar";
          if (slow && (seed > 1 || dim > 64)) continue;
          const AttentionResult got = RunAttend(tables[i], c);
          double error = 0, size = 0;
          for (int64_t j = 0; j < got.out.size(); ++j) {
            const double x = exact.out[static_cast<size_t>(j)], difference = static_cast<double>(got.out[j]) - x;
            error += difference * difference;
            size += x * x;
          }
          const double relative = std::sqrt(error / size);
          INFO(std::string(tables[i].name), " dim ", dim, " logit rms ", level.logit_rms, " seed ", seed);
          CHECK(relative <= allowed);
          worst[i] = std::fmax(worst[i], relative);
        }
      }
      for (size_t i = 0; i < tables.size(); ++i) {
        if (worst[i] == 0) continue;  // not run
        std::printf("%-16s dim %3d logit rms %4.1f: relative RMS error %.2e, allowed %.2e\n", tables[i].name,
                    static_cast<int>(dim), static_cast<double>(level.logit_rms), worst[i], allowed);
      }
    }
  }
}

}  // namespace
}  // namespace etalon::test
