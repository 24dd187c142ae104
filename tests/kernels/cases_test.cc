// The field cases: problems that users of other libraries have reported, as requirements for every table. Names begin
// with the id.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "lib/attention/mask.h"
#include "lib/base/parallel.h"
#include "tests/kernels/kernel_test.h"
#include "tests/support/reference.h"
#include "tests/support/targets.h"
#include "tests/support/tolerance.h"

namespace etalon::test {
namespace {

constexpr DType kTypes[] = {DType::kF32, DType::kF16, DType::kBF16};
constexpr float kNone = -HUGE_VALF;

std::vector<float> Constant(int64_t n, float x) { return std::vector<float>(static_cast<size_t>(n), x); }

std::string Near(const Array& got, const std::vector<double>& expected, double allowed) {
  return NearReport(TrueValues(got), expected, allowed);
}
std::string Near(const std::vector<float>& got, const std::vector<double>& expected, double allowed) {
  return NearReport(TrueValues(got), expected, allowed);
}

// Within the default tolerance of f64.
std::string Report(const AttentionCase& c, const AttentionResult& got) {
  const TrueAttention exact = AttentionInF64(c);
  const std::string out = OutReport(got, exact);
  return out.empty() ? LseReport(got.lse, exact.lse) : out;
}

// One head of the ramps: Q = R(3,1), K = R(5,2), V = R(7,3).
AttentionCase Trio(int64_t q_len, int64_t kv_len, int64_t head_dim, int64_t value_dim) {
  return PlainCase(F32(Ramp(3, 1, q_len * head_dim)), F32(Ramp(5, 2, kv_len * head_dim)),
                   F32(Ramp(7, 3, kv_len * value_dim)), head_dim, value_dim, ScaleOf(head_dim));
}

void SetGeometry(AttentionCase* c, const Geometry& geometry) {
  SourceData& s = c->sources[0];
  s.spans.clear();
  for (int64_t r = 0; r < c->rows; ++r) s.spans.push_back(VisibleSpan(geometry, r, s.base, s.base + s.num_keys));
}

SoftmaxCase Row(const std::vector<float>& s) { return {1, static_cast<int64_t>(s.size()), s, {}, {}}; }

TEST_CASE("NUM-1: large equal values stay finite") {
  for (const KernelTable& table : Tables()) {
    for (DType type : {DType::kF32, DType::kBF16}) {
      for (int64_t n : {1, 33}) {
        AttentionCase c = PlainCase(Array(type, Constant(64, 133120.0f)), Array(type, Constant(64 * n, 133120.0f)),
                                    Array(type, Constant(64 * n, 133120.0f)), 64, 64, ScaleOf(64));
        c.out_type = type;
        INFO(std::string(table.name), " type ", static_cast<int>(type), " keys ", n);
        const AttentionResult got = RunAttend(table, c);
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
    for (int64_t rows : {1, 3}) {           // decode, prefill
      for (int64_t base : {0, 126, 511}) {  // chunks and blocks that end inside, as pages do
        INFO(std::string(table.name), " rows ", rows, " base ", base);
        AttentionCase a =
            PlainCase(F32(Constant(rows, 1.0f)), F32({-245000.0f, -240000.0f}), F32({1.0f, 2.0f}), 1, 1, 1.0f);
        a.sources[0].base = base;
        for (const AttentionResult& got : {RunAttend(table, a), RunFold(table, a, RunBlockStates(table, a))}) {
          CHECK(Difference(got.out, F32(Constant(rows, 2.0f))) == "");
          CHECK(Difference(got.lse, Constant(rows, -240000.0f)) == "");
        }
        AttentionCase b = PlainCase(F32(Constant(rows, 1.0f)), F32(Constant(4, -60000.0f)),
                                    F32({0.0f, 1.0f, 2.0f, 3.0f}), 1, 1, 1.0f);
        b.sources[0].base = base;
        for (const AttentionResult& got : {RunAttend(table, b), RunFold(table, b, RunBlockStates(table, b))}) {
          CHECK(Difference(got.out, F32(Constant(rows, 1.5f))) == "");
          CHECK(Near(got.lse, std::vector<double>(static_cast<size_t>(rows), -59998.614), 0.005) == "");
        }
      }
    }
  }
}

TEST_CASE("NUM-3: f16 products are summed in f32") {
  for (const KernelTable& table : Tables()) {
    for (int64_t head_dim : {8, 31, 32, 33, 64}) {
      std::vector<float> x = Constant(head_dim, 0.0f);
      x[0] = 256.0f;
      const AttentionCase c =
          PlainCase(Array(DType::kF16, x), Array(DType::kF16, x), Array(DType::kF16, 1), head_dim, 1, 1.0f);
      INFO(std::string(table.name), " head_dim ", head_dim);
      CHECK(Difference(RunScores(table, c), {65536.0f}) == "");
    }
  }
}

TEST_CASE("NUM-4: a short dot product is exact in every type") {
  for (const KernelTable& table : Tables()) {
    for (DType type : kTypes) {
      const AttentionCase c =
          PlainCase(Array(type, {1, 2, 3, 1, 2}), Array(type, {4, 5, 6, 4, 5}), Array(type, 1), 5, 1, 1.0f);
      INFO(std::string(table.name), " type ", static_cast<int>(type));
      CHECK(Difference(RunScores(table, c), {46.0f}) == "");
    }
  }
}

TEST_CASE("NUM-5: the far tail of exp in softmax") {
  const double expected[] = {9.982351e-39, 5.478430e-39, 3.672302e-39, 1.4e-45};
  for (const KernelTable& table : Tables()) {
    INFO(std::string(table.name));
    const std::vector<float> w = RunSoftmax(table, Row({0, -87, -87.5f, -88.1f, -88.5f, -103, -104, -1000, kNone})).w;
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
    for (size_t n = 1; n <= row.size(); ++n) {
      const SoftmaxCase c = Row({row.begin(), row.begin() + static_cast<int64_t>(n)});
      const SoftmaxResult got = RunSoftmax(table, c);
      INFO(std::string(table.name), " length ", n);
      CHECK(Near(got.w, SoftmaxInF64(c).w, 1e-6) == "");
      double sum = 0;
      for (float w : got.w) sum += static_cast<double>(w);
      CHECK(std::fabs(sum - 1.0) <= 1e-6);
      if (n == 6)
        CHECK(Near(got.w, {0.61010081, 0.24520245, 0.07095275, 0.03890972, 0.01934056, 0.01549371}, 1e-6) == "");
    }
  }
}

TEST_CASE("NUM-7: 4096 equal scores") {
  for (const KernelTable& table : Tables()) {
    INFO(std::string(table.name));
    const SoftmaxResult got = RunSoftmax(table, Row(Constant(4096, 0.0f)));
    CHECK(Difference(got.w, Constant(4096, 0x1p-12f)) == "");
    CHECK(Difference(Array(DType::kF16, got.w), Array(DType::kF16, Constant(4096, 0x1p-12f))) == "");
    AttentionCase c = PlainCase(Array(DType::kF16, 8), Array(DType::kF16, Ramp(5, 2, 8 * 4096)),
                                Array(DType::kF16, Constant(8 * 4096, 1.0f)), 8, 8, ScaleOf(8));
    c.out_type = DType::kF16;
    CHECK(Difference(RunAttend(table, c).out, Array(DType::kF16, Constant(8, 1.0f))) == "");
  }
}

TEST_CASE("NUM-8: a visible NaN makes the row NaN") {
  for (const KernelTable& table : Tables()) {
    INFO(std::string(table.name));
    const float nan = FromBits(kCanonicalNaN);
    CHECK(Difference(RunSoftmax(table, Row({1, NAN, 2})).w, {nan, nan, nan}) == "");
    for (int64_t key = 0; key < 5; ++key) {
      for (int64_t channel = 0; channel < 4; ++channel) {
        AttentionCase c = Trio(2, 5, 4, 4);
        c.sources[0].k.SetWord(key * 4 + channel, 0xFFC00000u);
        const AttentionResult got = RunAttend(table, c);
        CHECK(Difference(got.out, F32(Constant(8, nan))) == "");
        CHECK(Difference(got.lse, {nan, nan}) == "");
      }
    }
  }
}

TEST_CASE("NUM-9: f16 values that would overflow an f16 sum") {
  for (const KernelTable& table : Tables()) {
    for (int64_t n : {8, 4096}) {
      AttentionCase c = PlainCase(Array(DType::kF16, 4), Array(DType::kF16, Ramp(5, 2, 4 * n)),
                                  Array(DType::kF16, Constant(4 * n, 60000.0f)), 4, 4, 0.5f);
      for (DType out : {DType::kF32, DType::kF16}) {
        c.out_type = out;
        INFO(std::string(table.name), " keys ", n);
        CHECK(Difference(RunAttend(table, c).out, Array(out, Constant(4, 60000.0f))) == "");
      }
    }
  }
}

TEST_CASE("NUM-12: softcap of large scores") {
  AttentionCase c =
      PlainCase(F32({1.0f}), F32({1, 100, 1000, 4400, 5000, 10000, -10000}), F32(Constant(7, 0.0f)), 1, 1, 1.0f);
  c.softcap = 50.0f;
  for (const KernelTable& table : Tables()) {
    INFO(std::string(table.name));
    CHECK(Near(RunScores(table, c), {0.99986669, 48.201379, 50, 50, 50, 50, -50}, 1e-4) == "");
  }
}

TEST_CASE("NUM-13: +inf makes every weight of the row NaN") {
  for (const KernelTable& table : Tables()) {
    INFO(std::string(table.name));
    CHECK(Difference(RunSoftmax(table, Row({2.5f, 7, HUGE_VALF, -1, 0.5f})).w, Constant(5, FromBits(kCanonicalNaN))) ==
          "");
  }
}

TEST_CASE("MSK-1: a bool mask with an empty row") {
  AttentionCase c =
      PlainCase(F32(Constant(6 * 8, 0.0f)), F32(Ramp(5, 2, 10 * 8)), F32({0, 1, 2, 3, 4, 5, 6, 7, 8, 9}), 8, 1, 0.125f);
  for (int64_t i = 0; i < 6; ++i) {
    for (int64_t j = 0; j < 10; ++j) c.sources[0].mask.push_back(i < 5 && j <= i ? 1 : 0);
  }
  for (const KernelTable& table : Tables()) {
    INFO(std::string(table.name));
    const AttentionResult got = RunAttend(table, c);
    CHECK(Report(c, got) == "");
    CHECK(Difference(got.out, F32({0, 0.5f, 1, 1.5f, 2, 0})) == "");
    CHECK(got.lse[5] == kNone);
    const std::vector<float> s = RunScores(table, c);
    const SoftmaxResult w = RunSoftmax(table, {6, 10, s, {}, {}});
    CHECK(Difference(std::vector<float>(w.w.end() - 10, w.w.end()), Constant(10, 0.0f)) == "");
    CHECK(w.lse[5] == kNone);
  }
}

TEST_CASE("MSK-2: the lowest finite bias is a bias, not a mask") {
  AttentionCase c = Trio(3, 3, 4, 4);
  std::vector<float> bias = Constant(9, 0.0f);
  for (size_t j = 0; j < 3; ++j) bias[j] = -3.4028235e38f;
  c.sources[0].bias = F32(bias);
  for (const KernelTable& table : Tables()) {
    INFO(std::string(table.name));
    const AttentionResult got = RunAttend(table, c);
    CHECK(Near(Slice(got.out, 0, 4), {0.03125, -0.3854167, -0.1666667, 0.0520833}, 1e-6) == "");
    CHECK(Report(c, got) == "");
  }
}

TEST_CASE("MSK-3: a band of -inf in the additive mask") {
  AttentionCase c = PlainCase(F32(Constant(640 * 4, 1.0f)), F32(Constant(640 * 4, 1.0f)), F32(Constant(640 * 4, 1.0f)),
                              4, 4, ScaleOf(4));
  std::vector<float> bias;
  std::vector<double> lse;
  for (int64_t i = 0; i < 640; ++i) {
    for (int64_t j = 0; j < 640; ++j) bias.push_back(i - 9 <= j && j <= i ? 0.0f : kNone);
    lse.push_back(2.0 + std::log(std::fmin(static_cast<double>(i + 1), 10.0)));
  }
  c.sources[0].bias = F32(bias);
  for (const KernelTable& table : Tables()) {
    INFO(std::string(table.name));
    const AttentionResult got = RunAttend(table, c);
    CHECK(Difference(got.out, F32(Constant(640 * 4, 1.0f))) == "");
    CHECK(LseReport(got.lse, lse) == "");
  }
}

TEST_CASE("MSK-4: a masked NaN has no influence, a visible one has") {
  const std::vector<float> ramp = {0, 1, 2, 3, 4, 5, 6, 7};
  const Array expected = F32({0, 1, 2, 3, 0, 1, 2, 3});
  const auto poison = [](AttentionCase c) {
    c.sources[0].k.SetWord(4, 0x7FC00000u);
    c.sources[0].v.SetWord(4, 0x7FC00000u);
    c.sources[0].v.SetWord(5, 0x7F800000u);
    c.sources[0].v.SetWord(6, 0xFF800000u);
    c.sources[0].v.SetWord(7, 0x7FC00000u);
    return c;
  };
  for (const KernelTable& table : Tables()) {
    INFO(std::string(table.name));
    const AttentionCase plain = PlainCase(F32(ramp), F32(ramp), F32(ramp), 4, 4, ScaleOf(4));
    AttentionCase masked = plain, shorter = plain, geometry = plain;
    masked.sources[0].mask = {1, 0, 1, 0};
    shorter.sources[0].spans = {{0, 1}, {0, 1}};
    for (const AttentionCase& c : {masked, shorter}) {
      const AttentionResult before = RunAttend(table, c), after = RunAttend(table, poison(c));
      CHECK(Difference(before.out, expected) == "");
      CHECK(Difference(after, before) == "");
    }
    SetGeometry(&geometry, {0, 0, 0});
    const AttentionResult before = RunAttend(table, geometry), after = RunAttend(table, poison(geometry));
    CHECK(Difference(Slice(after.out, 0, 4), Slice(before.out, 0, 4)) == "");
    CHECK(Bits(after.lse[0]) == Bits(before.lse[0]));
    CHECK(Difference(Slice(after.out, 4, 4), F32(Constant(4, FromBits(kCanonicalNaN)))) == "");
    CHECK(std::isnan(after.lse[1]));
  }
}

TEST_CASE("MSK-5: causal masks align top-left or bottom-right") {
  for (const KernelTable& table : Tables()) {
    INFO(std::string(table.name));
    AttentionCase a = MeanCase(2, 5), b = Trio(2, 5, 4, 4);
    SetGeometry(&a, {0, -1, 0});
    CHECK(Difference(RunAttend(table, a).out, F32({0, 0.5f})) == "");
    SetGeometry(&a, {3, -1, 0});
    CHECK(Difference(RunAttend(table, a).out, F32({1.5f, 2})) == "");
    SetGeometry(&b, {0, -1, 0});
    AttentionResult got = RunAttend(table, b);
    CHECK(Near(got.out, {-0.84375, -0.625, -0.40625, -0.1875, -0.5109888, -0.2922388, -0.0734888, 0.1452612}, 2e-6) ==
          "");
    CHECK(Near(got.lse, {1.0175781, 1.0156268}, 1e-5) == "");
    CHECK(Report(b, got) == "");
    SetGeometry(&b, {3, -1, 0});
    got = RunAttend(table, b);
    CHECK(Near(got.out, {-0.3213384, -0.2115327, 0.0072173, 0.2259673, -0.0383468, -0.3455906, -0.1268406, 0.0919094},
               2e-6) == "");
    CHECK(Near(got.lse, {1.9655715, 1.8301489}, 1e-5) == "");
    CHECK(Report(b, got) == "");
  }
}

TEST_CASE("MSK-6: a window counts the current token once, in prefill and in decode") {
  const float expected[] = {0, 0.5f, 1, 2, 3, 4};
  for (const KernelTable& table : Tables()) {
    INFO(std::string(table.name));
    AttentionCase prefill = MeanCase(6, 6);
    SetGeometry(&prefill, {0, 2, 0});
    CHECK(Difference(RunAttend(table, prefill).out, F32({expected, expected + 6})) == "");
    for (int64_t step = 0; step < 6; ++step) {
      AttentionCase decode = MeanCase(1, step + 1);
      SetGeometry(&decode, {step, 2, 0});
      CHECK(Difference(RunAttend(table, decode).out, F32({expected[step]})) == "");
    }
  }
}

TEST_CASE("MSK-7: causal and padding masks combine by and") {
  AttentionCase c = MeanCase(3, 3);
  SetGeometry(&c, {0, -1, 0});
  c.sources[0].mask = {0, 1, 1, 0, 1, 1, 0, 1, 1};
  for (const KernelTable& table : Tables()) {
    INFO(std::string(table.name));
    const AttentionResult got = RunAttend(table, c);
    CHECK(Difference(got.out, F32({0, 1, 1.5f})) == "");
    CHECK(Near(got.lse, {-HUGE_VAL, 0, std::log(2.0)}, 1e-5) == "");
  }
}

TEST_CASE("MSK-8: softcap comes before the bias") {
  AttentionCase c = PlainCase(F32({1.0f}), F32({1, 3}), F32({0, 1}), 1, 1, 1.0f);
  c.softcap = 2.0f;
  c.sources[0].bias = F32({0, -1});
  for (const KernelTable& table : Tables()) {
    INFO(std::string(table.name));
    const SoftmaxResult w = RunSoftmax(table, Row(RunScores(table, c)));
    CHECK(Near(w.w, {0.5284537, 0.4715463}, 1e-6) == "");
    CHECK(Near(w.lse, {1.5620344}, 1e-5) == "");
    const AttentionResult got = RunAttend(table, c);
    CHECK(Near(got.out, {0.4715463}, 3e-6) == "");
    CHECK(Near(got.lse, {1.5620344}, 1e-5) == "");
  }
}

TEST_CASE("MSK-9: a window without causal") {
  for (const KernelTable& table : Tables()) {
    INFO(std::string(table.name));
    AttentionCase c = MeanCase(8, 8);
    SetGeometry(&c, {0, 0, 0});
    CHECK(Difference(RunAttend(table, c).out, F32({0, 1, 2, 3, 4, 5, 6, 7})) == "");
    SetGeometry(&c, {0, 2, 0});
    CHECK(Difference(RunAttend(table, c).out, F32({0, 0.5f, 1, 2, 3, 4, 5, 6})) == "");
  }
}

TEST_CASE("MSK-10: rows past the length are not felt") {
  for (const KernelTable& table : Tables()) {
    for (float rest : {1e9f, NAN}) {
      AttentionCase c = MeanCase(1, 8);
      for (int64_t j = 5; j < 8; ++j) {
        c.sources[0].k.SetWord(j, Bits(rest));
        c.sources[0].v.SetWord(j, Bits(rest));
      }
      AttentionCase by_span = c;
      by_span.sources[0].spans = {{0, 5}};
      c.sources[0].num_keys = 5;  // the buffer keeps its eight rows
      for (const AttentionCase& one : {by_span, c}) {
        INFO(std::string(table.name), " rest ", rest);
        const AttentionResult got = RunAttend(table, one);
        CHECK(Difference(got.out, F32({2})) == "");
        CHECK(Near(got.lse, {std::log(5.0)}, 1e-5) == "");
      }
    }
  }
}

TEST_CASE("MSK-11: sinks take weight and belong to lse") {
  const float sinks[] = {0.0f, static_cast<float>(std::log(4.0))};
  const double out[] = {0.8, 0.5}, lse[] = {std::log(5.0), std::log(8.0)};
  for (const KernelTable& table : Tables()) {
    for (size_t head = 0; head < 2; ++head) {
      AttentionCase c = PlainCase(F32(Constant(3, 0.0f)), F32(Constant(4, 0.0f)), F32(Constant(4, 1.0f)), 1, 1, 1.0f);
      c.sinks = Constant(3, sinks[head]);
      INFO(std::string(table.name), " head ", head);
      const AttentionResult got = RunAttend(table, c);
      CHECK(Near(got.out, std::vector<double>(3, out[head]), (1 + std::log(4.0)) * 1e-6) == "");
      CHECK(Near(got.lse, std::vector<double>(3, lse[head]), 1e-5) == "");
    }
  }
}

TEST_CASE("MSK-12: ALiBi slopes of eight heads") {
  const double expected[] = {2.0845765, 1.8070952, 1.6555624, 1.5780387, 1.5390517, 1.5195299, 1.5097655, 1.5048828};
  for (const KernelTable& table : Tables()) {
    AttentionCase c = MeanCase(8, 4);  // a row for each head
    for (int h = 1; h <= 8; ++h) c.slopes.push_back(std::ldexp(1.0f, -h));
    c.q_pos.assign(8, 3);
    INFO(std::string(table.name));
    const AttentionResult got = RunAttend(table, c);
    CHECK(Near(got.out, {expected, expected + 8}, (1 + 1.5) * 1e-6 * 3) == "");
    CHECK(Report(c, got) == "");
  }
}

TEST_CASE("API-1: causal and a mask that forbids key 1 combine by and") {
  AttentionCase c = MeanCase(4, 4);
  SetGeometry(&c, {0, -1, 0});
  for (int r = 0; r < 4; ++r) c.sources[0].mask.insert(c.sources[0].mask.end(), {1, 0, 1, 1});
  for (const KernelTable& table : Tables()) {
    INFO(std::string(table.name));
    CHECK(Near(RunAttend(table, c).out, {0, 0, 1, 1.6666667}, 3e-6) == "");
  }
}

TEST_CASE("SHP-6: value_dim differs from head_dim") {
  for (const KernelTable& table : Tables()) {
    INFO(std::string(table.name));
    const AttentionCase c = Trio(2, 5, 8, 16);
    const AttentionResult got = RunAttend(table, c);
    CHECK(Near(Slice(got.out, 0, 4), {-0.1001790, -0.1064417, 0.1123083, 0.1014943}, 1e-6) == "");
    CHECK(Near(Slice(got.out, 28, 4), {-0.0409951, -0.2087057, -0.3020513, -0.0833013}, 1e-6) == "");
    CHECK(Near(got.lse, {1.8998835, 1.6234847}, 1e-6) == "");
    for (int64_t value_dim : {1, 3, 8, 33}) {
      const AttentionCase other = Trio(2, 5, 8, value_dim);
      INFO("value_dim ", value_dim);
      CHECK(Report(other, RunAttend(table, other)) == "");
    }
  }
}

TEST_CASE("SHP-7: head sizes that fill no vector") {
  const int64_t dims[] = {1, 3, 7, 17, 33, 59, 80, 127, 257};
  const double out[] = {-0.1698038, -0.0653776, -0.1096723, 0.2410640, 0.0643613,
                        -0.0744139, -0.1834004, -0.1048587, -0.2882388};
  const double lse[] = {2.4897309, 2.6425244, 2.3604227, 2.2418207, 2.1586182,
                        2.1770630, 2.2392447, 2.2365517, 2.2992084};
  for (const KernelTable& table : Tables()) {
    for (size_t i = 0; i < 9; ++i) {
      const AttentionCase c = Trio(1, 9, dims[i], dims[i]);
      const AttentionResult got = RunAttend(table, c);
      INFO(std::string(table.name), " head_dim ", dims[i]);
      CHECK(Near(Slice(got.out, 0, 1), {out[i]}, 2e-6) == "");
      CHECK(Near(got.lse, {lse[i]}, 2e-6) == "");
      CHECK(Report(c, got) == "");
    }
  }
}

TEST_CASE("KVC-7: merges of states, empty ones among them") {
  for (const KernelTable& table : Tables()) {
    INFO(std::string(table.name));
    const auto merge = [&](float o1, float lse1, float o2, float lse2) {
      return RunMerge(table, {1, 1, F32({o1}), F32({o2}), {lse1}, {lse2}});
    };
    CHECK(Difference(merge(0, kNone, 0, kNone), {F32({0}), {kNone}}) == "");
    CHECK(Difference(merge(1, 0, 0, kNone), {F32({1}), {0}}) == "");
    CHECK(Difference(merge(0, kNone, 1, 0), {F32({1}), {0}}) == "");
    const AttentionResult got = merge(1, 0, 3, static_cast<float>(std::log(3.0)));
    CHECK(Near(got.out, {2.5}, 1e-6) == "");
    CHECK(Near(got.lse, {std::log(4.0)}, 1e-6) == "");
    const AttentionCase whole = Trio(2, 133, 40, 24);
    const std::vector<double> expected = TrueValues(RunAttend(table, whole).out),
                              lse = TrueValues(RunAttend(table, whole).lse);
    for (int64_t parts = 1; parts <= 16; ++parts) {
      INFO("parts ", parts);
      AttentionResult total = {Array(DType::kF32, 2 * 24), {kNone, kNone}};
      for (int64_t part = 0; part < parts; ++part) {
        const Range range = PartOfRange(133, part, parts);
        AttentionCase c = whole;
        c.sources = {
            SliceSource(whole, whole.sources[0], range.first, part % 4 == 3 ? range.first : range.last, false)};
        AttentionResult piece = RunAttend(table, c);  // every fourth is empty, and what it missed is a part of its own
        total = RunMerge(table, {2, 24, total.out, piece.out, total.lse, piece.lse});
        if (part % 4 != 3) continue;
        c.sources = {SliceSource(whole, whole.sources[0], range.first, range.last, false)};
        piece = RunAttend(table, c);
        total = RunMerge(table, {2, 24, total.out, piece.out, total.lse, piece.lse});
      }
      CHECK(Near(total.out, expected, 2e-6) == "");
      CHECK(Near(total.lse, lse, 2e-6) == "");
    }
  }
}

TEST_CASE("KVC-8: prefill in chunks of queries equals prefill at once") {
  AttentionCase whole = Trio(80, 80, 16, 16);
  SetGeometry(&whole, {0, -1, 0});
  for (const KernelTable& table : Tables()) {
    const AttentionResult expected = RunAttend(table, whole);
    CHECK(Report(whole, expected) == "");
    for (int64_t cut : {80, 33, 64, 1}) {
      INFO(std::string(table.name), " cut ", cut);
      const int64_t step = cut == 1 ? 1 : 80;
      for (int64_t first = 0, last = cut; first < 80; first = last, last = std::min<int64_t>(80, last + step)) {
        AttentionCase c = Trio(80, 80, 16, 16);
        c.sources = {SliceSource(c, c.sources[0], 0, last, true)};  // the cache as it is by then
        c = SliceRows(c, first, last);
        SetGeometry(&c, {first, -1, 0});
        const AttentionResult got = RunAttend(table, c);
        CHECK(Difference(got.out, Slice(expected.out, first * 16, (last - first) * 16)) == "");
        CHECK(Difference(got.lse, {expected.lse.begin() + first, expected.lse.begin() + last}) == "");
      }
    }
  }
}

TEST_CASE("KVC-10: lengths around a page of 16") {
  for (const KernelTable& table : Tables()) {
    for (int64_t n : {1, 15, 16, 17, 31, 33, 255, 256, 257}) {
      AttentionCase c = MeanCase(1, (n + 15) / 16 * 16);
      for (int64_t j = n; j < c.sources[0].num_keys; ++j) c.sources[0].v.SetWord(j, Bits(1e9f));
      c.sources[0].spans = {{0, n}};
      INFO(std::string(table.name), " keys ", n);
      const AttentionResult got = RunAttend(table, c);
      CHECK(Near(got.out, {static_cast<double>(n - 1) / 2}, 1e-6 * static_cast<double>(n)) == "");
      CHECK(Near(got.lse, {std::log(static_cast<double>(n))}, 1e-5) == "");
      if (n == 257) CHECK(Near(got.lse, {5.5490761}, 1e-5) == "");
    }
  }
}

}  // namespace
}  // namespace etalon::test
