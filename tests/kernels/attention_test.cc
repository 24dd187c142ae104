// RunAttention: batches, groups of heads, strides and tasks around the fused pass.
#include "lib/attention/attention.h"

#include <doctest/doctest.h>

#include <cmath>
#include <string>

#include "tests/kernels/kernel_test.h"
#include "tests/support/host_environment.h"
#include "tests/support/reference.h"
#include "tests/support/targets.h"
#include "tests/support/tolerance.h"

namespace etalon::test {
namespace {

struct Shape {
  int64_t batch, num_q_heads, num_kv_heads, q_len, kv_len, head_dim, value_dim;
  Geometry geometry;
};

// Where element [b, h, i, 0] of an array [batch, heads, len, dim] lies; transposed = stored as [batch, len, heads,
// dim].
struct Layout {
  int64_t batch, head, row;  // bytes
};
Layout MakeLayout(int64_t heads, int64_t len, int64_t dim, int64_t element, bool transposed) {
  if (transposed) return {heads * len * dim * element, dim * element, heads * dim * element};
  return {heads * len * dim * element, len * dim * element, dim * element};
}

Array Arrange(const Array& packed, int64_t batch, int64_t heads, int64_t len, int64_t dim, bool transposed, bool back) {
  if (!transposed) return packed;
  Array arranged(packed.type(), packed.size());
  for (int64_t b = 0; b < batch; ++b) {
    for (int64_t h = 0; h < heads; ++h) {
      for (int64_t i = 0; i < len; ++i) {
        for (int64_t d = 0; d < dim; ++d) {
          const int64_t plain = ((b * heads + h) * len + i) * dim + d, other = ((b * len + i) * heads + h) * dim + d;
          if (back) {
            arranged.SetWord(plain, packed.Word(other));
          } else {
            arranged.SetWord(other, packed.Word(plain));
          }
        }
      }
    }
  }
  return arranged;
}

struct Data {
  Array q, k, v;
  DType out_type;
};

Data MakeData(const Shape& s, uint64_t seed) {
  Random random(seed);
  const auto type = [&] { return static_cast<DType>(random.Below(3)); };
  return {Array{type(), random.Normals(s.batch * s.num_q_heads * s.q_len * s.head_dim)},
          Array{type(), random.Normals(s.batch * s.num_kv_heads * s.kv_len * s.head_dim)},
          Array{type(), random.Normals(s.batch * s.num_kv_heads * s.kv_len * s.value_dim)}, type()};
}

// All heads at once, in `parts` calls; the last part first.
AttentionResult RunWhole(const KernelTable& table, const Shape& s, const Data& data, bool transposed, int64_t parts) {
  const auto element = [](const Array& a) { return static_cast<int64_t>(ElementSize(a.type())); };
  const Array q = Arrange(data.q, s.batch, s.num_q_heads, s.q_len, s.head_dim, transposed, false);
  const Array k = Arrange(data.k, s.batch, s.num_kv_heads, s.kv_len, s.head_dim, transposed, false);
  const Array v = Arrange(data.v, s.batch, s.num_kv_heads, s.kv_len, s.value_dim, transposed, false);
  Array out(data.out_type, s.batch * s.num_q_heads * s.q_len * s.value_dim);
  std::vector<float> lse(static_cast<size_t>(s.batch * s.num_q_heads * s.q_len));
  const auto view = [&](const Array& a, int64_t heads, int64_t len, int64_t dim) {
    const Layout l = MakeLayout(heads, len, dim, element(a), transposed);
    return TensorView{a.data(), a.type(), l.batch, l.head, l.row};
  };
  const Layout l = MakeLayout(s.num_q_heads, s.q_len, s.value_dim, element(out), transposed);
  AttentionProblem p = {};
  p.batch = s.batch;
  p.num_q_heads = s.num_q_heads;
  p.num_kv_heads = s.num_kv_heads;
  p.q_len = s.q_len;
  p.kv_len = s.kv_len;
  p.head_dim = static_cast<size_t>(s.head_dim);
  p.value_dim = static_cast<size_t>(s.value_dim);
  p.q = view(q, s.num_q_heads, s.q_len, s.head_dim);
  p.k = view(k, s.num_kv_heads, s.kv_len, s.head_dim);
  p.v = view(v, s.num_kv_heads, s.kv_len, s.value_dim);
  p.out.data = out.data();
  p.out.type = out.type();
  p.out.batch_stride_bytes = l.batch;
  p.out.head_stride_bytes = l.head;
  p.out.row_stride_bytes = l.row;
  p.lse = lse.data();
  p.scale = DefaultScale(p.head_dim);
  p.geometry = s.geometry;
  const ScratchMemory scratch(table, s.head_dim, s.value_dim);
  CHECK(AttentionScratchBytes(table, p) > 0);
  const int64_t tasks = NumAttentionTasks(p);
  for (int64_t part = parts - 1; part >= 0; --part)
    RunAttention(table, p, PartOfRange(tasks, part, parts), scratch.get());
  return {Arrange(out, s.batch, s.num_q_heads, s.q_len, s.value_dim, transposed, true), lse};
}

// The same, a case for each head.
AttentionResult RunByHead(const KernelTable& table, const Shape& s, const Data& data) {
  AttentionResult result = {Array(data.out_type, 0), {}};
  Array out(data.out_type, s.batch * s.num_q_heads * s.q_len * s.value_dim);
  int64_t at = 0;
  for (int64_t b = 0; b < s.batch; ++b) {
    for (int64_t h = 0; h < s.num_q_heads; ++h) {
      const int64_t q_head = b * s.num_q_heads + h;
      const int64_t kv_head = b * s.num_kv_heads + h / (s.num_q_heads / s.num_kv_heads);
      AttentionCase c = PlainCase(Slice(data.q, q_head * s.q_len * s.head_dim, s.q_len * s.head_dim),
                                  Slice(data.k, kv_head * s.kv_len * s.head_dim, s.kv_len * s.head_dim),
                                  Slice(data.v, kv_head * s.kv_len * s.value_dim, s.kv_len * s.value_dim), s.head_dim,
                                  s.value_dim, ScaleOf(s.head_dim));
      c.out_type = data.out_type;
      for (int64_t i = 0; i < s.q_len; ++i) c.sources[0].spans.push_back(VisibleSpan(s.geometry, i, 0, s.kv_len));
      const AttentionResult part = RunAttend(table, c);
      for (int64_t i = 0; i < part.out.size(); ++i) out.SetWord(at++, part.out.Word(i));
      result.lse.insert(result.lse.end(), part.lse.begin(), part.lse.end());
    }
  }
  result.out = out;
  return result;
}

constexpr Geometry kFull = {0, -1, -1}, kCausal = {0, -1, 0};

TEST_CASE("attention: equal to one case a head, in any layout and any split of tasks") {
  const Shape shapes[] = {
      {1, 1, 1, 1, 1, 1, 1, kFull},         {2, 4, 2, 7, 33, 8, 5, kCausal},   {2, 4, 2, 7, 33, 8, 5, {26, -1, 0}},
      {1, 6, 2, 40, 70, 3, 2, {30, 9, 0}},   // tiles that hold rows of several heads
      {3, 8, 1, 5, 600, 4, 3, {-2, -1, 0}},  // first rows are empty
      {2, 3, 3, 65, 20, 2, 7, {0, 3, 2}},   {1, 5, 5, 1, 1025, 16, 16, kFull}, {2, 4, 2, 3, 0, 7, 7, kFull},
      {2, 4, 2, 0, 5, 7, 7, kCausal},       {0, 4, 2, 3, 5, 7, 7, kFull},      {2, 4, 2, 0, 0, 7, 7, kCausal},
  };
  for (const KernelTable& table : Tables()) {
    uint64_t seed = 0;
    for (const Shape& s : shapes) {
      ++seed;
      const Data data = MakeData(s, seed);
      INFO(std::string(table.name), " shape ", seed, " (batch ", s.batch, " heads ", s.num_q_heads, "/", s.num_kv_heads,
           " q_len ", s.q_len, " kv_len ", s.kv_len, ")");
      const AttentionResult expected = RunByHead(table, s, data);
      CHECK(Difference(RunWhole(table, s, data, false, 1), expected) == "");
      CHECK(Difference(RunWhole(table, s, data, true, 1), expected) == "");
      for (int64_t parts : {2, 3, 7, 50})
        CHECK(Difference(RunWhole(table, s, data, parts == 3, parts), expected) == "");
    }
  }
}

TEST_CASE("attention: no keys give +0 and -inf") {
  for (const KernelTable& table : Tables()) {
    const Shape s = {2, 4, 2, 3, 0, 7, 5, kCausal};
    const AttentionResult got = RunWhole(table, s, MakeData(s, 1), false, 1);
    INFO(std::string(table.name));
    CHECK(Difference(got.out, Array(got.out.type(), got.out.size())) == "");
    CHECK(Difference(got.lse, std::vector<float>(24, -HUGE_VALF)) == "");
  }
}

TEST_CASE("attention: broadcast and backward strides, lse absent, nothing written outside") {
  for (const KernelTable& table : Tables()) {
    Random random(3);
    constexpr int64_t kQ = 6, kKeys = 40, kDim = 5;
    const Array q(DType::kF32, random.Normals(kQ * kDim)), k(DType::kF16, random.Normals(kKeys * kDim)),
        v(DType::kBF16, random.Normals(kKeys * kDim));
    AttentionCase c = PlainCase(q, k, v, kDim, kDim, DefaultScale(kDim));
    const AttentionResult one = RunAttend(table, c);
    const Strided keys(k, kKeys, -16), values(v, kKeys, 12);
    Strided out(3 * kQ, kDim * 4, -28, 4);
    AttentionProblem p = {};
    p.batch = 1;
    p.num_q_heads = 3;
    p.num_kv_heads = 1;
    p.q_len = kQ;
    p.kv_len = kKeys;
    p.head_dim = p.value_dim = kDim;
    p.q = {q.data(), DType::kF32, 0, 0, kDim * 4};  // every head has the same queries
    p.k = {keys.data(), DType::kF16, 0, 0, -16};
    p.v = {values.data(), DType::kBF16, 0, 0, 12};
    p.out.data = out.data();
    p.out.head_stride_bytes = -28 * kQ;
    p.out.row_stride_bytes = -28;
    p.scale = DefaultScale(kDim);
    const ScratchMemory scratch(table, kDim, kDim);
    RunAttention(table, p, {0, NumAttentionTasks(p)}, scratch.get());
    const Array got = out.Packed(DType::kF32);
    INFO(std::string(table.name));
    for (int64_t h = 0; h < 3; ++h) CHECK(Difference(Slice(got, h * kQ * kDim, kQ * kDim), one.out) == "");
    CHECK(out.Intact());
  }
}

TEST_CASE("attention: the default scale is the same in every host state") {
  for (size_t d = 1; d <= 300; ++d) {
    const float expected = DefaultScale(d);
    for (const char* host : kHostEnvironments) {
      if (!SetHostEnvironment(host)) continue;
      const float got = DefaultScale(d);
      SetHostEnvironment("default");
      INFO("head_dim ", d, ", host state ", std::string(host));
      CHECK(Bits(got) == Bits(expected));
    }
  }
}

TEST_CASE("attention: the default scale") {
  CHECK(DefaultScale(64) == 0.125f);
  CHECK(DefaultScale(1) == 1.0f);
  for (size_t n = 1; n < 600; ++n)
    CHECK(DefaultScale(n) == static_cast<float>(1.0 / std::sqrt(static_cast<double>(n))));
}

}  // namespace
}  // namespace etalon::test
