// Scores of every query with every key, in percent of the FMA loop or of storing them.
#include <memory>

#include "bench/subjects/subjects.h"
#include "bench/support/attention.h"
#include "bench/support/checking.h"

namespace etalon::bench {
namespace {

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

}  // namespace

Subject ScoresSubject(int64_t n, int64_t head_dim, const std::string& target) {
  const auto problem = std::make_shared<ScoresProblem>(n, head_dim, target);
  const Loops* loops = LoopsForTable(target);
  Subject subject;
  subject.run = [problem] { problem->Run(); };
  subject.check = [problem] { return problem->Judged(); };
  subject.work = problem->flop();
  subject.unit = "flop";
  subject.rivals = {{FmaLimit(loops), subject.work},
                    {StoreLimit(loops, BytesOf(problem->scores())), static_cast<double>(problem->scores()->bytes())}};
  return subject;
}

}  // namespace etalon::bench
