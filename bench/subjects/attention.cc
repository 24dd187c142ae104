// Fused attention: of a whole prompt in percent of the FMA loop, of one new token in percent of the read loop over the
// same keys and values. Groups of several query heads read them once, and are bound by arithmetic in the end.
#include <algorithm>
#include <etalon/thread_pool.hpp>
#include <memory>

#include "bench/subjects/subjects.h"

namespace etalon::bench {
namespace {

Subject OfProblem(const std::shared_ptr<AttentionProblem>& problem) {
  Subject subject;
  subject.run = [problem] { problem->Run(); };
  subject.check = [problem] { return problem->Judged(); };
  subject.work = problem->shape().Flop();
  subject.unit = "flop";
  return subject;
}

}  // namespace

Subject PrefillSubject(const AttentionShape& shape, const std::string& target) {
  Subject subject = OfProblem(std::make_shared<AttentionProblem>(shape, target));
  subject.rivals = {{FmaLimit(LoopsForTable(target)), subject.work}};
  return subject;
}

Subject TwoThreadSubject(AttentionShape shape, const std::string& target) {
  shape.workers = 2;
  const auto problem = std::make_shared<AttentionProblem>(shape, target);
  const auto pool = std::make_shared<ThreadPool>(2);
  Subject subject = OfProblem(problem);
  subject.run = [problem, pool] { problem->Run(pool->parallel()); };
  subject.rivals = {{{"one thread", 1, [problem] { problem->Run(); }}, 1, Rival::Shown::kSpeedup, ">= 1.9"}};
  subject.clock = Clock::kWall;
  subject.pinned = false;
  return subject;
}

AttentionShape DecodeShape(ElementType type, int64_t group, const Place& place, const Sizes& sizes) {
  AttentionShape shape;
  shape.type = type;
  shape.kv_heads = place.in_cache ? 1 : 8;
  shape.q_heads = group * shape.kv_heads;
  shape.q_len = 1;
  shape.head_dim = 128;
  const int64_t bytes_of_token = 2 * shape.head_dim * ElementBytes(type) * shape.kv_heads;
  const int64_t tokens = static_cast<int64_t>(place.bytes) / bytes_of_token / 128 * 128;
  shape.kv_len = std::max<int64_t>(16, sizes.Length(tokens));
  return shape;
}

Subject DecodeSubject(const AttentionShape& shape, const std::string& target) {
  const auto problem = std::make_shared<AttentionProblem>(shape, target);
  const Loops* loops = LoopsForTable(target);
  const Bytes k = problem->k_bytes(), v = problem->v_bytes();
  Subject subject = OfProblem(problem);
  subject.work = static_cast<double>(k.bytes + v.bytes);
  subject.unit = "B";
  subject.rivals = {{ReadLimit(loops, {k, v}), subject.work}};
  if (shape.q_heads > shape.kv_heads) subject.rivals.push_back({FmaLimit(loops), shape.Flop()});
  return subject;
}

}  // namespace etalon::bench
