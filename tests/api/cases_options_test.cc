// The field cases of softcap, ALiBi, bias, masks and sinks, through every form of the public interface. Names begin
// with the id.
#include <cmath>
#include <string>

#include "tests/api/options_call.h"
#include "tests/api/primitive_calls.h"
#include "tests/support/reference.h"

namespace etalon::test {
namespace {

constexpr float kNone = -HUGE_VALF;
constexpr MaskKind kDenseForms[] = {MaskKind::kBool, MaskKind::kBits, MaskKind::kPreparedBool, MaskKind::kPreparedBits};

std::vector<float> Constant(int64_t n, float x) { return std::vector<float>(static_cast<size_t>(n), x); }

// q = 0, v[j] = j in each head: every output is the mean of the keys that are seen.
OptionsCase Mean(int64_t heads, int64_t q_len, int64_t kv_len, int64_t head_dim = 1) {
  ApiCase c;
  c.size = {1, heads, heads, q_len, kv_len, head_dim, 1};
  c.q = Array(DType::kF32, heads * q_len * head_dim);
  c.k = F32(Ramp(5, 2, heads * kv_len * head_dim));
  std::vector<float> v;
  for (int64_t i = 0; i < heads * kv_len; ++i) v.push_back(static_cast<float>(i % kv_len));
  c.v = F32(v);
  return FromCase(c);
}

OptionsCase WithMask(OptionsCase c, const Shape& shape, const std::vector<uint8_t>& shows) {
  c.sources[0].mask.form = MaskKind::kBool;
  c.sources[0].mask.shape = shape;
  c.sources[0].mask.shows = shows;
  return c;
}

OptionsCase WithBias(OptionsCase c, const Shape& shape, const std::vector<float>& bias) {
  c.sources[0].bias = {F32(bias), shape};
  return c;
}

// One query that is 1 against scores that are the keys.
OptionsCase OfScores(const std::vector<float>& scores, const std::vector<float>& v, int64_t value_dim) {
  return FromCase(OneHead(PlainCase(F32({1.0f}), F32(scores), F32(v), 1, value_dim, 1.0f)));
}

TEST_CASE("NUM-12: softcap, of scores far beyond the cap too") {
  const std::vector<float> scores = {1, 100, 1000, 4400, 5000, 10000, -10000};
  const std::vector<double> expected = {0.99986669, 48.201379, 50, 50, 50, 50, -50};
  for (const KernelTable& table : Tables()) {
    OptionsCase c = OfScores(scores, scores, 1);
    c.softcap = 50.0f;
    INFO(std::string(table.name));
    CHECK(Near(CallScores(c, table), expected, 1e-4) == "");
    double sum = 0;
    for (double s : expected) sum += std::exp(s - 50);
    CHECK(Near(RunEveryForm(c, table).lse, {50 + std::log(sum)}, 1e-4) == "");
  }
}

TEST_CASE("MSK-1: a bool mask, with a row that sees nothing") {
  std::vector<uint8_t> shows;
  for (int64_t i = 0; i < 6; ++i) {
    for (int64_t j = 0; j < 10; ++j) shows.push_back(i < 5 && j <= i ? 1 : 0);
  }
  OptionsCase plain = Mean(2, 6, 10, 8);
  plain.scale = 0.125f;
  const std::vector<float> rows = {0, 0.5f, 1, 1.5f, 2, 0, 0, 0.5f, 1, 1.5f, 2, 0};
  for (const KernelTable& table : Tables()) {
    for (MaskKind form : kDenseForms) {
      const OptionsCase c = WithForm(WithMask(plain, {1, 1, 6, 10}, shows), form);
      INFO(std::string(table.name), " form ", static_cast<int>(form));
      const AttentionResult got = RunEveryForm(c, table);
      CHECK(Difference(got.out, F32(rows)) == "");
      CHECK(got.lse[5] == kNone);
      CHECK(got.lse[11] == kNone);
      CHECK(Near({got.lse[4]}, {std::log(5.0)}, 1e-5) == "");
    }
    ApiCase softmax;
    softmax.size = {1, 2, 2, 6, 10, 1, 1};
    softmax.mask_shape = {1, 1, 6, 10};
    softmax.mask = shows;
    const SoftmaxResult got = CallSoftmax(softmax, Array(DType::kF32, 120), table);
    CHECK(Difference(std::vector<float>(got.w.begin() + 50, got.w.begin() + 60), Constant(10, 0.0f)) == "");
    CHECK(Difference(std::vector<float>(got.w.begin(), got.w.begin() + 3), {1, 0, 0}) == "");
    CHECK(got.lse[5] == kNone);
  }
}

TEST_CASE("MSK-2: a finite bias, however low, is no mask") {
  const float lowest = -3.4028235e38f;
  for (const KernelTable& table : Tables()) {
    OptionsCase c = FromCase(TrioCase({1, 1, 1, 3, 3, 4, 4}));
    c = WithBias(c, {1, 1, 3, 3}, {lowest, lowest, lowest, 0, 0, 0, 0, 0, 0});
    const AttentionResult got = RunEveryForm(c, table);
    INFO(std::string(table.name));
    CHECK(Near(Slice(got.out, 0, 4), {0.03125, -0.3854167, -0.1666667, 0.0520833}, 1e-6) == "");
    for (int64_t i = 0; i < got.out.size(); ++i) CHECK(std::isfinite(got.out[i]));
  }
}

TEST_CASE("MSK-3: a band of an additive mask of -inf") {
  const int64_t n = 640;
  std::vector<float> bias;
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t j = 0; j < n; ++j) bias.push_back(j <= i && j >= i - 9 ? 0.0f : kNone);
  }
  for (const KernelTable& table : Tables()) {
    ApiCase plain;
    plain.size = {1, 1, 1, n, n, 4, 4};
    plain.q = plain.k = plain.v = F32(Constant(4 * n, 1.0f));
    const AttentionResult got = Run(WithBias(FromCase(plain), {1, 1, n, n}, bias), table);
    INFO(std::string(table.name));
    CHECK(Difference(got.out, F32(Constant(4 * n, 1.0f))) == "");
    std::vector<double> lse;
    for (int64_t i = 0; i < n; ++i) lse.push_back(2 + std::log(static_cast<double>(i < 9 ? i + 1 : 10)));
    CHECK(Near(got.lse, lse, 1e-5) == "");
  }
}

