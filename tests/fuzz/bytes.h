// bytes.h: the input of a fuzz target as a stream of small decisions. Bytes that are not there are 0, and 0 always
// decides for the plain case, so that short inputs are simple calls.
#ifndef ETALON_TESTS_FUZZ_BYTES_H_
#define ETALON_TESTS_FUZZ_BYTES_H_

#include <cstddef>
#include <cstdint>

namespace etalon::fuzz {

class Bytes {
 public:
  Bytes(const uint8_t* data, size_t size) : data_(data), size_(size) {}

  uint8_t Next() { return at_ < size_ ? data_[at_++] : 0; }

  // 0 ... n - 1, n <= 65536.
  int64_t Below(int64_t n) {
    int64_t x = Next();
    if (n > 256) x = x * 256 + Next();
    return x % n;
  }

  bool OneIn(int n) { return Below(n) == n - 1; }

  template <typename T, size_t N>
  T Pick(const T (&choices)[N]) {
    return choices[Below(static_cast<int64_t>(N))];
  }

  // For a generator of what needs no decision of its own, as the values of a tensor.
  uint64_t Seed() { return static_cast<uint64_t>(Below(65536)); }

 private:
  const uint8_t* data_;
  size_t size_;
  size_t at_ = 0;
};

}  // namespace etalon::fuzz

#endif  // ETALON_TESTS_FUZZ_BYTES_H_
