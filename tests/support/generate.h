// generate.h: test inputs from integer code alone, so that they are the same on every machine and compiler.
#ifndef ETALON_TESTS_SUPPORT_GENERATE_H_
#define ETALON_TESTS_SUPPORT_GENERATE_H_

#include <cstdint>
#include <vector>

#include "lib/base/types.h"

namespace etalon::test {

// splitmix64 (Steele, Lea and Flood, "Fast splittable pseudorandom number generators", 2014).
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}

  uint64_t Next() {
    uint64_t z = (state_ += 0x9E3779B97F4A7C15u);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
  }

  // 0 ... n - 1; the bias of the remainder does not matter in tests.
  int64_t Below(int64_t n) { return static_cast<int64_t>(Next() % static_cast<uint64_t>(n)); }

  // About normal: the sum of four uniform 16-bit numbers, centred; exact in f32, zero mean, deviation 1.1547.
  float Normal() {
    const uint64_t z = Next();
    const int32_t sum = static_cast<int32_t>((z & 0xFFFF) + ((z >> 16) & 0xFFFF) + ((z >> 32) & 0xFFFF) + (z >> 48));
    return static_cast<float>(sum - 131070) * 0x1p-15f;
  }

  std::vector<float> Normals(int64_t n, float factor = 1.0f) {
    std::vector<float> values(static_cast<size_t>(n));
    for (float& x : values) x = Normal() * factor;
    return values;
  }

 private:
  uint64_t state_;
};

// The ramp of the field cases: element i is (((a*i + b) mod 61) - 30) / 32, exact in f32, f16 and bf16.
inline std::vector<float> Ramp(int64_t a, int64_t b, int64_t n) {
  std::vector<float> values(static_cast<size_t>(n));
  for (int64_t i = 0; i < n; ++i) {
    values[static_cast<size_t>(i)] = static_cast<float>((a * i + b) % 61 - 30) / 32.0f;
  }
  return values;
}

}  // namespace etalon::test

#endif  // ETALON_TESTS_SUPPORT_GENERATE_H_
