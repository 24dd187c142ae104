// named_array.h: an array on its way into a .npz file.
#ifndef ETALON_CLI_NAMED_ARRAY_H_
#define ETALON_CLI_NAMED_ARRAY_H_

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "cli/npy.h"

namespace etalon::cli {

struct NamedArray {
  std::string name;  // without ".npy"
  NpyType type = NpyType::kF32;
  std::vector<int64_t> shape;
  std::vector<unsigned char> bytes;  // little-endian, C order
};

// Of elements as they are in memory.
inline NamedArray MakeNamedArray(std::string name, NpyType type, std::vector<int64_t> shape, const void* data) {
  size_t bytes = NpyElementSize(type);
  for (const int64_t dim : shape) bytes *= static_cast<size_t>(dim);
  NamedArray array = {std::move(name), type, std::move(shape), std::vector<unsigned char>(bytes)};
  if (bytes > 0) std::memcpy(array.bytes.data(), data, bytes);
  return array;
}

}  // namespace etalon::cli

#endif  // ETALON_CLI_NAMED_ARRAY_H_
