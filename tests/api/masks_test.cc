// Prepared masks by themselves: the form that is chosen, the bytes that it takes, and where its memory may lie.
#include <algorithm>
#include <cstring>
#include <functional>

#include "lib/attention/prepared_mask.h"
#include "lib/attention/sequences.h"
#include "tests/api/options_call.h"

namespace etalon::test {
namespace {

constexpr size_t kHeaderBytes = (sizeof(PreparedMask) + 63) / 64 * 64;

size_t RoundedUp(size_t bytes) { return (bytes + 63) / 64 * 64; }

// A dense mask of one head and sequence, prepared.
struct OneMask {
  OneMask(int64_t q_len, int64_t kv_len, const std::function<bool(int64_t, int64_t)>& shows, bool bits = false) {
    OptionsCase c;
    c.q_len = q_len;
    c.sources.resize(1);
    c.sources[0].kv_len = kv_len;
    MaskCase& m = c.sources[0].mask;
    m.form = bits ? MaskKind::kPreparedBits : MaskKind::kPreparedBool;
    m.shape = {1, 1, q_len, kv_len};
    for (int64_t i = 0; i < q_len; ++i) {
      for (int64_t t = 0; t < kv_len; ++t) m.shows.push_back(shows(i, t) ? 1 : 0);
    }
    mask = std::make_unique<GuardedMask>(c, 0);
  }
  const PreparedMask& get() const { return *reinterpret_cast<const PreparedMask*>(mask->prepared()); }
  bool AsRuns() const { return get().runs != 0; }
  size_t Bytes() const { return mask->prepared_bytes(); }
  size_t BytesOfRuns(size_t entries, size_t runs) const {
    return kHeaderBytes + RoundedUp(entries * sizeof(MaskEntry)) + RoundedUp(runs * sizeof(Span));
  }

