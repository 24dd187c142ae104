#include "cli/check/accuracy.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <stdexcept>

#include "arch/dispatch.h"
#include "lib/base/arithmetic.h"
#include "tests/support/generate.h"
#include "tests/support/kernel_case.h"
#include "tests/support/reference.h"

namespace etalon::cli {
namespace {

using test::Array;
using test::AttentionCase;
using test::Random;

// Distance between the f32 neighbours of x.
double Ulp(double x) {
  if (x == 0.0 || !std::isfinite(x)) return 0x1p-149;
  return std::ldexp(1.0, std::max(std::ilogb(x) - 23, -149));
}

// Collects rows of one kernel.
class ErrorSum {
 public:
  void Row(const double* got, const double* exact, size_t n) {
    double largest = 0.0;
    for (size_t i = 0; i < n; ++i) largest = std::max(largest, std::fabs(exact[i]));
    for (size_t i = 0; i < n; ++i) {
      // A NaN where there should be none must not get lost in a comparison.
      const double error = std::isfinite(got[i]) ? std::fabs(got[i] - exact[i]) : HUGE_VAL;
      max_abs_ = std::max(max_abs_, error);
      max_ulp_ = std::max(max_ulp_, error / Ulp(largest));
      error_squares_ += error * error;
      exact_squares_ += exact[i] * exact[i];
    }
  }
  void Rows(const std::vector<double>& got, const std::vector<double>& exact, int64_t rows) {
    if (got.size() != exact.size()) throw std::logic_error("a kernel gave the wrong number of elements");
    const size_t n = got.size() / static_cast<size_t>(rows);
    for (size_t r = 0; r < static_cast<size_t>(rows); ++r) Row(got.data() + r * n, exact.data() + r * n, n);
  }

  KernelError Of(const std::string& kernel, const std::string& limited, double limit) const {
    KernelError e;
    e.kernel = kernel;
    e.max_abs = max_abs_;
    e.rms_error = exact_squares_ > 0.0 ? std::sqrt(error_squares_ / exact_squares_) : 0.0;
    e.max_ulp = max_ulp_;
    e.limited = limited;
    e.limit = limit;
    e.ok = (limited == "ulp" ? e.max_ulp : e.rms_error) <= limit;
    return e;
  }

