// environment.h: the floating-point environment in which every result is computed (docs/numerics.md#environment).
#ifndef ETALON_LIB_BASE_ENVIRONMENT_H_
#define ETALON_LIB_BASE_ENVIRONMENT_H_

namespace etalon {

// Saves the caller's floating-point control and status, sets round-to-nearest-even, no flushing of subnormals and no
// traps, calls work(arg), and puts the caller's state back, exception flags included.
//
// `work` is a pointer on purpose: compilers move arithmetic across the write of the control register when they can see
// it (clang 19 -O2 does), so neither this function nor anything inlined into it may compute.
void RunInEnvironment(void (*work)(void*), void* arg);

}  // namespace etalon

#endif  // ETALON_LIB_BASE_ENVIRONMENT_H_