  std::unique_ptr<GuardedMask> mask;
};

TEST_CASE("masks: the shorter form, of runs where they are as short") {
  for (bool bits : {false, true}) {
    CAPTURE(bits);
    const OneMask causal(100, 300, [](int64_t i, int64_t t) { return t <= 200 + i; }, bits);
    CHECK(causal.AsRuns());
    CHECK(causal.Bytes() == causal.BytesOfRuns(100, 100));
    const OneMask documents(100, 300, [](int64_t i, int64_t t) { return t / 50 == i / 20; }, bits);
    CHECK(documents.AsRuns());
    CHECK(documents.Bytes() == documents.BytesOfRuns(100, 5));  // rows of a document share its run
    const OneMask nothing(100, 300, [](int64_t, int64_t) { return false; }, bits);
    CHECK(nothing.AsRuns());
    CHECK(nothing.Bytes() == nothing.BytesOfRuns(100, 0));
    const OneMask checkers(100, 300, [](int64_t i, int64_t t) { return (i + t) % 2 == 0; }, bits);
    CHECK_FALSE(checkers.AsRuns());
    CHECK(checkers.Bytes() == kHeaderBytes + RoundedUp(100 * sizeof(MaskEntry)) + RoundedUp(100 * 40));
    // 128 columns take 16 bytes as bits, and as one run.
    const OneMask even(10, 128, [](int64_t i, int64_t t) { return t >= i; }, bits);
    CHECK(even.AsRuns());
    const OneMask odd(10, 128, [](int64_t i, int64_t t) { return t >= i && (i > 0 || t != 64); }, bits);
    CHECK_FALSE(odd.AsRuns());
  }
}

TEST_CASE("masks: runs are what is visible, whole and in order") {
  Random random(1);
  for (int round = 0; round < 300; ++round) {
    const int64_t q_len = 1 + random.Below(5), kv_len = random.Below(round % 3 == 0 ? 300 : 70);
    std::vector<uint8_t> shows(static_cast<size_t>(q_len * kv_len));
    const int64_t often = 1 + random.Below(20);
    bool on = false;
    for (uint8_t& byte : shows) {
      if (random.Below(often) == 0) on = !on;
      byte = on ? 1 : 0;
    }
    const auto shown = [&](int64_t i, int64_t t) { return shows[static_cast<size_t>(i * kv_len + t)] != 0; };
    const OneMask prepared(q_len, kv_len, shown, round % 2 == 1);
    INFO("round ", round, " q_len ", q_len, " kv_len ", kv_len);
    for (int64_t i = 0; i < q_len; ++i) {
      const MaskRow row = RowOfMask(prepared.get(), 0, 0, i);
      std::vector<Span> expected;
      for (int64_t t = 0; t < kv_len; ++t) {
        if (!shown(i, t)) continue;
        if (expected.empty() || expected.back().last < t) expected.push_back({t, t});
        expected.back().last = t + 1;
      }
      if (prepared.AsRuns()) {
        CHECK(row.bits == nullptr);
        REQUIRE(row.num_runs == static_cast<int64_t>(expected.size()));
        for (size_t n = 0; n < expected.size(); ++n) {
          CHECK(row.runs[n].first == expected[n].first);
          CHECK(row.runs[n].last == expected[n].last);
        }
      } else {
        REQUIRE(row.bits != nullptr);
        bool same = true;
        for (int64_t t = 0; t < kv_len; ++t) same &= (row.bits[t / 8] >> t % 8 & 1) == (shown(i, t) ? 1 : 0);
        CHECK(same);
      }
      CHECK(row.hull.first == (expected.empty() ? 0 : expected.front().first));
      CHECK(row.hull.last == (expected.empty() ? 0 : expected.back().last));
    }
  }
}

// Of the rows of a batch, what a prepared mask holds as runs.
std::vector<Span> RunsOf(const etalon_mask* mask, int64_t query) {
  const MaskRow row = RowOfMask(*reinterpret_cast<const PreparedMask*>(mask), 0, 0, query);
  return {row.runs, row.runs + row.num_runs};
}

TEST_CASE("masks: blocks that follow each other are one run, the last one is cut") {
  const int64_t starts[] = {0, 4, 8, 8}, blocks[] = {0, 2, 3, 4, 0, 2, 3, 4};
  etalon_mask_args args;
  REQUIRE(etalon_mask_args_init(&args, sizeof args) == ETALON_OK);
  args.batch = args.num_heads = 1;
  args.q_len = 25;
  args.kv_len = 95;
  args.q_block = 10;
  args.kv_block = 20;
  args.block_starts = starts;
  args.blocks = blocks;
  size_t bytes = 0;
  REQUIRE(etalon_mask_bytes(&args, &bytes, nullptr) == ETALON_OK);
  CHECK(bytes == kHeaderBytes + RoundedUp(3 * sizeof(MaskEntry)) + RoundedUp(2 * sizeof(Span)));  // two rows share
  GuardBuffer memory(bytes, Guard::kAbove, 0);
  const etalon_workspace workspace = {memory.data(), bytes};
  const etalon_mask* mask;
  REQUIRE(etalon_mask_prepare(&args, &workspace, &mask, nullptr) == ETALON_OK);
  for (int64_t query : {0, 9, 10, 19}) {
    const std::vector<Span> runs = RunsOf(mask, query);
    REQUIRE(runs.size() == 2);
    CHECK(runs[0].first == 0);
    CHECK(runs[0].last == 20);
    CHECK(runs[1].first == 40);
    CHECK(runs[1].last == 95);
  }
  CHECK(RunsOf(mask, 20).empty());
}

TEST_CASE("masks: a row gets the runs that its span meets, and no wider a span than they need") {
  Random random(3);
  int64_t several = 0;
  for (int round = 0; round < 200; ++round) {
    const int64_t kv_len = 1000 + random.Below(1000);
    std::vector<uint8_t> shows(static_cast<size_t>(kv_len));
    bool on = false;
    for (uint8_t& byte : shows) {
      if (random.Below(100) == 0) on = !on;
      byte = on ? 1 : 0;
    }
    const OneMask prepared(1, kv_len, [&](int64_t, int64_t t) { return shows[static_cast<size_t>(t)] != 0; });
    if (!prepared.AsRuns()) continue;
    const int64_t first = random.Below(50);  // of padding
    Sequences sequences = {};
    sequences.kv_len = kv_len;
    sequences.left = random.Below(500);
    sequences.right = random.Below(500);
    sequences.q_offset = random.Below(kv_len);
    if (round % 2 == 0) {  // the span begins or ends where a run does
      int64_t edge = random.Below(kv_len - 1);
      while (edge + 1 < kv_len && shows[static_cast<size_t>(edge)] == shows[static_cast<size_t>(edge + 1)]) ++edge;
      const int64_t distance = edge + 1 - first - sequences.q_offset;
      if (distance < 0) sequences.left = -distance;
      if (distance > 0) sequences.right = distance - 1;
    }
    sequences.kv_firsts = &first;
    sequences.mask = &prepared.get();
    const Seen seen = SeenBy(sequences, 0, 0, 0);
    INFO("round ", round);
    std::vector<int64_t> expected, got;
    for (int64_t t = 0; t < kv_len - first; ++t) {
      const int64_t distance = t - sequences.q_offset;
      const bool inside = distance >= -sequences.left && distance <= sequences.right;
      if (inside && shows[static_cast<size_t>(t + first)] != 0) expected.push_back(t);
    }
    for (int64_t n = 0; n < (seen.runs == nullptr ? 1 : seen.num_runs); ++n) {
      const Span all = {seen.span.first + first, seen.span.last + first};
      const Span run = seen.runs == nullptr ? all : seen.runs[n];
      for (int64_t column = std::max(run.first, all.first); column < std::min(run.last, all.last); ++column) {
        got.push_back(column - first);
      }
      CHECK((expected.empty() || (run.first < all.last && run.last > all.first)));
    }
    CHECK(got == expected);
    if (!expected.empty()) {
      CHECK(seen.span.first == expected.front());
      CHECK(seen.span.last == expected.back() + 1);
    }
    CHECK((seen.runs == nullptr || seen.num_runs > 1));
    several += seen.num_runs > 1 ? 1 : 0;
  }
  CHECK(several > 20);
}

TEST_CASE("masks: one number for many keys costs nothing") {
  etalon_mask_args args;
  REQUIRE(etalon_mask_args_init(&args, sizeof args) == ETALON_OK);
  uint8_t shows[3] = {1, 0, 1};
  const int64_t shape[] = {3, 1};
  etalon_tensor mask;
  REQUIRE(etalon_tensor_init(&mask, shows, ETALON_BOOL, 2, shape, nullptr) == ETALON_OK);
  args.batch = args.num_heads = 1;
  args.q_len = 3;
  args.kv_len = int64_t{1} << 61;
  args.mask = &mask;
  size_t bytes = 0;
  REQUIRE(etalon_mask_bytes(&args, &bytes, nullptr) == ETALON_OK);
  CHECK(bytes == kHeaderBytes + RoundedUp(3 * sizeof(MaskEntry)) + RoundedUp(2 * sizeof(Span)));
}

// Of one piece, with no pointer in it.
TEST_CASE("masks: the memory may be copied, and the original forgotten") {
  for (const KernelTable& table : Tables()) {
    for (uint64_t seed = 1; seed <= 60; ++seed) {
      const OptionsCase c = RandomOptions(seed);
      OptionsCall call(c, table);
      if (call.args.prepared_mask == nullptr) continue;
      const AttentionResult expected = Run(c, table);
      const size_t bytes = call.sources[0].mask->prepared_bytes();
      GuardBuffer copy(bytes, Guard::kAbove, 8);  // aligned to numbers, no more
      void* original = const_cast<void*>(static_cast<const void*>(call.args.prepared_mask));
      std::memcpy(copy.data(), original, bytes);
      std::memset(original, 0xEE, bytes);
      call.args.prepared_mask = reinterpret_cast<const etalon_mask*>(copy.data());
      INFO("seed ", seed, " ", std::string(table.name), ": ", Describe(c));
      CHECK(call.Run({Form::kTasks, Loop::Kind::kShuffled, 3}, nullptr) == ETALON_OK);
      CHECK(Difference(call.Result(), expected) == "");
      CHECK(copy.Intact());
    }
  }
}

// Several layers and calls, at different places of a window over the same documents.
TEST_CASE("masks: one mask serves many calls") {
  for (const KernelTable& table : Tables()) {
    OptionsCase c = FromCase(RandomCase({2, 2, 1, 30, 400, 3, 2}, 2));
    SourceCase& s = c.sources[0];
    s.mask.form = MaskKind::kSegments;
    s.mask.shape = {1, 1, 30, 400};  // both sequences are cut alike
    for (int64_t i = 0; i < 30; ++i) s.mask.q_segments.push_back(i / 11 - 1);
    for (int64_t t = 0; t < 400; ++t) s.mask.kv_segments.push_back((t / 37 + 1) % 3 - 1);
    for (int64_t q : s.mask.q_segments) {
      for (int64_t k : s.mask.kv_segments) s.mask.shows.push_back(q == k ? 1 : 0);
    }
    const GuardedMask shared(c, 0);
    for (int64_t left : {-1, 0, 20, 100}) {
      for (int64_t offset : {-5, 0, 150, 390}) {
        s.left = left;
        s.right = left / 2;
        s.q_offset = offset;
        OptionsCall call(c, table);
        call.args.prepared_mask = shared.prepared();
        INFO(std::string(table.name), " left ", left, " offset ", offset);
        CHECK(call.Run({Form::kExecute, Loop::Kind::kReverse, 5}, nullptr) == ETALON_OK);
        CHECK(Difference(call.Result(), Expected(c)) == "");
      }
    }
    CHECK(shared.Intact());
  }
}

}  // namespace
}  // namespace etalon::test
