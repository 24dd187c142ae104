// Field cases about speed (PRF-1 ... PRF-4 of tests/cases.txt): both times, and their ratio beside the wanted one.
// PRF-1 and PRF-3 are tests, too, which count work instead; of the others only time can tell.
// case: PRF-2, PRF-4
#include <algorithm>
#include <memory>

#include "bench/rows.h"
#include "bench/support/attention.h"

namespace etalon::bench {
namespace {

// Two problems in turn. The works say how the times are compared: by flop, or (1, 1) as they are.
Subject Versus(const AttentionShape& shape, const AttentionShape& other, const char* other_name, double work,
               double other_work, const char* wanted, const std::string& target) {
  const auto problem = std::make_shared<AttentionProblem>(shape, target);
  const auto rival = std::make_shared<AttentionProblem>(other, target);
  Subject subject;
  subject.run = [problem] { problem->Run(); };
  subject.check = [problem] { return problem->Judged(); };
  subject.work = shape.Flop();
  subject.unit = "flop";
  subject.rivals = {{{other_name, other_work, [rival] { rival->Run(); }}, work, Rival::Shown::kTimeRatio, wanted}};
  return subject;
}

AttentionShape Heads(int64_t q_heads, int64_t kv_heads, int64_t n, int64_t head_dim) {
  AttentionShape shape;
  shape.q_heads = q_heads;
  shape.kv_heads = kv_heads;
  shape.q_len = shape.kv_len = n;
  shape.head_dim = head_dim;
  return shape;
}

// The three steps one after the other through the primitives, a block of query rows at a time, so that the scores stay
// in the cache: what an engine would do without a fused kernel.
class Unfused {
 public:
  explicit Unfused(AttentionProblem* problem)
      : problem_(problem), scores_(static_cast<size_t>(kRows * problem->shape().kv_len) * sizeof(float)) {}

  void Run() {
    const AttentionShape& s = problem_->shape();
    for (int64_t row = 0; row < s.q_len; row += kRows) {
      const int64_t rows = std::min(kRows, s.q_len - row);
      Tensor q = problem_->q(), out = problem_->out();
      q.data = static_cast<char*>(q.data) + row * q.stride_bytes[2];
      out.data = static_cast<char*>(out.data) + row * out.stride_bytes[2];
      q.shape[2] = out.shape[2] = rows;
      const Tensor scores(scores_.floats(), {1, 1, rows, s.kv_len});
      AttentionDesc desc;
      desc.target = problem_->desc().target;
      AttentionArgs args;
      args.q = &q;
      args.k = &problem_->k();
      args.out = &scores;
      Require(Scores(desc, args, &memory_));
      SoftmaxDesc softmax;
      softmax.scores = softmax.weights = &scores;
      softmax.target = desc.target;
      Require(Softmax(softmax));
      WeightedSumDesc sum;
      sum.weights = &scores;
      sum.v = &problem_->v();
      sum.out = &out;
      sum.target = desc.target;
      Require(WeightedSum(sum, &memory_));
    }
  }

 private:
  static constexpr int64_t kRows = 96;  // a multiple of every register block
  AttentionProblem* problem_;
  Buffer scores_;
  WorkspaceMemory memory_;
};

Subject FusedVersusUnfused(const AttentionShape& shape, const std::string& target) {
  const auto problem = std::make_shared<AttentionProblem>(shape, target);
  const auto unfused = std::make_shared<Unfused>(problem.get());
  Subject subject;
  subject.run = [problem] { problem->Run(); };
  subject.check = [problem] { return problem->Judged(); };
  subject.work = shape.Flop();
  subject.unit = "flop";
  subject.rivals = {{{"unfused", 1, [problem, unfused] { unfused->Run(); }}, 1, Rival::Shown::kTimeRatio, "<= 1.1"}};
  return subject;
}

}  // namespace

void AddCaseRows(const std::string& target, const Sizes& sizes, std::vector<Row>* rows) {
  const AttentionShape prf1 = Heads(8, 8, sizes.Length(2048), 64);
  rows->push_back({"prf1/" + target + "/causal", true,
                   [=] { return Versus(prf1.Causal(), prf1, "full", 1, 1, "<= 0.65", target); }});

  for (const int64_t head_dim : {64, 128, 257, 320, 512}) {
    const AttentionShape shape = Heads(8, 1, sizes.Length(1024), head_dim), base = Heads(8, 1, sizes.Length(1024), 256);
    rows->push_back({"prf2/" + target + "/d" + std::to_string(head_dim), head_dim == 257 || head_dim == 512, [=] {
                       return Versus(shape, base, "d256 per channel", shape.Flop(), base.Flop(),
                                     shape.head_dim > 256 ? "<= 1.5" : "", target);
                     }});
  }

  AttentionShape window = Heads(2, 2, sizes.Length(8192), 64).Causal();
  const AttentionShape unlimited = window;
  window.left = sizes.Length(512) - 1;
  rows->push_back({"prf3/" + target + "/window", true,
                   [=] { return Versus(window, unlimited, "causal", 1, 1, "<= 0.25", target); }});

  for (const int64_t n : {512, 1024, 4096}) {
    for (const int64_t head_dim : {64, 128}) {
      const AttentionShape shape = Heads(1, 1, sizes.Length(n), head_dim);
      rows->push_back({"prf4/" + target + "/n" + std::to_string(shape.q_len) + "_d" + std::to_string(head_dim), true,
                       [=] { return FusedVersusUnfused(shape, target); }});
    }
  }
}

}  // namespace etalon::bench
