// tensors.h: the tensors of a fuzzed call: layouts of every kind that is allowed, and values with everything that a
// float can be.
#ifndef ETALON_TESTS_FUZZ_TENSORS_H_
#define ETALON_TESTS_FUZZ_TENSORS_H_

#include "tests/fuzz/call.h"

namespace etalon::fuzz {

// Makes the tensors of call->sizes and enters them in the arguments.
void DecodeTensors(Bytes* in, Call* call);

}  // namespace etalon::fuzz

#endif  // ETALON_TESTS_FUZZ_TENSORS_H_
