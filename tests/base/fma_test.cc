// All forms of a fused multiply-add are one: through f64, each table's own (on x86 with FMA the instruction), and the
// exact integers. Two forms that err together would be seen by the integers.
#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>
#include <vector>

#include "lib/base/arithmetic.h"
#include "tests/base/fma_reference.h"
#include "tests/base/sweep.h"
#include "tests/support/kernel_case.h"
#include "tests/support/targets.h"

namespace etalon::test {
namespace {

struct Triples {
  std::vector<float> a, b, c;

  void Push(const Triple& t) {
    a.push_back(t.a);
    b.push_back(t.b);
    c.push_back(t.c);
  }
};

void CheckForms(const Triples& t) {
  Failures failures;
  std::vector<float> expected(t.a.size());
  for (size_t i = 0; i < expected.size(); ++i) expected[i] = ExactFma::Of(t.a[i], t.b[i], t.c[i]);
  const auto check = [&](const char* form, const std::vector<float>& got) {
    for (size_t i = 0; i < got.size(); ++i) {
      if (SameFloat(got[i], expected[i])) continue;
      failures.Add("%s of %08X %08X %08X: %08X, not %08X", form, Bits(t.a[i]), Bits(t.b[i]), Bits(t.c[i]), Bits(got[i]),
                   Bits(expected[i]));
    }
  };
  std::vector<float> y(t.a.size());
  Guarded([&] {
    for (size_t i = 0; i < y.size(); ++i) y[i] = FmaThroughF64(t.a[i], t.b[i], t.c[i]);
  });
  check("the f64 form", y);
  Guarded([&] {
    for (size_t i = 0; i < y.size(); ++i) y[i] = Fma(t.a[i], t.b[i], t.c[i]);
  });
  check("this compiler's Fma", y);
  for (const KernelTable& table : Tables()) check(table.name, RunFma(table, t.a, t.b, t.c));
  ETALON_CHECK_NONE(failures);
}

}  // namespace

TEST_SUITE_BEGIN("base fma");

TEST_CASE("the integer reference on results known by hand") {
  const auto fma = [](uint32_t a, uint32_t b, uint32_t c) {
    return Bits(ExactFma::Of(FromBits(a), FromBits(b), FromBits(c)));
  };
  CHECK(fma(0x3F800000, 0x3F800000, 0x3F800000) == 0x40000000);  // 1 * 1 + 1
  CHECK(fma(0x40400000, 0x40A00000, 0xC1600000) == 0x3F800000);  // 3 * 5 - 14
  CHECK(fma(0x3F800001, 0x3F800001, 0xBF800002) == 0x28800000);  // (1 + e)^2 - (1 + 2e) = e^2 = 2^-46
  CHECK(fma(0x3F800000, 0x33800000, 0x3F800000) == 0x3F800000);  // a tie goes down to even
  CHECK(fma(0x3F800000, 0x33800000, 0x3F800001) == 0x3F800002);  // and up
  CHECK(fma(0x3F800001, 0x33800000, 0x3F800000) == 0x3F800001);  // just over the tie
  CHECK(fma(0x00000001, 0x3F000000, 0x00000000) == 0x00000000);  // half the smallest
  CHECK(fma(0x00000001, 0x3F000000, 0x00000001) == 0x00000002);
  CHECK(fma(0x00000001, 0x3F000001, 0x00000000) == 0x00000001);
  CHECK(fma(0x00000001, 0x00000001, 0x80000001) == 0x80000001);  // a gap of 149 binades
  CHECK(fma(0x73000000, 0x3F800000, 0x7F7FFFFF) == 0x7F800000);  // 2^103 is half an ulp of FLT_MAX
  CHECK(fma(0x72FFFFFF, 0x3F800000, 0x7F7FFFFF) == 0x7F7FFFFF);
  CHECK(fma(0x7F7FFFFF, 0x40000000, 0xFF7FFFFF) == 0x7F7FFFFF);  // the product alone would overflow
  CHECK(fma(0x80000000, 0x3F800000, 0x80000000) == 0x80000000);  // -0 + -0
  CHECK(fma(0x80000000, 0x3F800000, 0x00000000) == 0x00000000);
  CHECK(fma(0x3F800000, 0x3F800000, 0xBF800000) == 0x00000000);  // 1 - 1
  CHECK(fma(0x7F800000, 0xBF800000, 0x3F800000) == 0xFF800000);
  CHECK(std::isnan(ExactFma::Of(FromBits(0x7F800000), 0, 1)));
  CHECK(std::isnan(ExactFma::Of(FromBits(0x7F800000), 1, FromBits(0xFF800000))));
}

TEST_CASE("all forms equal the integers on a million hard triples") {
  constexpr uint64_t kSeed = 20240701;
  CAPTURE(kSeed);
  HardTriples hard(kSeed);
  Triples t;
  for (int i = 0; i < 1000000; ++i) t.Push(hard.Make(i % HardTriples::kKinds));
  CheckForms(t);
}

// Each kind is there to catch something: if a form that rounds twice passed, the million above would prove nothing.
TEST_CASE("the triples are hard: rounding twice is seen") {
  HardTriples hard(1);
  int twice[HardTriples::kKinds] = {};
  int unfused[HardTriples::kKinds] = {};
  for (int i = 0; i < 20000; ++i) {
    for (int kind = 0; kind < HardTriples::kKinds; ++kind) {
      const Triple t = hard.Make(kind);
      const float exact = ExactFma::Of(t.a, t.b, t.c);
      const double product = static_cast<double>(t.a) * static_cast<double>(t.b);
      const float product_f32 = static_cast<float>(product);
      twice[kind] += !SameFloat(static_cast<float>(product + static_cast<double>(t.c)), exact);
      unfused[kind] += !SameFloat(product_f32 + t.c, exact);
    }
  }
  // Of 20000. Whoever rounds the product to f32 first errs in all of these kinds; whoever rounds the sum to f64 first,
  // only where something decides a tie from far below.
  for (const int kind : {1, 2, 3, 4, 5, 6, 7, 8}) {
    CAPTURE(kind);
    CHECK(unfused[kind] > 500);
  }
  for (const int kind : {2, 3, 7}) {
    CAPTURE(kind);
    CHECK(twice[kind] > 500);
  }
}

TEST_CASE("all forms equal the integers on every combination of special values") {
  const uint32_t words[] = {0x00000000u, 0x00000001u, 0x007FFFFFu, 0x00800000u, 0x33800000u, 0x3F7FFFFFu, 0x3F800000u,
                            0x3F800001u, 0x7F7FFFFFu, 0x7F800000u, 0x7FC00000u, 0x7F800001u, 0x73000000u};
  std::vector<float> values;
  for (const uint32_t word : words) {
    values.push_back(FromBits(word));
    values.push_back(FromBits(word | 0x80000000u));
  }
  Triples t;
  for (const float a : values) {
    for (const float b : values) {
      for (const float c : values) t.Push({a, b, c});
    }
  }
  CheckForms(t);
}

TEST_CASE("fma is the same in the body and the tail of an array and writes nothing beyond it") {
  const float untouched = FromBits(0xA5A5A5A5u);
  HardTriples hard(7);
  for (const KernelTable& table : Tables()) {
    Failures failures;
    for (size_t length = 0; length <= 40; ++length) {
      Triples t;
      while (t.a.size() < length) {
        const Triple next = hard.Next();  // of those that an unfused tail would get wrong
        if (!SameFloat(next.a * next.b + next.c, ExactFma::Of(next.a, next.b, next.c))) t.Push(next);
      }
      std::vector<float> y(length + 64, untouched);
      Guarded([&] { table.fma(t.a.data(), t.b.data(), t.c.data(), y.data(), length); });
      for (size_t i = 0; i < y.size(); ++i) {
        const float expected = i < length ? ExactFma::Of(t.a[i], t.b[i], t.c[i]) : untouched;
        if (!SameFloat(y[i], expected)) {
          failures.Add("%s, length %zu, element %zu: %08X", table.name, length, i, Bits(y[i]));
        }
      }
    }
    ETALON_CHECK_NONE(failures);
  }
}

TEST_SUITE_END();

}  // namespace etalon::test
