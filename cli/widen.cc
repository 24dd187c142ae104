#include "cli/widen.h"

#include <cstring>

namespace etalon::cli {
namespace {

std::vector<float> WidenedPart(const Array& array, size_t first, size_t count) {
  const size_t element = ElementKindBytes(array.type);
  const unsigned char* bytes = array.bytes.data() + first * element;
  std::vector<float> values(count);
  if (array.type == ElementKind::kF32) {
    std::memcpy(values.data(), bytes, count * element);
    return values;
  }
  for (size_t i = 0; i < count; ++i) {
    uint16_t half;
    std::memcpy(&half, bytes + element * i, sizeof half);
    values[i] = FromHalf(half);
  }
  return values;
}

}  // namespace

float FromHalf(uint16_t half) {
  const uint32_t exponent = half >> 10 & 31;
  const uint32_t fraction = half & 1023;
  float magnitude = static_cast<float>(fraction) * 0x1p-24f;
  if (exponent > 0) {  // the exponents of infinity and NaN are all ones in both types
    const uint32_t bits = (exponent == 31 ? 0xFF : exponent + 127 - 15) << 23 | fraction << 13;
    std::memcpy(&magnitude, &bits, sizeof magnitude);
  }
  return (half & 0x8000) != 0 ? -magnitude : magnitude;
}

std::vector<float> Widened(const Array& array) {
  return WidenedPart(array, 0, array.bytes.size() / ElementKindBytes(array.type));
}

std::vector<float> WidenedHead(const Array& array, int64_t head) {
  const size_t count = static_cast<size_t>(array.len * array.dim);
  return WidenedPart(array, static_cast<size_t>(head) * count, count);
}

}  // namespace etalon::cli
