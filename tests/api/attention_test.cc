// Attention through every form of the public interface: batches, groups of heads, types, geometry and lengths.
#include <cmath>
#include <set>
#include <string>

#include "tests/api/api_test.h"
#include "tests/support/host_environment.h"

namespace etalon::test {
namespace {

struct Shaped {
  Sizes size;
  int64_t q_offset, left, right;
};

const Shaped kShapes[] = {
    {{1, 1, 1, 1, 1, 1, 1}, 0, -1, -1},
    {{2, 4, 2, 7, 33, 8, 5}, 0, -1, 0},
    {{2, 4, 2, 7, 33, 8, 5}, 26, -1, 0},
    {{1, 6, 2, 40, 70, 3, 2}, 30, 9, 0},   // tiles that hold rows of several heads
    {{3, 8, 1, 5, 600, 4, 3}, -2, -1, 0},  // first rows are empty
    {{2, 3, 3, 65, 20, 2, 7}, 0, 3, 2},
    {{1, 5, 5, 1, 1025, 16, 16}, 0, -1, -1},
    {{1, 2, 1, 3, 1700, 5, 4}, 1600, 1100, -1},  // a first block that is not the sequence's
    {{2, 4, 2, 3, 0, 7, 7}, 0, -1, -1},
    {{2, 4, 2, 0, 5, 7, 7}, 0, -1, 0},
    {{0, 4, 2, 3, 5, 7, 7}, 0, -1, -1},
    {{2, 4, 2, 0, 0, 7, 7}, 0, -1, 0},
};

ApiCase CaseOf(const Shaped& shaped, uint64_t seed) {
  ApiCase c = RandomCase(shaped.size, seed);
  c.q_offset = shaped.q_offset;
  c.left = shaped.left;
  c.right = shaped.right;
  return c;
}

TEST_CASE("attention: the tables of the interface are those that the tests walk") {
  std::set<std::string> offered, walked;
  for (int32_t i = 0; i < etalon_num_targets(); ++i) {
    etalon_target target;
    REQUIRE(etalon_get_target(i, &target) == ETALON_OK);
    CHECK((target.missing & ~target.required) == 0);
    if (target.missing == 0) offered.insert(target.name);
  }
  for (const KernelTable& table : Tables()) walked.insert(table.name);
  CHECK(offered.count("scalar") == 1);
  for (const std::string& name : walked) CHECK(offered.count(name) == 1);
}

TEST_CASE("attention: equal to one case a head, in every form and layout") {
  for (const KernelTable& table : Tables()) {
    uint64_t seed = 0;
    for (const Shaped& shaped : kShapes) {
      const ApiCase c = CaseOf(shaped, ++seed);
      INFO(std::string(table.name), " shape ", seed, ": ", Describe(c.size));
      const AttentionResult expected = Expected(c);
      CHECK(FormsReport(c, table, expected) == "");
      for (Layout layout : {HeadsInside, Padded, Backward}) {
        Place place;
        place.layout = layout;
        CHECK(Difference(Run(c, table, EveryForm()[seed % EveryForm().size()], Everywhere(place)), expected) == "");
      }
      CHECK(AccuracyReport(c, expected) == "");
    }
  }
}

TEST_CASE("attention: every type of q, k, v and out") {
  constexpr DType kTypes[] = {DType::kF32, DType::kF16, DType::kBF16};
  for (const KernelTable& table : Tables()) {
    for (int64_t n = 0; n < 81; ++n) {
      const Sizes s = {1, 2, 1, 3, 5, 3, 2};
      Random random(static_cast<uint64_t>(n));
      ApiCase c;
      c.size = s;
      c.q = Array{kTypes[n % 3], random.Normals(s.num_q_heads * s.q_len * s.head_dim)};
      c.k = Array{kTypes[n / 3 % 3], random.Normals(s.kv_len * s.head_dim)};
      c.v = Array{kTypes[n / 9 % 3], random.Normals(s.kv_len * s.value_dim)};
      c.out_type = kTypes[n / 27];
      INFO(std::string(table.name), " types ", n);
      const AttentionResult expected = Expected(c);
      CHECK(Difference(Run(c, table), expected) == "");
      CHECK(Difference(Run(c, table, {Form::kTasks, Loop::Kind::kReverse, 2}), expected) == "");
      CHECK(AccuracyReport(c, expected) == "");
    }
  }
}

TEST_CASE("attention: lengths, offsets and geometry of each sequence") {
  const int64_t windows[][2] = {{-1, -1}, {-1, 0}, {4, 0}, {0, 0}, {2, 3}, {-1, 5}, {7, -1}};
  for (const KernelTable& table : Tables()) {
    for (const auto& window : windows) {
      for (int lengths = 0; lengths < 8; ++lengths) {
        ApiCase c = RandomCase({4, 4, 2, 6, 150, 5, 3}, static_cast<uint64_t>(lengths) + 10);
        c.left = window[0];
        c.right = window[1];
        c.q_offset = 3;
        if ((lengths & 1) != 0) c.q_lens = {6, 0, 1, 5};
        if ((lengths & 2) != 0) c.kv_lens = {0, 150, 129, 7};
        if ((lengths & 4) != 0) c.q_offsets = {-5, 140, 127, 0};
        INFO(std::string(table.name), " left ", c.left, " right ", c.right, " lengths ", lengths);
        const AttentionResult expected = Expected(c);
        const size_t form = static_cast<size_t>(lengths + window[0] + 1) % EveryForm().size();
        CHECK(Difference(Run(c, table), expected) == "");
        CHECK(Difference(Run(c, table, EveryForm()[form]), expected) == "");
        CHECK(AccuracyReport(c, expected) == "");
      }
    }
  }
}

TEST_CASE("attention: no limit is as far as a limit can be") {
  for (const KernelTable& table : Tables()) {
    ApiCase c = RandomCase({1, 1, 1, 3, 40, 4, 4}, 5);
    const AttentionResult expected = Expected(c);
    for (int64_t far : {int64_t{43}, int64_t{1} << 40, INT64_MAX - 1, INT64_MAX}) {
      c.left = c.right = far;
      INFO(std::string(table.name), " limit ", far);
      CHECK(Difference(Run(c, table), expected) == "");
    }
    for (int64_t none : {int64_t{-2}, INT64_MIN}) {
      c.left = c.right = none;
      CHECK(Difference(Run(c, table), expected) == "");
    }
    // So far away that the windows hold none.
    c.left = 1;
    c.right = 1;
    for (int64_t offset : {-(int64_t{1} << 62), int64_t{-5}, int64_t{42}, int64_t{1} << 62}) {
      c.q_offset = offset;
      INFO("offset ", offset);
      const AttentionResult got = Run(c, table);
      CHECK(Difference(got.out, Array(c.out_type, 12)) == "");
      CHECK(Difference(got.lse, std::vector<float>(3, -HUGE_VALF)) == "");
    }
  }
}

TEST_CASE("attention: the scale is used as it is given, and 0 is the default one") {
  for (const KernelTable& table : Tables()) {
    ApiCase c = RandomCase({1, 2, 1, 3, 9, 7, 2}, 6);
    const AttentionResult expected = Expected(c);
    for (float zero : {0.0f, -0.0f, etalon_default_scale(7)}) {
      c.scale = zero;
      CHECK(Difference(Run(c, table), expected) == "");
    }
    for (float scale : {0.3f, -1.5f, 0x1p-140f, 1e5f}) {  // a subnormal one is no 0
      c.scale = scale;
      INFO(std::string(table.name), " scale ", scale);
      CHECK(FormsReport(c, table, Expected(c)) == "");
    }
  }
}

TEST_CASE("attention: lse may be absent") {
  for (const KernelTable& table : Tables()) {
    const ApiCase c = RandomCase({2, 2, 1, 3, 1100, 4, 3}, 7);
    const AttentionResult expected = Expected(c);
    for (const How& how : EveryForm()) {
      ApiCall call(c, table);
      call.args.lse = nullptr;
      INFO(std::string(table.name), " ", Describe(how));
      CHECK(call.Run(how, nullptr) == ETALON_OK);
      CHECK(Difference(call.Result().out, expected.out) == "");
      CHECK(call.lse.Intact());
      CHECK(call.Damage() == "");
    }
  }
}

TEST_CASE("attention: a descriptor may be complete, or larger than the call, in any form") {
  for (const KernelTable& table : Tables()) {
    const ApiCase c = RandomCase({2, 2, 1, 3, 700, 4, 3}, 8);
    const AttentionResult expected = Expected(c);
    for (const How& how : EveryForm()) {
      for (int64_t more : {0, 3}) {
        ApiCall call(c, table);
        const etalon_attention_desc plan = call.PlanDesc();
        call.desc = plan;
        call.desc.max_batch += more;
        call.desc.max_q_len += 20 * more;
        call.desc.max_kv_len += 500 * more;
        INFO(std::string(table.name), " ", Describe(how), " more ", more);
        CHECK(call.Run(how, nullptr) == ETALON_OK);
        CHECK(Difference(call.Result(), expected) == "");
      }
    }
  }
}

TEST_CASE("attention: the host's floating-point environment changes nothing and is not changed") {
  for (const KernelTable& table : Tables()) {
    ApiCase c = RandomCase({2, 2, 1, 3, 1100, 7, 3}, 9);
    c.k.SetWord(0, 1);  // subnormal
    c.v.SetWord(5, 1);
    const AttentionResult expected = Expected(c);
    for (const char* host : kHostEnvironments) {
      for (const How& how : EveryForm()) {
        ApiCall call(c, table);
        if (!SetHostEnvironment(host)) continue;
        const uint64_t before = HostEnvironment();
        const etalon_status status = call.Run(how, nullptr);
        const uint64_t after = HostEnvironment();
        SetHostEnvironment("default");
        INFO(std::string(table.name), " ", Describe(how), ", host state ", std::string(host));
        CHECK(status == ETALON_OK);
        CHECK(Difference(call.Result(), expected) == "");
        CHECK(after == before);
      }
    }
  }
}

TEST_CASE("attention: the default scale is the same in every host state") {
  for (int64_t d = 1; d <= 300; ++d) {
    const float expected = etalon_default_scale(d);
    for (const char* host : kHostEnvironments) {
      if (!SetHostEnvironment(host)) continue;
      const float got = etalon_default_scale(d);
      SetHostEnvironment("default");
      INFO("head_dim ", d, ", host state ", std::string(host));
      CHECK(Bits(got) == Bits(expected));
    }
  }
}

TEST_CASE("attention: the default scale") {
  CHECK(etalon_default_scale(64) == 0.125f);
  CHECK(etalon_default_scale(1) == 1.0f);
  for (int64_t n = 1; n < 600; ++n) {
    CHECK(etalon_default_scale(n) == static_cast<float>(1.0 / std::sqrt(static_cast<double>(n))));
  }
}

}  // namespace
}  // namespace etalon::test
