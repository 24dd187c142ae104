// Plans, begun calls, and the caller's threads.
#include <doctest/doctest.h>

#include <cstring>

#include "tests/api/errors_trial.h"

namespace etalon::test {
namespace {

TEST_CASE("errors: a plan that is none") {
  Expect({
      {"zeros", kPlanned, [](Trial& t) { std::memset(&t.plan, 0, sizeof t.plan); }, ETALON_BAD_PLAN, "plan"},
      {"garbage", kPlanned, [](Trial& t) { std::memset(&t.plan, 0xA5, sizeof t.plan); }, ETALON_BAD_PLAN, "plan"},
      {"another start", kPlanned, [](Trial& t) { t.plan.opaque[0] ^= 1; }, ETALON_BAD_PLAN, "plan"},
      {"zeros, no args", kPlanInfo,
       [](Trial& t) {
         std::memset(&t.plan, 0, sizeof t.plan);
         t.pass.args = nullptr;
       },
       ETALON_BAD_PLAN, "plan"},
      // Of a workspace, all the same: the call that is begun there is none.
      {"a workspace", kPlanned, [](Trial& t) { t.pass.plan = reinterpret_cast<etalon_plan*>(Slot(kSlots)); },
       ETALON_BAD_PLAN, "plan"},
  });
}

TEST_CASE("errors: sizes whose workspace does not fit an address") {
  const auto desc = kSupports | kPlanInit;
  Expect({
      {"batch", desc, [](Trial& t) { t.desc.value.max_batch = kLargest; }, ETALON_OVERFLOW, "desc"},
      {"kv_len", desc,
       [](Trial& t) {
         t.desc.value.max_kv_len = kLargest, t.desc.value.value_dim = 4096, t.desc.value.max_batch = 1 << 20;
       },
       ETALON_OVERFLOW, "desc"},
      {"workers", desc, [](Trial& t) { t.desc.value.max_workers = 1 << 20, t.desc.value.head_dim = int64_t{1} << 45; },
       ETALON_OVERFLOW, "desc"},
      {"head_dim", desc, [](Trial& t) { t.desc.value.head_dim = int64_t{1} << 53; }, ETALON_OVERFLOW, "desc.head_dim"},
      {"head_dim", desc, [](Trial& t) { t.desc.value.head_dim = INT64_MAX; }, ETALON_OVERFLOW, "desc.head_dim"},
      {"value_dim", desc, [](Trial& t) { t.desc.value.value_dim = int64_t{1} << 53; }, ETALON_OVERFLOW,
       "desc.value_dim"},
      {"long, but grows slowly", desc,
       [](Trial& t) { t.desc.value.max_q_len = t.desc.value.max_kv_len = kLargest / 64; }, ETALON_OK, ""},
  });
  // Without a plan the same, by the shapes of tensors.
  const auto huge = [](int i) {
    return [i](Trial& t) {
      etalon_attention_desc& d = t.desc.value;
      d.max_batch = d.max_q_len = d.max_kv_len = d.head_dim = d.value_dim = 0;
      for (etalon_tensor* tensor : {&t.q, &t.k, &t.v, &t.out, &t.lse, &t.scores, &t.weights, &t.m, &t.l, &t.o}) {
        if (i < tensor->rank) tensor->shape[i] = int64_t{1} << (i == 0 ? 59 : 53);
      }
      t.o.shape[3] = 1, t.o.shape[4] = t.out.shape[3];
      t.args.value.q_offsets = t.args.value.q_lens = t.args.value.kv_lens = nullptr;
      t.sum.value.q_offsets = t.sum.value.q_lens = t.sum.value.kv_lens = nullptr;
    };
  };
  Expect("batch", kAttentionBytes, huge(0), ETALON_OVERFLOW, "desc");
  Expect("batch", kScoresBytes | kWeightedSumBytes | kBlockStatesBytes | kMergeStatesBytes, huge(0), ETALON_OK, "");
  Expect("head_dim", kAttentionBytes | kBlockStatesBytes, huge(3), ETALON_OVERFLOW, "args.q.shape[3]");
  const Spoil q_and_k = [](Trial& t) {
    t.desc.value.head_dim = 0, t.desc.value.max_workers = 1 << 20;
    t.q.shape[3] = t.k.shape[3] = int64_t{1} << 45;
  };
  Expect("workers", kScoresBytes | kBlockStatesBytes, q_and_k, ETALON_OVERFLOW, "desc.max_workers");
  Expect("workers", kAttentionBytes, q_and_k, ETALON_OVERFLOW, "desc");
  const Spoil values = [](Trial& t) {
    t.desc.value.value_dim = 0;
    t.desc.value.max_workers = t.sum.value.max_workers = t.merge_states.value.max_workers = 1 << 20;
    t.v.shape[3] = t.out.shape[3] = t.o.shape[4] = int64_t{1} << 45;
  };
  Expect("workers", kBlockStatesBytes, values, ETALON_OVERFLOW, "desc.max_workers");
  Expect("workers", kWeightedSumBytes | kMergeStatesBytes, values, ETALON_OVERFLOW, "args.max_workers");
  // Rows that cannot be counted, though each size is allowed: no call could have them, and a query says so too.
  struct Rows {
    int64_t batch, heads, q_len;
    const char* field;
  };
  const int64_t many = int64_t{1} << 40;
  for (const Rows& rows : {Rows{many, many, 1, "args.q.shape[1]"}, Rows{2, many, many, "args.q.shape[2]"},
                           Rows{2, 4, kLargest, "args.q.shape[2]"}}) {
    const Spoil spoil = [&](Trial& t) {
      for (etalon_tensor* tensor : {&t.q, &t.k, &t.v, &t.out}) tensor->shape[0] = rows.batch;
      for (etalon_tensor* tensor : {&t.q, &t.out}) tensor->shape[1] = rows.heads, tensor->shape[2] = rows.q_len;
      etalon_attention_desc& d = t.desc.value;
      d.max_batch = rows.batch, d.num_q_heads = rows.heads, d.max_q_len = rows.q_len;
      t.args.value.lse = nullptr;
      t.args.value.q_offsets = t.args.value.q_lens = t.args.value.kv_lens = nullptr;
      Replan(&t);
    };
    Expect("rows", kPlanInfo | kAttentionBytes | kBlockStatesBytes, spoil, ETALON_OVERFLOW, rows.field);
  }
  // As many lengths as there are sequences, of one row each.
  const Spoil lengths = [](Trial& t) {
    t.desc.value.max_batch = int64_t{1} << 60;
    t.desc.value.num_q_heads = t.desc.value.num_kv_heads = t.desc.value.max_q_len = 1;
    for (etalon_tensor* tensor : {&t.q, &t.k, &t.v, &t.out, &t.scores, &t.weights}) tensor->shape[1] = 1;
    for (etalon_tensor* tensor : {&t.q, &t.out, &t.scores, &t.weights}) tensor->shape[2] = 1;
    t.q.shape[0] = t.k.shape[0] = t.v.shape[0] = t.out.shape[0] = t.scores.shape[0] = t.weights.shape[0] =
        t.desc.value.max_batch;
    t.args.value.lse = nullptr, t.softmax.value.lse = nullptr;
  };
  Expect("lengths", kAttentionBytes | kScoresBytes | kBlockStatesBytes, lengths, ETALON_OVERFLOW, "args.q_lens");
  Expect("lengths", kWeightedSumBytes, lengths, ETALON_OVERFLOW, "args.q_lens");
}

// Tasks of a begun call.
struct Begun {
  Begun() {
    Prepare(kBegin, &trial);
    REQUIRE(Call(&trial, nullptr) == ETALON_OK);
    REQUIRE(trial.num_tasks == kBatch * kKvHeads);
  }
  etalon_status Run(int64_t first, int64_t last, int32_t worker) {
    return etalon_run(trial.workspace.data, first, last, worker);
  }
  Trial trial;
};

TEST_CASE("errors: etalon_run") {
  CHECK(etalon_run(nullptr, 0, 1, 0) == ETALON_NULL_POINTER);
  static Begun begun;
  const int64_t tasks = begun.trial.num_tasks;
  const std::vector<unsigned char> before(Slot(0), Slot(kSlots));
  const int64_t ranges[][2] = {{-1, 1},
                               {INT64_MIN, 0},
                               {2, 1},
                               {0, tasks + 1},
                               {tasks, tasks + 1},
                               {0, INT64_MAX},
                               {INT64_MIN, tasks},
                               {INT64_MIN, INT64_MAX},
                               {INT64_MAX, INT64_MIN}};
  for (const auto& range : ranges) {
    CAPTURE(range[0]);
    CAPTURE(range[1]);
    CHECK(begun.Run(range[0], range[1], 0) == ETALON_BAD_TASKS);
  }
  for (int32_t worker : {-1, kMaxWorkers, INT32_MIN, INT32_MAX}) {
    CAPTURE(worker);
    CHECK(begun.Run(0, tasks, worker) == ETALON_BAD_TASKS);
    CHECK(begun.Run(0, 0, worker) == ETALON_BAD_TASKS);
  }
  for (int64_t none : {int64_t{0}, int64_t{1}, tasks}) CHECK(begun.Run(none, none, 1) == ETALON_OK);
  CHECK(std::vector<unsigned char>(Slot(0), Slot(kSlots)) == before);

  // None of that spoils what was begun.
  CHECK(begun.Run(1, tasks, 1) == ETALON_OK);
  CHECK(begun.Run(0, 1, 0) == ETALON_OK);
  const std::vector<unsigned char> after(Slot(0), Slot(kSlots));
  CHECK(after != before);
  static Trial other;
  Prepare(kExecute, &other);
  REQUIRE(Call(&other, nullptr) == ETALON_OK);
  CHECK(std::vector<unsigned char>(Slot(0), Slot(kSlots)) == after);
}

TEST_CASE("errors: what was begun outlives a begin that is refused") {
  static Trial trial;
  Prepare(kBegin, &trial);
  REQUIRE(Call(&trial, nullptr) == ETALON_OK);
  const int64_t num_tasks = trial.num_tasks;
  const std::vector<unsigned char> out(Slot(3), Slot(4));
  CHECK(etalon_run(trial.workspace.data, 0, 1, 0) == ETALON_OK);
  for (void (*spoil)(Trial&) : {+[](Trial& t) { t.args.value.k = nullptr; }, +[](Trial& t) { t.workspace.bytes = 1; },
                                +[](Trial& t) { t.kv_lens[0] = -1; }}) {
    const Trial before = trial;
    spoil(trial);
    CHECK(Call(&trial, nullptr) != ETALON_OK);
    trial = before;
  }
  CHECK(etalon_run(trial.workspace.data, 1, num_tasks, 0) == ETALON_OK);
  CHECK(std::vector<unsigned char>(Slot(3), Slot(4)) != out);
}

TEST_CASE("errors: tasks that were all run already") {
  static Begun begun;
  CHECK(begun.Run(0, begun.trial.num_tasks, 0) == ETALON_OK);
  std::memset(Slot(3), 0x11, Slot(5) - Slot(3));  // out and lse
  const std::vector<unsigned char> before(Slot(0), Slot(kSlots));
  CHECK(begun.Run(0, 1, 0) == ETALON_BAD_TASKS);
  CHECK(begun.Run(0, begun.trial.num_tasks, 0) == ETALON_BAD_TASKS);
  CHECK(std::vector<unsigned char>(Slot(0), Slot(kSlots)) == before);
}

TEST_CASE("errors: a workspace in which nothing was begun") {
  unsigned char* memory = Slot(kSlots);
  for (int fill : {0, 0xFF, 0x3C}) {
    std::memset(memory, fill, kSlotBytes);
    CHECK(etalon_run(memory, 0, 1, 0) == ETALON_NOT_BEGUN);
    CHECK(etalon_run(memory, 0, 0, 0) == ETALON_NOT_BEGUN);
  }
  static Trial trial;
  Prepare(kBegin, &trial);
  REQUIRE(Call(&trial, nullptr) == ETALON_OK);
  CHECK(etalon_run(memory, 0, 0, 0) == ETALON_OK);
  for (size_t shift : {1, 8, 32}) CHECK(etalon_run(memory + shift, 0, 1, 0) == ETALON_NOT_BEGUN);
  memory[0] ^= 1;
  CHECK(etalon_run(memory, 0, 0, 0) == ETALON_NOT_BEGUN);
  memory[0] ^= 1;
  // What was begun is not the same where it was copied to.
  unsigned char* const copy = FreeMemory();
  std::memcpy(copy, memory, kSlotBytes);
  CHECK(etalon_run(copy, 0, 1, 0) == ETALON_NOT_BEGUN);
  CHECK(etalon_run(copy, 0, 0, 0) == ETALON_NOT_BEGUN);

  Prepare(kBegin, &trial);
  etalon_plan plan = trial.plan;
  CHECK(etalon_run(&plan, 0, 1, 0) == ETALON_NOT_BEGUN);
  // A call that was refused leaves what was begun before: here, nothing.
  trial.args.value.q = nullptr;
  CHECK(Call(&trial, nullptr) == ETALON_NULL_POINTER);
  CHECK(etalon_run(trial.workspace.data, 0, 1, 0) == ETALON_NOT_BEGUN);
}

TEST_CASE("errors: a call of nothing has no tasks") {
  static Trial trial;
  Prepare(kBegin, &trial);
  trial.q.shape[2] = trial.out.shape[2] = trial.lse.shape[2] = 0;
  trial.args.value.q_lens = nullptr;
  CHECK(Call(&trial, nullptr) == ETALON_OK);
  CHECK(trial.num_tasks == 0);
  CHECK(etalon_run(trial.workspace.data, 0, 0, 0) == ETALON_OK);
  CHECK(etalon_run(trial.workspace.data, 0, 1, 0) == ETALON_BAD_TASKS);
}

constexpr Functions kOfWorkers = kWithParallel & ~(kSoftmax | kMerge);  // whose scratch is for so many

TEST_CASE("errors: the descriptor of threads") {
  Expect({
      {"no function", kWithParallel, [](Trial& t) { t.parallel.parallel_for = nullptr; }, ETALON_NULL_POINTER,
       "parallel.parallel_for"},
      {"0", kWithParallel, [](Trial& t) { t.parallel.workers = 0; }, ETALON_BAD_VALUE, "parallel.workers"},
      {"-1", kWithParallel, [](Trial& t) { t.parallel.workers = -1; }, ETALON_BAD_VALUE, "parallel.workers"},
      {"least", kWithParallel, [](Trial& t) { t.parallel.workers = INT32_MIN; }, ETALON_BAD_VALUE, "parallel.workers"},
      {"too many", kOfWorkers, [](Trial& t) { t.parallel.workers = kMaxWorkers + 1; }, ETALON_BAD_VALUE,
       "parallel.workers"},
      {"most", kOfWorkers, [](Trial& t) { t.parallel.workers = INT32_MAX; }, ETALON_BAD_VALUE, "parallel.workers"},
      {"most", kSoftmax | kMerge, [](Trial& t) { t.parallel.workers = INT32_MAX; }, ETALON_OK, ""},
      {"fewer", kWithParallel, [](Trial& t) { t.parallel.workers = 1; }, ETALON_OK, ""},
      {"reserved", kWithParallel, [](Trial& t) { t.parallel.reserved = 1; }, ETALON_UNSUPPORTED, "parallel.reserved"},
      {"max_workers 0 is 1", kOfWorkers,
       [](Trial& t) {
         t.desc.value.max_workers = t.sum.value.max_workers = t.merge_states.value.max_workers = 0;
         Replan(&t), FitWorkspace(&t);
       },
       ETALON_BAD_VALUE, "parallel.workers"},
  });
}

// Functions in place of a parallel_for that do not do what they should.
using ParallelFor = void (*)(void*, int64_t num_tasks, etalon_task_fn fn, void* arg);

TEST_CASE("errors: a parallel_for that breaks its promise") {
  struct Case {
    const char* what;
    ParallelFor parallel_for;
  };
  const Case cases[] = {
      {"runs nothing", [](void*, int64_t, etalon_task_fn, void*) {}},
      {"leaves out the last", [](void*, int64_t n, etalon_task_fn fn, void* arg) { fn(arg, 0, n - 1, 0); }},
      {"leaves out the first", [](void*, int64_t n, etalon_task_fn fn, void* arg) { fn(arg, 1, n, 0); }},
      {"runs the first for the last",
       [](void*, int64_t n, etalon_task_fn fn, void* arg) { fn(arg, 0, n - 1, 0), fn(arg, 0, 1, 0); }},
      {"runs one twice", [](void*, int64_t n, etalon_task_fn fn, void* arg) { fn(arg, 0, n, 0), fn(arg, 0, 1, 0); }},
      {"runs all twice", [](void*, int64_t n, etalon_task_fn fn, void* arg) { fn(arg, 0, n, 0), fn(arg, 0, n, 0); }},
      {"begins below 0", [](void*, int64_t n, etalon_task_fn fn, void* arg) { fn(arg, -1, n, 0), fn(arg, 0, n, 0); }},
      {"ends beyond the end", [](void*, int64_t n, etalon_task_fn fn, void* arg) { fn(arg, 0, n + 1, 0); }},
      {"backwards", [](void*, int64_t n, etalon_task_fn fn, void* arg) { fn(arg, n, 0, 0), fn(arg, 0, n, 0); }},
      {"worker -1", [](void*, int64_t n, etalon_task_fn fn, void* arg) { fn(arg, 0, n, -1); }},
      {"worker too many", [](void*, int64_t n, etalon_task_fn fn, void* arg) { fn(arg, 0, n, kMaxWorkers); }},
      {"one worker too many",
       [](void*, int64_t n, etalon_task_fn fn, void* arg) { fn(arg, 0, 1, kMaxWorkers), fn(arg, 0, n, 0); }},
  };
  static Trial trial;
  for (const Case& c : cases) {
    for (Functions function = 1; function < kEnd; function <<= 1) {
      if ((kWithParallel & function) == 0) continue;
      CAPTURE(std::string(c.what));
      const std::string name = NameOf(function);
      CAPTURE(name);
      for (bool with_error : {true, false}) {
        Prepare(function, &trial);
        trial.parallel.parallel_for = c.parallel_for;
        etalon_error error;
        CHECK(Call(&trial, with_error ? &error : nullptr) == ETALON_BAD_TASKS);
        if (with_error) CheckError(error, ETALON_BAD_TASKS, "parallel.parallel_for");
      }
    }
  }
}

TEST_CASE("errors: a parallel_for may cut the tasks anywhere, and take them in any order") {
  const ParallelFor reverse = [](void*, int64_t n, etalon_task_fn fn, void* arg) {
    for (int64_t task = n; task-- > 0;) fn(arg, task, task + 1, static_cast<int32_t>(task % kMaxWorkers));
    fn(arg, 0, 0, 0);
    fn(arg, n, n, 1);
  };
  Expect("reverse", kWithParallel, [&](Trial& t) { t.parallel.parallel_for = reverse; }, ETALON_OK, "");

  static Trial trial;
  Prepare(kExecute, &trial);
  trial.parallel.parallel_for = [](void*, int64_t n, etalon_task_fn fn, void* arg) { fn(arg, 1, n, 0); };
  etalon_error error;
  CHECK(Call(&trial, &error) == ETALON_BAD_TASKS);
  CHECK(std::string(error.text) == "parallel.parallel_for ran 3 of 4 tasks");
}

TEST_CASE("errors: a worker beyond those that parallel names") {
  static Trial trial;
  for (Functions function = 1; function < kEnd; function <<= 1) {
    if ((kWithParallel & function) == 0) continue;
    const std::string name = NameOf(function);
    CAPTURE(name);
    Prepare(function, &trial);
    trial.parallel.workers = 1;  // of 2 that there is scratch for
    trial.parallel.parallel_for = [](void*, int64_t n, etalon_task_fn fn, void* arg) { fn(arg, 0, n, 1); };
    CHECK(Call(&trial, nullptr) == ETALON_BAD_TASKS);
  }
}

}  // namespace
}  // namespace etalon::test
