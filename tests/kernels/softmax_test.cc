// The masked softmax primitive of every table.
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

std::string SoftmaxReport(const SoftmaxCase& c, const SoftmaxResult& got) {
  const TrueSoftmax exact = SoftmaxInF64(c);
  const std::string w = NearReport(TrueValues(got.w), exact.w, kWeightTolerance);
  return w.empty() ? LseReport(got.lse, exact.lse) : w;
}

TEST_CASE("softmax: every tail, within tolerance and in the order of the text") {
  for (const KernelTable& table : Tables()) {
    for (int64_t num_keys : TailSizes()) {
      for (float factor : {0.1f, 3.0f, 30.0f}) {
        SoftmaxCase c;
        c.rows = 2;
        c.num_keys = num_keys;
        c.s = Random(static_cast<uint64_t>(num_keys)).Normals(2 * num_keys, factor);
        INFO(std::string(table.name), " num_keys ", num_keys, " factor ", factor);
        const SoftmaxResult got = RunSoftmax(table, c);
        CHECK(SoftmaxReport(c, got) == "");
        CHECK(Difference(got, ModelSoftmax(c)) == "");
        CHECK(Difference(RunSoftmax(table, c, true), got) == "");
      }
    }
  }
}

TEST_CASE("softmax: spans, masks, -inf, special numbers; in place is the same") {
  for (const KernelTable& table : Tables()) {
    for (uint64_t seed = 0; seed < 300; ++seed) {
      const bool specials = seed % 2 == 1;
      const SoftmaxCase c = RandomSoftmax(seed, specials);
      INFO(std::string(table.name), " seed ", seed, " rows ", c.rows, " num_keys ", c.num_keys);
      const SoftmaxResult got = RunSoftmax(table, c);
      if (!specials) CHECK(SoftmaxReport(c, got) == "");
      CHECK(Difference(got, ModelSoftmax(c)) == "");
      CHECK(Difference(RunSoftmax(table, c, true), got) == "");
      CHECK(NotCanonical(got.w) == "");
      CHECK(NotCanonical(got.lse) == "");
    }
  }
}

TEST_CASE("softmax: what is not visible is not felt and gets +0, also beside NaN") {
  for (const KernelTable& table : Tables()) {
    for (uint64_t seed = 0; seed < 60; ++seed) {
      SoftmaxCase c = RandomSoftmax(seed, false);
      if (c.mask.empty()) c.mask.assign(c.s.size(), 1);
      if (c.spans.empty()) c.spans.assign(static_cast<size_t>(c.rows), {c.num_keys / 3, c.num_keys});
      c.mask[c.mask.size() / 2] = 0;
      const SoftmaxResult before = RunSoftmax(table, c);
      std::vector<bool> hidden;
      for (int64_t r = 0; r < c.rows; ++r) {
        const Span span = c.spans[static_cast<size_t>(r)];
        for (int64_t j = 0; j < c.num_keys; ++j) {
          const size_t at = static_cast<size_t>(r * c.num_keys + j);
          hidden.push_back(j < span.first || j >= span.last || c.mask[at] == 0);
          if (hidden[at]) c.s[at] = j % 3 == 0 ? FromBits(0xFFC00001u) : j % 3 == 1 ? HUGE_VALF : 1e30f;
        }
      }
      INFO(std::string(table.name), " seed ", seed, " rows ", c.rows, " num_keys ", c.num_keys);
      CHECK(Difference(RunSoftmax(table, c), before) == "");
      CHECK(Difference(RunSoftmax(table, c, true), before) == "");
      // One visible NaN in the first row that sees anything: every visible weight of that row, and no other, is NaN.
      for (size_t at = 0; at < hidden.size(); ++at) {
        if (hidden[at] || c.s[at] == -HUGE_VALF) continue;
        c.s[at] = FromBits(0xFFC00001u);
        SoftmaxResult expected = before;
        const size_t width = static_cast<size_t>(c.num_keys), row = at / width;
        for (size_t j = row * width; j < (row + 1) * width; ++j) {
          if (!hidden[j] && c.s[j] != -HUGE_VALF) expected.w[j] = FromBits(kCanonicalNaN);
        }
        expected.lse[row] = FromBits(kCanonicalNaN);
        CHECK(Difference(RunSoftmax(table, c), expected) == "");
        break;
      }
    }
  }
}

