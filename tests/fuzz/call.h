// call.h: one call of a function of etalon.h with everything that it can reach, made from the bytes of a fuzzed input.
#ifndef ETALON_TESTS_FUZZ_CALL_H_
#define ETALON_TESTS_FUZZ_CALL_H_

#include <etalon/etalon.h>

#include <cstdint>
#include <memory>
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

// Numbers that a call names, and where the pointer to them stands.
struct ArrayBlock {
  Block* block;
  Block* holder;
  size_t offset;
  int64_t most;  // what an element may be; of starts and offsets, about so
};

// What a mask shows, whatever its form. Sizes of 1 in batch and heads count for all.
struct DenseMask {
  int64_t batch = 0, num_heads = 0, q_len = 0, kv_len = 0;
  std::vector<uint8_t> shown;  // 0 = hidden

  bool Shows(int64_t b, int64_t h, int64_t i, int64_t column) const {
    const int64_t row = ((batch == 1 ? 0 : b) * num_heads + (num_heads == 1 ? 0 : h)) * q_len + i;
    return shown[static_cast<size_t>(row * kv_len + column)] != 0;
  }
};

// What etalon_mask_prepare has made, or what is none.
struct PreparedMask {
  Block* block = nullptr;
  size_t bytes = 0;
  bool intact = true;  // its start says what it is
  bool runs = false;   // must be kept as runs: it was made from documents or blocks
  DenseMask dense;
};

struct Call {
  Function function = kAttention;
  const FunctionInfo* info = nullptr;
  std::vector<Slot> slots;
  bool ragged_q = false;
  bool ragged_kv = false;  // of the first source
  Sizes sizes;             // before mutations
  Arena arena;

  // Null: the function gets NULL. Each descriptor, tensor and array has a block of its own.
  Block* desc = nullptr;
  Block* args = nullptr;
  Block* states = nullptr;
  std::vector<Block*> tensors;     // of the slots
  std::vector<Block*> sources;     // etalon_key_source, from the second source on
  Block* more_sources = nullptr;   // pointers to them
  std::vector<ArrayBlock> arrays;  // q_offsets, q_lens, kv_lens or null, then others
  struct Unprepared {
    int source;
    std::unique_ptr<Call> mask;  // the call of etalon_mask_prepare that will make it
  };
  std::vector<Unprepared> unprepared;
  std::vector<PreparedMask> masks;
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

  // Where the arguments of a source stand, and its slot of that name.
  Block* HolderOf(int source) const { return source == 0 ? args : sources[static_cast<size_t>(source) - 1]; }
  size_t SlotOf(const char* name, int source = 0) const;
};

// ragged_*: of functions that can be. Said before all else, since it decides what tensors there are.
void Decode(Bytes* in, Function function, bool ragged_q, bool ragged_kv, Call* call);

// Makes the masks that the call takes.
void PrepareMasks(Call* call);

// Applies call->planned.
void Mutate(Call* call);

// The tensor that the function will see, or null. Before mutations: what holds it may be shorter afterwards.
const etalon_tensor* TensorOf(const Call& call, size_t slot);
// Where the pointer to it stands.
Block* PointerBlock(const Call& call, const Slot& slot);

// For messages.
std::string Describe(const Call& call);

}  // namespace etalon::fuzz

#endif  // ETALON_TESTS_FUZZ_CALL_H_
