// run.h: makes a call and looks at everything that it has done.
#ifndef ETALON_TESTS_FUZZ_RUN_H_
#define ETALON_TESTS_FUZZ_RUN_H_

#include <functional>
#include <string>

#include "tests/fuzz/judge.h"

namespace etalon::fuzz {

// Stops at the first thing that is not as it must be.
void RunCall(Call* call);

// The functions that take no descriptors.
void RunSmallFunctions(Bytes* in);

// Whether etalon.h has what an error names.
bool FieldExists(const std::string& field);

// Calls f with a place for the error (or none) in the caller's floating-point environment. *wrong is set if error and
// environment are not as they must be afterwards.
using ErrorFunction = std::function<etalon_status(etalon_error*)>;
etalon_status Answer(bool wants_error, const char* environment, const ErrorFunction& f, std::string* wrong);

}  // namespace etalon::fuzz

#endif  // ETALON_TESTS_FUZZ_RUN_H_