TEST_CASE("MSK-4: a NaN that a bool mask hides has no influence") {
  const std::vector<float> ramp = {0, 1, 2, 3, 4, 5, 6, 7};
  const OptionsCase plain = WithMask(FromCase(OneHead(PlainCase(F32(ramp), F32(ramp), F32(ramp), 4, 4, ScaleOf(4)))),
                                     {1, 1, 2, 2}, {1, 0, 1, 0});
  OptionsCase poisoned = plain;
  poisoned.sources[0].k.SetWord(4, 0x7FC00000u);
  const uint32_t words[] = {0x7FC00000u, 0x7F800000u, 0xFF800000u, 0x7FC00000u};
  for (int64_t i = 0; i < 4; ++i) poisoned.sources[0].v.SetWord(4 + i, words[i]);
  for (const KernelTable& table : Tables()) {
    for (MaskKind form : kDenseForms) {
      INFO(std::string(table.name), " form ", static_cast<int>(form));
      const AttentionResult before = RunEveryForm(WithForm(plain, form), table);
      CHECK(Difference(before.out, F32({0, 1, 2, 3, 0, 1, 2, 3})) == "");
      CHECK(Difference(RunEveryForm(WithForm(poisoned, form), table), before) == "");
    }
  }
}

TEST_CASE("MSK-7: causal and a padding mask hide together") {
  for (const KernelTable& table : Tables()) {
    for (MaskKind form : kDenseForms) {
      OptionsCase c = WithForm(WithMask(Mean(1, 3, 3), {1, 1, 1, 3}, {0, 1, 1}), form);
      c.sources[0].right = 0;
      INFO(std::string(table.name), " form ", static_cast<int>(form));
      const AttentionResult got = RunEveryForm(c, table);
      CHECK(Difference(got.out, F32({0, 1, 1.5f})) == "");
      CHECK(got.lse[0] == kNone);
      CHECK(Near({got.lse[1], got.lse[2]}, {0, std::log(2.0)}, 1e-5) == "");
    }
  }
}

TEST_CASE("MSK-8: the cap comes before the bias") {
  for (const KernelTable& table : Tables()) {
    OptionsCase c = WithBias(OfScores({1, 3}, {1, 0, 0, 1}, 2), {1, 1, 1, 2}, {0, -1});
    c.softcap = 2.0f;
    const AttentionResult got = RunEveryForm(c, table);
    INFO(std::string(table.name));
    CHECK(Near(got.out, {0.5284537, 0.4715463}, 1e-6) == "");
    CHECK(Near(got.lse, {1.5620344}, 1e-5) == "");
  }
}

