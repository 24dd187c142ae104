// Conversions between f32 and the storage types: one by one, and as arrays through every table.
#include "lib/base/types.h"

#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>
#include <vector>

#include "tests/base/half_reference.h"
#include "tests/base/sweep.h"
#include "tests/support/targets.h"

namespace etalon::test {
namespace {

const DType kHalves[] = {DType::kF16, DType::kBF16};

const char* Name(DType type) { return type == DType::kF16 ? "f16" : "bf16"; }

uint16_t NarrowOne(DType type, float x) { return type == DType::kF16 ? NarrowF16(x) : NarrowBF16(x); }

std::vector<float> FromWords(const std::vector<uint32_t>& words) {
  std::vector<float> values;
  for (const uint32_t word : words) values.push_back(FromBits(word));
  return values;
}

std::vector<uint16_t> AllCodes() {
  std::vector<uint16_t> codes(65536);
  for (size_t i = 0; i < codes.size(); ++i) codes[i] = static_cast<uint16_t>(i);
  return codes;
}

void CheckWidened(const HalfReference& reference, uint16_t code, float got, const char* how, Failures* failures) {
  const bool right = reference.IsNaN(code) ? std::isnan(got)
                                           : static_cast<double>(got) == reference.Value(code) &&
                                                 std::signbit(got) == ((code & 0x8000) != 0);
  if (!right) failures->Add("%s %04X by %s: %08X", Name(reference.type()), code, how, Bits(got));
}

void CheckNarrowed(const HalfReference& reference, float x, uint16_t got, const char* how, Failures* failures) {
  const uint16_t expected = reference.Narrow(x);
  if (got != expected) {
    failures->Add("%08X to %s by %s: %04X, not %04X", Bits(x), Name(reference.type()), how, got, expected);
  }
}

// One by one through both entries, and as one array through every table.
void CheckNarrow(const HalfReference& reference, const std::vector<float>& x) {
  Failures failures;
  const DType type = reference.type();
  for (const float value : x) {
    CheckNarrowed(reference, value, NarrowOne(type, value), "Narrow", &failures);
    uint16_t stored[2] = {};  // as large as an f32, which the compiler cannot rule out here
    StoreElement(type, stored, 0, value);
    CheckNarrowed(reference, value, stored[0], "StoreElement", &failures);
  }
  for (const KernelTable& table : Tables()) {
    std::vector<uint16_t> narrowed(x.size());
    Guarded([&] { table.narrow(type, x.data(), narrowed.data(), x.size()); });
    for (size_t i = 0; i < x.size(); ++i) CheckNarrowed(reference, x[i], narrowed[i], table.name, &failures);
  }
  ETALON_CHECK_NONE(failures);
}

// Every length 1 ... 40 from every start 0 ... 7, so that each value meets the vector body, the tail and each
// alignment; nothing beyond the end may be written.
void CheckNarrowArrays(DType type, const std::vector<float>& x, const std::vector<uint16_t>& expected) {
  constexpr uint16_t kUntouched = 0xA5A5;
  Failures failures;
  for (const KernelTable& table : Tables()) {
    for (size_t length = 1; length <= 40; ++length) {
      for (size_t start = 0; start < 8; ++start) {
        // The input ends with its last element, where a sanitizer sees a read beyond it.
        std::vector<float> in(start + length);
        std::vector<uint16_t> out(start + length + 64, kUntouched);
        for (size_t i = 0; i < length; ++i) in[start + i] = x[(start + length + i) % x.size()];
        Guarded([&] { table.narrow(type, in.data() + start, out.data() + start, length); });
        for (size_t i = 0; i < out.size(); ++i) {
          const bool inside = i >= start && i < start + length;
          const uint16_t want = inside ? expected[(length + i) % x.size()] : kUntouched;
          if (out[i] != want) {
            failures.Add("%s to %s, start %zu, length %zu, element %zd: %04X, not %04X", table.name, Name(type), start,
                         length, static_cast<ptrdiff_t>(i) - static_cast<ptrdiff_t>(start), out[i], want);
          }
        }
      }
    }
  }
  ETALON_CHECK_NONE(failures);
}

void CheckNarrowCase(DType type, const std::vector<uint32_t>& words, const std::vector<uint16_t>& expected) {
  const std::vector<float> x = FromWords(words);
  for (size_t i = 0; i < x.size(); ++i) {
    CAPTURE(words[i]);
    CHECK(NarrowOne(type, x[i]) == expected[i]);
  }
  CheckNarrowArrays(type, x, expected);
}

}  // namespace

TEST_SUITE_BEGIN("base types");

TEST_CASE("every f16 and bf16 widens to its value") {
  const std::vector<uint16_t> codes = AllCodes();
  for (const DType type : kHalves) {
    const HalfReference reference(type);
    Failures failures;
    for (const uint16_t code : codes) {
      CheckWidened(reference, code, LoadElement(type, codes.data(), code), "LoadElement", &failures);
    }
    for (const KernelTable& table : Tables()) {
      std::vector<float> widened(codes.size());
      Guarded([&] { table.widen(type, codes.data(), widened.data(), codes.size()); });
      for (const uint16_t code : codes) CheckWidened(reference, code, widened[code], table.name, &failures);
    }
    ETALON_CHECK_NONE(failures);
  }
}

TEST_CASE("widening is the same in the body and the tail of an array") {
  const float untouched = FromBits(0xA5A5A5A5u);
  for (const DType type : kHalves) {
    const HalfReference reference(type);
    Failures failures;
    for (const KernelTable& table : Tables()) {
      for (size_t length = 1; length <= 40; ++length) {
        for (size_t start = 0; start < 8; ++start) {
          std::vector<uint16_t> in(start + length);
          std::vector<float> out(start + length + 64, untouched);
          // Steps of 0x0741 meet every kind of number, subnormals and NaN included.
          for (size_t i = 0; i < in.size(); ++i) in[i] = static_cast<uint16_t>((length * 8 + i) * 0x0741);
          Guarded([&] { table.widen(type, in.data() + start, out.data() + start, length); });
          for (size_t i = 0; i < out.size(); ++i) {
            if (i >= start && i < start + length) {
              CheckWidened(reference, in[i], out[i], table.name, &failures);
            } else if (Bits(out[i]) != Bits(untouched)) {
              failures.Add("%s from %s, start %zu, length %zu: wrote element %zu", table.name, Name(type), start,
                           length, i);
            }
          }
        }
      }
    }
    ETALON_CHECK_NONE(failures);
  }
}

TEST_CASE("every f16 and bf16 survives the way to f32 and back") {
  for (const DType type : kHalves) {
    const HalfReference reference(type);
    Failures failures;
    const std::vector<uint16_t> codes = AllCodes();
    std::vector<float> wide(codes.size());
    for (const uint16_t code : codes) {
      wide[code] = LoadElement(type, codes.data(), code);
      const uint16_t expected = reference.IsNaN(code) ? reference.canonical_nan() : code;
      const uint16_t got = NarrowOne(type, wide[code]);
      if (got != expected) failures.Add("%s %04X came back as %04X", Name(type), code, got);
    }
    for (const KernelTable& table : Tables()) {
      std::vector<float> widened(codes.size());
      std::vector<uint16_t> narrowed(codes.size());
      Guarded([&] {
        table.widen(type, codes.data(), widened.data(), codes.size());
        table.narrow(type, widened.data(), narrowed.data(), codes.size());
      });
      for (const uint16_t code : codes) {
        const uint16_t expected = reference.IsNaN(code) ? reference.canonical_nan() : code;
        if (narrowed[code] != expected) {
          failures.Add("%s: %s %04X came back as %04X", table.name, Name(type), code, narrowed[code]);
        }
      }
    }
    ETALON_CHECK_NONE(failures);
  }
}

TEST_CASE("NUM-10: f32 to bf16 rounds to nearest even and keeps subnormals") {
  // The case asks for any NaN at the end; the library's is the canonical one.
  CheckNarrowCase(DType::kBF16,
                  {0x3E89CCD5, 0x3F808000, 0x3F818000, 0x3F808001, 0x00008000, 0x00008001, 0x00018000, 0x7F800001},
                  {0x3E8A, 0x3F80, 0x3F82, 0x3F81, 0x0000, 0x0001, 0x0002, 0x7FC0});
}

TEST_CASE("NUM-11: f32 to f16 rounds once, to nearest even, around zero, subnormals and overflow") {
  CheckNarrowCase(
      DType::kF16,
      {0x33000000, 0x33000001, 0x33400000, 0x337FFFFF, 0x33800000, 0xB3000001, 0xB3400000, 0x387FC000, 0x387FE000,
       0x38800000, 0x301F6DDF, 0x3649539C, 0x477FEFFF, 0x477FF000},
      {0x0000, 0x0001, 0x0001, 0x0001, 0x0001, 0x8001, 0x8001, 0x03FF, 0x0400, 0x0400, 0x0000, 0x0032, 0x7BFF, 0x7C00});
}

TEST_CASE("narrowing is right on every tie and beside it") {
  for (const DType type : kHalves) {
    const HalfReference reference(type);
    std::vector<float> x;
    for (int code = 0; code < reference.infinity(); ++code) {
      const uint32_t tie = Bits(reference.Midpoint(code));
      for (const uint32_t word : {tie - 1, tie, tie + 1}) {
        x.push_back(FromBits(word));
        x.push_back(FromBits(word | 0x80000000u));
      }
    }
    CheckNarrow(reference, x);
  }
}

TEST_CASE("narrowing is right at a stride over all f32") {
  for (const DType type : kHalves) {
    const HalfReference reference(type);
    std::vector<float> x;
    // The stride is prime: every value of the low bits occurs.
    for (uint64_t word = 0; word < (uint64_t{1} << 32); word += 4093)
      x.push_back(FromBits(static_cast<uint32_t>(word)));
    CheckNarrow(reference, x);
  }
}

TEST_CASE("narrowing is the same in the body and the tail of an array, NaN included") {
  for (const DType type : kHalves) {
    const HalfReference reference(type);
    std::vector<float> x =
        FromWords({0x00000000, 0x80000000, 0x7F800000, 0xFF800000, 0x7F800001, 0xFFFFFFFF, 0x7FC12345, 0x7F7FFFFF,
                   0x00000001, 0x80400000, 0x3F800000, 0x477FF000, 0x7F7F8000});
    for (uint32_t i = 0; i < 46; ++i) x.push_back(FromBits(i * 0x0573A7C1u));
    std::vector<uint16_t> expected;
    for (const float value : x) expected.push_back(reference.Narrow(value));
    CheckNarrowArrays(type, x, expected);
  }
}

TEST_CASE("a written NaN is the canonical one and nothing else changes in f32") {
  for (const uint32_t word : {0x7F800001u, 0x7FC00001u, 0xFFC00000u, 0xFF812345u, 0xFFFFFFFFu, 0x7FFFFFFFu}) {
    CAPTURE(word);
    float stored;
    StoreElement(DType::kF32, &stored, 0, FromBits(word));
    CHECK(Bits(stored) == 0x7FC00000u);
    CHECK(NarrowF16(FromBits(word)) == 0x7E00);
    CHECK(NarrowBF16(FromBits(word)) == 0x7FC0);
  }
  for (const uint32_t word : {0u, 0x80000000u, 1u, 0x807FFFFFu, 0x3F800000u, 0x7F7FFFFFu, 0x7F800000u, 0xFF800000u}) {
    CAPTURE(word);
    const float x = FromBits(word);
    float stored[3] = {};
    StoreElement(DType::kF32, stored, 1, x);
    CHECK(Bits(stored[1]) == word);
    CHECK(Bits(LoadElement(DType::kF32, stored, 1)) == word);
    CHECK(Bits(stored[0]) + Bits(stored[2]) == 0);
  }
  CHECK(ElementSize(DType::kF32) == 4);
  CHECK(ElementSize(DType::kF16) == 2);
  CHECK(ElementSize(DType::kBF16) == 2);
}

TEST_SUITE_END();

}  // namespace etalon::test
