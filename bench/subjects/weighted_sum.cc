// Weighted sums of values, in percent of the FMA loop or of reading the weights.
#include <cmath>
#include <cstring>
#include <memory>

#include "bench/subjects/subjects.h"
#include "bench/support/attention.h"
#include "bench/support/checking.h"
#include "tests/support/reference.h"

namespace etalon::bench {
namespace {

class WeightedSumProblem {
 public:
  WeightedSumProblem(int64_t n, int64_t value_dim, const std::string& target)
      : n_(n),
        value_dim_(value_dim),
        target_(target),
        weights_data_(FloatBytes(n * n)),
        v_data_(FloatBytes(n * value_dim)),
        out_data_(FloatBytes(n * value_dim)),
        weights_(weights_data_.floats(), {1, 1, n, n}),
        v_(v_data_.floats(), {1, 1, n, value_dim}),
        out_(out_data_.floats(), {1, 1, n, value_dim}) {
    // Weights as a softmax of quiet scores has them: positive, with sums about 1.
    FillNormal(&weights_data_, ElementType::kF32, 5);
    for (int64_t i = 0; i < n * n; ++i) {
      weights_data_.floats()[i] = (std::fabs(weights_data_.floats()[i]) + 0.2f) / static_cast<float>(n);
    }
    FillNormal(&v_data_, ElementType::kF32, 6);
    args_.weights = &weights_;
    args_.v = &v_;
    args_.out = &out_;
    args_.target = target_.c_str();
  }
  WeightedSumProblem(const WeightedSumProblem&) = delete;
  WeightedSumProblem& operator=(const WeightedSumProblem&) = delete;

  void Run() { Require(WeightedSum(args_, &memory_)); }

  Check Judged() {
    Run();
    Judge judge;
    WorkspaceMemory memory;
    for (const int64_t row : SomeOf(n_)) {
      std::vector<float> wanted(static_cast<size_t>(value_dim_));
      const float* weights_row = weights_data_.floats() + row * n_;
      const Tensor weights(weights_row, {1, 1, 1, n_}), out(wanted.data(), {1, 1, 1, value_dim_});
      WeightedSumDesc args;
      args.weights = &weights;
      args.v = &v_;
      args.out = &out;
      args.target = BitsTable();
      Require(WeightedSum(args, &memory));
      test::WeightedSumCase c;
      c.rows = 1;
      c.num_keys = n_;
      c.value_dim = value_dim_;
      c.w.assign(weights_row, weights_row + n_);
      c.v = test::Array(DType::kF32, n_ * value_dim_);
      std::memcpy(c.v.data(), v_data_.data(), v_data_.bytes());
      judge.Row("row " + std::to_string(row), out_data_.floats() + row * value_dim_, wanted.data(),
                test::WeightedSumInF64(c).out.data(), wanted.size());
    }
    return judge.Verdict();
  }

  Buffer* weights() { return &weights_data_; }
  double flop() const { return 2.0 * static_cast<double>(n_ * n_ * value_dim_); }

 private:
  int64_t n_, value_dim_;
  std::string target_;
  Buffer weights_data_, v_data_, out_data_;
  Tensor weights_, v_, out_;
  WeightedSumDesc args_;
  WorkspaceMemory memory_;
};

}  // namespace

Subject WeightedSumSubject(int64_t n, int64_t value_dim, const std::string& target) {
  const auto problem = std::make_shared<WeightedSumProblem>(n, value_dim, target);
  const Loops* loops = LoopsForTable(target);
  Subject subject;
  subject.run = [problem] { problem->Run(); };
  subject.check = [problem] { return problem->Judged(); };
  subject.work = problem->flop();
  subject.unit = "flop";
  subject.rivals = {
      {FmaLimit(loops), subject.work},
      {ReadLimit(loops, {BytesOf(problem->weights())}), static_cast<double>(problem->weights()->bytes())}};
  return subject;
}

}  // namespace etalon::bench
