// fma_reference.h: a * b + c with one rounding in integers, and triples on which a careless form goes wrong.
#ifndef ETALON_TESTS_BASE_FMA_REFERENCE_H_
#define ETALON_TESTS_BASE_FMA_REFERENCE_H_

#include <cmath>
#include <cstdint>

#include "lib/base/types.h"
#include "tests/support/generate.h"

namespace etalon::test {

__extension__ typedef unsigned __int128 Wide;

// The nearest f32 (ties to even) of the exact a * b + c; NaN for invalid operations. Integers only, apart from the last
// step, which is exact.
class ExactFma {
 public:
  static float Of(float a, float b, float c) {
    if (!std::isfinite(a) || !std::isfinite(b) || !std::isfinite(c)) return NotFinite(a, b, c);
    const Number x = Split(a), y = Split(b);
    const Number product = {x.negative != y.negative, Wide{x.integer} * y.integer, x.exponent + y.exponent};
    const Number addend = Split(c);
    if (product.integer == 0 && addend.integer == 0) {
      return product.negative && addend.negative ? -0.0f : 0.0f;
    }
    if (product.integer == 0) return Round(addend);
    if (addend.integer == 0) return Round(product);
    return Top(product) >= Top(addend) ? Add(product, addend) : Add(addend, product);
  }

 private:
  // +-integer * 2^exponent
  struct Number {
    bool negative;
    Wide integer;
    int exponent;
  };

  static Number Split(float x) {
    const uint32_t bits = Bits(x);
    const uint32_t field = (bits >> 23) & 0xFF;
    const uint32_t mantissa = bits & 0x7FFFFF;
    return {(bits >> 31) != 0, field == 0 ? mantissa : mantissa | 0x800000u,
            (field == 0 ? 1 : static_cast<int>(field)) - 150};
  }

  static int Length(Wide x) {
    const uint64_t high = static_cast<uint64_t>(x >> 64), low = static_cast<uint64_t>(x);
    if (high != 0) return 128 - __builtin_clzll(high);
    return low != 0 ? 64 - __builtin_clzll(low) : 0;
  }

  static int Top(const Number& x) { return x.exponent + Length(x.integer); }

  // The leading bit of the larger one moves to bit 99. Then the smaller one may lose bits only where it has become less
  // than 2^48, while the sum is 2^98 at least and is rounded at bit 74 or above: that something was lost is all that
  // counts, and the last bit says so.
  static float Add(Number larger, Number smaller) {
    const int shift = 100 - Length(larger.integer);
    larger.integer <<= shift;
    larger.exponent -= shift;
    const int down = larger.exponent - smaller.exponent;
    if (down <= 0) {
      smaller.integer <<= -down;
    } else if (down < 64) {
      const bool lost = (smaller.integer & ((Wide{1} << down) - 1)) != 0;
      smaller.integer = (smaller.integer >> down) | Wide{lost};
    } else {
      smaller.integer = 1;
    }
    if (larger.negative == smaller.negative) {
      larger.integer += smaller.integer;
    } else if (larger.integer >= smaller.integer) {
      larger.integer -= smaller.integer;
    } else {
      larger.integer = smaller.integer - larger.integer;
      larger.negative = smaller.negative;
    }
    if (larger.integer == 0) return 0.0f;  // x - x is +0 in this rounding mode
    return Round(larger);
  }

  static float Round(const Number& x) {
    const int top = Top(x);
    const int last = top - 24 > -149 ? top - 24 : -149;  // the exponent of the result's last bit
    const int drop = last - x.exponent;
    Wide kept = x.integer;
    if (drop > 127) {
      kept = 0;
    } else if (drop > 0) {
      const Wide half = Wide{1} << (drop - 1);
      const Wide rest = kept & ((half << 1) - 1);
      kept >>= drop;
      if (rest > half || (rest == half && (kept & 1) != 0)) ++kept;
    }
    const double value = std::ldexp(static_cast<double>(static_cast<uint64_t>(kept)), drop > 0 ? last : x.exponent);
    const float magnitude = value >= 0x1p128 ? FromBits(0x7F800000u) : static_cast<float>(value);
    return x.negative ? -magnitude : magnitude;
  }

