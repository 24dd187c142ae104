// hash.h: FNV-1a, 64 bits (Fowler, Noll, Vo): enough to notice a change, and ten lines in any language.
#ifndef ETALON_TESTS_SUPPORT_HASH_H_
#define ETALON_TESTS_SUPPORT_HASH_H_

#include <cstdint>
#include <vector>

#include "lib/base/arithmetic.h"
#include "tests/support/kernel_case.h"

namespace etalon::test {

class Hash {
 public:
  void Byte(uint32_t byte) { value_ = (value_ ^ (byte & 0xFFu)) * 0x100000001B3u; }
  void Word(uint32_t word, int bytes) {  // little-endian
    for (int i = 0; i < bytes; ++i) Byte(word >> (8 * i));
  }
  void Add(const Array& array) {
    for (int64_t i = 0; i < array.size(); ++i) Word(array.Word(i), static_cast<int>(ElementSize(array.type())));
  }
  void Add(const std::vector<float>& values) {
    for (const float x : values) Word(Bits(Canonical(x)), 4);  // element-wise entries may keep a NaN's payload
  }
  uint64_t value() const { return value_; }

 private:
  uint64_t value_ = 0xCBF29CE484222325u;
};

}  // namespace etalon::test

#endif  // ETALON_TESTS_SUPPORT_HASH_H_
