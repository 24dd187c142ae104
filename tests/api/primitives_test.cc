// The primitives of the public interface against the kernels, head by head, and against each other.
#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "tests/api/api_test.h"
#include "tests/api/primitive_calls.h"
#include "tests/support/host_environment.h"

namespace etalon::test {
namespace {

const Layout kLayouts[] = {Packed, HeadsInside, Padded, Backward};

Places AllIn(Layout layout, float gaps) {
  Place place;
  place.layout = std::move(layout);
  place.gaps = gaps;
  place.guard = Guard::kBelow;
  return Everywhere(place);
}

// Shapes with every kind of group, geometry and length, empty ones among them.
const std::vector<ApiCase>& Cases() {
  static const std::vector<ApiCase> cases = [] {
    std::vector<ApiCase> all;
    const Sizes sizes[] = {{1, 1, 1, 1, 1, 1, 1},    {2, 4, 2, 3, 130, 5, 3}, {2, 6, 3, 35, 20, 3, 4},
                           {1, 8, 1, 1, 600, 4, 2},  {3, 2, 2, 40, 17, 2, 5}, {2, 4, 1, 20, 33, 7, 1},
                           {1, 3, 3, 2, 1100, 3, 6}, {2, 4, 2, 3, 0, 7, 7},   {2, 4, 2, 0, 5, 7, 7},
                           {0, 4, 2, 3, 5, 7, 7}};
    for (const Sizes& size : sizes) {
      ApiCase c = RandomCase(size, all.size() + 1);
      all.push_back(c);
      c.right = 1;
      c.q_offset = size.kv_len / 2;
      all.push_back(c);
      c.left = 30;
      for (int64_t b = 0; b < size.batch; ++b) {
        c.q_offsets.push_back(7 * b - 3);
        c.q_lens.push_back(b == 1 ? 0 : size.q_len - size.q_len / 3);
        c.kv_lens.push_back(b == 0 ? size.kv_len - size.kv_len / 4 : size.kv_len);
      }
      all.push_back(c);
    }
    return all;
  }();
  return cases;
}

int64_t NumScores(const Sizes& s) { return s.batch * s.num_q_heads * s.q_len * s.kv_len; }

// Calls `check` with a way to run and places, so that each case meets every loop and layout.
template <typename Check>
void EveryWay(Check check) {
  for (size_t n = 0; n < 5; ++n) check(EveryLoop()[n], AllIn(kLayouts[n % 4], n % 2 == 0 ? NAN : 1e30f));
  for (size_t n = 0; n < 4; ++n) {
    Places mixed = AllIn(kLayouts[n], HUGE_VALF);
    mixed.out.layout = kLayouts[(n + 1) % 4];
    mixed.k.layout = kLayouts[(n + 2) % 4];
    mixed.lse.layout = kLayouts[(n + 3) % 4];
    check(EveryLoop()[n + 1], mixed);
  }
}

TEST_CASE("scores: equal to the kernels head by head, in every layout") {
  for (const KernelTable& table : Tables()) {
    for (const ApiCase& c : Cases()) {
      const Array expected = ExpectedScores(c);
      EveryWay([&](const How& how, const Places& places) {
        INFO(std::string(table.name), " ", Describe(c.size), " ", Describe(how));
        CHECK(Difference(CallScores(c, table, how, places), expected) == "");
      });
    }
  }
}

TEST_CASE("scores: what a row does not see is -inf, whatever lies there") {
  for (const KernelTable& table : Tables()) {
    ApiCase c = RandomCase({2, 2, 1, 4, 12, 3, 1}, 1);
    c.right = 2;
    c.kv_lens = {9, 0};
    c.q_lens = {3, 4};
    const Array clean = CallScores(c, table);
    for (int64_t i = 0; i < clean.size(); ++i) {
      const bool seen = Sees(c, i / 96, i / 12 % 4, i % 12);
      CHECK((clean[i] == -HUGE_VALF) != seen);
    }
    const Array nan(c.k.type(), std::vector<float>{NAN});
    for (int64_t i = 0; i < 2 * 12 * 3; ++i) {
      if (i / 3 >= 6) c.k.SetWord(i, nan.Word(0));  // beyond every row, or the length
    }
    INFO(std::string(table.name));
    CHECK(Difference(CallScores(c, table), clean) == "");
  }
}

TEST_CASE("softmax: equal to the kernels head by head, in place too") {
  for (const KernelTable& table : Tables()) {
    for (const ApiCase& c : Cases()) {
      Random random(3);
      std::vector<float> values = random.Normals(NumScores(c.size), 3.0f);
      for (float& x : values) x = random.Below(7) == 0 ? -HUGE_VALF : x;
      const Array scores = F32(values);
      const SoftmaxResult expected = ExpectedSoftmax(c, scores);
      EveryWay([&](const How& how, const Places& places) {
        INFO(std::string(table.name), " ", Describe(c.size), " ", Describe(how));
        CHECK(Difference(CallSoftmax(c, scores, table, how, places), expected) == "");
        CHECK(Difference(CallSoftmax(c, scores, table, how, places, true), expected) == "");
      });
    }
  }
}

TEST_CASE("weighted sum: equal to the kernels head by head") {
  for (const KernelTable& table : Tables()) {
    for (const ApiCase& c : Cases()) {
      Random random(4);
      const Array weights = F32(random.Normals(NumScores(c.size)));
      const Array expected = ExpectedWeightedSum(c, weights);
      EveryWay([&](const How& how, const Places& places) {
        INFO(std::string(table.name), " ", Describe(c.size), " ", Describe(how));
        CHECK(Difference(CallWeightedSum(c, weights, table, how, places), expected) == "");
      });
    }
  }
}

TEST_CASE("softmax, weighted sum: under a mask whose sizes may be 1") {
  for (const KernelTable& table : Tables()) {
    for (ApiCase c : Cases()) {
      const Sizes& s = c.size;
      Random random(8);
      const Array scores = F32(random.Normals(NumScores(s)));
      for (int ones = 0; ones < 16; ++ones) {
        c.mask_shape = {s.batch, s.num_q_heads, s.q_len, s.kv_len};
        for (size_t d = 0; d < 4; ++d) {
          if ((ones >> d & 1) != 0) c.mask_shape[d] = 1;
        }
        c.mask.resize(static_cast<size_t>(Count(c.mask_shape)));
        for (uint8_t& byte : c.mask) byte = static_cast<uint8_t>(random.Below(3) == 0 ? 0 : 1 + random.Below(255));
        const How& how = EveryLoop()[static_cast<size_t>(ones) % EveryLoop().size()];
        INFO(std::string(table.name), " ", Describe(s), " ", Describe(how), " ones ", ones);
        CHECK(Difference(CallSoftmax(c, scores, table, how), ExpectedSoftmax(c, scores)) == "");
        CHECK(Difference(CallWeightedSum(c, scores, table, how), ExpectedWeightedSum(c, scores)) == "");
      }
    }
  }
}

// Poison wherever a row does not see a key.
Array Hidden(const ApiCase& c, Array scores, float poison) {
  const Sizes& s = c.size;
  for (int64_t i = 0; i < scores.size(); ++i) {
    const int64_t b = i / (s.num_q_heads * s.q_len * s.kv_len);
    if (!Sees(c, b, i / s.kv_len % s.q_len, i % s.kv_len)) scores.SetWord(i, Bits(poison));
  }
  return scores;
}

TEST_CASE("softmax, weighted sum: what a row does not see is not felt") {
  for (const KernelTable& table : Tables()) {
    for (const ApiCase& c : Cases()) {
      Random random(5);
      const Array scores = F32(random.Normals(NumScores(c.size)));
      const SoftmaxResult softmax = ExpectedSoftmax(c, scores);
      const Array sum = ExpectedWeightedSum(c, scores);
      for (float poison : {NAN, HUGE_VALF, 1e30f}) {
        INFO(std::string(table.name), " ", Describe(c.size), " poison ", poison);
        CHECK(Difference(CallSoftmax(c, Hidden(c, scores, poison), table), softmax) == "");
        CHECK(Difference(CallWeightedSum(c, Hidden(c, scores, poison), table), sum) == "");
      }
    }
  }
}

TEST_CASE("scores, softmax, weighted sum: together they are attention, within tolerance") {
  for (const KernelTable& table : Tables()) {
    for (const ApiCase& c : Cases()) {
      // All but the scores can do without the geometry: -inf says it.
      ApiCase plain = c;
      plain.left = plain.right = -1;
      plain.q_lens.clear();
      plain.kv_lens.clear();
      const SoftmaxResult softmax = CallSoftmax(plain, CallScores(c, table), table);
      const Array out = CallWeightedSum(c, F32(softmax.w), table);
      INFO(std::string(table.name), " ", Describe(c.size));
      CHECK(AccuracyReport(c, {out, softmax.lse}) == "");
    }
  }
}

TEST_CASE("merge: equal to the kernel, in place too, in every layout") {
  const Sizes sizes[] = {{1, 1, 1, 1}, {2, 3, 1, 4}, {1, 5, 1, 40}, {3, 2, 1, 1}, {0, 3, 1, 4}, {2, 3, 1, 0}};
  for (const KernelTable& table : Tables()) {
    uint64_t seed = 0;
    for (const Sizes& size : sizes) {
      for (bool specials : {false, true}) {
        MergeCase c = RandomMerge(++seed, specials);
        const int64_t rows = size.batch * size.num_q_heads * size.q_len;
        Random random(seed);
        const MergeCase some = c;  // repeated to fill the rows
        c.rows = rows;
        const auto fill = [&](const Array& from) {
          Array all(from.type(), rows * c.value_dim);
          for (int64_t i = 0; i < all.size(); ++i) all.SetWord(i, from.Word(i * 7 % from.size()));
          return all;
        };
        c.out1 = fill(some.out1);
        c.out2 = fill(some.out2);
        c.lse1 = random.Normals(rows, 3.0f);
        c.lse2 = random.Normals(rows, 3.0f);
        for (size_t r = 0; r < c.lse1.size(); ++r) {
          if (r % 5 == 1) c.lse1[r] = some.lse1[r % some.lse1.size()];
          if (r % 3 == 0) (random.Below(2) == 0 ? c.lse1 : c.lse2)[r] = -HUGE_VALF;
        }
        AttentionResult expected = {Array(c.out1.type(), 0), {}};
        if (rows > 0) expected = RunMerge(Definition(), c);
        EveryWay([&](const How& how, const Places& places) {
          for (InPlace in_place : {InPlace::kNo, InPlace::kFirst, InPlace::kSecond}) {
            INFO(std::string(table.name), " seed ", seed, " ", Describe(how), " in place ", static_cast<int>(in_place));
            CHECK(Difference(CallMerge(size, c, table, how, places, in_place), expected) == "");
          }
        });
      }
    }
  }
}

// ---------------------------------------------------------------------------------------------------------- states

TEST_CASE("states: equal to the kernels, and merged to the bytes of attention") {
  for (const KernelTable& table : Tables()) {
    for (const ApiCase& c : Cases()) {
      const int64_t blocks = etalon_num_blocks(c.size.kv_len);
      const StatesResult expected = ExpectedStates(c);
      const AttentionResult attention = Expected(c);
      int64_t extra = 0;
      EveryWay([&](const How& how, const Places& places) {
        GuardedStates states(c.size, blocks, blocks + extra++ % 3);
        INFO(std::string(table.name), " ", Describe(c.size), " ", Describe(how));
        CallBlockStates(c, states.get(), table, how, places);
        CHECK((states.m.GapsIntact() && states.l.GapsIntact() && states.o.GapsIntact()));
        CHECK(Difference(states.Values(), expected) == "");
        CHECK(Difference(CallMergeStates(c, states.get(), table, how, places), attention) == "");
      });
    }
  }
}

TEST_CASE("states: keys that two hold, states side by side in one array") {
  for (const KernelTable& table : Tables()) {
    for (uint64_t seed = 0; seed < 6; ++seed) {
      ApiCase c = RandomCase({2, 4, 2, 3 + static_cast<int64_t>(seed % 2) * 20, 1800, 3, 2}, seed);
      c.left = seed % 3 == 0 ? -1 : 900;
      c.right = seed % 3 == 2 ? -1 : 0;
      c.q_offset = 1000;
      c.q_offsets = {0, 700};
      c.kv_lens = {1800, 1700};
      const AttentionResult expected = Expected(c);
      const int64_t blocks = etalon_num_blocks(1800);
      for (int64_t cut = 0; cut <= blocks; ++cut) {
        const GuardedStates states(c.size, blocks, blocks + 1);
        for (int half = 0; half < 2; ++half) {
          const int64_t first = half == 0 ? 0 : cut, last = half == 0 ? cut : blocks;
          const int64_t first_key = std::min<int64_t>(1800, first * 512),
                        last_key = std::min<int64_t>(1800, last * 512);
          ApiCase part = c;
          part.size.kv_len = last_key - first_key;
          part.k = Array(c.k.type(), 4 * part.size.kv_len * 3);
          part.v = Array(c.v.type(), 4 * part.size.kv_len * 2);
          for (int64_t h = 0; h < 4; ++h) {  // [batch, num_kv_heads]
            for (int64_t i = 0; i < part.size.kv_len * 3; ++i) {
              part.k.SetWord(h * part.size.kv_len * 3 + i, c.k.Word((h * 1800 + first_key) * 3 + i));
            }
            for (int64_t i = 0; i < part.size.kv_len * 2; ++i) {
              part.v.SetWord(h * part.size.kv_len * 2 + i, c.v.Word((h * 1800 + first_key) * 2 + i));
            }
          }
          part.q_offset = c.q_offset - first_key;
          for (int64_t& length : part.kv_lens) {
            length = std::max<int64_t>(0, std::min(length, last_key) - first_key);
          }
          CallBlockStates(part, &states.Blocks(first, last - first)->states, table, EveryLoop()[seed % 5]);
        }
        CHECK((states.m.GapsIntact() && states.l.GapsIntact() && states.o.GapsIntact()));
        INFO(std::string(table.name), " seed ", seed, " cut ", cut);
        CHECK(Difference(CallMergeStates(c, states.get(), table, EveryLoop()[(seed + 1) % 5]), expected) == "");
      }
    }
  }
}

TEST_CASE("states: an l of 0 is an empty block, whatever m and o hold") {
  for (const KernelTable& table : Tables()) {
    const ApiCase c = RandomCase({1, 2, 1, 2, 1100, 3, 4}, 2);
    const StatesResult clean = ExpectedStates(c);
    StatesResult states = clean;  // the middle one of three blocks of each row becomes empty
    for (size_t i = 1; i < states.l.size(); i += 3) {
      states.l[i] = 0.0f;
      states.m[i] = NAN;
      for (size_t d = 0; d < 4; ++d) states.o[i * 4 + d] = d % 2 == 0 ? NAN : HUGE_VALF;
    }
    const GuardedStates guarded(c.size, 3, 4, &states);
    INFO(std::string(table.name));
    AttentionResult expected = {Array(c.out_type, 16), {}};
    for (int64_t row = 0; row < 4; ++row) {
      AttentionCase one;
      one.rows = 1;
      one.value_dim = 4;
      one.out_type = c.out_type;
      StatesResult two = {2, {}, {}, {}};
      for (size_t i : {size_t{0}, size_t{2}}) {
        const size_t at = static_cast<size_t>(row) * 3 + i;
        two.m.push_back(clean.m[at]);
        two.l.push_back(clean.l[at]);
        two.o.insert(two.o.end(), clean.o.begin() + static_cast<int64_t>(at) * 4,
                     clean.o.begin() + static_cast<int64_t>(at) * 4 + 4);
      }
      const AttentionResult folded = RunFold(Definition(), one, two);
      for (int64_t d = 0; d < 4; ++d) expected.out.SetWord(row * 4 + d, folded.out.Word(d));
      expected.lse.push_back(folded.lse[0]);
    }
    CHECK(Difference(CallMergeStates(c, guarded.get(), table), expected) == "");
    CHECK((guarded.m.Intact() && guarded.l.Intact() && guarded.o.Intact()));
  }
}

TEST_CASE("primitives: the host's floating-point environment changes nothing and is not changed") {
  for (const KernelTable& table : Tables()) {
    ApiCase c = RandomCase({1, 2, 1, 3, 600, 5, 3}, 7);
    c.k.SetWord(0, 1);  // subnormal
    const Array scores = ExpectedScores(c);
    const SoftmaxResult softmax = ExpectedSoftmax(c, scores);
    const Array sum = ExpectedWeightedSum(c, F32(softmax.w));
    const AttentionResult attention = Expected(c);
    const MergeCase merge = {6, 3, attention.out, attention.out, attention.lse, softmax.lse};
    const AttentionResult merged = RunMerge(Definition(), merge);
    for (const char* host : kHostEnvironments) {
      for (const How& how : EveryLoop()) {
        const GuardedStates states(c.size, 2, 2);
        if (!SetHostEnvironment(host)) continue;
        const uint64_t before = HostEnvironment();
        const Array got_scores = CallScores(c, table, how);
        const SoftmaxResult got_softmax = CallSoftmax(c, scores, table, how);
        const Array got_sum = CallWeightedSum(c, F32(softmax.w), table, how);
        const AttentionResult got_merged = CallMerge(c.size, merge, table, how);
        CallBlockStates(c, states.get(), table, how);
        const AttentionResult got_folded = CallMergeStates(c, states.get(), table, how);
        const uint64_t after = HostEnvironment();
        SetHostEnvironment("default");
        INFO(std::string(table.name), " ", Describe(how), ", host state ", std::string(host));
        CHECK(Difference(got_scores, scores) == "");
        CHECK(Difference(got_softmax, softmax) == "");
        CHECK(Difference(got_sum, sum) == "");
        CHECK(Difference(got_merged, merged) == "");
        CHECK(Difference(got_folded, attention) == "");
        CHECK(after == before);
      }
    }
  }
}

}  // namespace
}  // namespace etalon::test
