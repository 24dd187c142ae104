// call.h: one call of a function of etalon.h with everything that it can reach, made from the bytes of a fuzzed input.
#ifndef ETALON_TESTS_FUZZ_CALL_H_
#define ETALON_TESTS_FUZZ_CALL_H_

#include <etalon/etalon.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "tests/fuzz/bytes.h"
#include "tests/fuzz/functions.h"
#include "tests/fuzz/memory.h"

namespace etalon::fuzz {

// The caller's threads, played by one: parts in random order, by random workers. `broken` breaks the promise.
struct Loop {
  enum Break {
    kNone,
    kNothing,
    kLastPart,
    kTwice,
    kWorker,
    kNoWorker,
    kTooFar,
    kTooEarly,
    kBackwards,
    kOtherTask,
    kNumBreaks
  };
  uint64_t seed = 0;
  int32_t workers = 1;
  int broken = kNone;
  int64_t num_tasks = 0;  // as told
};
void RunParts(void* loop, int64_t num_tasks, etalon_task_fn fn, void* arg);
std::vector<std::pair<int64_t, int64_t>> CutTasks(uint64_t seed, int64_t num_tasks);

// What is done to a call that was right; any numbers will do.
struct Mutation {
  uint8_t kind;
  uint8_t slot;
  uint8_t place;
  uint8_t how;
};

enum class WorkspaceFault { kNone, kNull, kNullData, kSmall, kEmpty, kMisaligned, kOnTensor, kAtEnd, kNumFaults };
enum class PlanFault { kNone, kNull, kZero, kMagic, kNumFaults };

struct Call {
  Function function = kAttention;
  const FunctionInfo* info = nullptr;
  int64_t sizes[kNumSizes] = {};  // before mutations
  Arena arena;

  // Null: the function gets NULL. Each descriptor, tensor and array has a block of its own.
  Block* desc = nullptr;
  Block* args = nullptr;
  Block* states = nullptr;
  Block* tensors[kMostSlots] = {};
  Block* q_offsets = nullptr;
  Block* q_lens = nullptr;
  Block* kv_lens = nullptr;
  bool null_args = false;
  bool null_desc = false;
  bool null_states = false;
  bool null_result = false;  // where the answer would go

  bool has_parallel = false;
  etalon_parallel parallel = {};
  Loop loop;
  WorkspaceFault workspace_fault = WorkspaceFault::kNone;
  size_t workspace_extra = 0;
  PlanFault plan_fault = PlanFault::kNone;

  bool wants_error = true;
  bool query_without_memory = false;  // tensors have no data yet when the size of the workspace is asked for
  bool twice = false;                 // with what the first time has left in the workspace
  const char* environment = "default";

  std::vector<Mutation> planned;
  std::string mutations;  // those that changed something, in words
};

void Decode(Bytes* in, Function function, Call* call);

// Applies call->planned.
void Mutate(Call* call);

// The tensor that the function will see, or null.
const etalon_tensor* TensorOf(const Call& call, size_t slot);
// Where the pointer to it stands.
Block* PointerBlock(const Call& call, const Slot& slot);

// For messages.
std::string Describe(const Call& call);

}  // namespace etalon::fuzz

#endif  // ETALON_TESTS_FUZZ_CALL_H_
