// draws.h: how many random calls a test is to draw, and from which seed: --rounds N (of a thousand), --draws N, --seed
// S.
#ifndef ETALON_TESTS_SUPPORT_DRAWS_H_
#define ETALON_TESTS_SUPPORT_DRAWS_H_

#include <cstdint>
#include <cstdlib>
#include <string>

namespace etalon::test {

constexpr int64_t kDrawsOfRound = 1000;

struct Draws {
  int64_t count = 0;  // 0 = not asked for
  uint64_t seed = 1;
};

// True if the flag is one of them.
inline bool TakeDrawFlag(const std::string& flag, const char* value, Draws* draws) {
  if (flag == "--rounds") {
    draws->count = kDrawsOfRound * std::strtoll(value, nullptr, 10);
  } else if (flag == "--draws") {
    draws->count = std::strtoll(value, nullptr, 10);
  } else if (flag == "--seed") {
    draws->seed = std::strtoull(value, nullptr, 10);
  } else {
    return false;
  }
  return true;
}

// What test_main.cc was told.
inline Draws& RequestedDraws() {
  static Draws draws;
  return draws;
}

}  // namespace etalon::test

#endif  // ETALON_TESTS_SUPPORT_DRAWS_H_
