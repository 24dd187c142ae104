// functions.h: the functions of the C interface as tables: which tensors they take, of which sizes, and where in their
// structs the arguments stand. Taken from the comments of etalon.h; decoder, judge and model all work from them.
#ifndef ETALON_TESTS_FUZZ_FUNCTIONS_H_
#define ETALON_TESTS_FUZZ_FUNCTIONS_H_

#include <etalon/etalon.h>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace etalon::fuzz {

enum Function {
  kAttention,
  kBeginAndRun,  // a plan, etalon_begin, etalon_run
  kExecute,      // a plan, etalon_execute
  kScores,
  kBlockStates,
  kSoftmax,
  kWeightedSum,
  kMerge,
  kMergeStates,
  kNumFunctions
};

// Every dimension of every tensor is one of these.
enum Size { kBatch, kQHeads, kKvHeads, kQLen, kKvLen, kHeadDim, kValueDim, kBlocks, kNumSizes };
constexpr const char* kSizeNames[kNumSizes] = {"batch",  "num_q_heads", "num_kv_heads", "q_len",
                                               "kv_len", "head_dim",    "value_dim",    "blocks"};

struct Slot {
  const char* name;
  size_t offset;   // of its pointer in the arguments, or in etalon_states
  bool in_states;  // which of the two
  bool output;
  bool optional;
  bool f32;  // no other type
  std::vector<Size> shape;

  int places() const { return static_cast<int>(shape.size()); }
};

// A pointer that must be NULL.
struct Absent {
  size_t offset;
  etalon_status status;
};

constexpr size_t kNowhere = SIZE_MAX;
constexpr size_t kMostSlots = 6;

struct FunctionInfo {
  const char* name;
  bool has_desc;       // an etalon_attention_desc, with left, right, target and max_workers in it
  bool has_workspace;  // and a limit of workers
  size_t args_bytes;
  std::vector<Slot> slots;
  std::vector<Absent> absent;
  // Offsets in the arguments, kNowhere if they are not there.
  size_t left, right, q_offset, q_offsets, q_lens, kv_lens, target, max_workers, reserved, states;

  bool HasSequences() const { return q_offset != kNowhere; }
};

const FunctionInfo& InfoOf(Function function);

}  // namespace etalon::fuzz

#endif  // ETALON_TESTS_FUZZ_FUNCTIONS_H_
