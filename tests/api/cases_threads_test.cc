// The field cases of threads. Names begin with the id.
#include <memory>
#include <string>
#include <thread>

#include "tests/api/api_test.h"

#ifdef ETALON_TEST_THREAD_POOL
#include <etalon/thread_pool.h>
#endif

namespace etalon::test {
namespace {

using Kind = Loop::Kind;

ApiCase Decode(int64_t heads, int64_t kv_heads, int64_t kv_len, int64_t dim) {
  return TrioCase({1, heads, kv_heads, 1, kv_len, dim, dim});
}

ApiCase Standard() {
  ApiCase c = TrioCase({1, 4, 2, 7, 133, 40, 24});
  c.q_offset = 133 - 7;
  c.right = 0;
  return c;
}

TEST_CASE("THR-1: plan and workspace made on one thread, used on another, freed on a third") {
  for (const KernelTable& table : Tables()) {
    const ApiCase c = RandomCase({1, 2, 1, 2, 600, 8, 8}, 1);
    const AttentionResult expected = Expected(c);
    for (int round = 0; round < 100; ++round) {
      std::unique_ptr<ApiCall> call;
      std::unique_ptr<etalon_plan> plan;
      std::unique_ptr<GuardBuffer> memory;
      int64_t num_tasks = 0;
      int failures = 0;  // doctest counts on its own thread
      std::thread([&] {
        call = std::make_unique<ApiCall>(c, table);
        plan = std::make_unique<etalon_plan>();
        etalon_attention_desc desc = call->PlanDesc();
        desc.max_workers = 2;
        failures += etalon_plan_init(plan.get(), &desc, nullptr) != ETALON_OK;
        memory = std::make_unique<GuardBuffer>(etalon_plan_workspace_bytes(plan.get()), Guard::kAbove, 0);
        const etalon_workspace workspace = {memory->data(), memory->bytes()};
        failures += etalon_begin(plan.get(), &call->args, &workspace, &num_tasks, nullptr) != ETALON_OK;
      }).join();
      std::thread([&] { failures += etalon_run(memory->data(), 0, num_tasks, 1) != ETALON_OK; }).join();
      AttentionResult got;
      std::thread([&] {
        got = call->Result();
        call.reset();
        plan.reset();
        memory.reset();
      }).join();
      INFO(std::string(table.name), " round ", round);
      CHECK(failures == 0);
      CHECK(Difference(got, expected) == "");
    }
  }
}

TEST_CASE("THR-2: any number of threads, more than there is work") {
  for (const KernelTable& table : Tables()) {
    const ApiCase c = RandomCase({1, 2, 2, 1, 3, 4, 4}, 2);
    const AttentionResult expected = Expected(c);
    for (int32_t workers : {1, 3, 64, 65, 1000}) {
      for (Form form : {Form::kOneCall, Form::kTasks, Form::kExecute}) {
        if (workers == 1000 && form != Form::kOneCall) continue;  // threads are slow to make in an emulator
        const How how = {form, Kind::kThreads, workers};
        INFO(std::string(table.name), " ", Describe(how));
        CHECK(Difference(Run(c, table, how), expected) == "");
      }
    }
    // 0 stands for 1, in the descriptor alone; negative numbers are nothing.
    CHECK(Difference(Run(c, table, {Form::kTasks, Kind::kAlone, 0}), expected) == "");
    for (Form form : {Form::kOneCall, Form::kTasks, Form::kExecute}) {
      ApiCall call(c, table);
      CHECK(call.Run({form, Kind::kAlone, -1}, nullptr) == ETALON_BAD_VALUE);
      CHECK(call.out.Intact());
    }
    for (int32_t workers : {0, -1}) {
      ApiCall call(c, table);
      const Loop loop(Kind::kForward, workers);
      size_t bytes;
      CHECK(etalon_attention_workspace_bytes(&call.desc, &call.args, &bytes, nullptr) == ETALON_OK);
      GuardBuffer memory(bytes, Guard::kAbove, 0);
      const etalon_workspace workspace = {memory.data(), bytes};
      CHECK(etalon_attention(&call.desc, &call.args, &workspace, loop.get(), nullptr) == ETALON_BAD_VALUE);
      CHECK(call.out.Intact());
    }
  }
}

TEST_CASE("THR-5: the same bits for every thread count, every time") {
  for (const KernelTable& table : Tables()) {
    for (const ApiCase& c : {Standard(), Decode(2, 1, 4096, 16)}) {
      const AttentionResult expected = Expected(c);
      for (int32_t workers : {1, 2, 3, 4, 7}) {
        for (int repeat = 0; repeat < 20; ++repeat) {
          const How how = {repeat % 2 == 0 ? Form::kOneCall : Form::kTasks, Kind::kThreads, workers};
          INFO(std::string(table.name), " ", Describe(how), " repeat ", repeat);
          CHECK(Difference(Run(c, table, how), expected) == "");
        }
      }
    }
  }
}

#ifdef ETALON_TEST_THREAD_POOL
TEST_CASE("THR-5: the same bits from the thread pool") {
  for (const KernelTable& table : Tables()) {
    for (const ApiCase& c : {Standard(), Decode(2, 1, 4096, 16)}) {
      const AttentionResult expected = Expected(c);
      for (int32_t threads : {1, 2, 3, 4, 7}) {
        etalon_thread_pool* pool = nullptr;
        REQUIRE(etalon_thread_pool_create(threads, &pool) == ETALON_OK);
        const etalon_parallel parallel = etalon_thread_pool_parallel(pool);
        for (int repeat = 0; repeat < 20; ++repeat) {
          ApiCall call(c, table);
          call.desc.max_workers = parallel.workers;
          size_t bytes;
          CHECK(etalon_attention_workspace_bytes(&call.desc, &call.args, &bytes, nullptr) == ETALON_OK);
          GuardBuffer memory(bytes, Guard::kAbove, 0);
          const etalon_workspace workspace = {memory.data(), bytes};
          INFO(std::string(table.name), " threads ", threads, " repeat ", repeat);
          CHECK(etalon_attention(&call.desc, &call.args, &workspace, &parallel, nullptr) == ETALON_OK);
          CHECK(Difference(call.Result(), expected) == "");
        }
        etalon_thread_pool_destroy(pool);
      }
    }
  }
}
#endif

}  // namespace
}  // namespace etalon::test
