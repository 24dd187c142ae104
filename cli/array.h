// array.h: an array in memory, as files bring it and the library takes it.
#ifndef ETALON_CLI_ARRAY_H_
#define ETALON_CLI_ARRAY_H_

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

namespace etalon::cli {

enum class ElementKind { kF16, kF32, kFlag };  // a flag is a byte, anything but 0 being true

inline const char* ElementKindName(ElementKind type) {
  return type == ElementKind::kF16 ? "f16" : type == ElementKind::kF32 ? "f32" : "flag";
}

inline size_t ElementKindBytes(ElementKind type) {
  return type == ElementKind::kF16 ? 2 : type == ElementKind::kF32 ? 4 : 1;
}

// [batch, heads, len, dim], packed; the bytes are little-endian and aligned for any element.
struct Array {
  ElementKind type = ElementKind::kF16;
  int64_t batch = 1;
  int64_t heads = 0;
  int64_t len = 0;
  int64_t dim = 0;
  std::vector<unsigned char> bytes;

  // Of an f32 array.
  std::vector<float> Floats() const {
    std::vector<float> values(bytes.size() / sizeof(float));
    std::memcpy(values.data(), bytes.data(), bytes.size());
    return values;
  }
};

}  // namespace etalon::cli

#endif  // ETALON_CLI_ARRAY_H_
