// judge.h: what is wrong with a call, from the text of etalon.h alone and in 128-bit integers: the second form of
// lib/api/validate*. All faults are found, in no order, since a function may name any of them.
#ifndef ETALON_TESTS_FUZZ_JUDGE_H_
#define ETALON_TESTS_FUZZ_JUDGE_H_

#include <string>

#include "tests/fuzz/call.h"
#include "tests/fuzz/elements.h"

namespace etalon::fuzz {

// A call with a fault in `must` is refused, with one of the statuses in `must` or `may`; one without is accepted,
// unless `may` has something: cases which etalon.h leaves open.
struct Faults {
  uint32_t must = 0;
  uint32_t may = 0;

  void Must(etalon_status status) { must |= 1u << status; }
  void May(etalon_status status) { may |= 1u << status; }
  bool Has(etalon_status status) const { return (must >> status & 1) != 0; }
  void Add(const Faults& other) {
    must |= other.must;
    may |= other.may;
  }
  // Empty if a function may answer so.
  std::string Disagrees(etalon_status status) const;
};

// Whether memory counts, or only types, ranks and shapes.
enum class Depth { kShapes, kMemory };

// The keys of a source, as the caller says it. Sequences of a call that is right.
struct Source {
  bool readable = false;  // of the first source it is that of the arguments
  etalon_key_source args = {};
  int64_t kv_len = 0;                  // of the longest sequence
  const PreparedMask* mask = nullptr;  // of args.prepared_mask

  // Keys of a sequence, padding on the left included; its first real one; those up to its length.
  int64_t Rows(int64_t b) const {
    return args.kv_starts == nullptr ? kv_len : args.kv_starts[b + 1] - args.kv_starts[b];
  }
  int64_t First(int64_t b) const { return args.kv_firsts == nullptr ? 0 : args.kv_firsts[b]; }
  int64_t End(int64_t b) const { return args.kv_lens == nullptr ? Rows(b) : args.kv_lens[b]; }
  // Of query row 0.
  Wide Offset(int64_t b) const { return Wide{args.q_offset} + (args.q_offsets == nullptr ? 0 : args.q_offsets[b]); }
  // Whether lengths and geometry let row `query` see the key at position `key` of its sequence.
  bool Reaches(int64_t b, int64_t query, int64_t key) const {
    const Wide distance = key - (query + Offset(b));
    if (key >= End(b) - First(b) || (args.left >= 0 && distance < -Wide{args.left})) return false;
    const bool in_prefix = args.prefix_lens != nullptr && key < args.prefix_lens[b];
    return args.right < 0 || distance <= args.right || in_prefix;
  }
  // And the prepared mask. Dense masks and biases are tensors.
  bool Sees(int64_t b, int64_t head, int64_t query, int64_t key) const {
    return Reaches(b, query, key) && (mask == nullptr || mask->dense.Shows(b, head, query, key + First(b)));
  }
};

// The queries of all sequences.
struct Queries {
  const int64_t* q_starts = nullptr;
  const int64_t* q_lens = nullptr;
  int64_t q_len = 0;  // of the longest sequence

  int64_t Rows(int64_t b) const { return q_starts == nullptr ? q_len : q_starts[b + 1] - q_starts[b]; }
  int64_t Length(int64_t b) const { return q_lens == nullptr ? Rows(b) : q_lens[b]; }
  // In a tensor: its batch, and its row.
  int64_t BatchOf(int64_t b) const { return q_starts == nullptr ? b : 0; }
  int64_t FirstRow(int64_t b) const { return q_starts == nullptr ? 0 : q_starts[b]; }
};

constexpr size_t kLargestArgs = 256;

struct Judged {
  explicit Judged(const Call& call) : tensors(call.slots.size()), wanted(call.slots.size()) {}

  Faults faults;
  unsigned char args[kLargestArgs] = {};  // ours: what a newer caller adds left out, what an older one lacks 0
  std::vector<Elements> tensors;          // of the slots: those that could be read
  std::vector<bool> wanted;               // it is there and could be read
  Sizes sizes;                            // the first tensor that has a size says it
  Queries queries;
  bool lengths_known = true;  // else sizes that depend on them are not
  int num_sources = 1;
  Source sources[ETALON_MAX_SOURCES];
  etalon_attention_desc desc = {};  // likewise ours
  etalon_mask_args mask = {};       // of etalon_mask_prepare
  // All memory that the call names is there. If not, only a call that must be refused may be made; arrays of numbers
  // are read to find that out, and nobody may be given one that is not there.
  bool memory_exists = true;
  bool arrays_exist = true;
  Wide work = 0;

  template <typename T>
  T Arg(size_t offset) const {
    T value;
    std::memcpy(&value, args + offset, sizeof value);
    return value;
  }
  bool Wants(const Call& call, const char* name, int source = 0) const { return wanted[call.SlotOf(name, source)]; }
};

// Of an etalon_attention_desc by itself; for a plan every size and type must be set.
Faults JudgeDesc(const Call& call, bool planned);

// Of everything but workspace and threads. `desc`: of the plan, or null if call.desc counts.
Judged JudgeCall(const Call& call, Depth depth, const etalon_attention_desc* plan_desc);

// Adds the faults of workspace and threads; `bytes` of workspace are needed. Also whether an output lies among the
// bytes of anything else.
void JudgeMemory(const Call& call, const etalon_workspace* workspace, size_t bytes, Judged* judged);
void JudgeParallel(const Call& call, int32_t max_workers, Judged* judged);

int32_t MaxWorkersOf(const Call& call, const Judged& judged);  // 0: any number

// An array that a call reads.
struct NamedArray {
  const int64_t* data;
  Wide count;
};
// All that are there; those that could not be read are not looked at.
std::vector<NamedArray> ArraysOf(const Call& call, const Judged& judged);

// What the mask of a right call of etalon_mask_prepare shows.
DenseMask ShownBy(const Call& call, const Judged& judged);

}  // namespace etalon::fuzz

#endif  // ETALON_TESTS_FUZZ_JUDGE_H_
