// errors_trial.h: a valid call of every function as one value, which a test spoils in one place to see what the
// function says of it. All that a call may touch is in one struct and one piece of memory, so that "nothing was
// written" is a comparison of bytes.
#ifndef ETALON_TESTS_API_ERRORS_TRIAL_H_
#define ETALON_TESTS_API_ERRORS_TRIAL_H_

#include <etalon/etalon.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace etalon::test {

using Functions = uint32_t;  // a set of them
enum : Functions {
  kAttention = 1u << 0,
  kAttentionBytes = 1u << 1,
  kSupports = 1u << 2,
  kPlanInit = 1u << 3,
  kBegin = 1u << 4,
  kExecute = 1u << 5,
  kPlanInfo = 1u << 6,
  kScores = 1u << 7,
  kScoresBytes = 1u << 8,
  kSoftmax = 1u << 9,
  kWeightedSum = 1u << 10,
  kWeightedSumBytes = 1u << 11,
  kMerge = 1u << 12,
  kBlockStates = 1u << 13,
  kBlockStatesBytes = 1u << 14,
  kMergeStates = 1u << 15,
  kMergeStatesBytes = 1u << 16,
  kMaskBytes = 1u << 17,
  kMaskPrepare = 1u << 18,
  kEnd = 1u << 19,

  // Those that compute, and so look at memory; the others look at shapes alone.
  kOneCall = kAttention | kAttentionBytes,
  kPlanned = kBegin | kExecute | kPlanInfo,
  kFused = kOneCall | kPlanned,
  kScoring = kScores | kScoresBytes,
  kSumming = kWeightedSum | kWeightedSumBytes,
  kStating = kBlockStates | kBlockStatesBytes,
  kMerging = kMergeStates | kMergeStatesBytes,
  kPreparing = kMaskBytes | kMaskPrepare,
  kWithArgs = kFused | kScoring | kStating,                            // etalon_attention_args
  kWithDesc = kOneCall | kSupports | kPlanInit | kScoring | kStating,  // etalon_attention_desc
  kQueries = kAttentionBytes | kScoresBytes | kWeightedSumBytes | kBlockStatesBytes | kMergeStatesBytes | kMaskBytes,
  kWithWorkspace = kAttention | kBegin | kExecute | kScores | kWeightedSum | kBlockStates | kMergeStates,
  kWithParallel = kAttention | kExecute | kScores | kSoftmax | kWeightedSum | kMerge | kBlockStates | kMergeStates,
  kComputing = kWithWorkspace | kSoftmax | kMerge,
  kWithTarget = kWithDesc | kSoftmax | kSumming | kMerge | kMerging,
  kAll = kEnd - 1
};
std::string NameOf(Functions function);

struct Trial;
using Spoil = std::function<void(Trial&)>;

// A descriptor with room for the fields of all newer versions.
template <typename Descriptor>
struct Roomy {
  Descriptor value;
  unsigned char beyond[4096 - sizeof(Descriptor)];
};

constexpr int64_t kBatch = 2, kQHeads = 4, kKvHeads = 2, kQLen = 3, kKvLen = 7, kHeadDim = 6, kValueDim = 5;
constexpr int32_t kMaxWorkers = 2;
constexpr int64_t kLargest = int64_t{1} << 62;  // what lib/api allows of a size

