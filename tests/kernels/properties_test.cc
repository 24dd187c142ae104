// What must not change, or change in a known way, when a problem is cut, permuted, shifted or scaled.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>

#include "tests/kernels/kernel_test.h"
#include "tests/kernels/order_model.h"
#include "tests/support/reference.h"
#include "tests/support/targets.h"
#include "tests/support/tolerance.h"

namespace etalon::test {
namespace {

RandomOptions Small() {
  RandomOptions options;
  options.max_dim = 33;
  return options;
}

// One source without options, long enough for several blocks.
AttentionCase Long(uint64_t seed, int64_t num_keys, int64_t base) {
  Random random(seed);
  AttentionCase c = PlainCase{Array{DType::kF32, random.Normals(3 * 8, 2.0f)},
                              Array{DType::kF32, random.Normals(num_keys * 8)},
                              Array{DType::kF32, random.Normals(num_keys * 5)},
                              8,
                              5,
                              ScaleOf(8)};
  c.sources[0].base = base;
  c.sources[0].spans = {{base, base + num_keys}, {base + num_keys / 3, base + num_keys}, {base, base + num_keys / 2}};
  c.sources[0].mask.assign(static_cast<size_t>(3 * num_keys), 1);
  for (uint8_t& m : c.sources[0].mask) m = random.Below(7) != 0;
  return c;
}

TEST_CASE("any split of rows into tiles gives the same bytes") {
  for (const KernelTable& table : Tables()) {
    for (uint64_t seed = 0; seed < 40; ++seed) {
      const AttentionCase c = RandomAttention(seed, Small());
      INFO(std::string(table.name), " seed ", seed, " ", Describe(c));
      const AttentionResult whole = RunAttend(table, c);
      const int64_t cut = 1 + static_cast<int64_t>(seed) % 3;
      for (int64_t first = 0; first < c.rows; first += cut) {
        const int64_t last = std::min(c.rows, first + cut);
        const AttentionResult part = RunAttend(table, SliceRows(c, first, last));
        CHECK(Difference(part.out, Slice(whole.out, first * c.value_dim, (last - first) * c.value_dim)) == "");
        CHECK(Difference(part.lse, {whole.lse.begin() + first, whole.lse.begin() + last}) == "");
      }
    }
  }
}

TEST_CASE("sources split on the block grid equal the one source in bytes, elsewhere within tolerance") {
  for (const KernelTable& table : Tables()) {
    for (int64_t base : {0, 300, 512}) {
      const AttentionCase c = Long(static_cast<uint64_t>(base), 1700, base);
      const AttentionResult whole = RunAttend(table, c);
      const TrueAttention exact = AttentionInF64(c);
      for (int64_t at : {512, 1024, 1536, 700, 1100}) {
        AttentionCase split = c;
        const SourceData& s = c.sources[0];
        split.sources = {SliceSource(c, s, 0, at - base, true), SliceSource(c, s, at - base, 1700, true)};
        if (at == base) continue;
        INFO(std::string(table.name), " base ", base, " split at ", at);
        const AttentionResult got = RunAttend(table, split);
        if (at % 512 == 0) CHECK(Difference(got, whole) == "");
        CHECK(OutReport(got, exact) == "");
        CHECK(LseReport(got.lse, exact.lse) == "");
        // The positions of later keys may also be counted from the split.
        split.sources[1] = SliceSource(c, s, at - base, 1700, false);
        const AttentionResult moved = RunAttend(table, split);
        if (at % 512 == 0) CHECK(Difference(moved, whole) == "");
        CHECK(OutReport(moved, exact) == "");
      }
    }
  }
}

TEST_CASE("states of parts of the block range, folded, equal the unsplit call in bytes") {
  for (const KernelTable& table : Tables()) {
    const AttentionCase c = Long(5, 2100, 40);  // five blocks
    const StatesResult whole = RunBlockStates(table, c);
    for (int64_t blocks_per_call : {1, 2, 3, 4}) {
      INFO(std::string(table.name), " blocks per call ", blocks_per_call);
      const StatesResult parts = RunBlockStates(table, c, blocks_per_call);
      CHECK(Difference(parts, whole) == "");
      CHECK(Difference(RunFold(table, c, parts), RunAttend(table, c)) == "");
    }
  }
}

// Everything moves by whole blocks, from the start to the end of all positions: base + num_keys = 2^62.
TEST_CASE("positions up to 2^62 give the bytes that the same keys give at the start") {
  constexpr int64_t kEnd = int64_t{1} << 62;
  for (const KernelTable& table : Tables()) {
    for (int64_t num_keys : {1, 128, 600, 1030}) {
      const int64_t far = kEnd - num_keys, base = far % 512, shift = far - base;
      AttentionCase c = Long(static_cast<uint64_t>(num_keys), num_keys, base);
      c.slopes = {0.01f, 0.002f, -0.03f};
      c.q_pos = {base + num_keys, base, base + num_keys / 2};
      AttentionCase moved = c;
      moved.sources[0].base += shift;
      for (Span& span : moved.sources[0].spans) span = {span.first + shift, span.last + shift};
      for (int64_t& position : moved.q_pos) position += shift;
      INFO(std::string(table.name), " ", num_keys, " keys");
      CHECK(Difference(RunScores(table, moved), RunScores(table, c)) == "");
      CHECK(Difference(RunAttend(table, moved), RunAttend(table, c)) == "");
      CHECK(Difference(RunBlockStates(table, moved, 1), RunBlockStates(table, c)) == "");
      // Rows from the first to the last integer, a far one among them; spans that are empty at the ends of everything.
      moved.q_pos = {INT64_MIN, INT64_MAX, -kEnd};
      CHECK(Difference(RunAttend(table, moved), ModelAttention(moved)) == "");
      moved.sources[0].spans = {{kEnd, kEnd}, {INT64_MAX, INT64_MIN}, {kEnd - 1, kEnd}};
      CHECK(Difference(RunAttend(table, moved), ModelAttention(moved)) == "");
      CHECK(Difference(RunBlockStates(table, moved), ModelStates(moved)) == "");
    }
  }
}

TEST_CASE("the merge of two halves of the keys is within tolerance of the whole, and every order of them too") {
  for (const KernelTable& table : Tables()) {
    for (uint64_t seed = 0; seed < 30; ++seed) {
      AttentionCase c = RandomAttention(seed, Small());
      c.sinks.clear();
      c.sources.resize(1);
      c.out_type = DType::kF32;
      const SourceData source = c.sources[0];
      const TrueAttention exact = AttentionInF64(c);
      AttentionCase left = c, right = c;
      const int64_t half = source.num_keys / 2;
      left.sources = {SliceSource(c, source, 0, half, true)};
      right.sources = {SliceSource(c, source, half, source.num_keys, true)};
      const AttentionResult a = RunAttend(table, left), b = RunAttend(table, right);
      INFO(std::string(table.name), " seed ", seed, " ", Describe(c));
      for (bool swapped : {false, true}) {
        const AttentionResult &x = swapped ? b : a, &y = swapped ? a : b;
        const AttentionResult merged = RunMerge(table, {c.rows, c.value_dim, x.out, y.out, x.lse, y.lse});
        CHECK(OutReport(merged, exact) == "");
        CHECK(LseReport(merged.lse, exact.lse) == "");
      }
    }
  }
}

TEST_CASE("the order of hidden keys does not show, in bytes; the order of visible ones only in rounding") {
  for (const KernelTable& table : Tables()) {
    for (uint64_t seed = 0; seed < 20; ++seed) {
      Random random(seed);
      const int64_t n = 200;
      AttentionCase c = PlainCase{Array{DType::kF32, random.Normals(2 * 8)},
                                  Array{DType::kF32, random.Normals(n * 8)},
                                  Array{DType::kF32, random.Normals(n * 5)},
                                  8,
                                  5,
                                  ScaleOf(8)};
      SourceData& s = c.sources[0];
      for (int64_t i = 0; i < n; ++i) s.mask.push_back(random.Below(3) != 0);
      s.mask.insert(s.mask.end(), s.mask.begin(), s.mask.end());
      const AttentionResult before = RunAttend(table, c);
      const TrueAttention exact = AttentionInF64(c);
      INFO(std::string(table.name), " seed ", seed);
      for (bool hidden : {true, false}) {
        AttentionCase permuted = c;
        std::vector<int64_t> which;
        for (int64_t i = 0; i < n; ++i) {
          if ((s.mask[static_cast<size_t>(i)] == 0) == hidden) which.push_back(i);
        }
        for (size_t i = 0; i < which.size(); ++i) {  // rotate the chosen keys by one place
          const int64_t from = which[i], to = which[(i + 1) % which.size()];
          for (int64_t d = 0; d < 8; ++d) permuted.sources[0].k.SetWord(to * 8 + d, s.k.Word(from * 8 + d));
          for (int64_t d = 0; d < 5; ++d) permuted.sources[0].v.SetWord(to * 5 + d, s.v.Word(from * 5 + d));
        }
        const AttentionResult after = RunAttend(table, permuted);
        if (hidden) CHECK(Difference(after, before) == "");
        CHECK(OutReport(after, exact) == "");
        CHECK(LseReport(after.lse, exact.lse) == "");
      }
    }
  }
}

TEST_CASE("a bias that is the same for all keys moves lse by itself, and out by rounding alone") {
  for (const KernelTable& table : Tables()) {
    for (float shift : {-50.0f, 0.3f, 20.0f}) {
      AttentionCase c = Long(9, 300, 0);
      const TrueAttention unshifted = AttentionInF64(c);
      c.sources[0].bias = Array(DType::kF32, std::vector<float>(3 * 300, shift));
      const AttentionResult got = RunAttend(table, c);
      TrueAttention exact = AttentionInF64(c);  // for the size of the scores
      exact.out = unshifted.out;
      exact.lse = unshifted.lse;
      for (double& x : exact.lse) x += static_cast<double>(shift);
      INFO(std::string(table.name), " shift ", shift);
      CHECK(OutReport(got, exact) == "");
      CHECK(LseReport(got.lse, exact.lse) == "");
    }
  }
}

TEST_CASE("constant values come out, values scaled by a power of two scale the output in bits, and -v gives -out") {
  for (const KernelTable& table : Tables()) {
    for (uint64_t seed = 0; seed < 30; ++seed) {
      AttentionCase c = RandomAttention(seed, Small());
      c.out_type = DType::kF32;
      c.sinks.clear();
      INFO(std::string(table.name), " seed ", seed, " ", Describe(c));
      AttentionCase scaled = c, constant = c;
      for (size_t i = 0; i < c.sources.size(); ++i) {
        std::vector<float> v, ones;
        for (int64_t j = 0; j < c.sources[i].v.size(); ++j) {
          v.push_back(c.sources[i].v[j] * -8.0f);
          ones.push_back(0.7f);
        }
        scaled.sources[i].v = Array(c.sources[i].v.type(), v);
        constant.sources[i].v = Array(DType::kF32, ones);
      }
      AttentionResult expected = RunAttend(table, c);
      for (int64_t j = 0; j < expected.out.size(); ++j) expected.out.SetWord(j, Bits(expected.out[j] * -8.0f + 0.0f));
      CHECK(Difference(RunAttend(table, scaled), expected) == "");
      const TrueAttention exact = AttentionInF64(constant);
      const AttentionResult got = RunAttend(table, constant);
      CHECK(OutReport(got, exact) == "");
      for (size_t r = 0; r < exact.lse.size(); ++r) {
        if (std::isinf(exact.lse[r])) continue;
        CHECK(std::fabs(static_cast<double>(got.out[static_cast<int64_t>(r) * c.value_dim]) - 0.7) <=
              OutTolerance(exact.max_score[r], 0.7, DType::kF32, 0.7));
      }
    }
  }
}

TEST_CASE("the primitives in a row agree with the fused pass within tolerance") {
  for (const KernelTable& table : Tables()) {
    for (uint64_t seed = 0; seed < 30; ++seed) {
      AttentionCase c = RandomAttention(seed, Small());
      c.sinks.clear();
      c.sources.resize(1);
      c.sources[0].base = 0;
      c.sources[0].spans.clear();
      const int64_t n = c.sources[0].num_keys;
      if (n == 0) continue;
      INFO(std::string(table.name), " seed ", seed, " ", Describe(c));
      const TrueAttention exact = AttentionInF64(c);
      SoftmaxCase softmax = {c.rows, n, RunScores(table, c), {}, c.sources[0].mask};
      const SoftmaxResult weights = RunSoftmax(table, softmax);
      WeightedSumCase sum = {c.rows, n, c.value_dim, weights.w, c.sources[0].v, {}, c.sources[0].mask, c.out_type};
      CHECK(OutReport({RunWeightedSum(table, sum), weights.lse}, exact) == "");
      CHECK(LseReport(weights.lse, exact.lse) == "");
    }
  }
}

}  // namespace
}  // namespace etalon::test
