// Any bytes as one call of the C interface, checked against a judge of its arguments and a model of its results. The
// form is libFuzzer's; replay_main.cc runs the same on inputs that are kept.
#include <cstddef>
#include <cstdint>

#include "tests/fuzz/run.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace etalon::fuzz;  // NOLINT: one function
  Bytes in(data, size);
  const int64_t choice = in.Below(16);
  if (choice == 15) {
    RunSmallFunctions(&in);
    return 0;
  }
  Call call;
  Decode(&in, static_cast<Function>(choice % kNumFunctions), &call);
  Mutate(&call);
  RunCall(&call);
  return 0;
}