TEST_CASE("MSK-11: sinks take weight, and belong to the logsumexp") {
  for (const KernelTable& table : Tables()) {
    OptionsCase c = Mean(2, 3, 4);
    c.sources[0].v = F32(Constant(8, 1.0f));
    c.sinks = {F32({0.0f, static_cast<float>(std::log(4.0))}), {1, 2}};
    const AttentionResult got = RunEveryForm(c, table);
    INFO(std::string(table.name));
    CHECK(Near(got.out, {0.8, 0.8, 0.8, 0.5, 0.5, 0.5}, 1e-6) == "");
    const double first = std::log(5.0), second = std::log(8.0);
    CHECK(Near(got.lse, {first, first, first, second, second, second}, 1e-5) == "");
    CHECK(Difference(CallByStates(c, table), got) == "");
  }
}

TEST_CASE("MSK-12: ALiBi with its standard slopes") {
  const std::vector<double> expected = {2.0845765, 1.8070952, 1.6555624, 1.5780387,
                                        1.5390517, 1.5195299, 1.5097655, 1.5048828};
  for (const KernelTable& table : Tables()) {
    OptionsCase c = Mean(8, 1, 4);
    c.sources[0].q_offset = 3;
    c.alibi = true;
    INFO(std::string(table.name));
    CHECK(Near(RunEveryForm(c, table).out, expected, 4e-6) == "");
    std::vector<float> slopes;
    for (int h = 1; h <= 8; ++h) slopes.push_back(std::ldexp(1.0f, -h));
    c.slopes = {F32(slopes), {1, 8}};
    CHECK(Near(RunEveryForm(c, table).out, expected, 4e-6) == "");
  }
}

TEST_CASE("SHP-5: a bias of one number a head") {
  const std::vector<float> bias = {3.5f, 0.453125f, 3.1875f, 0.97265625f, -5.46875f, 5.1875f, 2.15625f, 0.5390625f};
  for (const KernelTable& table : Tables()) {
    ApiCase plain;
    plain.size = {1, 8, 8, 1, 1, 64, 64};
    plain.q = plain.k = plain.v = F32(Ramp(3, 1, 8 * 64));
    plain.scale = 1.0f;
    const OptionsCase c = WithBias(FromCase(plain), {1, 8, 1, 1}, bias);
    INFO(std::string(table.name));
    const AttentionResult got = RunEveryForm(c, table);
    CHECK(Difference(got.out, plain.v) == "");
    OptionsCall call(c, table);
    call.sources[0].bias->WithRank(3);  // [8, 1, 1]
    REQUIRE(call.Run({}, nullptr) == ETALON_OK);
    CHECK(Difference(call.Result(), got) == "");
    std::vector<double> lse;
    for (int64_t h = 0; h < 8; ++h) {
      double dot = static_cast<double>(bias[static_cast<size_t>(h)]);
      for (int64_t i = 0; i < 64; ++i) {
        const double x = static_cast<double>(plain.q[h * 64 + i]);
        dot += x * x;
      }
      lse.push_back(dot);
    }
    CHECK(Near(got.lse, lse, 4e-5) == "");
  }
}

