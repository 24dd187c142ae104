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
  void Add(const Faults& other) {
    must |= other.must;
    may |= other.may;
  }
  // Empty if a function may answer so.
  std::string Disagrees(etalon_status status) const;
};

// Whether memory counts, or only types, ranks and shapes.
enum class Depth { kShapes, kMemory };

// What rows see, as the caller says it.
struct Sequences {
  int64_t left = -1;
  int64_t right = -1;
  int64_t q_offset = 0;
  const int64_t* q_offsets = nullptr;
  const int64_t* q_lens = nullptr;
  const int64_t* kv_lens = nullptr;

  int64_t QLen(int64_t batch, int64_t q_len) const { return q_lens == nullptr ? q_len : q_lens[batch]; }
  int64_t KvLen(int64_t batch, int64_t kv_len) const { return kv_lens == nullptr ? kv_len : kv_lens[batch]; }
  // Row `query` sees key `key` of a sequence; the two lengths are those of the tensors.
  bool Sees(int64_t batch, int64_t query, int64_t key, int64_t q_len, int64_t kv_len) const {
    const Wide position = Wide{query} + q_offset + (q_offsets == nullptr ? 0 : q_offsets[batch]);
    const Wide distance = key - position;
    return query < QLen(batch, q_len) && key < KvLen(batch, kv_len) && (left < 0 || distance >= -Wide{left}) &&
           (right < 0 || distance <= right);
  }
};

struct Judged {
  Faults faults;
  Elements tensors[kMostSlots];     // of those that could be read
  bool wanted[kMostSlots] = {};     // it is there and could be read
  int64_t sizes[kNumSizes] = {};    // the first tensor that has a size says it
  Sequences sequences;              // of a call that is right
  etalon_attention_desc desc = {};  // ours, without what a newer version adds
  // All memory that the call names is there. If not, only a call that must be refused may be made; arrays of lengths
  // are read to find that out.
  bool memory_exists = true;
  bool arrays_exist = true;
  Wide work = 0;
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

}  // namespace etalon::fuzz

#endif  // ETALON_TESTS_FUZZ_JUDGE_H_