TEST_CASE("softmax: strided masks, rows anywhere, lse absent, nothing written outside") {
  for (const KernelTable& table : Tables()) {
    for (uint64_t seed = 400; seed < 440; ++seed) {
      SoftmaxCase c = RandomSoftmax(seed, false);
      const SoftmaxResult expected = RunSoftmax(table, c);
      const int64_t stride = (c.num_keys + 3) * 4;
      const int64_t mask_stride = seed % 3 == 0 ? -2 : 5;
      const Strided s(Array(DType::kF32, c.s), c.rows, -stride);
      Strided w(c.rows, c.num_keys * 4, stride, 4);
      std::vector<Strided> masks;
      std::vector<SoftmaxRow> rows;
      std::vector<float> lse(static_cast<size_t>(c.rows), 7.0f);
      for (int64_t r = 0; r < c.rows; ++r) {
        masks.emplace_back(c.num_keys, 1, mask_stride, 1);
        uint8_t* mask = static_cast<uint8_t*>(masks.back().data());
        for (int64_t j = 0; j < c.num_keys && !c.mask.empty(); ++j) {
          mask[j * mask_stride] = c.mask[static_cast<size_t>(r * c.num_keys + j)];
        }
      }
      for (int64_t r = 0; r < c.rows; ++r) {
        const size_t i = static_cast<size_t>(r);
        rows.push_back({reinterpret_cast<const float*>(static_cast<const unsigned char*>(s.data()) - r * stride),
                        reinterpret_cast<float*>(static_cast<unsigned char*>(w.data()) + r * stride),
                        r % 2 == 1 ? nullptr : &lse[i], c.spans.empty() ? Span{0, c.num_keys} : c.spans[i],
                        c.mask.empty() ? nullptr : static_cast<const uint8_t*>(masks[i].data())});
      }
      const SoftmaxArgs args = {rows.data(), rows.size(), c.num_keys, mask_stride};
      InEnvironment([&] { table.softmax(args); });
      INFO(std::string(table.name), " seed ", seed, " rows ", c.rows, " num_keys ", c.num_keys);
      CHECK(Difference(w.Packed(DType::kF32), Array(DType::kF32, expected.w)) == "");
      CHECK(w.Intact());
      for (size_t r = 0; r < lse.size(); ++r) CHECK(lse[r] == (r % 2 == 1 ? 7.0f : expected.lse[r]));
    }
  }
}

TEST_CASE("softmax: long rows of one call, masked or not, do not feel each other") {
  for (uint64_t seed = 700; seed < 760; ++seed) {
    Random random(seed);
    constexpr int64_t kRows = 9;
    const int64_t num_keys = seed % 3 == 0 ? 128 * (1 + random.Below(20)) : 1 + random.Below(2600);
    const int64_t mask_stride = seed % 4 == 3 ? 3 : 1;
    std::vector<float> s = random.Normals(kRows * num_keys, seed % 2 == 0 ? 1.0f : 25.0f);
    std::vector<uint8_t> mask;
    for (int64_t i = 0; i < kRows * num_keys * mask_stride; ++i) mask.push_back(random.Below(5) != 0);
    const auto softmax = [&](const KernelTable& table, bool all_at_once, SoftmaxResult* result) {
      Random kinds(seed + 1);
      std::vector<SoftmaxRow> rows;
      result->w.assign(s.size(), 7.0f);
      result->lse.assign(kRows, 7.0f);
      for (int64_t r = 0; r < kRows; ++r) {
        const int64_t first = kinds.Below(3) == 0 ? kinds.Below(num_keys) : 0;
        const int64_t last = kinds.Below(3) == 0 ? kinds.Below(num_keys) : num_keys;
        const bool masked = kinds.Below(8) < static_cast<int64_t>(seed % 9);
        rows.push_back({&s[static_cast<size_t>(r * num_keys)],
                        &result->w[static_cast<size_t>(r * num_keys)],
                        &result->lse[static_cast<size_t>(r)],
                        {first, last},
                        masked ? &mask[static_cast<size_t>(r * num_keys * mask_stride)] : nullptr});
      }
      const size_t step = all_at_once ? kRows : 1;
      for (size_t r = 0; r < kRows; r += step) {
        const SoftmaxArgs args = {&rows[r], step, num_keys, mask_stride};
        InEnvironment([&] { table.softmax(args); });
      }
    };
    // Rows that take another way: a NaN, an infinity, nothing but -inf.
    s[static_cast<size_t>(random.Below(kRows * num_keys))] = FromBits(0xFFC00001u);
    s[static_cast<size_t>(random.Below(kRows * num_keys))] = HUGE_VALF;
    if (seed % 5 == 0) {
      const int64_t row = random.Below(kRows);
      for (int64_t j = 0; j < num_keys; ++j) s[static_cast<size_t>(row * num_keys + j)] = -HUGE_VALF;
    }
    SoftmaxResult expected, got;
    softmax(Definition(), false, &expected);
    for (const KernelTable& table : Tables()) {
      INFO(std::string(table.name), " seed ", seed, " num_keys ", num_keys);
      softmax(table, true, &got);
      CHECK(Difference(got, expected) == "");
    }
  }
}

TEST_CASE("softmax: no keys at all") {
  for (const KernelTable& table : Tables()) {
    INFO(std::string(table.name));
    float w = 7.0f, lse = 7.0f;
    const SoftmaxRow row = {&w, &w, &lse, {0, 0}, nullptr};
    const SoftmaxArgs args = {&row, 1, 0, 1};
    InEnvironment([&] { table.softmax(args); });
    CHECK(w == 7.0f);
    CHECK(lse == -HUGE_VALF);
  }
}

}  // namespace
}  // namespace etalon::test
