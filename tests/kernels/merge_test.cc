// Merging (out, lse) pairs on every table.
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

std::string Shape(const MergeCase& c) {
  return "rows " + std::to_string(c.rows) + " value_dim " + std::to_string(c.value_dim);
}

TEST_CASE("merge: within tolerance of f64 and in the order of the text") {
  for (const KernelTable& table : Tables()) {
    for (uint64_t seed = 0; seed < 300; ++seed) {
      const bool specials = seed % 3 == 2;
      const MergeCase c = RandomMerge(seed, specials);
      INFO(std::string(table.name), " seed ", seed, " ", Shape(c));
      const AttentionResult got = RunMerge(table, c);
      CHECK(Difference(got, ModelMerge(c)) == "");
      CHECK(NotCanonicalOut(got) == "");
      if (specials) continue;
      const TrueAttention exact = MergeInF64(c);
      CHECK(OutReport(got, exact) == "");
      CHECK(LseReport(got.lse, exact.lse) == "");
    }
  }
}

TEST_CASE("merge: an empty side passes the other through, but for the sign of zero; its own out is not felt") {
  for (const KernelTable& table : Tables()) {
    for (DType type : {DType::kF32, DType::kF16, DType::kBF16}) {
      MergeCase c;
      c.rows = 3;
      c.value_dim = 17;
      Random random(1);
      c.out1 = Array{type, random.Normals(51)};
      c.out2 = Array{type, random.Normals(51)};
      const uint32_t sign = type == DType::kF32 ? 0x80000000u : 0x8000u;
      c.out1.SetWord(3, sign);  // -0
      c.lse1 = {-3.25f, -HUGE_VALF, -HUGE_VALF};
      c.lse2 = {-HUGE_VALF, 1e-40f, -HUGE_VALF};
      Array expected(type, 51);
      for (int64_t j = 0; j < 34; ++j) expected.SetWord(j, j < 17 ? c.out1.Word(j) : c.out2.Word(j));
      expected.SetWord(3, 0);
      const uint32_t nan = type == DType::kF32 ? 0xFFC00001u : 0xFFFFu;
      for (int64_t j = 0; j < 17; ++j) c.out2.SetWord(j, nan);
      for (int64_t j = 17; j < 34; ++j) c.out1.SetWord(j, nan);
      for (int64_t j = 34; j < 51; ++j) {
        c.out1.SetWord(j, nan);
        c.out2.SetWord(j, nan);
      }
      INFO(std::string(table.name), " type ", static_cast<int>(type));
      const AttentionResult got = RunMerge(table, c);
      CHECK(Difference(got.out, expected) == "");
      CHECK(Difference(got.lse, {-3.25f, 1e-40f, -HUGE_VALF}) == "");
    }
  }
}

TEST_CASE("merge: a negative number that narrows to zero gives +0") {
  for (const KernelTable& table : Tables()) {
    for (DType type : {DType::kF32, DType::kF16, DType::kBF16}) {
      MergeCase c;
      c.rows = 1;
      c.value_dim = 1;
      c.out1 = Array::FromBits(type, {type == DType::kF32 ? 0x80000001u : 0x8001u});  // the smallest
      c.out2 = Array(type, 1);
      c.lse1 = {0.0f};
      c.lse2 = {3.0f};
      INFO(std::string(table.name), " type ", static_cast<int>(type));
      CHECK(Difference(RunMerge(table, c).out, Array(type, 1)) == "");
    }
  }
}

TEST_CASE("merge: in place, strides, unaligned pointers, lse absent, nothing written outside") {
  for (const KernelTable& table : Tables()) {
    for (uint64_t seed = 600; seed < 640; ++seed) {
      const MergeCase c = RandomMerge(seed, false);
      const AttentionResult expected = RunMerge(table, c);
      const DType type = c.out1.type();
      const int64_t element = static_cast<int64_t>(ElementSize(type));
      const int64_t padded = (c.value_dim + 3) * element;
      Strided out1(c.out1, c.rows, padded), out2(c.out2, c.rows, -padded - element),
          apart(c.rows, c.value_dim * element, -padded, element);
      std::vector<float> lse1 = c.lse1, lse2 = c.lse2;
      MergeArgs args = {};
      args.num_rows = static_cast<size_t>(c.rows);
      args.value_dim = static_cast<size_t>(c.value_dim);
      args.type = type;
      args.out1 = out1.data();
      args.out1_stride_bytes = padded;
      args.lse1 = lse1.data();
      args.out2 = out2.data();
      args.out2_stride_bytes = -padded - element;
      args.lse2 = lse2.data();
      args.out = apart.data();
      args.out_stride_bytes = -padded;
      INFO(std::string(table.name), " seed ", seed, " ", Shape(c));
      InEnvironment([&] { table.merge(args); });
      CHECK(Difference(apart.Packed(type), expected.out) == "");
      CHECK(apart.Intact());
      const bool first = seed % 2 == 0;
      args.out = first ? out1.data() : out2.data();
      args.out_stride_bytes = first ? padded : -padded - element;
      args.lse = first ? lse1.data() : lse2.data();
      InEnvironment([&] { table.merge(args); });
      CHECK(Difference((first ? out1 : out2).Packed(type), expected.out) == "");
      CHECK(Difference(first ? lse1 : lse2, expected.lse) == "");
      CHECK((first ? out1 : out2).Intact());
    }
  }
}

}  // namespace
}  // namespace etalon::test
