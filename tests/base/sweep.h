// sweep.h: very many inputs through one check: in the library's environment, on two threads, the first failure kept. An
// assertion of doctest for each input would take longer than what it asserts.
#ifndef ETALON_TESTS_BASE_SWEEP_H_
#define ETALON_TESTS_BASE_SWEEP_H_

#include <atomic>
#include <cstdarg>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <string>
#include <thread>

#include "lib/base/environment.h"
#include "lib/base/types.h"

namespace etalon::test {

// Runs any callable in the library's environment.
template <typename Function>
void Guarded(Function function) {
  RunInEnvironment([](void* f) { (*static_cast<Function*>(f))(); }, &function);
}

// Equal bits; NaNs are equal whatever their payload, where the contract promises no more.
inline bool SameFloat(float a, float b) { return Bits(a) == Bits(b) || (a != a && b != b); }

class Failures {
 public:
#if defined(__GNUC__)
  __attribute__((format(printf, 2, 3)))
#endif
  void
  Add(const char* format, ...) {
    if (count_++ != 0) return;
    char text[256];
    std::va_list arguments;
    va_start(arguments, format);
    std::vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    first_ = text;
  }

  void Merge(const Failures& other) {
    if (count_ == 0) first_ = other.first_;
    count_ += other.count_;
  }

  uint64_t count() const { return count_; }
  std::string Report() const { return std::to_string(count_) + " failures, first: " + first_; }

 private:
  uint64_t count_ = 0;
  std::string first_;
};

// Calls work(&state, block) for every block 0 ... num_blocks - 1 on two threads, each with a State of its own, and
// returns both merged.
template <typename State, typename Work>
State Sweep(uint64_t num_blocks, Work work) {
  State states[2];
  std::atomic<uint64_t> next{0};
  const auto run = [&](State* state) {
    for (uint64_t block = next++; block < num_blocks; block = next++) work(state, block);
  };
  std::thread second(run, &states[1]);
  run(&states[0]);
  second.join();
  states[0].Merge(states[1]);
  return states[0];
}

}  // namespace etalon::test

// Fails the running test case if anything was added.
#define ETALON_CHECK_NONE(failures) CHECK_MESSAGE((failures).count() == 0, (failures).Report())

#endif  // ETALON_TESTS_BASE_SWEEP_H_
