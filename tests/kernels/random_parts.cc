#include "tests/kernels/random_parts.h"

#include <algorithm>
#include <cmath>

#include "tests/kernels/kernel_test.h"

namespace etalon::test {

constexpr int64_t kMostPosition = int64_t{1} << 62;

DType AnyType(Random* random) { return static_cast<DType>(random->Below(3)); }

// Around multiples of what is in a vector or a register tile.
int64_t AnyDim(Random* random) {
  if (OneIn(random, 8)) return 1 + random->Below(5);
  if (OneIn(random, 8)) return OneOf(random, {64, 80, 96, 128, 256, 257});
  constexpr int64_t kUnits[] = {4, 8, 16, 24};
  return std::max<int64_t>(1, OneOf(random, kUnits) * (1 + random->Below(5)) + random->Below(3) - 1);
}

int64_t AnyRows(Random* random) {
  if (OneIn(random, 3)) return 1 + random->Below(9);  // those of decode
  if (OneIn(random, 3)) return 1 + random->Below(200);
  constexpr int64_t kUnits[] = {4, 8, 16, 24, 32, 48, 64, 96, 128};
  return std::max<int64_t>(
      1, std::min<int64_t>(200, OneOf(random, kUnits) * (1 + random->Below(2)) + random->Below(3) - 1));
}

int64_t AnyKeys(Random* random) {
  if (OneIn(random, 12)) return 0;
  if (OneIn(random, 2)) return 1 + random->Below(1700);
  return TailSizes()[static_cast<size_t>(random->Below(static_cast<int64_t>(TailSizes().size())))];
}

int64_t AnyBase(Random* random, int64_t num_keys) {
  if (OneIn(random, 3)) return 0;
  if (OneIn(random, 8)) return kMostPosition - num_keys - random->Below(700);
  if (OneIn(random, 8)) return (int64_t{1} << 31) - random->Below(1000);
  if (OneIn(random, 8)) return static_cast<int64_t>(random->Next() >> 3);
  constexpr int64_t kBases[] = {1, 127, 128, 129, 500, 511, 512, 513, 1000, 123456789};
  return OneOf(random, kBases);
}

Filling AnyFilling(Random* random) {
  if (random->Below(3) != 0) return Filling::kNormal;
  return static_cast<Filling>(random->Below(7));
}

// Bits of the number itself, for a type; NaN of either sign and with payload.
uint32_t SpecialWord(DType type, Random* random) {
  const int bits = type == DType::kF32 ? 32 : 16, mantissa = type == DType::kF32 ? 23 : type == DType::kF16 ? 10 : 7;
  const uint32_t sign = OneIn(random, 2) ? 1u << (bits - 1) : 0u;
  const uint32_t infinity = ((1u << (bits - 1 - mantissa)) - 1) << mantissa;
  const uint32_t words[] = {0,
                            1,
                            (1u << mantissa) - 1,
                            infinity - 1,
                            infinity,
                            infinity,
                            infinity | 1,
                            infinity | (1u << (mantissa - 1)),
                            infinity | ((1u << mantissa) - 1)};
  return sign | OneOf(random, words);
}

void StoreWord(DType type, void* row, int64_t c, uint32_t word) {
  std::memcpy(static_cast<unsigned char*>(row) + c * static_cast<int64_t>(ElementSize(type)), &word, ElementSize(type));
}

float Huge(DType type) { return type == DType::kF16 ? 60000.0f : 3e38f; }

int64_t AnyStride(Random* random, int64_t row_bytes, int64_t element, int64_t rows) {
  const int64_t sign = OneIn(random, 4) ? -1 : 1;
  if (OneIn(random, 12)) return 0;
  if (OneIn(random, 16)) return sign * element;  // rows overlap, which inputs may
  if (OneIn(random, 2)) return sign * row_bytes;
  if (OneIn(random, 2) || rows > 400) return sign * (row_bytes + element * (1 + random->Below(40)));
  constexpr int64_t kPowers[] = {512, 1024, 2048, 4096};
  const int64_t power = OneOf(random, kPowers);
  return sign * ((row_bytes + power - 1) / power * power);
}

// Where first >= last there are no keys, wherever the two lie.
Span NoKeys(Random* random, int64_t base, int64_t num_keys) {
  switch (random->Below(4)) {
    case 0:
      return {INT64_MAX, INT64_MIN};
    case 1:
      return {0, 0};
    case 2:
      return {base + num_keys, base};
    default: {
      const int64_t at = base + random->Below(num_keys + 1);
      return {at, at};
    }
  }
}

Span SomeKeys(Random* random, int64_t base, int64_t num_keys) {
  const int64_t a = random->Below(num_keys + 1), b = random->Below(num_keys + 1);
  return {base + std::min(a, b), base + std::max(a, b)};
}

std::string Number(int64_t n) { return std::to_string(n); }
const char* Name(DType type) { return type == DType::kF32 ? "f32" : type == DType::kF16 ? "f16" : "bf16"; }

Rows::Rows(int64_t rows, int64_t elements, int64_t stride_bytes, DType type, int64_t shift)
    : rows_(rows), elements_(elements), stride_bytes_(stride_bytes), type_(type) {
  const int64_t size = static_cast<int64_t>(ElementSize(type)), last = std::max<int64_t>(0, rows - 1) * stride_bytes;
  origin_ = (shift % 4 == 0 ? 0 : shift * size) + std::max<int64_t>(0, -last);
  const int64_t bytes = rows == 0 ? 0 : origin_ + std::max<int64_t>(0, last) + elements * size;
  memory_ = std::make_unique<GuardBuffer>(static_cast<size_t>(bytes), shift % 4 == 0 ? Guard::kBelow : Guard::kAbove);
}

void Rows::Fill(Filling filling, Random* random) {
  for (int64_t r = 0; r < (stride_bytes_ == 0 ? std::min<int64_t>(rows_, 1) : rows_); ++r) {
    for (int64_t c = 0; c < elements_; ++c) {
      const bool special = (filling == Filling::kManySpecials && OneIn(random, 8)) ||
                           (filling == Filling::kFewSpecials && OneIn(random, 200));
      if (special) {
        StoreWord(type_, at(r), c, SpecialWord(type_, random));
        continue;
      }
      float x = random->Normal();
      if (filling == Filling::kTies) x = static_cast<float>(random->Below(3) - 1);
      if (filling == Filling::kSubnormal) x *= type_ == DType::kF16 ? 0x1p-17f : 0x1p-128f;
      if (filling == Filling::kHuge) x = std::copysign(Huge(type_), x);
      if (filling == Filling::kZeros) x = std::copysign(0.0f, x);
      StoreElement(type_, at(r), static_cast<size_t>(c), x);
    }
  }
}

void Append(const std::vector<float>& values, ByteVector* to) {
  const unsigned char* bytes = reinterpret_cast<const unsigned char*>(values.data());
  to->insert(to->end(), bytes, bytes + values.size() * sizeof(float));
}

}  // namespace etalon::test
