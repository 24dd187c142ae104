// vector_file.h: reads the files that tests/model/vectors.py writes (format: tests/golden/README.md).
#ifndef ETALON_TESTS_GOLDEN_VECTOR_FILE_H_
#define ETALON_TESTS_GOLDEN_VECTOR_FILE_H_

#include <cstdint>
#include <istream>
#include <map>
#include <string>
#include <vector>

#include "tests/support/kernel_case.h"

namespace etalon::test {

// One tensor of a case: bits of its elements, or whole numbers for i64 and u8.
struct Tensor {
  std::string type;  // f32, f16, bf16, i64, u8
  std::vector<int64_t> shape;
  std::vector<uint32_t> words;    // all types but i64
  std::vector<int64_t> integers;  // i64

  Array AsArray() const;
  std::vector<float> AsFloats() const;  // f32 only
};

struct VectorCase {
  std::string name;
  std::string op;
  int line = 0;
  std::map<std::string, Tensor> inputs;  // params are tensors of shape {}
  std::map<std::string, Tensor> expected;

  bool Has(const std::string& input) const { return inputs.count(input) != 0; }
  const Tensor& Input(const std::string& input) const;  // throws std::runtime_error naming case and input
  const Tensor& Expected(const std::string& output) const;
};

// Throws std::runtime_error with file and line where the text does not follow the format.
std::vector<VectorCase> ReadVectorFile(const std::string& path);
// The same from a stream; `name` stands for the path in messages.
std::vector<VectorCase> ReadVectors(std::istream* stream, const std::string& name);

}  // namespace etalon::test

#endif  // ETALON_TESTS_GOLDEN_VECTOR_FILE_H_
