// The steps of attention by themselves.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>

#include "bench/rows.h"
#include "bench/support/attention.h"
#include "bench/support/checking.h"
#include "tests/support/reference.h"

namespace etalon::bench {
namespace {

size_t FloatBytes(int64_t n) { return static_cast<size_t>(n) * sizeof(float); }

Bytes Of(Buffer* buffer) { return {buffer->data(), buffer->bytes()}; }

// ------------------------------------------------------------------------------------------------------------ scores

class ScoresProblem {
 public:
  ScoresProblem(int64_t n, int64_t head_dim, const std::string& target)
      : attention_(Shape(n, head_dim), target), scores_(FloatBytes(n * n)), out_(scores_.floats(), {1, 1, n, n}) {}

  void Run() {
    AttentionArgs args;
    args.q = &attention_.q();
    args.k = &attention_.k();
    args.out = &out_;
    AttentionDesc desc;
    desc.target = attention_.desc().target;
    Require(Scores(desc, args, &memory_));
  }

  Check Judged() {
    Run();
    const int64_t n = attention_.shape().kv_len;
    const std::vector<int64_t> rows = SomeOf(n);
    const std::vector<double> exact = ExactScores(attention_, 0, rows);
    Judge judge;
    WorkspaceMemory memory;
    for (size_t r = 0; r < rows.size(); ++r) {
      std::vector<float> wanted(static_cast<size_t>(n));
      const Tensor q = RowOf(attention_.q(), 0, rows[r]), out(wanted.data(), {1, 1, 1, n});
      AttentionArgs args;
      args.q = &q;
      args.k = &attention_.k();
      args.out = &out;
      AttentionDesc desc;
      desc.target = BitsTable();
      Require(Scores(desc, args, &memory));
      judge.Row("row " + std::to_string(rows[r]), scores_.floats() + rows[r] * n, wanted.data(),
                exact.data() + static_cast<int64_t>(r) * n, wanted.size());
    }
    return judge.Verdict();
  }

  Buffer* scores() { return &scores_; }
  double flop() const { return attention_.shape().Flop() / 2; }

 private:
  static AttentionShape Shape(int64_t n, int64_t head_dim) {
    AttentionShape shape;
    shape.q_len = shape.kv_len = n;
    shape.head_dim = head_dim;
    return shape;
  }

  AttentionProblem attention_;
  Buffer scores_;
  Tensor out_;
  WorkspaceMemory memory_;
};

Subject ScoresSubject(int64_t n, int64_t head_dim, const std::string& target) {
  const auto problem = std::make_shared<ScoresProblem>(n, head_dim, target);
  const Loops* loops = LoopsForTable(target);
  Subject subject;
  subject.run = [problem] { problem->Run(); };
  subject.check = [problem] { return problem->Judged(); };
  subject.work = problem->flop();
  subject.unit = "flop";
  subject.rivals = {{FmaLimit(loops), subject.work},
                    {StoreLimit(loops, Of(problem->scores())), static_cast<double>(problem->scores()->bytes())}};
  return subject;
}

// ----------------------------------------------------------------------------------------------------------- softmax

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

// ------------------------------------------------------------------------------------------------------ weighted sum

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

Subject WeightedSumSubject(int64_t n, int64_t value_dim, const std::string& target) {
  const auto problem = std::make_shared<WeightedSumProblem>(n, value_dim, target);
  const Loops* loops = LoopsForTable(target);
  Subject subject;
  subject.run = [problem] { problem->Run(); };
  subject.check = [problem] { return problem->Judged(); };
  subject.work = problem->flop();
  subject.unit = "flop";
  subject.rivals = {{FmaLimit(loops), subject.work},
                    {ReadLimit(loops, {Of(problem->weights())}), static_cast<double>(problem->weights()->bytes())}};
  return subject;
}

// ------------------------------------------------------------------------------------------------------------- merge

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

std::string Name(const char* what, const std::string& target, const std::string& shape) {
  return std::string(what) + "/f32/" + target + "/" + shape;
}

}  // namespace

void AddPrimitiveRows(const std::string& target, const Sizes& sizes, std::vector<Row>* rows) {
  for (const int64_t full : {512, 2048}) {
    for (const int64_t head_dim : {64, 128}) {
      const int64_t n = sizes.Length(full);
      const std::string shape = "n" + std::to_string(n) + "_d" + std::to_string(head_dim);
      rows->push_back({Name("scores", target, shape), true, [=] { return ScoresSubject(n, head_dim, target); }});
      rows->push_back({Name("weighted_sum", target, shape), full == 2048 && head_dim == 128,
                       [=] { return WeightedSumSubject(n, head_dim, target); }});
    }
  }

  const Caches caches = ThisCaches();
  const struct {
    const char* name;
    size_t bytes;
  } places[] = {{"L2", caches.l2 / 2}, {"DRAM", std::max(4 * caches.l3, size_t{128} << 20)}};
  for (const auto& place : places) {
    for (const int64_t n : {128, 512, 1024, 2048, 4096}) {
      const bool in_cache = place.bytes == places[0].bytes;
      const int64_t all = static_cast<int64_t>(place.bytes / sizeof(float)) / n;
      const int64_t count = std::max<int64_t>(2, in_cache ? all : sizes.Length(all));
      const auto name = [&](int64_t c) {
        return Name("softmax", target, "rows" + std::to_string(c) + "_n" + std::to_string(n) + "/" + place.name);
      };
      rows->push_back({name(count), in_cache || n == 1024 || n == 4096,
                       [=] { return SoftmaxSubject(count, n, false, true, target); }});
      // The same bytes in two buffers.
      if (n != 1024) continue;
      rows->push_back(
          {name(count / 2) + "/to_other", false, [=] { return SoftmaxSubject(count / 2, n, false, false, target); }});
    }
  }
  const int64_t square = sizes.Length(1024);
  rows->push_back({Name("softmax", target, "n" + std::to_string(square) + "/causal"), true,
                   [=] { return SoftmaxSubject(square, square, true, true, target); }});

  for (const int64_t count : {256, 65536}) {
    const int64_t merged = sizes.Length(count);
    rows->push_back({Name("merge", target, "rows" + std::to_string(merged) + "_d128"), count == 65536,
                     [=] { return MergeSubject(merged, 128, target); }});
  }
}

}  // namespace etalon::bench
