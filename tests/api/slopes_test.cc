// The standard slopes of ALiBi, in bits.
#include <doctest/doctest.h>
#include <etalon/etalon.h>

#include <cmath>
#include <cstring>
#include <string>
#include <vector>

namespace etalon::test {
namespace {

std::vector<uint32_t> SlopesOf(int64_t num_heads) {
  std::vector<float> slopes(static_cast<size_t>(num_heads));
  REQUIRE(etalon_alibi_slopes(num_heads, slopes.data(), nullptr) == ETALON_OK);
  std::vector<uint32_t> bits(slopes.size());
  std::memcpy(bits.data(), slopes.data(), slopes.size() * sizeof(float));
  return bits;
}

// 2^(-i / 16), i = 1 ... 16, from their definition in sixty digits.
constexpr uint32_t kRoots[16] = {0x3F75257D, 0x3F6AC0C7, 0x3F60CCDF, 0x3F5744FD, 0x3F4E248C, 0x3F45672A,
                                 0x3F3D08A4, 0x3F3504F3, 0x3F2D583F, 0x3F25FED7, 0x3F1EF532, 0x3F1837F0,
                                 0x3F11C3D3, 0x3F0B95C2, 0x3F05AAC3, 0x3F000000};

// 2^(-sixteenths / 16).
uint32_t Power(int sixteenths) {
  return kRoots[(sixteenths - 1) % 16] - (static_cast<uint32_t>((sixteenths - 1) / 16) << 23);
}

// The sentence of etalon.h, for numbers whose steps are sixteenths: 2^n = power heads are 128 / power sixteenths apart.
std::vector<uint32_t> Expected(int num_heads, int power) {
  std::vector<uint32_t> slopes;
  for (int h = 1; h <= power; ++h) slopes.push_back(Power(128 / power * h));
  for (int h = 1; power + h <= num_heads; ++h) slopes.push_back(Power(128 / power / 2 * (2 * h - 1)));
  return slopes;
}

TEST_CASE("slopes: those of powers of two and of the numbers between") {
  CHECK(SlopesOf(1) == Expected(1, 1));
  CHECK(SlopesOf(2) == Expected(2, 2));
  CHECK(SlopesOf(3) == Expected(3, 2));
  CHECK(SlopesOf(8) == Expected(8, 8));
  CHECK(SlopesOf(12) == Expected(12, 8));
  CHECK(SlopesOf(16) == Expected(16, 16));
  CHECK(SlopesOf(40) == Expected(40, 32));
  CHECK(SlopesOf(64) == Expected(64, 64));
  CHECK(SlopesOf(112) == Expected(112, 64));
  CHECK(SlopesOf(1)[0] == 0x3B800000u);   // 1 / 256
  CHECK(SlopesOf(12)[8] == 0x3F3504F3u);  // the root of 1 / 2
}

TEST_CASE("slopes: any number of heads, each within half an ulp") {
  for (int64_t heads : {5, 33, 100, 129, 500, 1000, 4096, 5000}) {
    int64_t power = 1;
    while (2 * power <= heads) power *= 2;
    const std::vector<uint32_t> bits = SlopesOf(heads);
    int64_t wrong = 0;
    for (int64_t h = 0; h < heads; ++h) {
      const double exponent = h < power ? 8.0 * static_cast<double>(h + 1) / static_cast<double>(power)
                                        : 4.0 * static_cast<double>(2 * (h - power) + 1) / static_cast<double>(power);
      float slope;
      std::memcpy(&slope, &bits[static_cast<size_t>(h)], sizeof slope);
      const double exact = std::exp2(-exponent);
      if (std::fabs(static_cast<double>(slope) - exact) > exact * 0x1.00001p-24) ++wrong;
    }
    CAPTURE(heads);
    CHECK(wrong == 0);
  }
}

TEST_CASE("slopes: what is refused") {
  float slopes[2] = {7, 7};
  etalon_error error;
  CHECK(etalon_alibi_slopes(2, nullptr, &error) == ETALON_NULL_POINTER);
  CHECK(std::string(error.field) == "slopes");
  for (int64_t heads : {int64_t{0}, int64_t{-1}, INT64_MIN}) {
    CHECK(etalon_alibi_slopes(heads, slopes, &error) == ETALON_NO_HEADS);
    CHECK(std::string(error.field) == "num_heads");
    CHECK(etalon_alibi_slopes(heads, slopes, nullptr) == ETALON_NO_HEADS);
  }
  CHECK(slopes[0] == 7);
  CHECK(etalon_alibi_slopes(1, slopes, &error) == ETALON_OK);
  CHECK(error.status == ETALON_OK);
  CHECK(slopes[1] == 7);
}

}  // namespace
}  // namespace etalon::test
