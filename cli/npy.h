// npy.h: reads a .npy file that is already in memory. Strict on purpose: what is unusual is refused with
// the reason, never guessed at. The header is a Python literal; it is read by a loop over
// characters, without evaluation or recursion.
#ifndef ETALON_CLI_NPY_H_
#define ETALON_CLI_NPY_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace etalon::cli {

enum class NpyType { kF16, kF32, kF64, kBool, kU8, kI32, kI64 };

size_t NpyElementSize(NpyType type);
const char* NpyTypeName(NpyType type);   // "f16"
const char* NpyTypeDescr(NpyType type);  // "<f2", as headers say it

// What the place that an array is read for can use.
enum class NpyPlace {
  kNumbers,  // f16, f32, f64
  kFlags,    // bool, u8
  kIds       // u8, i32, i64
};

// What a file holds; `data` points into the file's bytes and need not be aligned.
struct NpyView {
  NpyType type = NpyType::kF32;
  std::vector<int64_t> shape;  // C order; every dimension >= 0
  const unsigned char* data = nullptr;
  size_t data_bytes = 0;  // exactly the product of the shape times the element size
};

// Versions 1.0, 2.0 and 3.0; little-endian; a type of the place; C order; no byte missing or left over. False: *error
// says what is wrong and *view is untouched.
bool ParseNpy(const unsigned char* bytes, size_t size, NpyPlace place, NpyView* view, std::string* error);
inline bool ParseNpy(const unsigned char* bytes, size_t size, NpyView* view, std::string* error) {
  return ParseNpy(bytes, size, NpyPlace::kNumbers, view, error);
}

}  // namespace etalon::cli

#endif  // ETALON_CLI_NPY_H_