  static float NotFinite(float a, float b, float c) {
    const float nan = FromBits(0x7FC00000u);
    if (std::isnan(a) || std::isnan(b) || std::isnan(c)) return nan;
    if (!std::isinf(a) && !std::isinf(b)) return c;
    if (a == 0 || b == 0) return nan;
    const bool negative = std::signbit(a) != std::signbit(b);
    if (std::isinf(c) && std::signbit(c) != negative) return nan;
    return FromBits(negative ? 0xFF800000u : 0x7F800000u);
  }
};

struct Triple {
  float a, b, c;
};

class HardTriples {
 public:
  static constexpr int kKinds = 10;

  explicit HardTriples(uint64_t seed) : random_(seed) {}

  Triple Next() { return Make(static_cast<int>(random_.Below(kKinds))); }

  Triple Make(int kind) {
    switch (kind) {
      case 0:  // anything, NaN and inf included
        return {FromBits(Word()), FromBits(Word()), FromBits(Word())};
      case 1:
        return Boundary();
      case 2:
        return HalfUlpOfAddend();
      case 3:
        return HalfwayProduct();
      case 4:
        return Cancellation();
      case 5:
        return Subnormal();
      case 6:
        return HalfOfSmallest();
      case 7:
        return Overflow();
      case 8: {  // any gap of exponents
        const float a = Float(-100, 100), b = Float(-48, 48);
        return {a, b, Float(-149, 127)};
      }
      default:
        return {Special(), Special(), Special()};
    }
  }

 private:
  uint32_t Word() { return static_cast<uint32_t>(random_.Next()); }
  int Between(int low, int high) { return low + static_cast<int>(random_.Below(high - low + 1)); }
  bool Coin() { return (random_.Next() >> 63) != 0; }
  float Sign(float x) { return Coin() ? -x : x; }

  // +-integer * 2^exponent; exact as long as the integer has 24 bits and the result is in range.
  static float Scaled(int64_t integer, int exponent) {
    return static_cast<float>(std::ldexp(static_cast<double>(integer), exponent));
  }

  int64_t Mantissa() { return 0x800000 + random_.Below(0x800000); }
  float Float(int low, int high) { return Sign(Scaled(Mantissa(), Between(low, high) - 23)); }

  // The 48 bits of the product and an addend of at most 24 that together make exactly a boundary between two f32, or a
  // unit of the product's last bit beside it.
  Triple Boundary() {
    const int64_t a = Mantissa(), b = Mantissa();
    const int64_t product = a * b;
    const int step = product >> 47 != 0 ? 24 : 23;  // the product's bits below those that an f32 keeps
    const int64_t boundary = ((product >> step) << step) + (int64_t{1} << (step - 1));
    const int64_t c = boundary - product + Between(-1, 1);
    const int exponent_a = Between(-74, 30), exponent_b = Between(-74, 30);
    const bool negative = Coin();
    return {Scaled(a, exponent_a), Scaled(negative ? -b : b, exponent_b),
            Scaled(negative ? -c : c, exponent_a + exponent_b)};
  }

  // (1 + e)(1 - e) = 1 - e^2 times half an ulp of c: as close to a tie as products come, too close for binary64.
  Triple HalfUlpOfAddend() {
    const int exponent = Between(-90, 100);
    const float c = Sign(Scaled(Mantissa(), exponent));
    const int split = Between(-60, 60);
    const int64_t e = int64_t{1} << Between(0, 12);
    int64_t a = 0x800000 + e, b = 0x800000 - e;
    switch (Between(0, 3)) {
      case 0:
        a = b = 0x800000;  // the tie itself
        break;
      case 1:
        b = 0x800000 + e;  // beyond it
        break;
      case 2:
        a = 0x800000 + random_.Below(3) - 1;
        b = 0x800000;
        break;
      default:
        break;
    }
    return {Scaled(a, split - 23), Sign(Scaled(b, exponent - 1 - split - 23)), c};
  }

