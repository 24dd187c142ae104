// mutate.h: kinds of changes, and how they are made and noted.
#ifndef ETALON_TESTS_FUZZ_MUTATE_H_
#define ETALON_TESTS_FUZZ_MUTATE_H_

#include <string>

#include "tests/fuzz/call.h"

namespace etalon::fuzz {

// New kinds go to the end: then old inputs stay what they are.
constexpr int kNumPlainKinds = 24;
constexpr int kNumOptionKinds = 17;
constexpr int kNumKinds = kNumPlainKinds + kNumOptionKinds;

// Of what a call brings beside its tensors: options, key sources, ragged batches, prepared masks.
void MutateOptions(const Mutation& mutation, int kind, Call* call);

// Puts a number that is near to what was there, or near to where numbers end.
void PutInteresting(Block* block, const std::string& what, size_t offset, size_t bytes, uint8_t how, Call* call);
void NoteMutation(const std::string& what, int64_t value, Call* call);

}  // namespace etalon::fuzz

#endif  // ETALON_TESTS_FUZZ_MUTATE_H_
