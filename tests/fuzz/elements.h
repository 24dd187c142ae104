// elements.h: a tensor as etalon.h defines it: leading dimensions of size 1 added, strides of sizes 0 and 1 without
// meaning.
#ifndef ETALON_TESTS_FUZZ_ELEMENTS_H_
#define ETALON_TESTS_FUZZ_ELEMENTS_H_

#include <etalon/etalon.h>

#include <cstdint>
#include <cstring>

#include "lib/base/types.h"

namespace etalon::fuzz {

// Holds every sum and product of sizes and strides.
__extension__ typedef __int128 Wide;

struct Elements {
  int32_t dtype = 0;
  int places = 0;
  int64_t shape[ETALON_MAX_RANK] = {};
  int64_t stride[ETALON_MAX_RANK] = {};  // 0 where the size is 0 or 1
  uintptr_t data = 0;
  bool empty = false;

  Wide bytes() const { return dtype == ETALON_F32 ? 4 : dtype == ETALON_BOOL || dtype == ETALON_BITS ? 1 : 2; }
  DType type() const { return dtype == ETALON_F32 ? DType::kF32 : dtype == ETALON_F16 ? DType::kF16 : DType::kBF16; }

  // Bytes low ... high - 1 from data on.
  Wide Low() const {
    Wide low = 0;
    for (int i = 0; i < places; ++i) low += stride[i] < 0 ? Wide{stride[i]} * (shape[i] - 1) : 0;
    return low;
  }
  Wide High() const {
    Wide high = bytes();
    for (int i = 0; i < places; ++i) high += stride[i] > 0 ? Wide{stride[i]} * (shape[i] - 1) : 0;
    return high;
  }
  uintptr_t First() const { return static_cast<uintptr_t>(data + Low()); }
  uintptr_t Last() const { return static_cast<uintptr_t>(data + High()); }

  uintptr_t At(int64_t i0, int64_t i1, int64_t i2, int64_t i3 = 0, int64_t i4 = 0) const {
    const int64_t index[ETALON_MAX_RANK] = {i0, i1, i2, i3, i4};
    Wide at = data;
    for (int i = 0; i < places; ++i) at += Wide{stride[i]} * index[i];
    return static_cast<uintptr_t>(at);
  }

  // Different addresses, or more.
  Wide Addresses() const {
    if (empty) return 0;
    Wide count = 1;
    for (int i = 0; i < places; ++i) {
      if (stride[i] != 0 && count < (Wide{1} << 80)) count *= shape[i];
    }
    return count;
  }

  // Calls f with every address; dimensions that repeat one element are walked once.
  template <typename Function>
  void ForEach(Function f) const {
    if (empty) return;
    int64_t n[ETALON_MAX_RANK];
    for (int i = 0; i < ETALON_MAX_RANK; ++i) n[i] = i < places && stride[i] != 0 ? shape[i] : 1;
    for (int64_t a = 0; a < n[0]; ++a) {
      for (int64_t b = 0; b < n[1]; ++b) {
        for (int64_t c = 0; c < n[2]; ++c) {
          for (int64_t d = 0; d < n[3]; ++d) {
            for (int64_t e = 0; e < n[4]; ++e) f(At(a, b, c, d, e));
          }
        }
      }
    }
  }
};

}  // namespace etalon::fuzz

#endif  // ETALON_TESTS_FUZZ_ELEMENTS_H_
