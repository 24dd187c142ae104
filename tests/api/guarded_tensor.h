// guarded_tensor.h: tensors of the public interface in memory of just their own size, between guard pages, in any
// layout.
#ifndef ETALON_TESTS_API_GUARDED_TENSOR_H_
#define ETALON_TESTS_API_GUARDED_TENSOR_H_

#include <etalon/etalon.h>

#include <cmath>
#include <cstdint>
#include <functional>
#include <vector>

#include "tests/support/guard_buffer.h"
#include "tests/support/kernel_case.h"

namespace etalon::test {

int32_t DtypeOf(DType type);

using Shape = std::vector<int64_t>;
int64_t Count(const Shape& shape);                // of elements
Shape With(Shape outer, int64_t inner);           // one more dimension
Array Unwritten(DType type, const Shape& shape);  // what outputs hold before a call
std::vector<float> Floats(const Array& a);

// Strides in elements, for a shape whose last dimension is innermost.
using Layout = std::function<Shape(const Shape& shape)>;
Shape Packed(const Shape& shape);
Shape HeadsInside(const Shape& shape);  // [batch][len][heads][dim]; of three dimensions [heads][batch][len]
Shape Padded(const Shape& shape);       // odd numbers of elements, with gaps at each level
Shape Backward(const Shape& shape);     // the same, walking down
Shape Repeated(const Shape& shape);     // all strides 0 but the last

struct Place {
  Layout layout = Packed;
  Guard guard = Guard::kAbove;
  int offset = kAnyOffset;  // of GuardBuffer
  float gaps = NAN;         // what all bytes hold that are no element
};

// An etalon_tensor in memory of just its own size.
class GuardedTensor {
 public:
  GuardedTensor(const Array& packed, const Shape& shape, const Place& place = {});

  etalon_tensor tensor;
  const etalon_tensor* get() const { return &tensor; }
  GuardedTensor& WithRank(int32_t rank);  // drops leading dimensions, which must be of size 1

  Array Values() const;     // packed
  void Restore();           // all bytes as they were made
  bool Intact() const;      // no byte has changed
  bool GapsIntact() const;  // none that is no element

 private:
  unsigned char* ElementAt(int64_t offset) const;

  DType type_;
  Shape shape_, strides_;
  GuardBuffer buffer_;
  std::vector<unsigned char> before_;
};

}  // namespace etalon::test

#endif  // ETALON_TESTS_API_GUARDED_TENSOR_H_
