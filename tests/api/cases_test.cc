// The field cases of numerics, masks and shapes, through every form of the public interface. Names begin with the id.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>

#include "tests/api/api_test.h"
#include "tests/api/primitive_calls.h"
#include "tests/support/reference.h"

namespace etalon::test {
namespace {

constexpr DType kTypes[] = {DType::kF32, DType::kF16, DType::kBF16};
constexpr float kNone = -HUGE_VALF;

std::vector<float> Constant(int64_t n, float x) { return std::vector<float>(static_cast<size_t>(n), x); }

ApiCase Seen(ApiCase c, int64_t q_offset, int64_t left, int64_t right) {
  c.q_offset = q_offset;
  c.left = left;
  c.right = right;
  return c;
}

// All scores equal, v[j] = j: each output is the mean of the keys that it sees.
ApiCase Mean(int64_t q_len, int64_t kv_len) { return OneHead(MeanCase(q_len, kv_len)); }

SoftmaxResult SoftmaxOfRow(const std::vector<float>& row, const KernelTable& table) {
  ApiCase c;
  c.size.kv_len = static_cast<int64_t>(row.size());
  return CallSoftmax(c, F32(row), table);
}

TEST_CASE("NUM-1: large equal values stay finite") {
  for (const KernelTable& table : Tables()) {
    for (DType type : {DType::kF32, DType::kBF16}) {
      for (int64_t n : {1, 33}) {
        ApiCase c;
        c.size = {1, 1, 1, 1, n, 64, 64};
        c.q = Array(type, Constant(64, 133120.0f));
        c.k = c.v = Array(type, Constant(64 * n, 133120.0f));
        c.out_type = type;
        INFO(std::string(table.name), " type ", static_cast<int>(type), " keys ", n);
        const AttentionResult got = RunEveryForm(c, table);
        const double allowed = n == 1 || type == DType::kBF16 ? 0.0 : 133120.0 * 1e-6;
        CHECK(Near(got.out, std::vector<double>(64, 133120.0), allowed) == "");
        if (n == 1) CHECK(Near(got.lse, {1.41767475e11}, 1.41767475e11 * 1e-6) == "");
        CHECK(std::isfinite(got.lse[0]));
      }
    }
  }
}

TEST_CASE("NUM-2: very negative scores") {
  for (const KernelTable& table : Tables()) {
    for (int64_t rows : {1, 3}) {  // decode, prefill
      INFO(std::string(table.name), " rows ", rows);
      const ApiCase a =
          OneHead(PlainCase(F32(Constant(rows, 1.0f)), F32({-245000.0f, -240000.0f}), F32({1.0f, 2.0f}), 1, 1, 1.0f));
      const ApiCase b = OneHead(
          PlainCase(F32(Constant(rows, 1.0f)), F32(Constant(4, -60000.0f)), F32({0.0f, 1.0f, 2.0f, 3.0f}), 1, 1, 1.0f));
      const auto by_states = [&](const ApiCase& c) {
        const GuardedStates states(c.size, 1, 1);
        CallBlockStates(c, states.get(), table);
        return CallMergeStates(c, states.get(), table);
      };
      for (const AttentionResult& got : {RunEveryForm(a, table), by_states(a)}) {
        CHECK(Difference(got.out, F32(Constant(rows, 2.0f))) == "");
        CHECK(Difference(got.lse, Constant(rows, -240000.0f)) == "");
      }
      for (const AttentionResult& got : {RunEveryForm(b, table), by_states(b)}) {
        CHECK(Difference(got.out, F32(Constant(rows, 1.5f))) == "");
        CHECK(Near(got.lse, std::vector<double>(static_cast<size_t>(rows), -59998.614), 0.005) == "");
      }
    }
  }
}

TEST_CASE("NUM-3: f16 products are summed in f32") {
  for (const KernelTable& table : Tables()) {
    for (int64_t head_dim : {8, 31, 32, 33, 64}) {
      std::vector<float> x = Constant(head_dim, 0.0f);
      x[0] = 256.0f;
      const ApiCase c =
          OneHead(PlainCase(Array(DType::kF16, x), Array(DType::kF16, x), Array(DType::kF16, 1), head_dim, 1, 1.0f));
      INFO(std::string(table.name), " head_dim ", head_dim);
      CHECK(Difference(CallScores(c, table), F32({65536.0f})) == "");
      CHECK(Difference(RunEveryForm(c, table).lse, {65536.0f}) == "");
    }
  }
}

TEST_CASE("NUM-4: a short dot product is exact in every type") {
  for (const KernelTable& table : Tables()) {
    for (DType type : kTypes) {
      const ApiCase c =
          OneHead(PlainCase(Array(type, {1, 2, 3, 1, 2}), Array(type, {4, 5, 6, 4, 5}), Array(type, 1), 5, 1, 1.0f));
      INFO(std::string(table.name), " type ", static_cast<int>(type));
      CHECK(Difference(CallScores(c, table), F32({46.0f})) == "");
      CHECK(Difference(RunEveryForm(c, table).lse, {46.0f}) == "");
    }
  }
}

TEST_CASE("NUM-5: the far tail of exp in softmax") {
  const double expected[] = {9.982351e-39, 5.478430e-39, 3.672302e-39, 1.4e-45};
  for (const KernelTable& table : Tables()) {
    INFO(std::string(table.name));
    const std::vector<float> w = SoftmaxOfRow({0, -87, -87.5f, -88.1f, -88.5f, -103, -104, -1000, kNone}, table).w;
    CHECK(w[0] == 1.0f);
    CHECK(Near({w[1]}, {1.645811e-38}, 1.645811e-38 * 0x1p-21) == "");
    for (size_t i = 0; i < 4; ++i) {
      const double got = static_cast<double>(w[i + 2]);
      INFO("entry ", i + 2, " is ", got);
      CHECK((got == 0 || std::fabs(got - expected[i]) <= 0x1p-149 + expected[i] * 1e-6));
    }
    CHECK((w[6] == 0.0f || w[6] == 0x1p-149f));
    CHECK(Bits(w[7]) == 0);
    CHECK(Bits(w[8]) == 0);
    for (float x : w) CHECK(!std::signbit(x));
  }
}

TEST_CASE("NUM-6: short rows that fill no vector") {
  const std::vector<float> row = {9.34623f, 8.43469f, 7.19462f, 6.59385f, 5.89481f, 5.67304f};
  for (const KernelTable& table : Tables()) {
    for (int64_t n = 1; n <= 6; ++n) {
      const std::vector<float> part(row.begin(), row.begin() + n);
      const std::vector<float> w = SoftmaxOfRow(part, table).w;
      INFO(std::string(table.name), " length ", n);
      CHECK(Near(w, SoftmaxInF64({1, n, part, {}, {}}).w, 1e-6) == "");
      double sum = 0;
      for (float x : w) sum += static_cast<double>(x);
      CHECK(std::fabs(sum - 1.0) <= 1e-6);
      if (n == 6) CHECK(Near(w, {0.61010081, 0.24520245, 0.07095275, 0.03890972, 0.01934056, 0.01549371}, 1e-6) == "");
    }
  }
}

TEST_CASE("NUM-7: 4096 equal scores") {
  for (const KernelTable& table : Tables()) {
    INFO(std::string(table.name));
    const std::vector<float> w = SoftmaxOfRow(Constant(4096, 0.0f), table).w;
    CHECK(Difference(w, Constant(4096, 0x1p-12f)) == "");
    CHECK(Difference(Array(DType::kF16, w), Array(DType::kF16, Constant(4096, 0x1p-12f))) == "");
    ApiCase c;
    c.size = {1, 1, 1, 1, 4096, 8, 8};
    c.q = Array(DType::kF16, 8);
    c.k = Array(DType::kF16, Ramp(5, 2, 8 * 4096));
    c.v = Array(DType::kF16, Constant(8 * 4096, 1.0f));
    c.out_type = DType::kF16;
    CHECK(Difference(RunEveryForm(c, table).out, Array(DType::kF16, Constant(8, 1.0f))) == "");
  }
}

TEST_CASE("NUM-8: a visible NaN makes the row NaN") {
  const float nan = FromBits(kCanonicalNaN);
  for (const KernelTable& table : Tables()) {
    INFO(std::string(table.name));
    CHECK(Difference(SoftmaxOfRow({1, NAN, 2}, table).w, {nan, nan, nan}) == "");
    for (int64_t key = 0; key < 5; ++key) {
      for (int64_t channel = 0; channel < 4; ++channel) {
        ApiCase c = TrioCase({1, 1, 1, 2, 5, 4, 4});
        c.k.SetWord(key * 4 + channel, 0xFFC00000u);
        const AttentionResult got = Run(c, table);
        CHECK(Difference(got.out, F32(Constant(8, nan))) == "");
        CHECK(Difference(got.lse, {nan, nan}) == "");
      }
    }
  }
}

TEST_CASE("NUM-9: f16 values that would overflow an f16 sum") {
  for (const KernelTable& table : Tables()) {
    for (int64_t n : {8, 4096}) {
      ApiCase c;
      c.size = {1, 1, 1, 1, n, 4, 4};
      c.q = Array(DType::kF16, 4);
      c.k = Array(DType::kF16, Ramp(5, 2, 4 * n));
      c.v = Array(DType::kF16, Constant(4 * n, 60000.0f));
      for (DType out : {DType::kF32, DType::kF16}) {
        c.out_type = out;
        INFO(std::string(table.name), " keys ", n);
        CHECK(Difference(RunEveryForm(c, table).out, Array(out, Constant(4, 60000.0f))) == "");
      }
    }
  }
}

// One key: out is v, narrowed.
Array NarrowedOut(const std::vector<uint32_t>& words, DType type, const KernelTable& table) {
  ApiCase c;
  c.size.value_dim = static_cast<int64_t>(words.size());
  c.q = c.k = F32({0.0f});
  c.v = Array::FromBits(DType::kF32, words);
  c.out_type = type;
  return RunEveryForm(c, table).out;
}

TEST_CASE("NUM-10: outputs narrowed to bf16") {
  for (const KernelTable& table : Tables()) {
    INFO(std::string(table.name));
    CHECK(Difference(
              NarrowedOut(
                  {0x3E89CCD5, 0x3F808000, 0x3F818000, 0x3F808001, 0x00008000, 0x00008001, 0x00018000, 0x7F800001},
                  DType::kBF16, table),
              Array::FromBits(DType::kBF16, {0x3E8A, 0x3F80, 0x3F82, 0x3F81, 0x0000, 0x0001, 0x0002, 0x7FC0})) == "");
  }
}

TEST_CASE("NUM-11: outputs narrowed to f16") {
  for (const KernelTable& table : Tables()) {
    INFO(std::string(table.name));
    CHECK(Difference(NarrowedOut({0x33000000, 0x33000001, 0x33400000, 0x337FFFFF, 0x33800000, 0xB3000001, 0xB3400000,
                                  0x387FC000, 0x387FE000, 0x38800000, 0x301F6DDF, 0x3649539C, 0x477FEFFF, 0x477FF000},
                                 DType::kF16, table),
                     Array::FromBits(DType::kF16, {0x0000, 0x0001, 0x0001, 0x0001, 0x0001, 0x8001, 0x8001, 0x03FF,
                                                   0x0400, 0x0400, 0x0000, 0x0032, 0x7BFF, 0x7C00})) == "");
  }
}

TEST_CASE("NUM-13: +inf makes every weight of the row NaN") {
  for (const KernelTable& table : Tables()) {
    INFO(std::string(table.name));
    CHECK(Difference(SoftmaxOfRow({2.5f, 7, HUGE_VALF, -1, 0.5f}, table).w, Constant(5, FromBits(kCanonicalNaN))) ==
          "");
  }
}

TEST_CASE("MSK-4: a NaN that is not seen has no influence, one that is seen has") {
  const std::vector<float> ramp = {0, 1, 2, 3, 4, 5, 6, 7};
  ApiCase plain = OneHead(PlainCase(F32(ramp), F32(ramp), F32(ramp), 4, 4, ScaleOf(4)));
  const auto poison = [](ApiCase c) {
    c.k.SetWord(4, 0x7FC00000u);
    c.v.SetWord(4, 0x7FC00000u);
    c.v.SetWord(5, 0x7F800000u);
    c.v.SetWord(6, 0xFF800000u);
    c.v.SetWord(7, 0x7FC00000u);
    return c;
  };
  for (const KernelTable& table : Tables()) {
    INFO(std::string(table.name));
    ApiCase shorter = plain;
    shorter.kv_lens = {1};
    const AttentionResult before = RunEveryForm(shorter, table);
    CHECK(Difference(before.out, F32({0, 1, 2, 3, 0, 1, 2, 3})) == "");
    CHECK(Difference(RunEveryForm(poison(shorter), table), before) == "");
    const ApiCase causal = Seen(plain, 0, -1, 0), window = Seen(plain, 0, 0, 0);
    for (const ApiCase& c : {causal, window}) {
      const AttentionResult clean = RunEveryForm(c, table), got = RunEveryForm(poison(c), table);
      CHECK(Difference(Slice(got.out, 0, 4), Slice(clean.out, 0, 4)) == "");
      CHECK(Bits(got.lse[0]) == Bits(clean.lse[0]));
      CHECK(Difference(Slice(got.out, 4, 4), F32(Constant(4, FromBits(kCanonicalNaN)))) == "");
      CHECK(std::isnan(got.lse[1]));
    }
  }
}

TEST_CASE("MSK-5: causal masks align top-left or bottom-right") {
  for (const KernelTable& table : Tables()) {
    INFO(std::string(table.name));
    CHECK(Difference(RunEveryForm(Seen(Mean(2, 5), 0, -1, 0), table).out, F32({0, 0.5f})) == "");
    CHECK(Difference(RunEveryForm(Seen(Mean(2, 5), 3, -1, 0), table).out, F32({1.5f, 2})) == "");
    const ApiCase trio = TrioCase({1, 1, 1, 2, 5, 4, 4});
    AttentionResult got = RunEveryForm(Seen(trio, 0, -1, 0), table);
    CHECK(Near(got.out, {-0.84375, -0.625, -0.40625, -0.1875, -0.5109888, -0.2922388, -0.0734888, 0.1452612}, 2e-6) ==
          "");
    CHECK(Near(got.lse, {1.0175781, 1.0156268}, 1e-5) == "");
    got = RunEveryForm(Seen(trio, 3, -1, 0), table);
    CHECK(Near(got.out, {-0.3213384, -0.2115327, 0.0072173, 0.2259673, -0.0383468, -0.3455906, -0.1268406, 0.0919094},
               2e-6) == "");
    CHECK(Near(got.lse, {1.9655715, 1.8301489}, 1e-5) == "");
  }
}

TEST_CASE("MSK-6: a window counts the current token once, in prefill and in decode") {
  const float expected[] = {0, 0.5f, 1, 2, 3, 4};
  for (const KernelTable& table : Tables()) {
    INFO(std::string(table.name));
    CHECK(Difference(RunEveryForm(Seen(Mean(6, 6), 0, 2, 0), table).out, F32({expected, expected + 6})) == "");
    for (int64_t step = 0; step < 6; ++step) {
      const ApiCase decode = Seen(Mean(1, step + 1), step, 2, 0);
      CHECK(Difference(RunEveryForm(decode, table).out, F32({expected[step]})) == "");
    }
  }
}

TEST_CASE("MSK-9: a window without causal") {
  for (const KernelTable& table : Tables()) {
    INFO(std::string(table.name));
    CHECK(Difference(RunEveryForm(Seen(Mean(8, 8), 0, 0, 0), table).out, F32({0, 1, 2, 3, 4, 5, 6, 7})) == "");
    CHECK(Difference(RunEveryForm(Seen(Mean(8, 8), 0, 2, 0), table).out, F32({0, 0.5f, 1, 2, 3, 4, 5, 6})) == "");
  }
}

TEST_CASE("MSK-10: rows past the length are not felt") {
  for (const KernelTable& table : Tables()) {
    for (float rest : {1e9f, NAN}) {
      ApiCase c = Mean(1, 8);
      for (int64_t j = 5; j < 8; ++j) {
        c.k.SetWord(j, Bits(rest));
        c.v.SetWord(j, Bits(rest));
      }
      c.kv_lens = {5};
      INFO(std::string(table.name), " rest ", rest);
      const AttentionResult got = RunEveryForm(c, table);
      CHECK(Difference(got.out, F32({2})) == "");
      CHECK(Near(got.lse, {std::log(5.0)}, 1e-5) == "");
    }
  }
}

}  // namespace
}  // namespace etalon::test
