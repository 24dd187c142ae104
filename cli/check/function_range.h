// function_range.h: the ranges of exp, log and tanh for which docs/numerics.md#functions promises something, and what.
#ifndef ETALON_CLI_CHECK_FUNCTION_RANGE_H_
#define ETALON_CLI_CHECK_FUNCTION_RANGE_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "arch/kernel_table.h"
#include "lib/base/types.h"

namespace etalon::cli {

struct FunctionRange {
  const char* name;
  void (*KernelTable::*function)(const float*, float*, size_t);
  uint32_t first, last;  // bit patterns; tests/base walks all of them
  double max_ulp;        // that a result may be off
  bool odd = false;      // and of these numbers' negatives, too
};

constexpr FunctionRange kExpRange = {"exp", &KernelTable::exp, 0xB2800000u, 0xC2AE9999u, 1.0};
constexpr FunctionRange kLogRange = {"log", &KernelTable::log, 0x33800000u, 0x53800000u, 1.0};
constexpr FunctionRange kTanhRange = {"tanh", &KernelTable::tanh, 0x00000000u, 0x7F7FFFFFu, 2.0, true};

// `count` of its numbers, both ends among them; every second one negated if the function is odd.
inline std::vector<float> Sweep(const FunctionRange& range, uint64_t count) {
  std::vector<float> x;
  for (uint64_t i = 0; i < count; ++i) {
    const float number = FromBits(range.first + static_cast<uint32_t>((range.last - range.first) * i / (count - 1)));
    x.push_back(range.odd && i % 2 == 1 ? -number : number);
  }
  return x;
}

}  // namespace etalon::cli

#endif  // ETALON_CLI_CHECK_FUNCTION_RANGE_H_
