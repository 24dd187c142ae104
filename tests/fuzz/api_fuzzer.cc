// Any bytes as one call of the C interface, checked against a judge of its arguments and a model of its results. The
// form is libFuzzer's; replay_main.cc runs the same on inputs that are kept.
#include <cstddef>
#include <cstdint>

#include "tests/fuzz/run.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace etalon::fuzz;  // NOLINT: one function
  // What the first byte says, in two halves: a function, and for attention whether queries and keys are ragged.
  constexpr Function kFunctions[14] = {kAttention,   kBeginAndRun, kExecute, kScores,      kBlockStates,
                                       kSoftmax,     kWeightedSum, kMerge,   kMergeStates, kAttention,
                                       kBeginAndRun, kExecute,     kScores,  kBlockStates};
  Bytes in(data, size);
  const int choice = in.Next();
  const int which = choice % 16, batch = choice / 16;
  if (which == 15 && batch == 0) {
    RunSmallFunctions(&in);
    return 0;
  }
  const Function function = which < 14 ? kFunctions[which] : batch == 0 ? kSoftmax : kMaskPrepare;
  Call call;
  Decode(&in, function, batch % 2 != 0, batch / 2 % 2 != 0, &call);
  PrepareMasks(&call);
  Mutate(&call);
  RunCall(&call);
  return 0;
}
