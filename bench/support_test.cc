// What the table's numbers rest on: a kernel that fails its check is not timed, and checks do fail.
#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <set>

#include "bench/subjects/device_rows.h"
#include "bench/subjects/subjects.h"
#include "bench/support/attention.h"
#include "bench/support/checking.h"
#include "bench/support/measure.h"

namespace etalon::bench {
namespace {

TimingOptions Short() {
  TimingOptions options;
  options.rounds = 3;
  options.sample_seconds = 0;
  return options;
}

TEST_CASE("a kernel whose check fails is not timed") {
  int calls = 0;
  Subject subject;
  subject.run = [&] { ++calls; };
  subject.check = [] { return Check{"wrong", 1.0}; };
  subject.work = 1;
  subject.unit = "flop";
  const Measured measured = Measure(subject, Short());
  CHECK(measured.failure == "wrong");
  CHECK(calls == 0);
  CHECK(measured.counters.empty());
}

TEST_CASE("rivals are compared for the same work, and those that this CPU lacks are left out") {
  // The rival does the kernel's work twice, in the same time: it is twice as fast.
  const auto spin = [] {
    for (const double end = Seconds(Clock::kThread) + 2e-3; Seconds(Clock::kThread) < end;) {
    }
  };
  Subject subject;
  subject.run = spin;
  subject.work = 10;
  subject.unit = "flop";
  subject.rivals = {{{"lacking", 1, nullptr}, 1}, {{"double", 20, spin}, 10}};
  const Measured measured = Measure(subject, Short());
  CHECK(measured.failure.empty());
  CHECK(measured.counters.count("pct_lacking") == 0);
  REQUIRE(measured.counters.count("pct_double") == 1);
  CHECK(measured.counters.at("pct_double") > 25.0);  // 50 but for what happens to the machine meanwhile
  CHECK(measured.counters.at("pct_double") < 100.0);
  CHECK(measured.counters.at("pct_double_min") <= measured.counters.at("pct_double_max"));
}

TEST_CASE("the limit that binds is the one that the kernel comes closest to") {
  Measured measured;
  CHECK(measured.Binding() == nullptr);
  measured.shares = {{"fma", {30, 20, 90}}, {"read", {40, 35, 45}}, {"store", {39, 39, 39}}};
  REQUIRE(measured.Binding() != nullptr);
  CHECK(measured.Binding()->limit == "read");
}

TEST_CASE("large inputs repeat themselves, but no row of keys is like another") {
  constexpr size_t kRow = 128 * sizeof(float), kRows = 20000;
  Buffer buffer(kRow * kRows), shorter(kRow);
  FillNormal(&buffer, ElementType::kF32, 1);
  FillNormal(&shorter, ElementType::kF32, 1);
  CHECK(std::memcmp(buffer.data(), shorter.data(), kRow) == 0);
  std::set<std::string> rows;
  for (size_t i = 0; i < kRows; ++i) rows.emplace(static_cast<const char*>(buffer.data()) + i * kRow, kRow);
  CHECK(rows.size() == kRows);
}

TEST_CASE("limits without loops have nothing to run") {
  CHECK(!FmaSubject(nullptr).run);
  CHECK(!ReadSubject(nullptr, 4096).run);
  CHECK(!StoreSubject(nullptr, 4096).run);
  CHECK(CopySubject(4096).run);
}

TEST_CASE("a device's rows do the work that they say") {
  const Sizes sizes{64};
  std::set<std::string> names;
  for (const DeviceRow& row : DeviceRows(sizes)) {
    CAPTURE(row.name);
    CHECK(names.insert(row.name).second);
    const Subject subject = row.make("scalar", sizes);
    CHECK(subject.work == (subject.unit == "B" ? row.bytes : row.flop));
    CHECK(EstimateRun(row, "scalar", sizes) > 0);
    const Measured measured = Measure(subject, Short());
    CHECK(measured.failure == "");
    CHECK((measured.Binding() != nullptr || AvailableLoops().empty()));
  }
  CHECK(names.size() >= 30);
}

TEST_CASE("the judge sees a wrong bit, a wrong value and NaN") {
  const float right[] = {1.0f, -2.0f, 0.0f};
  const double exact[] = {1.0, -2.0, 0.0};
  Judge good;
  good.Row("row", right, right, exact, 3);
  CHECK(good.Verdict().failure.empty());
  CHECK(good.Verdict().rms == 0.0);

  const float ulp[] = {1.0f, std::nextafter(-2.0f, 0.0f), 0.0f}, zero[] = {1.0f, -2.0f, -0.0f};
  for (const float* wrong : {ulp, zero}) {
    Judge judge;
    judge.Row("row", wrong, right, exact, 3);
    CHECK(judge.Verdict().failure.find("row, element") != std::string::npos);
  }
  // Both tables wrong alike: the bits agree, the error tells.
  const float off[] = {1.001f, -2.0f, 0.0f}, nan[] = {std::numeric_limits<float>::quiet_NaN(), -2.0f, 0.0f};
  for (const float* wrong : {off, nan}) {
    Judge judge;
    judge.Row("row", wrong, wrong, exact, 3);
    CHECK(judge.Verdict().failure.find("relative RMS error") != std::string::npos);
  }
}

TEST_CASE("an attention problem passes its check, in each layout") {
  AttentionShape shape;
  shape.q_heads = 4;
  shape.kv_heads = 2;
  shape.q_len = 9;
  shape.kv_len = 140;
  shape.head_dim = 24;
  for (const bool tokens_outermost : {false, true}) {
    shape.tokens_outermost = tokens_outermost;
    AttentionProblem problem(shape.Causal(), "scalar");
    const Check check = problem.Judged();
    CHECK(check.failure.empty());
    CHECK(check.rms > 0);
  }
  CHECK(shape.VisiblePairs() == 4 * 9 * 140);
  CHECK(shape.Causal().VisiblePairs() == 4 * (9 * 131 + 45));
  shape.left = 9;
  CHECK(shape.Causal().VisiblePairs() == 4 * 9 * 10);
}

TEST_CASE("medians and samples of rows") {
  CHECK(SpreadOf({3, 1, 2}).median == 2);
  CHECK(SpreadOf({4, 1, 2, 3}).median == 2.5);
  CHECK(SpreadOf({4, 1, 2, 3}).min == 1);
  CHECK(SpreadOf({4, 1, 2, 3}).max == 4);
  CHECK(SomeOf(1) == std::vector<int64_t>{0});
  CHECK(SomeOf(100) == std::vector<int64_t>{0, 33, 50, 98, 99});
}

}  // namespace
}  // namespace etalon::bench
