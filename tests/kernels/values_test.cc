// The weighted sum primitive of every table.
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

std::string SumReport(const WeightedSumCase& c, const Array& got) {
  const TrueSum exact = WeightedSumInF64(c);
  return ErrorReport(TrueValues(got), exact.out,
                     [&](size_t i) { return SumTolerance(c.num_keys, exact.size[i], c.out_type, exact.out[i]); });
}

std::string Shape(const WeightedSumCase& c) {
  return "rows " + std::to_string(c.rows) + " keys " + std::to_string(c.num_keys) + " value_dim " +
         std::to_string(c.value_dim);
}

TEST_CASE("weighted sum: every tail of keys and value_dim, within the error bound and in the order of the text") {
  const std::vector<int64_t>& sizes = TailSizes();
  for (const KernelTable& table : Tables()) {
    for (size_t i = 0; i < sizes.size(); ++i) {
      for (size_t step : {0, 4, 9}) {
        WeightedSumCase c;
        c.rows = 2;
        c.num_keys = sizes[i];
        c.value_dim = sizes[(i + step) % sizes.size()];
        const uint64_t seed = i * 100 + step;
        Random random(seed);
        c.w = random.Normals(c.rows * c.num_keys);
        c.v = Array{static_cast<DType>(random.Below(3)), random.Normals(c.num_keys * c.value_dim)};
        c.out_type = static_cast<DType>(random.Below(3));
        INFO(std::string(table.name), " seed ", seed, " ", Shape(c));
        const Array got = RunWeightedSum(table, c);
        CHECK(SumReport(c, got) == "");
        CHECK(Difference(got, ModelWeightedSum(c)) == "");
      }
    }
  }
}

TEST_CASE("weighted sum: spans, masks, special numbers") {
  for (const KernelTable& table : Tables()) {
    for (uint64_t seed = 0; seed < 200; ++seed) {
      const bool specials = seed % 2 == 1;
      const WeightedSumCase c = RandomWeightedSum(seed, specials);
      INFO(std::string(table.name), " seed ", seed, " ", Shape(c));
      const Array got = RunWeightedSum(table, c);
      if (!specials) CHECK(SumReport(c, got) == "");
      CHECK(Difference(got, ModelWeightedSum(c)) == "");
      CHECK(NotCanonicalOut(got) == "");
    }
  }
}

TEST_CASE("weighted sum: a hidden value is not felt, a visible one is, also with weight 0") {
  for (const KernelTable& table : Tables()) {
    for (int64_t value_dim : {1, 5, 16, 33}) {
      WeightedSumCase c;
      c.rows = 2;
      c.num_keys = 40;
      c.value_dim = value_dim;
      Random random(static_cast<uint64_t>(value_dim));
      c.w = random.Normals(80);
      c.v = Array{DType::kF32, random.Normals(40 * value_dim)};
      c.spans = {{3, 30}, {3, 25}};
      c.mask.assign(80, 1);
      c.mask[10] = c.mask[50] = 0;  // key 10, both rows
      const Array before = RunWeightedSum(table, c);
      INFO(std::string(table.name), " ", Shape(c));
      for (int64_t key : {0, 2, 10, 30, 39}) {
        for (int64_t i = 0; i < value_dim; ++i) {
          c.v.SetWord(key * value_dim + i, i % 3 == 0 ? 0xFF800001u : i % 3 == 1 ? 0x7F800000u : 0x7149F2CAu);
        }
        c.w[static_cast<size_t>(key)] = c.w[static_cast<size_t>(40 + key)] = NAN;
      }
      CHECK(Difference(RunWeightedSum(table, c), before) == "");
      // Key 27 is seen by row 0 only; its last channel alone goes bad.
      c.w[27] = 0.0f;
      const Array with_zero = RunWeightedSum(table, c);
      c.v.SetWord(27 * value_dim + value_dim - 1, 0xFF800000u);
      Array expected = with_zero;
      expected.SetWord(value_dim - 1, kCanonicalNaN);
      CHECK(Difference(RunWeightedSum(table, c), expected) == "");
    }
  }
}

TEST_CASE("weighted sum: strides, unaligned pointers, nothing written outside") {
  for (const KernelTable& table : Tables()) {
    for (uint64_t seed = 500; seed < 540; ++seed) {
      WeightedSumCase c = RandomWeightedSum(seed, false);
      int64_t stride = (c.value_dim + 1) * static_cast<int64_t>(ElementSize(c.v.type()));
      if (seed % 3 == 1) stride = -stride;
      if (seed % 3 == 2) {
        stride = 0;
        for (int64_t i = c.value_dim; i < c.v.size(); ++i) c.v.SetWord(i, c.v.Word(i % c.value_dim));
      }
      const Array expected = RunWeightedSum(table, c);
      const Strided v(c.v, c.num_keys, stride);
      const int64_t element = static_cast<int64_t>(ElementSize(c.out_type));
      const int64_t out_stride = (c.value_dim + 3) * element, mask_stride = seed % 2 == 0 ? 3 : -1;
      Strided out(c.rows, c.value_dim * element, out_stride, element);
      std::vector<Strided> masks;
      std::vector<WeightedSumRow> rows;
      for (int64_t r = 0; r < c.rows; ++r) {
        masks.emplace_back(c.num_keys, 1, mask_stride, 1);
        uint8_t* mask = static_cast<uint8_t*>(masks.back().data());
        for (int64_t j = 0; j < c.num_keys && !c.mask.empty(); ++j) {
          mask[j * mask_stride] = c.mask[static_cast<size_t>(r * c.num_keys + j)];
        }
      }
      for (int64_t r = 0; r < c.rows; ++r) {
        const size_t i = static_cast<size_t>(r);
        rows.push_back({c.w.data() + r * c.num_keys, static_cast<unsigned char*>(out.data()) + r * out_stride,
                        c.spans.empty() ? Span{0, c.num_keys} : c.spans[i],
                        c.mask.empty() ? nullptr : static_cast<const uint8_t*>(masks[i].data())});
      }
      const ScratchMemory scratch(table, 0, c.value_dim);
      const WeightedSumArgs args = {rows.data(),  rows.size(), v.data(),
                                    stride,       c.v.type(),  c.out_type,
                                    c.num_keys,   mask_stride, static_cast<size_t>(c.value_dim),
                                    scratch.get()};
      InEnvironment([&] { table.weighted_sum(args); });
      INFO(std::string(table.name), " seed ", seed, " ", Shape(c));
      CHECK(Difference(out.Packed(c.out_type), expected) == "");
      CHECK(out.Intact());
    }
  }
}

TEST_CASE("weighted sum: no keys give +0; a negative number that narrows to zero gives +0") {
  for (const KernelTable& table : Tables()) {
    for (DType type : {DType::kF32, DType::kF16, DType::kBF16}) {
      WeightedSumCase c;
      c.rows = 1;
      c.value_dim = 19;
      c.v = Array(DType::kF32, 0);
      c.out_type = type;
      INFO(std::string(table.name), " type ", static_cast<int>(type));
      CHECK(Difference(RunWeightedSum(table, c), Array(type, 19)) == "");
      c.num_keys = 1;
      c.w = {1.0f};
      c.v = Array(DType::kF32, std::vector<float>(19, type == DType::kF16    ? -1e-9f
                                                      : type == DType::kBF16 ? -0x1p-149f
                                                                             : -0.0f));
      CHECK(Difference(RunWeightedSum(table, c), Array(type, 19)) == "");
    }
  }
}

}  // namespace
}  // namespace etalon::test
