// Merge of two partial results, in percent of copying as many bytes.
#include <memory>

#include "bench/subjects/subjects.h"
#include "bench/support/attention.h"
#include "bench/support/checking.h"
#include "tests/support/reference.h"

namespace etalon::bench {
namespace {

class MergeProblem {
 public:
  MergeProblem(int64_t rows, int64_t value_dim, const std::string& target)
      : rows_(rows),
        value_dim_(value_dim),
        target_(target),
        out1_data_(FloatBytes(rows * value_dim)),
        out2_data_(FloatBytes(rows * value_dim)),
        out_data_(FloatBytes(rows * value_dim)),
        lse1_data_(FloatBytes(rows)),
        lse2_data_(FloatBytes(rows)),
        out1_(out1_data_.floats(), {1, 1, rows, value_dim}),
        out2_(out2_data_.floats(), {1, 1, rows, value_dim}),
        out_(out_data_.floats(), {1, 1, rows, value_dim}),
        lse1_(lse1_data_.floats(), {1, 1, rows}),
        lse2_(lse2_data_.floats(), {1, 1, rows}) {
    FillNormal(&out1_data_, ElementType::kF32, 7);
    FillNormal(&out2_data_, ElementType::kF32, 8);
    FillNormal(&lse1_data_, ElementType::kF32, 9);
    FillNormal(&lse2_data_, ElementType::kF32, 10);
    args_.out1 = &out1_;
    args_.out2 = &out2_;
    args_.out = &out_;
    args_.lse1 = &lse1_;
    args_.lse2 = &lse2_;
    args_.target = target_.c_str();
  }
  MergeProblem(const MergeProblem&) = delete;
  MergeProblem& operator=(const MergeProblem&) = delete;

  void Run() { Require(Merge(args_)); }

  Check Judged() {
    Run();
    Judge judge;
    for (const int64_t row : SomeOf(rows_)) {
      std::vector<float> wanted(static_cast<size_t>(value_dim_));
      const float* row1 = out1_data_.floats() + row * value_dim_;
      const float* row2 = out2_data_.floats() + row * value_dim_;
      const Tensor out1(row1, {1, 1, 1, value_dim_}), out2(row2, {1, 1, 1, value_dim_});
      const Tensor out(wanted.data(), {1, 1, 1, value_dim_});
      const Tensor lse1(lse1_data_.floats() + row, {1, 1, 1}), lse2(lse2_data_.floats() + row, {1, 1, 1});
      MergeDesc args;
      args.out1 = &out1;
      args.out2 = &out2;
      args.out = &out;
      args.lse1 = &lse1;
      args.lse2 = &lse2;
      args.target = BitsTable();
      Require(Merge(args));
      test::MergeCase c;
      c.rows = 1;
      c.value_dim = value_dim_;
      c.out1 = test::Array(DType::kF32, std::vector<float>(row1, row1 + value_dim_));
      c.out2 = test::Array(DType::kF32, std::vector<float>(row2, row2 + value_dim_));
      c.lse1 = {lse1_data_.floats()[row]};
      c.lse2 = {lse2_data_.floats()[row]};
      judge.Row("row " + std::to_string(row), out_data_.floats() + row * value_dim_, wanted.data(),
                test::MergeInF64(c).out.data(), wanted.size());
    }
    return judge.Verdict();
  }

  size_t bytes() const { return 3 * out_data_.bytes(); }

 private:
  int64_t rows_, value_dim_;
  std::string target_;
  Buffer out1_data_, out2_data_, out_data_, lse1_data_, lse2_data_;
  Tensor out1_, out2_, out_, lse1_, lse2_;
  MergeDesc args_;
};

}  // namespace

Subject MergeSubject(int64_t rows, int64_t value_dim, const std::string& target) {
  const auto problem = std::make_shared<MergeProblem>(rows, value_dim, target);
  Subject subject;
  subject.run = [problem] { problem->Run(); };
  subject.check = [problem] { return problem->Judged(); };
  subject.work = static_cast<double>(problem->bytes());
  subject.unit = "B";
  subject.rivals = {{CopyLimit(problem->bytes() / 2), subject.work}};
  return subject;
}

}  // namespace etalon::bench