// A call. The members named like arguments are the arguments; what is passed stands in `pass`, so that it can be NULL.
struct Trial {
  Functions function;  // one
  etalon_tensor q, k, v, out, lse, weights, scores, m, l, o, out1, lse1, out2, lse2;
  int64_t q_offsets[kBatch], q_lens[kBatch], kv_lens[kBatch];
  // Of no call until a function below brings them in.
  etalon_tensor slopes, bias, mask, sinks, k2, v2;
  int64_t kv_firsts[kBatch], prefix_lens[kBatch], q_starts[kBatch + 1], kv_starts[kBatch + 1];
  Roomy<etalon_key_source> source;
  const etalon_key_source* more_sources[1];
  // Of the functions that prepare a mask.
  Roomy<etalon_mask_args> mask_args;
  int64_t q_segments[kBatch * kQLen], kv_segments[kBatch * kKvLen], block_starts[kBatch + 1], blocks[3];
  const etalon_mask* prepared;
  Roomy<etalon_attention_desc> desc;
  Roomy<etalon_attention_args> args;
  Roomy<etalon_softmax_args> softmax;
  Roomy<etalon_weighted_sum_args> sum;
  Roomy<etalon_merge_args> merge;
  Roomy<etalon_merge_states_args> merge_states;
  Roomy<etalon_plan_info> info;
  etalon_states states;
  etalon_workspace workspace;
  etalon_parallel parallel;
  etalon_plan plan;
  size_t bytes;
  int64_t num_tasks;
  struct {
    const etalon_attention_desc* desc;
    const etalon_attention_args* args;
    const etalon_softmax_args* softmax;
    const etalon_weighted_sum_args* sum;
    const etalon_merge_args* merge;
    const etalon_merge_states_args* merge_states;
    const etalon_states* states;
    const etalon_mask_args* mask_args;
    const etalon_mask** prepared;
    const etalon_workspace* workspace;
    const etalon_parallel* parallel;
    etalon_plan* plan;
    etalon_plan_info* info;
    size_t* bytes;
    int64_t* num_tasks;
  } pass;
};

void Prepare(Functions function, Trial* trial);
etalon_status Call(Trial* trial, etalon_error* error);
// The plan of the trial made from its descriptor; for spoils of descriptors that a plan may have.
void Replan(Trial* trial);
// As much workspace as the call asks for, or 0 bytes if it is refused.
void FitWorkspace(Trial* trial);

// Brings slopes, bias, mask and sinks into a call, as far as its function takes them; a plan has the options.
void AddOptions(Trial* trial);
// Gives the call a second source of keys; a plan has two.
void AddSource(Trial* trial);
// Makes the call a ragged one, of queries and keys: sequences of all rows, one after the other.
void MakeRagged(Trial* trial);
// A prepared mask in place of the dense one of AddOptions.
void PrepareMask(Trial* trial);

// The same as a spoil, which then does what is asked.
Spoil WithOptions(void (*spoil)(Trial&));
Spoil WithSource(void (*spoil)(Trial&));
Spoil WithRagged(void (*spoil)(Trial&));
Spoil WithPrepared(void (*spoil)(Trial&));  // mask, and the other options

// The memory that all tensors of all trials lie in, and what is free at its end.
constexpr size_t kSlotBytes = 4096, kWorkspaceBytes = size_t{1} << 18;
constexpr int kSlots = 22;
unsigned char* Slot(int index);  // kSlots of them, then the workspace
unsigned char* FreeMemory();     // kSlotBytes, aligned to as much

// Packed, of this type and shape, at this place.
etalon_tensor PackedTensor(void* data, int32_t dtype, const std::vector<int64_t>& shape);

// Calls each of the functions with a valid trial that `spoil` has changed, with and without an error to fill, and
// checks status, field and text, and that nothing else was written unless the status is ETALON_OK.
void Expect(const std::string& what, Functions functions, const Spoil& spoil, etalon_status status,
            const std::string& field);

// The same for many.
struct Row {
  const char* what;
  Functions functions;
  void (*spoil)(Trial&);
  etalon_status status;
  const char* field;
};
void Expect(const std::vector<Row>& rows);
void Expect(Spoil (*start)(void (*)(Trial&)), const std::vector<Row>& rows);  // WithSource, say

// A tensor argument: which functions take it, where it is in a trial, and what it may be.
struct Argument {
  Functions functions;
  const char* name;  // "args.k"
  etalon_tensor Trial::* tensor;
  const etalon_tensor** (*pointer)(Trial&);  // what is passed
  int rank;                                  // the largest
  bool f32;                                  // no other type
  bool output;
  bool optional;  // may be NULL
};
const std::vector<Argument>& Arguments();

// The error holds this status and field, and a printable sentence that begins with the field; on success no text.
void CheckError(const etalon_error& error, etalon_status status, const std::string& field);

}  // namespace etalon::test

#endif  // ETALON_TESTS_API_ERRORS_TRIAL_H_
