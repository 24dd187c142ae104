#include "cli/widen.h"

#include <cmath>
#include <cstring>
#include <limits>

namespace etalon::cli {
namespace {

float FromHalf(uint16_t half) {
  const int exponent = half >> 10 & 31;
  const int fraction = half & 1023;
  float magnitude = std::ldexp(static_cast<float>(fraction), -24);
  if (exponent == 31) {
    magnitude = fraction == 0 ? std::numeric_limits<float>::infinity() : std::numeric_limits<float>::quiet_NaN();
  } else if (exponent > 0) {
    magnitude = std::ldexp(static_cast<float>(1024 + fraction), exponent - 25);
  }
  return (half & 0x8000) != 0 ? -magnitude : magnitude;
}

}  // namespace

std::vector<float> Widened(const Array& array) {
  const size_t element = ElementKindBytes(array.type);
  std::vector<float> values(array.bytes.size() / element);
  if (array.type == ElementKind::kF32) {
    std::memcpy(values.data(), array.bytes.data(), array.bytes.size());
    return values;
  }
  for (size_t i = 0; i < values.size(); ++i) {
    uint16_t half;
    std::memcpy(&half, array.bytes.data() + element * i, sizeof half);
    values[i] = FromHalf(half);
  }
  return values;
}

}  // namespace etalon::cli