  // A product of 25 bits, the last of them set, is a tie that an addend of any smallness breaks.
  Triple HalfwayProduct() {
    const int64_t a = (int64_t{1} << 12) + random_.Below(1 << 12) + 1,
                  b = (int64_t{1} << 12) + random_.Below(1 << 12) + 1;
    const float c = Coin() ? Float(-149, -60) : Sign(0.0f);
    return {Sign(Scaled(a | 1, Between(-20, 40))), Scaled(b | 1, Between(-20, 40)), c};
  }

  // c within a few ulps of -a * b.
  Triple Cancellation() {
    const int64_t a = Mantissa(), b = Mantissa();
    const int exponent_a = Between(-80, 20), exponent_b = Between(-60, 20);
    const int64_t high = (a * b) >> 24;
    int64_t c = -(high + Between(-2, 2));
    if (c < -0xFFFFFF) c = -0xFFFFFF;
    const bool negative = Coin();
    return {Scaled(a, exponent_a), Scaled(negative ? -b : b, exponent_b),
            Scaled(negative ? -c : c, exponent_a + exponent_b + 24)};
  }

  // A product about the size of the subnormals, with or without a subnormal or small addend.
  Triple Subnormal() {
    const int exponent_a = Between(-126, 0);
    const int exponent_b = Between(-152, -118) - exponent_a;
    const float a = Sign(Scaled(Mantissa(), exponent_a - 23));
    const float b = exponent_b >= -126 ? Scaled(Mantissa(), exponent_b - 23) : 0x1p-126f;
    float c = FromBits(Word() & (0x807FFFFFu >> (Coin() ? 0 : 8)));
    if (Between(0, 3) == 0) c = Sign(0.0f);
    if (Between(0, 3) == 0) c = Float(-127, -120);
    return {a, b, c};
  }

  // Odd multiples of 2^-150 and their neighbours, onto a subnormal.
  Triple HalfOfSmallest() {
    const int64_t odd = (random_.Below(1 << Between(1, 22)) << 1) | 1;
    const int split = Between(-60, 0);
    const int64_t e = Between(-1, 1);
    const float a = Sign(Scaled(odd, split));
    const float b = Scaled(0x800000 + e, -150 - split - 23);
    return {a, b, Sign(Scaled(random_.Below(1 << Between(0, 23)), -149))};
  }

  // Around 2^128 - 2^103, from which on the result is infinite.
  Triple Overflow() {
    const int split = Between(-20, 100);
    switch (Between(0, 2)) {
      case 0: {  // FLT_MAX and half its ulp, a little more or less
        const int64_t e = int64_t{1} << Between(0, 12);
        const int64_t a = 0x800000 + (Coin() ? e : 0), b = 0x800000 - (Coin() ? e : 0);
        const bool negative = Coin();
        return {Scaled(a, split - 23), Scaled(negative ? -b : b, 103 - split - 23), Sign(FromBits(0x7F7FFFFFu))};
      }
      case 1: {  // a product beyond the range that the addend may bring back
        const int64_t b = Mantissa();
        return {Scaled(Mantissa(), 64 - 23), Sign(Scaled(b, 63 + Between(0, 1) - 23)), Float(124, 127)};
      }
      default: {  // far beyond: finite only in a wider type
        return {Float(100, 127), Float(100, 127), Float(-126, 127)};
      }
    }
  }

  float Special() {
    static constexpr uint32_t kWords[] = {0x00000000u, 0x00000001u, 0x00000002u, 0x007FFFFFu, 0x00800000u, 0x00800001u,
                                          0x33800000u, 0x3F7FFFFFu, 0x3F800000u, 0x3F800001u, 0x40000000u, 0x7F000000u,
                                          0x7F7FFFFFu, 0x7F800000u, 0x7FC00000u, 0x7F800001u, 0x1F800000u, 0x5F800000u};
    return Sign(FromBits(kWords[random_.Below(sizeof(kWords) / sizeof(kWords[0]))]));
  }

  Random random_;
};

}  // namespace etalon::test

#endif  // ETALON_TESTS_BASE_FMA_REFERENCE_H_