// Every bias and mask of OptionsCall ends at a page that nobody may touch.
TEST_CASE("MEM-1: masks and biases of sizes that are 1") {
  const OptionsCase plain = FromCase(RandomCase({2, 3, 3, 5, 70, 4, 4}, 1));
  Random random(2);
  for (const KernelTable& table : Tables()) {
    const AttentionResult expected = Run(plain, table);
    for (const Shape& shape :
         {Shape{1, 1, 5, 1}, Shape{1, 1, 1, 70}, Shape{1, 1, 1, 1}, Shape{1, 3, 1, 70}, Shape{2, 1, 5, 70}}) {
      INFO(std::string(table.name), " ", shape[0], " ", shape[1], " ", shape[2], " ", shape[3]);
      const OptionsCase biased = WithBias(plain, shape, random.Normals(Count(shape)));
      const AttentionResult got = RunEveryForm(biased, table);
      CHECK(Difference(got, Expected(biased)) == "");
      if (shape[3] == 1) CHECK(Near(got.out, TrueValues(expected.out), 0.05) == "");  // bf16 outputs are so coarse
      std::vector<uint8_t> shows;
      for (int64_t i = 0; i < Count(shape); ++i) shows.push_back(random.Below(3) == 0 ? 0 : 1);
      const OptionsCase masked = WithMask(plain, shape, shows);
      const AttentionResult seen = RunEveryForm(masked, table);
      CHECK(Difference(seen, Expected(masked)) == "");
      for (MaskKind form : kDenseForms) {
        if (shape[3] == 1 && (form == MaskKind::kBits || form == MaskKind::kPreparedBits)) continue;
        CHECK(Difference(Run(WithForm(masked, form), table), seen) == "");
      }
      for (int64_t i = 0; shape[3] == 1 && i < shape[2]; ++i) {  // a number for each row
        if (shows[static_cast<size_t>(i)] != 0) continue;
        CHECK(Difference(Slice(seen.out, i * 4, 4), Array(plain.out_type, 4)) == "");
        CHECK(seen.lse[static_cast<size_t>(i)] == kNone);
      }
    }
    // Without the leading dimensions: [q_len, 1], and then [q_len, kv_len].
    for (int64_t columns : {1, 70}) {
      OptionsCase c = WithBias(plain, {1, 1, 5, columns}, random.Normals(5 * columns));
      c = WithMask(c, {1, 1, 5, columns}, std::vector<uint8_t>(static_cast<size_t>(5 * columns), 1));
      OptionsCall call(c, table);
      call.sources[0].bias->WithRank(2);
      REQUIRE(call.Run({}, nullptr) == ETALON_OK);
      CHECK(Difference(call.Result(), Expected(c)) == "");
    }
  }
}

TEST_CASE("API-1: a causal mask and a bool mask") {
  for (const KernelTable& table : Tables()) {
    for (MaskKind form : kDenseForms) {
      OptionsCase c = WithForm(WithMask(Mean(1, 4, 4), {1, 1, 1, 4}, {1, 0, 1, 1}), form);
      c.sources[0].right = 0;
      INFO(std::string(table.name), " form ", static_cast<int>(form));
      CHECK(Near(RunEveryForm(c, table).out, {0, 0, 1, 5.0 / 3}, 1e-6) == "");
    }
  }
}

// A mask or bias whose sizes are not those of the call, nor 1.
TEST_CASE("API-4: masks of wrong sizes are refused, rows that are longer need their stride") {
  struct Sizes {
    int64_t q_len, columns, row;
    const char* field;  // null = accepted
  };
  const Sizes sizes[] = {{2, 4, 4, "shape[3]"}, {2, 5, 5, nullptr}, {2, 8, 8, "shape[3]"},
                         {2, 5, 8, nullptr},    {2, 1, 1, nullptr}, {3, 5, 5, "shape[2]"}};
  for (const KernelTable& table : Tables()) {
    for (const Sizes& size : sizes) {
      for (bool bias : {true, false}) {
        OptionsCase c = Mean(1, 2, 5);
        const int64_t elements = size.q_len * size.row;
        std::vector<float> numbers;
        std::vector<uint8_t> shows;
        for (int64_t i = 0; i < elements; ++i) {
          shows.push_back(i % size.row < 3 ? 1 : 0);
          numbers.push_back(shows.back() != 0 ? 0.0f : kNone);
        }
        OptionsCall call(c, table);
        const Shape memory_shape = {1, 1, size.q_len, size.row};
        GuardedTensor numbers_memory(F32(numbers), memory_shape);
        GuardBuffer shows_memory(shows.size(), Guard::kAbove);
        std::memcpy(shows_memory.data(), shows.data(), shows.size());
        etalon_tensor tensor = numbers_memory.tensor;
        if (!bias) {
          REQUIRE(etalon_tensor_init(&tensor, shows_memory.data(), ETALON_BOOL, 4, memory_shape.data(), nullptr) ==
                  ETALON_OK);
        }
        tensor.shape[3] = size.columns;
        (bias ? call.args.bias : call.args.mask) = &tensor;
        call.desc.options = 0;
        etalon_error error;
        const etalon_status status = call.Run({}, &error);
        INFO(std::string(table.name), " q_len ", size.q_len, " columns ", size.columns, " bias ", bias);
        if (size.field != nullptr) {
          CHECK(status == ETALON_BAD_SHAPE);
          CHECK(std::string(error.field) == std::string(bias ? "args.bias." : "args.mask.") + size.field);
          continue;
        }
        CHECK(status == ETALON_OK);
        CHECK(Difference(call.Result().out, F32(Constant(2, size.columns == 1 ? 2.0f : 1.0f))) == "");
      }
    }
  }
}

}  // namespace
}  // namespace etalon::test
