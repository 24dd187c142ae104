// guarded_mask.h: masks of the public interface in memory of just their own size, between guard pages, in any form and
// layout.
#ifndef ETALON_TESTS_API_GUARDED_MASK_H_
#define ETALON_TESTS_API_GUARDED_MASK_H_

#include <cstring>
#include <memory>
#include <vector>

#include "tests/api/options_case.h"

namespace etalon::test {

// The layout of what options bring, another one in each case.
Layout AnyLayout(const OptionsCase& c, size_t number);

// A dense mask, or segments, or blocks, as a caller gives them. What is prepared lies in memory of just its size.
class GuardedMask {
 public:
  GuardedMask(const OptionsCase& c, size_t source);
  const etalon_tensor* tensor() const { return given_ ? &tensor_ : nullptr; }
  const etalon_mask* prepared() const { return prepared_; }
  size_t prepared_bytes() const { return memory_ == nullptr ? 0 : memory_->bytes(); }
  bool Intact() const;
  void Forget() { std::memset(static_cast<void*>(&tensor_), 0xEE, sizeof tensor_); }  // the struct

 private:
  // The dense bytes, in that layout.
  void Spread(const std::vector<uint8_t>& bytes, const Shape& shape, const Shape& strides, int32_t dtype);
  void Prepare(const OptionsCase& c, size_t source);

  bool given_ = false;
  etalon_tensor tensor_ = {};
  std::unique_ptr<GuardBuffer> dense_, memory_;
  std::vector<unsigned char> before_, memory_before_;
  const etalon_mask* prepared_ = nullptr;
};

}  // namespace etalon::test

#endif  // ETALON_TESTS_API_GUARDED_MASK_H_
