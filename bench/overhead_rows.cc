// What a call costs beside its arithmetic: the smallest problem through each form of the interface, and short caches.
#include <memory>

#include "bench/rows.h"
#include "bench/support/attention.h"

namespace etalon::bench {
namespace {

AttentionShape OneToken(int64_t kv_len, int64_t head_dim) {
  AttentionShape shape;
  shape.q_len = 1;
  shape.kv_len = kv_len;
  shape.head_dim = head_dim;
  return shape;
}

Subject Calls(const std::shared_ptr<AttentionProblem>& problem, std::function<void()> run) {
  Subject subject;
  subject.run = std::move(run);
  subject.check = [problem] { return problem->Judged(); };
  subject.work = 1;
  subject.unit = "calls";
  return subject;
}

Subject Planned(const AttentionShape& shape, const std::string& target) {
  const auto problem = std::make_shared<AttentionProblem>(shape, target);
  return Calls(problem, [problem] { problem->Run(); });
}

Subject BegunAndRun(const AttentionShape& shape, const std::string& target) {
  const auto problem = std::make_shared<AttentionProblem>(shape, target);
  return Calls(problem, [problem] {
    int64_t tasks = 0;
    Require(problem->plan().Begin(problem->args(), problem->workspace(), &tasks));
    Status status;
    status.Set(etalon_run(problem->workspace().data, 0, tasks, 0));
    Require(status);
  });
}

Subject InOneCall(const AttentionShape& shape, const std::string& target) {
  const auto problem = std::make_shared<AttentionProblem>(shape, target);
  const auto memory = std::make_shared<WorkspaceMemory>();
  return Calls(problem, [problem, memory] { Require(Attention(problem->desc(), problem->args(), memory.get())); });
}

}  // namespace

void AddOverheadRows(const std::string& target, const Sizes& sizes, std::vector<Row>* rows) {
  (void)sizes;  // nothing here is long
  const AttentionShape smallest = OneToken(1, 1);
  rows->push_back({"overhead/" + target + "/execute", true, [=] { return Planned(smallest, target); }});
  rows->push_back({"overhead/" + target + "/begin_run", false, [=] { return BegunAndRun(smallest, target); }});
  rows->push_back({"overhead/" + target + "/one_call", true, [=] { return InOneCall(smallest, target); }});
  for (const int64_t kv_len : {16, 64, 256}) {
    rows->push_back({"overhead/" + target + "/kv" + std::to_string(kv_len) + "_d128", kv_len == 64,
                     [=] { return Planned(OneToken(kv_len, 128), target); }});
  }
}

}  // namespace etalon::bench
