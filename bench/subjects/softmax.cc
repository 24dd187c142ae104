// Softmax of rows of scores, in percent of the exp loop or of copying as many bytes.
#include <memory>

#include "bench/subjects/subjects.h"
#include "bench/support/attention.h"
#include "bench/support/checking.h"
#include "tests/support/reference.h"

namespace etalon::bench {
namespace {

class SoftmaxProblem {
 public:
  SoftmaxProblem(int64_t rows, int64_t n, bool causal, bool in_place, const std::string& target)
      : rows_(rows),
        n_(n),
        target_(target),
        scores_data_(FloatBytes(rows * n)),
        weights_data_(in_place ? 64 : FloatBytes(rows * n)),
        scores_(scores_data_.floats(), {1, 1, rows, n}),
        weights_(in_place ? scores_data_.floats() : weights_data_.floats(), {1, 1, rows, n}) {
    FillNormal(&scores_data_, ElementType::kF32, 4);
    args_.scores = &scores_;
    args_.weights = &weights_;
    args_.target = target_.c_str();
    if (causal) {
      args_.right = 0;
      args_.q_offset = n - rows;
    }
  }
  SoftmaxProblem(const SoftmaxProblem&) = delete;
  SoftmaxProblem& operator=(const SoftmaxProblem&) = delete;

  // In place the weights become the next call's scores: all between 0 and 1, and as much work as any.
  void Run() { Require(Softmax(args_)); }

  Check Judged() {
    const std::vector<int64_t> rows = SomeOf(rows_);
    std::vector<std::vector<float>> inputs;
    for (const int64_t row : rows) {
      const float* first = scores_data_.floats() + row * n_;
      inputs.emplace_back(first, first + n_);
    }
    Run();
    Judge judge;
    for (size_t r = 0; r < rows.size(); ++r) {
      std::vector<float> wanted(static_cast<size_t>(n_));
      const Tensor scores(inputs[r].data(), {1, 1, 1, n_}), weights(wanted.data(), {1, 1, 1, n_});
      SoftmaxDesc args;
      args.scores = &scores;
      args.weights = &weights;
      args.right = args_.right;
      args.q_offset = args_.q_offset + rows[r];
      args.target = BitsTable();
      Require(Softmax(args));
      test::SoftmaxCase c;
      c.rows = 1;
      c.num_keys = n_;
      c.s = inputs[r];
      if (args.right == 0) c.spans = {{0, args.q_offset + 1}};
      judge.Row("row " + std::to_string(rows[r]), static_cast<const float*>(weights_.data) + rows[r] * n_,
                wanted.data(), test::SoftmaxInF64(c).w.data(), wanted.size());
    }
    return judge.Verdict();
  }

  int64_t visible() const { return args_.right == 0 ? rows_ * (n_ - rows_) + rows_ * (rows_ + 1) / 2 : rows_ * n_; }

 private:
  int64_t rows_, n_;
  std::string target_;
  Buffer scores_data_, weights_data_;
  Tensor scores_, weights_;
  SoftmaxDesc args_;
};

}  // namespace

Subject SoftmaxSubject(int64_t rows, int64_t n, bool causal, bool in_place, const std::string& target) {
  const auto problem = std::make_shared<SoftmaxProblem>(rows, n, causal, in_place, target);
  Subject subject;
  subject.run = [problem] { problem->Run(); };
  subject.check = [problem] { return problem->Judged(); };
  // Each score is read, each weight written, those that are not visible as well.
  subject.work = 2.0 * static_cast<double>(FloatBytes(rows * n));
  subject.unit = "B";
  // The copy's two buffers together are as large as the one of a softmax in place.
  const size_t copied = in_place ? FloatBytes(rows * n) / 2 : FloatBytes(rows * n);
  subject.rivals = {{ExpLimit(target), static_cast<double>(problem->visible())}, {CopyLimit(copied), subject.work}};
  return subject;
}

}  // namespace etalon::bench
