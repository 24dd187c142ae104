#include "tests/golden/vector_file.h"

#include <fstream>
#include <sstream>
#include <stdexcept>

namespace etalon::test {
namespace {

struct Position {
  const std::string& path;
  int line;
};

[[noreturn]] void Fail(const Position& at, const std::string& what) {
  throw std::runtime_error(at.path + ":" + std::to_string(at.line) + ": " + what);
}

int64_t ParseInteger(const Position& at, const std::string& word) {
  size_t used = 0;
  int64_t value = 0;
  try {
    value = std::stoll(word, &used, 10);
  } catch (const std::exception&) {
    used = 0;
  }
  if (used == 0 || used != word.size()) Fail(at, "not a decimal number: " + word);
  return value;
}

uint32_t ParseBits(const Position& at, const std::string& type, const std::string& word) {
  const size_t digits = type == "f32" ? 8 : type == "f16" || type == "bf16" ? 4 : type == "u8" ? 2 : 0;
  if (digits == 0) Fail(at, "unknown type " + type);
  if (word.size() != digits || word.find_first_not_of("0123456789ABCDEF") != std::string::npos) {
    Fail(at, "not the bits of one " + type + ": " + word);
  }
  return static_cast<uint32_t>(std::stoul(word, nullptr, 16));
}

void AddElement(const Position& at, const std::string& word, Tensor* tensor) {
  if (tensor->type == "i64") {
    tensor->integers.push_back(ParseInteger(at, word));
  } else {
    tensor->words.push_back(ParseBits(at, tensor->type, word));
  }
}

Tensor ParseTensor(const Position& at, const std::string& type, std::istringstream* words) {
  Tensor tensor;
  tensor.type = type;
  std::string word;
  int64_t size = 1;
  while (*words >> word && word != ":") {
    tensor.shape.push_back(ParseInteger(at, word));
    size *= tensor.shape.back();
  }
  if (word != ":") Fail(at, "no ':' before the elements");
  while (*words >> word) AddElement(at, word, &tensor);
  if (static_cast<int64_t>(tensor.words.size() + tensor.integers.size()) != size) Fail(at, "wrong number of elements");
  return tensor;
}

}  // namespace

Array Tensor::AsArray() const {
  if (type != "f32" && type != "f16" && type != "bf16") throw std::runtime_error("not a float type: " + type);
  return Array::FromBits(type == "f32" ? DType::kF32 : type == "f16" ? DType::kF16 : DType::kBF16, words);
}

std::vector<float> Tensor::AsFloats() const {
  if (type != "f32") throw std::runtime_error("not f32: " + type);
  std::vector<float> values;
  for (const uint32_t word : words) values.push_back(FromBits(word));
  return values;
}

const Tensor& VectorCase::Input(const std::string& input) const {
  const auto found = inputs.find(input);
  if (found == inputs.end()) throw std::runtime_error("case " + name + " has no input " + input);
  return found->second;
}

const Tensor& VectorCase::Expected(const std::string& output) const {
  const auto found = expected.find(output);
  if (found == expected.end()) throw std::runtime_error("case " + name + " expects no " + output);
  return found->second;
}

std::vector<VectorCase> ReadVectorFile(const std::string& path) {
  std::ifstream file(path);
  if (!file) Fail({path, 0}, "cannot be read");
  return ReadVectors(&file, path);
}

std::vector<VectorCase> ReadVectors(std::istream* file, const std::string& path) {
  Position at = {path, 0};
  std::vector<VectorCase> cases;
  bool open = false;
  std::string text;
  while (std::getline(*file, text)) {
    ++at.line;
    std::istringstream words(text);
    std::string verb, name, type;
    if (!(words >> verb) || verb[0] == '#') continue;
    if (verb == "end") {
      if (!open) Fail(at, "end without case");
      open = false;
      continue;
    }
    if (!(words >> name >> type)) Fail(at, "too few words");
    if (verb == "case") {
      if (open) Fail(at, "case inside a case");
      open = true;
      cases.push_back({name, type, at.line, {}, {}});
    } else if (!open) {
      Fail(at, verb + " outside a case");
    } else if (verb == "param") {
      Tensor scalar;
      scalar.type = type;
      std::string word;
      if (!(words >> word)) Fail(at, "no value");
      AddElement(at, word, &scalar);
      cases.back().inputs[name] = scalar;
    } else if (verb == "tensor") {
      cases.back().inputs[name] = ParseTensor(at, type, &words);
    } else if (verb == "expect") {
      cases.back().expected[name] = ParseTensor(at, type, &words);
    } else {
      Fail(at, "unknown word " + verb);
    }
  }
  if (open) Fail(at, "the last case has no end");
  return cases;
}

}  // namespace etalon::test
