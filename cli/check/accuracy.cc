#include "cli/check/accuracy.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <stdexcept>

#include "arch/dispatch.h"
#include "cli/check/error_sum.h"
#include "cli/check/function_range.h"
#include "cli/check/normal_case.h"
#include "cli/check/ulp_histogram.h"
#include "tests/support/generate.h"
#include "tests/support/kernel_case.h"
#include "tests/support/reference.h"

namespace etalon::cli {
namespace {

using test::Array;
using test::AttentionCase;
using test::Random;

// Collects rows of one kernel.
class RowErrors {
 public:
  void Row(const double* got, const double* exact, size_t n) {
    double largest = 0.0;
    for (size_t i = 0; i < n; ++i) largest = std::max(largest, std::fabs(exact[i]));
    for (size_t i = 0; i < n; ++i) {
      const double error = ErrorOf(got[i] - exact[i]);
      sum_.Add(error, error / Ulp(largest), exact[i]);
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
    e.max_abs = sum_.max_abs();
    e.rms_error = sum_.rms_error();
    e.max_ulp = sum_.max_ulp();
    e.limited = limited;
    e.limit = limit;
    e.ok = (limited == "ulp" ? e.max_ulp : e.rms_error) <= limit;
    return e;
  }

 private:
  ErrorSum sum_;
};

KernelError Function(const KernelTable& table, const FunctionRange& range, double (*exact)(double)) {
  RowErrors sum;
  const std::vector<float> x = Sweep(range, 100003);
  const std::vector<float> y = test::RunMap(table, range.function, x);
  for (size_t i = 0; i < x.size(); ++i) {
    const double got = y[i];
    const double want = exact(x[i]);
    sum.Row(&got, &want, 1);
  }
  return sum.Of(range.name, "ulp", range.max_ulp);
}

// head_dim 128, 1024 keys; `rows` at a time: many are a prompt, one is decode.
KernelError Attention(const KernelTable& table, const char* name, int64_t rows, int64_t calls) {
  RowErrors sum;
  for (int64_t i = 0; i < calls; ++i) {
    const AttentionCase c = NormalAttention({rows, 1024, 128}, DType::kF32, 40 + static_cast<uint64_t>(i));
    sum.Rows(test::TrueValues(test::RunAttend(table, c).out), test::AttentionInF64(c).out, rows);
  }
  return sum.Of(name, "rms", 6e-7);
}

KernelError Scores(const KernelTable& table) {
  const AttentionCase c = NormalAttention({64, 1024, 128}, DType::kF32, 50);
  RowErrors sum;
  sum.Rows(test::TrueValues(test::RunScores(table, c)), test::ScoresInF64(c).s, c.rows);
  return sum.Of("scores", "rms", 6e-7);
}

KernelError Softmax(const KernelTable& table) {
  Random random(51);
  test::SoftmaxCase c;
  c.rows = 64;
  c.num_keys = 1024;
  c.s = random.Normals(c.rows * c.num_keys, 3.0f);
  RowErrors sum;
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
  RowErrors sum;
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
  RowErrors sum;
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
  return {Function(table, kExpRange, exp),
          Function(table, kLogRange, log),
          Function(table, kTanhRange, tanh),
          Scores(table),
          Softmax(table),
          WeightedSum(table),
          Attention(table, "attention", 64, 1),
          Attention(table, "decode", 1, 64),
          Merge(table)};
}

}  // namespace etalon::cli
