#include "tests/api/guarded_tensor.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

namespace etalon::test {
namespace {

// f(place of the first element in packed order, in memory, number of elements that lie side by side in both)
template <typename Function>
void ForEachRun(const Shape& shape, const Shape& strides, Function f) {
  const int64_t count = Count(shape);
  if (count == 0) return;
  const int64_t run = strides.back() == 1 ? shape.back() : 1;
  for (int64_t i = 0; i < count; i += run) {
    int64_t rest = i, offset = 0;
    for (size_t d = shape.size(); d-- > 0; rest /= shape[d]) offset += rest % shape[d] * strides[d];
    f(i, offset, run);
  }
}

// Elements from the lowest one to that at index 0, and to the end of the highest one.
struct Reach {
  int64_t below = 0, above = 1;
};
Reach ReachOf(const Shape& shape, const Shape& strides) {
  if (Count(shape) == 0) return {0, 0};
  Reach reach;
  for (size_t d = 0; d < shape.size(); ++d) {
    const int64_t last = (shape[d] - 1) * strides[d];
    (last < 0 ? reach.below : reach.above) += std::abs(last);
  }
  return reach;
}

size_t BytesOf(DType type, const Reach& reach) {
  return static_cast<size_t>(reach.below + reach.above) * ElementSize(type);
}

etalon_tensor MakeTensor(void* data, DType type, const Shape& shape) {
  etalon_tensor tensor;
  REQUIRE(etalon_tensor_init(&tensor, data, DtypeOf(type), static_cast<int32_t>(shape.size()), shape.data(), nullptr) ==
          ETALON_OK);
  return tensor;
}

}  // namespace

int64_t Count(const Shape& shape) {
  int64_t count = 1;
  for (int64_t n : shape) count *= n;
  return count;
}

Shape With(Shape outer, int64_t inner) {
  outer.push_back(inner);
  return outer;
}

Array Unwritten(DType type, const Shape& shape) {
  return Array(type, std::vector<float>(static_cast<size_t>(Count(shape)), 12345.678f));
}

std::vector<float> Floats(const Array& a) {
  std::vector<float> values;
  for (int64_t i = 0; i < a.size(); ++i) values.push_back(a[i]);
  return values;
}

int32_t DtypeOf(DType type) {
  return type == DType::kF32 ? ETALON_F32 : type == DType::kF16 ? ETALON_F16 : ETALON_BF16;
}

Shape Packed(const Shape& shape) {
  Shape strides(shape.size(), 1);
  for (size_t d = shape.size() - 1; d-- > 0;) strides[d] = strides[d + 1] * shape[d + 1];
  return strides;
}

Shape HeadsInside(const Shape& shape) {
  if (shape.size() == 3) return {shape[2], shape[0] * shape[2], 1};
  const int64_t heads = shape[1], len = shape[2], dim = shape[3];
  return {heads * len * dim, dim, heads * dim, 1};
}

Shape Padded(const Shape& shape) {
  Shape strides(shape.size(), 1);
  for (size_t d = shape.size() - 1; d-- > 0;) {
    strides[d] = (strides[d + 1] * shape[d + 1] + 2 + static_cast<int64_t>(d)) | 1;
  }
  return strides;
}

Shape Backward(const Shape& shape) {
  Shape strides = Padded(shape);
  for (size_t d = 0; d + 1 < strides.size(); ++d) strides[d] = -strides[d];
  return strides;
}

Shape Repeated(const Shape& shape) {
  Shape strides(shape.size(), 0);
  strides.back() = 1;
  return strides;
}

GuardedTensor::GuardedTensor(const Array& packed, const Shape& shape, const Place& place)
    : type_(packed.type()),
      shape_(shape),
      strides_(place.layout(shape)),
      buffer_(BytesOf(packed.type(), ReachOf(shape_, strides_)), place.guard, place.offset) {
  const size_t element = ElementSize(type_);
  const Array gap(type_, std::vector<float>{place.gaps});
  for (size_t at = 0; at < buffer_.bytes(); at += element) std::memcpy(buffer_.data() + at, gap.data(), element);
  ForEachRun(shape_, strides_, [&](int64_t i, int64_t offset, int64_t run) {
    std::memcpy(ElementAt(offset), packed.at(i), static_cast<size_t>(run) * element);
  });
  before_.assign(buffer_.data(), buffer_.data() + buffer_.bytes());
  tensor = MakeTensor(ElementAt(0), type_, shape_);
  for (size_t d = 0; d < shape_.size(); ++d) tensor.stride_bytes[d] = strides_[d] * static_cast<int64_t>(element);
}

unsigned char* GuardedTensor::ElementAt(int64_t offset) const {
  const int64_t at = ReachOf(shape_, strides_).below + offset;
  return const_cast<unsigned char*>(buffer_.data()) + at * static_cast<int64_t>(ElementSize(type_));
}

GuardedTensor& GuardedTensor::WithRank(int32_t rank) {
  const int32_t dropped = tensor.rank - rank;
  for (int32_t d = 0; d < dropped; ++d) REQUIRE(tensor.shape[d] == 1);
  for (int32_t d = 0; d < rank; ++d) {
    tensor.shape[d] = tensor.shape[d + dropped];
    tensor.stride_bytes[d] = tensor.stride_bytes[d + dropped];
  }
  tensor.rank = rank;
  return *this;
}

Array GuardedTensor::Values() const {
  Array values(type_, Count(shape_));
  ForEachRun(shape_, strides_, [&](int64_t i, int64_t offset, int64_t run) {
    std::memcpy(values.at(i), ElementAt(offset), static_cast<size_t>(run) * ElementSize(type_));
  });
  return values;
}

void GuardedTensor::Restore() { std::copy(before_.begin(), before_.end(), buffer_.data()); }

bool GuardedTensor::Intact() const {
  return buffer_.Intact() && std::equal(before_.begin(), before_.end(), buffer_.data());
}

bool GuardedTensor::GapsIntact() const {
  std::vector<unsigned char> now(buffer_.data(), buffer_.data() + buffer_.bytes());
  ForEachRun(shape_, strides_, [&](int64_t, int64_t offset, int64_t run) {
    const int64_t at = ElementAt(offset) - buffer_.data();
    std::copy_n(before_.begin() + at, run * static_cast<int64_t>(ElementSize(type_)), now.begin() + at);
  });
  return buffer_.Intact() && now == before_;
}

}  // namespace etalon::test
