// Faults that reviews have found, each as small as it can be said.
#include <doctest/doctest.h>

#include <cstring>
#include <etalon/etalon.hpp>
#include <string>
#include <vector>

#include "tests/support/guard_buffer.h"

namespace etalon::test {
namespace {

constexpr int64_t kRows = 2048, kDim = 8;

struct Plain {
  std::vector<float> q = std::vector<float>(kRows * kDim, 1.0f), k = q, v = q, out = q;
  Tensor q_tensor{q.data(), {kRows, kDim}}, k_tensor{k.data(), {kRows, kDim}}, v_tensor{v.data(), {kRows, kDim}},
      out_tensor{out.data(), {kRows, kDim}};
  AttentionDesc desc;
  AttentionArgs args;
  WorkspaceMemory memory;
  Plain() {
    args.q = &q_tensor;
    args.k = &k_tensor;
    args.v = &v_tensor;
    args.out = &out_tensor;
  }
};

TEST_CASE("the query of a row beyond q_lens is not read") {
  constexpr int64_t kSeen = 512;  // whole pages
  GuardBuffer q(kSeen * kDim * sizeof(float), Guard::kAbove);
  std::memset(q.data(), 0, q.bytes());
  Plain p;
  p.q_tensor.data = q.data();  // the rest lies behind the guard page
  const int64_t q_lens[] = {kSeen};
  p.args.q_lens = q_lens;
  for (int32_t i = 0; i < etalon_num_targets(); ++i) {
    etalon_target target;
    REQUIRE(etalon_get_target(i, &target) == ETALON_OK);
    if (target.missing != 0) continue;
    p.desc.target = target.name;
    INFO(std::string(target.name));
    CHECK(Attention(p.desc, p.args, &p.memory).ok());
    CHECK(p.out[kSeen * kDim - 1] == 1.0f);
    CHECK(p.out[kSeen * kDim] == 0.0f);
  }
}

TEST_CASE("a loop that runs one task twice and another never is noticed") {
  struct Loop {
    static void Run(void*, int64_t num_tasks, etalon_task_fn fn, void* arg) {
      REQUIRE(num_tasks > 2);
      fn(arg, 0, num_tasks - 1, 0);
      fn(arg, 0, 1, 0);
    }
  };
  Plain p;
  const etalon_parallel parallel = {Loop::Run, nullptr, 1, 0};
  const Status status = Attention(p.desc, p.args, &p.memory, &parallel);
  CHECK(status.code() == ETALON_BAD_TASKS);
  CHECK(std::string(status.field()) == "parallel.parallel_for");
}

TEST_CASE("structs of the caller may lie in the workspace") {
  Plain p;
  size_t bytes;
  REQUIRE(etalon_attention_workspace_bytes(&p.desc, &p.args, &bytes, nullptr) == ETALON_OK);
  struct Arena {
    etalon_workspace workspace;
    etalon_parallel parallel;
  };
  struct Loop {
    static void Run(void*, int64_t num_tasks, etalon_task_fn fn, void* arg) { fn(arg, 0, num_tasks, 0); }
  };
  Arena* arena = static_cast<Arena*>(p.memory.Reserve(bytes)->data);
  arena->workspace = *p.memory.get();
  arena->parallel = {Loop::Run, nullptr, 1, 0};
  CHECK(etalon_attention(&p.desc, &p.args, &arena->workspace, &arena->parallel, nullptr) == ETALON_OK);
  CHECK(p.out[0] == 1.0f);
}

TEST_CASE("begun work that was moved is refused") {
  Plain p;
  p.desc.num_q_heads = p.desc.num_kv_heads = 1;
  p.desc.head_dim = p.desc.value_dim = kDim;
  p.desc.q_dtype = p.desc.k_dtype = p.desc.v_dtype = p.desc.out_dtype = ETALON_F32;
  p.desc.max_batch = 1;
  p.desc.max_q_len = p.desc.max_kv_len = kRows;
  Plan plan;
  REQUIRE(plan.Init(p.desc).ok());
  p.memory.Reserve(plan.workspace_bytes());
  int64_t num_tasks;
  REQUIRE(plan.Begin(p.args, *p.memory.get(), &num_tasks).ok());
  WorkspaceMemory other;
  other.Reserve(plan.workspace_bytes());
  std::memcpy(other.get()->data, p.memory.get()->data, plan.workspace_bytes());
  CHECK(etalon_run(other.get()->data, 0, num_tasks, 0) == ETALON_NOT_BEGUN);
  CHECK(etalon_run(static_cast<char*>(other.get()->data) + 8, 0, num_tasks, 0) == ETALON_NOT_BEGUN);
  CHECK(etalon_run(p.memory.get()->data, 0, num_tasks, 0) == ETALON_OK);
}

TEST_CASE("sizes without memory whose work cannot be counted") {
  Plain p;
  constexpr int64_t kHuge = int64_t{1} << 40;
  p.desc.num_q_heads = kHuge;
  p.desc.num_kv_heads = 1;
  p.desc.head_dim = p.desc.value_dim = kDim;
  p.desc.q_dtype = p.desc.k_dtype = p.desc.v_dtype = p.desc.out_dtype = ETALON_F32;
  p.desc.max_batch = 1;
  p.desc.max_q_len = kHuge;
  p.desc.max_kv_len = kRows;
  Plan plan;
  REQUIRE(plan.Init(p.desc).ok());
  p.q_tensor = Tensor(nullptr, ElementType::kF32, {1, kHuge, kDim});
  p.q_tensor.shape[0] = kHuge;
  p.out_tensor = p.q_tensor;
  PlanInfo info;
  const Status status = plan.GetInfo(&p.args, &info);
  CHECK(status.code() == ETALON_OVERFLOW);
  CHECK(std::string(status.field()) == "args.q.shape[1]");
  CHECK(plan.GetInfo(nullptr, &info).ok());

  p.args.out = nullptr;
  size_t bytes = 42;
  etalon_error error;
  CHECK(etalon_block_states_workspace_bytes(&p.desc, &p.args, &bytes, &error) == ETALON_OVERFLOW);
  CHECK(std::string(error.field) == "args.q.shape[1]");
  CHECK(bytes == 42);
}

}  // namespace
}  // namespace etalon::test