 private:
  double max_abs_ = 0.0;
  double max_ulp_ = 0.0;
  double error_squares_ = 0.0;
  double exact_squares_ = 0.0;
};

// Bit patterns spread over first ... last, both included.
std::vector<float> Sweep(uint32_t first, uint32_t last) {
  constexpr uint64_t kCount = 100003;
  std::vector<float> x;
  for (uint64_t i = 0; i < kCount; ++i) {
    x.push_back(FromBits(first + static_cast<uint32_t>((last - first) * i / (kCount - 1))));
  }
  return x;
}

KernelError Function(const KernelTable& table, const char* name,
                     void (*KernelTable::*function)(const float*, float*, size_t), double (*exact)(double),
                     const std::vector<float>& x, double limit) {
  ErrorSum sum;
  const std::vector<float> y = test::RunMap(table, function, x);
  for (size_t i = 0; i < x.size(); ++i) {
    const double got = y[i];
    const double want = exact(x[i]);
    sum.Row(&got, &want, 1);
  }
  return sum.Of(name, "ulp", limit);
}

// Standard-normal q, k, v, logits of deviation 1.
AttentionCase Normal(int64_t rows, int64_t keys, int64_t head_dim, uint64_t seed) {
  Random random(seed);
  const float unit = 0.8660254f;  // the generator's deviation is 2 / sqrt(3)
  AttentionCase c;
  c.rows = rows;
  c.head_dim = c.value_dim = head_dim;
  c.scale = 1.0f / std::sqrt(static_cast<float>(head_dim));
  c.q = Array(DType::kF32, random.Normals(rows * head_dim, unit));
  c.sources.resize(1);
  c.sources[0].num_keys = keys;
  c.sources[0].k = Array(DType::kF32, random.Normals(keys * head_dim, unit));
  c.sources[0].v = Array(DType::kF32, random.Normals(keys * head_dim, unit));
  return c;
}

// head_dim 128, 1024 keys; `rows` at a time: many are a prompt, one is decode.
KernelError Attention(const KernelTable& table, const char* name, int64_t rows, int64_t calls) {
  ErrorSum sum;
  for (int64_t i = 0; i < calls; ++i) {
    const AttentionCase c = Normal(rows, 1024, 128, 40 + static_cast<uint64_t>(i));
    sum.Rows(test::TrueValues(test::RunAttend(table, c).out), test::AttentionInF64(c).out, rows);
  }
  return sum.Of(name, "rms", 6e-7);
}

KernelError Scores(const KernelTable& table) {
  const AttentionCase c = Normal(64, 1024, 128, 50);
  ErrorSum sum;
  sum.Rows(test::TrueValues(test::RunScores(table, c)), test::ScoresInF64(c).s, c.rows);
  return sum.Of("scores", "rms", 6e-7);
}

KernelError Softmax(const KernelTable& table) {
  Random random(51);
  test::SoftmaxCase c;
  c.rows = 64;
  c.num_keys = 1024;
  c.s = random.Normals(c.rows * c.num_keys, 3.0f);
  ErrorSum sum;
  sum.Rows(test::TrueValues(test::RunSoftmax(table, c).w), test::SoftmaxInF64(c).w, c.rows);
  return sum.Of("softmax", "rms", 6e-7);
}

KernelError WeightedSum(const KernelTable& table) {
  Random random(52);
  test::WeightedSumCase c;
  c.rows = 64;
  c.num_keys = 1024;
  c.value_dim = 128;
  for (int64_t i = 0; i < c.rows * c.num_keys; ++i) c.w.push_back(std::fabs(random.Normal()) * 0x1p-10f);
  c.v = Array(DType::kF32, random.Normals(c.num_keys * c.value_dim));
  ErrorSum sum;
  sum.Rows(test::TrueValues(test::RunWeightedSum(table, c)), test::WeightedSumInF64(c).out, c.rows);
  return sum.Of("weighted sum", "rms", 6e-7);
}

KernelError Merge(const KernelTable& table) {
  Random random(53);
  test::MergeCase c;
  c.rows = 64;
  c.value_dim = 128;
  c.out1 = Array(DType::kF32, random.Normals(c.rows * c.value_dim));
  c.out2 = Array(DType::kF32, random.Normals(c.rows * c.value_dim));
  c.lse1 = random.Normals(c.rows, 4.0f);
  c.lse2 = random.Normals(c.rows, 4.0f);
  ErrorSum sum;
  sum.Rows(test::TrueValues(test::RunMerge(table, c).out), test::MergeInF64(c).out, c.rows);
  return sum.Of("merge", "rms", 3e-7);
}

}  // namespace

std::vector<KernelError> MeasureAccuracy(const std::string& name) {
  KernelTable table;
  if (ChooseTable(name.c_str(), &table) != TableChoice::kOk) throw std::logic_error("no table " + name);
  const auto exp = static_cast<double (*)(double)>(std::exp);
  const auto log = static_cast<double (*)(double)>(std::log);
  const auto tanh = static_cast<double (*)(double)>(std::tanh);
  // The ranges that docs/numerics.md promises something for, and tests/base walks in full.
  return {Function(table, "exp", &KernelTable::exp, exp, Sweep(0xB2800000u, 0xC2AE9999u), 1.0),
          Function(table, "log", &KernelTable::log, log, Sweep(0x33800000u, 0x53800000u), 1.0),
          Function(table, "tanh", &KernelTable::tanh, tanh, Sweep(0x00000000u, 0x7F7FFFFFu), 2.0),
          Scores(table),
          Softmax(table),
          WeightedSum(table),
          Attention(table, "attention", 64, 1),
          Attention(table, "decode", 1, 64),
          Merge(table)};
}

}  // namespace etalon::cli
