// functions.h: the functions of the C interface as tables: which tensors they take, of which sizes, and where in their
// structs the arguments stand. Taken from the comments of etalon.h; decoder, judge and model all work from them.
#ifndef ETALON_TESTS_FUZZ_FUNCTIONS_H_
#define ETALON_TESTS_FUZZ_FUNCTIONS_H_

#include <etalon/etalon.h>

#include <cstddef>
#include <cstdint>
#include <string>
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
  kMaskPrepare,
  kNumFunctions
};

// Every dimension of every tensor is one of these.
enum Size {
  kBatch,
  kQHeads,
  kKvHeads,
  kQLen,
  kKvLen,
  kHeadDim,
  kValueDim,
  kBlocks,
  // What q and out, or k and v have for attention: of a ragged batch 1, and the rows of all sequences.
  kQBatch,
  kQRows,
  kKvBatch,
  kKvRows,
  kNumSizes
};
constexpr const char* kSizeNames[kNumSizes] = {"batch",   "num_q_heads", "num_kv_heads", "q_len",
                                               "kv_len",  "head_dim",    "value_dim",    "blocks",
                                               "q_batch", "q_rows",      "kv_batch",     "kv_rows"};

// Sizes of which every key source has its own.
constexpr bool IsOfSource(Size size) { return size == kKvLen || size == kKvBatch || size == kKvRows; }

class Sizes {
 public:
  int64_t& operator[](Size size) { return of_[0][size]; }
  int64_t operator[](Size size) const { return of_[0][size]; }
  int64_t& Of(int source, Size size) { return of_[IsOfSource(size) ? source : 0][size]; }
  int64_t Of(int source, Size size) const { return of_[IsOfSource(size) ? source : 0][size]; }

 private:
  int64_t of_[ETALON_MAX_SOURCES][kNumSizes] = {};
};

enum class Types {
  kAny,  // f32, f16, bf16
  kF32,
  kBias,  // as kAny; one element may stand for a row
  kMask,  // ETALON_BOOL, of which likewise, or ETALON_BITS
  kBool
};

enum class Holder { kArgs, kStates, kSource };

struct Slot {
  const char* name;
  size_t offset;  // of its pointer in what holds it
  Holder holder;
  int source;  // whose k, v, bias or mask it is; 0 = the first, which is held by the arguments
  bool output;
  bool optional;
  Types types;
  bool broadcast;  // a size of 1 counts for all
  std::vector<Size> shape;

  int places() const { return static_cast<int>(shape.size()); }
  std::string FullName() const;
};

// A pointer that must be NULL.
struct Absent {
  size_t offset;
  etalon_status status;
};

constexpr size_t kNowhere = SIZE_MAX;

struct FunctionInfo {
  const char* name;
  bool has_desc;       // an etalon_attention_desc, with left, right, target and max_workers in it, and key sources
  bool has_workspace;  // and a limit of workers
  size_t args_bytes;
  size_t first_args_bytes;   // in the first version of etalon.h
  std::vector<Slot> plain;   // needed, or decided first
  std::vector<Slot> option;  // each of them may be left out
  std::vector<Absent> absent;
  // Offsets in the arguments, kNowhere if they are not there.
  size_t left, right, q_offset, q_offsets, q_lens, kv_lens, target, max_workers, reserved, states;

  bool HasSequences() const { return q_offset != kNowhere; }
};

const FunctionInfo& InfoOf(Function function);

constexpr bool IsPlanned(Function function) { return function == kBeginAndRun || function == kExecute; }
// Whether it takes several key sources, and ragged batches.
constexpr bool IsWholeAttention(Function function) { return function == kAttention || IsPlanned(function); }

// All slots of a function: plain, option, then those of key sources 1 ... num_sources - 1.
std::vector<Slot> SlotsOf(Function function, int num_sources);

// The arrays of numbers of a key source. `extra`: numbers beyond one for each sequence.
struct SourceArray {
  const char* name;
  size_t in_args;  // of etalon_attention_args, for the first source
  size_t in_source;
  int extra;
};
constexpr int kNumSourceArrays = 5;
extern const SourceArray kSourceArrays[kNumSourceArrays];

}  // namespace etalon::fuzz

#endif  // ETALON_TESTS_FUZZ_FUNCTIONS_H_
