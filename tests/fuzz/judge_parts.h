// judge_parts.h: the judge of a call in its parts; each looks at what the ones before it have read.
#ifndef ETALON_TESTS_FUZZ_JUDGE_PARTS_H_
#define ETALON_TESTS_FUZZ_JUDGE_PARTS_H_

#include "tests/fuzz/judge.h"

namespace etalon::fuzz {

constexpr int64_t kLargest = int64_t{1} << 62;
// From here on the bytes of a workspace might not fit a size_t. Between these sizes and those that do not etalon.h
// leaves it open.
constexpr int64_t kLargeSize = int64_t{1} << 20;

// Reads a descriptor into `ours` of `size` bytes, of which the first version had `first`. False if it cannot be read.
bool ReadDescriptor(const Block& block, size_t first, size_t size, void* ours, Faults* faults);

bool IsNumber(int32_t dtype);

// False if there is no telling what the tensor is.
bool JudgeTensor(const etalon_tensor& tensor, const Slot& slot, Depth depth, Elements* e, Faults* faults);
// All tensors, and the sizes that they must share. Those whose sizes may be 1 wait for JudgeBroadcast: only the
// sequences tell how large they may be.
void JudgeTensors(const Call& call, Depth depth, Judged* judged);
void JudgeBroadcast(const Call& call, size_t slot, Judged* judged);
// m, l and o of the states: rows evenly spaced, with one spacing.
void JudgeSpacing(const Call& call, Judged* judged);

// The descriptors of all key sources, the first out of args and desc. Some may be missing.
void ReadSources(const Call& call, Judged* judged);
// The batch, where its sequences lie and how long they are, offsets, and the masks that were prepared for them.
void JudgeSequences(const Call& call, Judged* judged);

// `count` numbers are there and can be read.
bool JudgeArray(const Call& call, const int64_t* array, Wide count, Judged* judged);

// The arguments of etalon_mask_prepare.
void JudgeMask(const Call& call, Depth depth, Judged* judged);

}  // namespace etalon::fuzz

#endif  // ETALON_TESTS_FUZZ_JUDGE_PARTS_H_
