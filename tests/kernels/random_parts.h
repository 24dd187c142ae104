// random_parts.h: what random calls are made of: sizes around vectors, register blocks and chunks, strides of any kind,
// numbers that are not, spans without a key.
#ifndef ETALON_TESTS_KERNELS_RANDOM_PARTS_H_
#define ETALON_TESTS_KERNELS_RANDOM_PARTS_H_

#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "arch/kernel_table.h"
#include "tests/support/generate.h"
#include "tests/support/guard_buffer.h"

namespace etalon::test {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr unsigned char kUnwritten = 0xA5;

inline bool OneIn(Random* random, int64_t n) { return random->Below(n) == 0; }

template <typename T, size_t N>
T OneOf(Random* random, const T (&values)[N]) {
  return values[random->Below(static_cast<int64_t>(N))];
}

DType AnyType(Random* random);
int64_t AnyDim(Random* random);
int64_t AnyRows(Random* random);
int64_t AnyKeys(Random* random);
int64_t AnyBase(Random* random, int64_t num_keys);
int64_t AnyStride(Random* random, int64_t row_bytes, int64_t element, int64_t rows);
Span NoKeys(Random* random, int64_t base, int64_t num_keys);
Span SomeKeys(Random* random, int64_t base, int64_t num_keys);

// Zeros, subnormals, the largest number, infinities and NaN with payload, of either sign.
uint32_t SpecialWord(DType type, Random* random);
void StoreWord(DType type, void* row, int64_t c, uint32_t word);
float Huge(DType type);

std::string Number(int64_t n);
const char* Name(DType type);

using ByteVector = std::vector<unsigned char>;

// How an array is filled.
enum class Filling { kNormal, kTies, kSubnormal, kHuge, kZeros, kFewSpecials, kManySpecials };

// Rows with a stride in memory of exactly their extent between guard pages, aligned to the element and no more.
class Rows {
 public:
  Rows() = default;
  Rows(int64_t rows, int64_t elements, int64_t stride_bytes, DType type, int64_t shift);
  void Fill(Filling filling, Random* random);
  unsigned char* at(int64_t row) const { return memory_->data() + origin_ + row * stride_bytes_; }
  DType type() const { return type_; }
  int64_t stride_bytes() const { return stride_bytes_; }
  int64_t bytes() const { return static_cast<int64_t>(memory_->bytes()); }
  const unsigned char* start() const { return memory_->data(); }
  void Overwrite(unsigned char byte) { std::memset(memory_->data(), byte, memory_->bytes()); }
  ByteVector Copy() const { return ByteVector(memory_->data(), memory_->data() + memory_->bytes()); }

 private:
  int64_t rows_ = 0, elements_ = 0, stride_bytes_ = 0, origin_ = 0;
  DType type_ = DType::kF32;
  std::unique_ptr<GuardBuffer> memory_;
};

Filling AnyFilling(Random* random);

// Written after what is there.
void Append(const std::vector<float>& values, ByteVector* to);

}  // namespace etalon::test

#endif  // ETALON_TESTS_KERNELS_RANDOM_PARTS_H_
