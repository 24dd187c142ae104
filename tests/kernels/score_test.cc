// Scores of every table: accuracy against f64, the order of operations, what is and is not read, where it is written.
#include <doctest/doctest.h>

#include <cmath>
#include <string>

#include "tests/kernels/kernel_test.h"
#include "tests/kernels/order_model.h"
#include "tests/support/reference.h"
#include "tests/support/targets.h"
#include "tests/support/tolerance.h"

namespace etalon::test {
namespace {

std::string ScoreReport(const AttentionCase& c, const std::vector<float>& got) {
  const TrueScores exact = ScoresInF64(c);
  return ErrorReport(TrueValues(got), exact.s,
                     [&](size_t i) { return ScoreTolerance(c.head_dim, exact.size[i], exact.s[i], c.softcap > 0); });
}

TEST_CASE("scores: every tail of head_dim and keys, within the error bound and in the order of the text") {
  const std::vector<int64_t>& sizes = TailSizes();
  for (const KernelTable& table : Tables()) {
    for (size_t i = 0; i < sizes.size(); ++i) {
      for (size_t step : {0, 5, 11}) {
        const int64_t head_dim = sizes[i], num_keys = sizes[(i + step) % sizes.size()];
        const uint64_t seed = i * 100 + step;
        Random random(seed);
        const DType q_type = static_cast<DType>(random.Below(3)), k_type = static_cast<DType>(random.Below(3));
        const AttentionCase c = PlainCase{Array{q_type, random.Normals(2 * head_dim)},
                                          Array{k_type, random.Normals(num_keys * head_dim)},
                                          Array(DType::kF32, num_keys),
                                          head_dim,
                                          1,
                                          ScaleOf(head_dim)};
        INFO(std::string(table.name), " seed ", seed, " ", Describe(c));
        const std::vector<float> got = RunScores(table, c);
        CHECK(ScoreReport(c, got) == "");
        CHECK(Difference(got, ModelScores(c)) == "");
      }
    }
  }
}

TEST_CASE("scores: spans, masks, biases, softcap, ALiBi") {
  for (const KernelTable& table : Tables()) {
    for (uint64_t seed = 0; seed < 150; ++seed) {
      RandomOptions options;
      options.specials = seed % 3 == 2;
      const AttentionCase c = RandomAttention(seed, options);
      INFO(std::string(table.name), " seed ", seed, " ", Describe(c));
      const std::vector<float> got = RunScores(table, c);
      CHECK(Difference(got, ModelScores(c)) == "");
      CHECK(NotCanonical(got) == "");
      if (!options.specials) CHECK(ScoreReport(c, got) == "");
    }
  }
}

TEST_CASE("scores: softcap, then ALiBi, then bias") {
  AttentionCase c = PlainCase(F32({1.0f}), F32({6.0f}), F32({0.0f}), 1, 1, 1.0f);
  c.softcap = 2.0f;
  c.slopes = {0.5f};
  c.q_pos = {9};
  c.sources[0].base = 2;
  c.sources[0].bias = F32({100.0f});
  const double exact = 2.0 * std::tanh(3.0) - 0.5 * 7.0 + 100.0;
  for (const KernelTable& table : Tables()) {
    INFO(std::string(table.name));
    CHECK(NearReport(TrueValues(RunScores(table, c)), {exact}, 1e-5) == "");
  }
}

TEST_CASE("scores: distances of ALiBi are 64-bit integers, rounded once") {
  AttentionCase c = PlainCase(Array(DType::kF32, std::vector<float>(7, 0.0f)), F32({0.0f}), F32({0.0f}), 1, 1, 1.0f);
  c.sources[0].base = 3;
  c.q_pos = {
      INT64_MAX, INT64_MIN, -16777214, 3, (int64_t{1} << 53) + 3, (int64_t{1} << 24) + 4, (int64_t{1} << 24) + 1};
  c.slopes = std::vector<float>(7, 1.0f);
  // 2^63 - 4 and 2^63 + 3 round to 2^63; 16777217 is a tie and goes to even, as does 2^24 + 1. 2^24 - 2 is exact,
  // though the position 2^24 + 1 is not.
  const std::vector<float> expected = {-0x1p63f, -0x1p63f, -16777216.0f, 0.0f, -0x1p53f, -0x1p24f, -16777214.0f};
  for (const KernelTable& table : Tables()) {
    INFO(std::string(table.name));
    CHECK(Difference(RunScores(table, c), expected) == "");
  }
}

TEST_CASE("scores: what is not visible is not felt, whatever it holds") {
  const uint32_t poisons[] = {0x7FC00001u, 0xFF800000u, 0x7F800000u, 0x7149F2CAu};
  for (const KernelTable& table : Tables()) {
    for (uint64_t seed = 0; seed < 40; ++seed) {
      AttentionCase c = RandomAttention(seed);
      c.q = Array{DType::kF32, TrueValues(c.q).size() == 0 ? std::vector<float>() : Random(seed).Normals(c.q.size())};
      SourceData& s = c.sources[0];
      s.k = Array{DType::kF32, Random(seed + 1).Normals(s.k.size())};
      INFO(std::string(table.name), " seed ", seed, " ", Describe(c));
      const std::vector<float> before = RunScores(table, c);
      for (int64_t i = 0; i < s.num_keys; ++i) {
        bool seen = false;
        for (int64_t r = 0; r < c.rows; ++r) {
          const bool allowed = Allows(s, r, i);
          seen = seen || allowed;
          const bool by_bias = s.bias.size() > 0 && std::isinf(s.bias[r * s.num_keys + i]);
          if (!allowed && !by_bias && s.bias.size() > 0) s.bias.SetWord(r * s.num_keys + i, 0x7FC1u);
        }
        for (int64_t d = 0; !seen && d < c.head_dim; ++d) s.k.SetWord(i * c.head_dim + d, poisons[(i + d) % 4]);
      }
      CHECK(Difference(RunScores(table, c), before) == "");
    }
  }
}

TEST_CASE("scores: a NaN makes the scores that see it NaN, and no other") {
  for (const KernelTable& table : Tables()) {
    for (int64_t head_dim : {1, 7, 16, 80}) {
      const int64_t num_keys = 37;
      Random random(static_cast<uint64_t>(head_dim));
      AttentionCase c = PlainCase{Array{DType::kF32, random.Normals(3 * head_dim)},
                                  Array{DType::kF32, random.Normals(num_keys * head_dim)},
                                  Array(DType::kF32, num_keys),
                                  head_dim,
                                  1,
                                  1.0f};
      const std::vector<float> before = RunScores(table, c);
      const int64_t key = random.Below(num_keys), row = 1;
      c.sources[0].k.SetWord(key * head_dim + head_dim - 1, 0xFFFFFFFFu);
      c.q.SetWord(row * head_dim, 0x7F800001u);
      std::vector<float> expected = before;
      for (int64_t r = 0; r < 3; ++r) {
        for (int64_t i = 0; i < num_keys; ++i) {
          if (r == row || i == key) expected[static_cast<size_t>(r * num_keys + i)] = FromBits(kCanonicalNaN);
        }
      }
      INFO(std::string(table.name), " head_dim ", head_dim);
      CHECK(Difference(RunScores(table, c), expected) == "");
    }
  }
}

TEST_CASE("scores: strides, unaligned pointers, and nothing written outside") {
  for (const KernelTable& table : Tables()) {
    for (uint64_t seed = 300; seed < 340; ++seed) {
      AttentionCase c = RandomAttention(seed);
      SourceData& s = c.sources[0];
      if (s.num_keys == 0) continue;
      INFO(std::string(table.name), " seed ", seed, " ", Describe(c));
      const int64_t k_bytes = static_cast<int64_t>(ElementSize(s.k.type()));
      const int64_t q_bytes = static_cast<int64_t>(ElementSize(c.q.type()));
      const int64_t bias_bytes = static_cast<int64_t>(ElementSize(s.bias.type()));
      int64_t k_stride = (c.head_dim + 3) * k_bytes;
      if (seed % 3 == 1) k_stride = -k_stride;
      if (seed % 3 == 2) {  // every key is the first one
        k_stride = 0;
        for (int64_t i = 1; i < s.num_keys; ++i) {
          for (int64_t d = 0; d < c.head_dim; ++d) s.k.SetWord(i * c.head_dim + d, s.k.Word(d));
        }
      }
      const std::vector<float> expected = RunScores(table, c);
      const Strided k(s.k, s.num_keys, k_stride);
      const Strided q(c.q, c.rows, (c.head_dim + 1) * q_bytes);
      const int64_t bias_stride = seed % 2 == 0 ? 3 * bias_bytes : -2 * bias_bytes;
      const int64_t mask_stride = seed % 2 == 0 ? -3 : 2;
      std::vector<Strided> biases, masks;
      std::vector<QueryRow> rows;
      std::vector<RowKeys> keys;
      for (int64_t r = 0; r < c.rows; ++r) {
        if (s.bias.size() > 0) biases.emplace_back(Slice(s.bias, r * s.num_keys, s.num_keys), s.num_keys, bias_stride);
        masks.emplace_back(s.num_keys, 1, mask_stride, 1);
        for (int64_t i = 0; i < s.num_keys && !s.mask.empty(); ++i) {
          static_cast<uint8_t*>(masks.back().data())[i * mask_stride] = s.mask[static_cast<size_t>(r * s.num_keys + i)];
        }
      }
      for (int64_t r = 0; r < c.rows; ++r) {
        const size_t i = static_cast<size_t>(r);
        const unsigned char* q_row = static_cast<const unsigned char*>(q.data()) + r * (c.head_dim + 1) * q_bytes;
        rows.push_back({q_row, c.slopes.empty() ? 0.0f : c.slopes[i], NAN, nullptr, nullptr});
        keys.push_back({s.spans.empty() ? Span{s.base, s.base + s.num_keys} : s.spans[i],
                        s.bias.size() > 0 ? biases[i].data() : nullptr,
                        s.mask.empty() ? nullptr : static_cast<const uint8_t*>(masks[i].data()),
                        c.q_pos.empty() ? 0 : c.q_pos[i], nullptr, 0});
      }
      KeySource source = {k.data(),   nullptr,       k_stride,    0,           s.k.type(),       DType::kF32, s.base,
                          s.num_keys, s.bias.type(), bias_stride, mask_stride, MaskType::kBytes, 0,           {}};
      const int64_t row_stride = (seed % 4 < 2 ? 1 : -1) * (s.num_keys + 5);
      Strided out(c.rows, s.num_keys * 4, row_stride * 4, 4);
      const ScratchMemory scratch(table, c.head_dim, 0);
      const ScoresArgs args = {rows.data(),
                               rows.size(),
                               keys.data(),
                               &source,
                               static_cast<size_t>(c.head_dim),
                               {c.q.type(), c.scale, c.softcap, !c.slopes.empty()},
                               static_cast<float*>(out.data()),
                               row_stride,
                               scratch.get()};
      InEnvironment([&] { table.scores(args); });
      CHECK(Difference(out.Packed(DType::kF32), Array(DType::kF32, expected)) == "");
      CHECK(out.Intact());
    }
  }
}

}  // namespace
}  // namespace etalon::test
