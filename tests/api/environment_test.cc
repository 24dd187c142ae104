// The caller's floating-point environment changes no bit of any function, and none changes it.
#include <doctest/doctest.h>

#include <cstring>

#include "tests/api/entry_points.h"
#include "tests/support/host_environment.h"
#include "tests/support/targets.h"

namespace etalon::test {
namespace {

using Config = EntryPoints::Config;

// Made of words: some hosts cannot compute them.
float FromBits(uint32_t bits) {
  float x;
  std::memcpy(&x, &bits, sizeof x);
  return x;
}

// Narrow inputs and outputs, and such as keep what is subnormal.
std::vector<Config> Configs(const char* target) {
  Config narrow, wide;
  narrow.target = wide.target = target;
  wide.q_type = wide.k_type = wide.v_type = wide.out_type = DType::kF32;
  wide.head_dim = 7;  // 1 / sqrt of it depends on the direction of rounding
  Config tiny = wide;
  tiny.scale = FromBits(0x000116C2u);    // 1e-40
  tiny.softcap = FromBits(0x00400000u);  // as small: scores reach it
  return {narrow, wide, tiny};
}

struct Kept {
  bool registers;
  std::vector<unsigned char> results;
};

// No checks of the test framework run in a strange environment.
std::vector<Kept> RunAll(const Config& config, const char* host) {
  EntryPoints calls(config);
  std::vector<Kept> kept(EntryPoints::All().size());
  for (size_t i = 0; i < kept.size(); ++i) {
    calls.Clear();
    SetHostEnvironment(host);
    const uint64_t before = HostEnvironment();
    (calls.*EntryPoints::All()[i].run)();
    const uint64_t after = HostEnvironment();
    SetHostEnvironment("default");
    kept[i] = {before == after, calls.Results()};
  }
  CHECK(calls.Failed() == "");
  return kept;
}

TEST_CASE("environment: the same bits in every host, which stays as it was") {
  for (const KernelTable& table : Tables()) {
    for (const Config& config : Configs(table.name)) {
      const std::vector<Kept> expected = RunAll(config, "default");
      for (const char* host : kHostEnvironments) {
        SetHostEnvironment("default");
        if (!SetHostEnvironment(host)) continue;
        SetHostEnvironment("default");
        const std::vector<Kept> got = RunAll(config, host);
        for (size_t i = 0; i < got.size(); ++i) {
          INFO(std::string(table.name), " ", std::string(host), ": ", std::string(EntryPoints::All()[i].functions));
          CHECK(got[i].registers);
          CHECK(got[i].results == expected[i].results);
        }
      }
    }
  }
}

// The test above would pass if nothing depended on the environment: the host's own arithmetic does.
TEST_CASE("environment: the states that are tried make a difference to plain code") {
  volatile float three = 3.0f, one = 1.0f;
  const float nearest = one / three, negative = -one / three;
  for (const char* host : {"down", "up", "zero"}) {
    if (!SetHostEnvironment(host)) continue;
    const float other = one / three, other_negative = -one / three;
    SetHostEnvironment("default");
    INFO(std::string(host));
    CHECK((other != nearest || other_negative != negative));
  }
  SetHostEnvironment("default");
}

// Zero stands for the default; a subnormal number does not, though hosts that flush cannot tell the two apart.
TEST_CASE("environment: a subnormal scale is not the default, a subnormal cap is not none") {
  Config one_of_words;
  one_of_words.scale = FromBits(1);
  Config zero, minus_zero;
  minus_zero.scale = FromBits(0x80000000u);
  const std::vector<Kept> by_default = RunAll(zero, "default");
  CHECK(RunAll(minus_zero, "default")[2].results == by_default[2].results);
  CHECK(RunAll(one_of_words, "default")[2].results != by_default[2].results);
  for (const char* host : kHostEnvironments) {
    INFO(std::string(host));
    SetHostEnvironment("default");
    if (!SetHostEnvironment(host)) continue;
    SetHostEnvironment("default");
    CHECK(RunAll(minus_zero, host)[2].results == by_default[2].results);
    CHECK(RunAll(one_of_words, host)[2].results == RunAll(one_of_words, "default")[2].results);

    etalon_attention_desc desc;
    REQUIRE(etalon_attention_desc_init(&desc, sizeof desc) == ETALON_OK);
    desc.num_q_heads = desc.num_kv_heads = desc.head_dim = desc.value_dim = 1;
    desc.q_dtype = desc.k_dtype = desc.v_dtype = desc.out_dtype = ETALON_F32;
    const uint32_t caps[] = {1, 0x80000001u, 0x80000000u};
    const etalon_status answers[] = {ETALON_OK, ETALON_BAD_VALUE, ETALON_OK};
    for (int i = 0; i < 3; ++i) {
      std::memcpy(&desc.softcap, &caps[i], sizeof caps[i]);
      SetHostEnvironment(host);
      const etalon_status status = etalon_supports(&desc, nullptr);
      SetHostEnvironment("default");
      CHECK(status == answers[i]);
    }
  }
}

TEST_CASE("environment: the default scale is rounded to nearest") {
  struct Scale {
    int64_t head_dim;
    uint32_t bits;
  };
  // Of 1 / sqrt(3), 1 / sqrt(7) and 1 / sqrt(80), exact in more digits than these have.
  const Scale scales[] = {{1, 0x3F800000u}, {3, 0x3F13CD3Au}, {7, 0x3EC1848Fu}, {64, 0x3E000000u}, {80, 0x3DE4F92Eu}};
  for (const char* host : kHostEnvironments) {
    INFO(std::string(host));
    for (const Scale& scale : scales) {
      if (!SetHostEnvironment(host)) continue;
      const float got = etalon_default_scale(scale.head_dim);
      SetHostEnvironment("default");
      uint32_t bits;
      std::memcpy(&bits, &got, sizeof bits);
      CHECK(bits == scale.bits);
    }
  }
  SetHostEnvironment("default");
}

}  // namespace
}  // namespace etalon::test
