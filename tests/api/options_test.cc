// Options in combination: primitives at random, and ways to say the same thing that must give the same bytes
// (options_differential_test.cc draws whole calls).
#include <algorithm>
#include <cstring>
#include <string>

#include "tests/api/options_call.h"
#include "tests/support/reference.h"

namespace etalon::test {
namespace {

using Kind = Loop::Kind;

// What a primitive takes of a case: one source, and no ragged batch.
OptionsCase OneSource(uint64_t seed) {
  for (;; seed += 1000) {
    const OptionsCase c = RandomOptions(seed);
    if (c.q_starts.empty() && c.sources.size() == 1 && c.sources[0].kv_starts.empty()) return c;
  }
}

TEST_CASE("options: the scores, whatever is asked for") {
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    OptionsCase c = OneSource(seed);
    c.sinks = {};
    const Array expected = ExpectedScores(c);
    for (const KernelTable& table : Tables()) {
      INFO("seed ", seed, " ", std::string(table.name), ": ", Describe(c));
      CHECK(Difference(CallScores(c, table, EveryForm()[seed % EveryForm().size()]), expected) == "");
    }
  }
}

TEST_CASE("options: states of blocks, merged with the sinks, are the call") {
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    const OptionsCase c = OneSource(seed);
    const AttentionResult expected = Expected(c);
    for (const KernelTable& table : Tables()) {
      INFO("seed ", seed, " ", std::string(table.name), ": ", Describe(c));
      CHECK(Difference(CallByStates(c, table, EveryForm()[seed % EveryForm().size()]), expected) == "");
    }
  }
}

// --------------------------------------------------------------------------------------------------- the same in masks

// The dense mask as a bias: 0 or -inf. The case must have no bias of its own.
OptionsCase MaskAsBias(OptionsCase c) {
  for (SourceCase& s : c.sources) {
    s.bias.shape = s.mask.shape;
    s.bias.values = Array(DType::kBF16, Count(s.bias.shape));
    for (int64_t i = 0; i < s.bias.values.size(); ++i) {
      if (s.mask.shows[static_cast<size_t>(i)] == 0) s.bias.values.SetWord(i, 0xFF80u);
    }
    s.mask = {};
  }
  return c;
}

// Several heads, sequences and blocks of keys under a mask of that shape; the number of columns in a run is about
// `run`, so that either form of a prepared mask is the shorter one.
OptionsCase Masked(const Shape& shape, int64_t run, uint64_t seed) {
  OptionsCase c = FromCase(RandomCase({2, 4, 2, 9, 1100, 3, 2}, seed));
  c.sources[0].right = 300;
  c.sources[0].q_offset = 500;
  c.sources[0].mask.form = MaskKind::kBool;
  c.sources[0].mask.shape = shape;
  Random random(seed);
  std::vector<uint8_t>& shows = c.sources[0].mask.shows;
  shows.resize(static_cast<size_t>(Count(shape)));
  bool on = false;
  for (size_t i = 0; i < shows.size(); on = !on) {
    for (int64_t n = 1 + random.Below(2 * run); n > 0 && i < shows.size(); --n) shows[i++] = on ? 255 : 0;
  }
  return c;
}

TEST_CASE("options: a mask is the same however it is given") {
  size_t next = 0;
  for (const KernelTable& table : Tables()) {
    for (const Shape& shape :
         {Shape{2, 4, 9, 1100}, Shape{1, 1, 9, 1100}, Shape{2, 1, 1, 1100}, Shape{1, 4, 9, 1100}}) {
      for (int64_t run : {1, 30, 400}) {
        const OptionsCase c = Masked(shape, run, static_cast<uint64_t>(run));
        INFO(std::string(table.name), " ", shape[0], " ", shape[1], " ", shape[2], " run ", run);
        const AttentionResult expected = Run(c, table);
        CHECK(Difference(Expected(c), expected) == "");
        for (MaskKind form : {MaskKind::kBits, MaskKind::kPreparedBool, MaskKind::kPreparedBits}) {
          const How& how = EveryForm()[next++ % EveryForm().size()];
          INFO(Describe(how));
          CHECK(Difference(Run(WithForm(c, form), table, how), expected) == "");
        }
        CHECK(Difference(Run(MaskAsBias(c), table, {Form::kExecute, Kind::kShuffled, 7}), expected) == "");
      }
    }
  }
}

TEST_CASE("options: documents and blocks are what their mask is") {
  int segments = 0, blocks = 0;
  for (uint64_t seed = 1; seed <= 150; ++seed) {
    OptionsCase c = RandomOptions(seed);
    bool made = false;
    for (const SourceCase& s : c.sources) {
      segments += s.mask.form == MaskKind::kSegments ? 1 : 0;
      blocks += s.mask.form == MaskKind::kBlocks ? 1 : 0;
      made |= s.mask.form == MaskKind::kSegments || s.mask.form == MaskKind::kBlocks;
    }
    if (!made) continue;
    for (const KernelTable& table : Tables()) {
      INFO("seed ", seed, " ", std::string(table.name), ": ", Describe(c));
      CHECK(Difference(Run(c, table), Run(WithForm(c, MaskKind::kBool), table)) == "");
    }
  }
  CHECK(segments > 10);
  CHECK(blocks > 10);
}

TEST_CASE("options: a prefix is a mask") {
  for (const KernelTable& table : Tables()) {
    for (int64_t left : {-1, 3, 40}) {
      for (int64_t offset : {0, -20, 30}) {
        OptionsCase c = FromCase(RandomCase({3, 2, 1, 50, 60, 4, 3}, 7));
        SourceCase& s = c.sources[0];
        s.right = 2;
        s.left = left;
        s.q_offset = offset;
        s.prefix_lens = {0, 25, 1000};
        const AttentionResult got = RunEveryForm(c, table);
        OptionsCase masked = c;
        SourceCase& m = masked.sources[0];
        m.prefix_lens.clear();
        m.right = m.left = -1;
        m.mask.form = MaskKind::kBool;
        m.mask.shape = {3, 1, 50, 60};
        for (int64_t b = 0; b < 3; ++b) {
          for (int64_t i = 0; i < 50; ++i) {
            for (int64_t t = 0; t < 60; ++t) {
              const int64_t distance = t - i - offset;
              const bool right = distance <= 2 || t < s.prefix_lens[static_cast<size_t>(b)];
              m.mask.shows.push_back(right && (left < 0 || distance >= -left) ? 1 : 0);
            }
          }
        }
        INFO(std::string(table.name), " left ", left, " offset ", offset);
        CHECK(Difference(Run(masked, table), got) == "");
      }
    }
  }
}

// ------------------------------------------------------------------------------------------------- batches and sources

// Rows first ... last - 1 of each head of an array [batch, heads, rows, dim], of one batch.
Array RowsOf(const Array& a, int64_t batch, int64_t heads, int64_t rows, int64_t dim, int64_t first, int64_t last) {
  Array part(a.type(), heads * (last - first) * dim);
  const size_t bytes = static_cast<size_t>((last - first) * dim) * ElementSize(a.type());
  for (int64_t h = 0; h < heads && bytes > 0; ++h) {
    std::memcpy(part.at(h * (last - first) * dim), a.at(((batch * heads + h) * rows + first) * dim), bytes);
  }
  return part;
}

// The keys first ... last - 1 of sequence 0, at positions of their own.
SourceCase KeysOf(const OptionsCase& c, int64_t first, int64_t last) {
  SourceCase s = c.sources[0];
  s.k = RowsOf(s.k, 0, c.num_kv_heads, s.kv_len, c.head_dim, first, last);
  s.v = RowsOf(s.v, 0, c.num_kv_heads, s.kv_len, c.value_dim, first, last);
  s.kv_len = last - first;
  s.q_offset -= first;
  return s;
}

OptionsCase RaggedCase(uint64_t seed) {
  OptionsCase c = FromCase(RandomCase({1, 4, 2, 90, 2000, 3, 2}, seed));
  c.batch = 5;
  c.q_starts = {3, 3, 4, 60, 60, 88};
  SourceCase& s = c.sources[0];
  s.kv_starts = {1, 1, 700, 1300, 1301, 1999};
  s.right = 0;
  s.q_offsets = {0, 698, 530, 5, 669};
  s.kv_lens = {0, 699, 600, 1, 697};
  c.alibi = true;
  c.slopes = {F32({0.01f, 0.02f, 0.5f, 1.0f}), {1, 4}};
  return c;
}

// Sequence b of it by itself.
OptionsCase Alone(const OptionsCase& c, int64_t b) {
  OptionsCase one = c;
  const size_t at = static_cast<size_t>(b);
  one.batch = 1;
  one.q_len = c.QLen(b);
  one.q = RowsOf(c.q, 0, c.num_q_heads, c.q_len, c.head_dim, c.q_starts[at], c.q_starts[at + 1]);
  one.q_starts.clear();
  SourceCase& s = one.sources[0];
  s.k = RowsOf(s.k, 0, c.num_kv_heads, s.kv_len, c.head_dim, s.kv_starts[at], s.kv_starts[at + 1]);
  s.v = RowsOf(s.v, 0, c.num_kv_heads, s.kv_len, c.value_dim, s.kv_starts[at], s.kv_starts[at + 1]);
  s.kv_len = c.Columns(0, b);
  s.kv_starts.clear();
  s.q_offsets = {s.q_offsets[at]};
  s.kv_lens = {s.kv_lens[at]};
  return one;
}

TEST_CASE("options: a ragged batch equals its sequences one at a time") {
  const OptionsCase c = RaggedCase(1);
  for (const KernelTable& table : Tables()) {
    const AttentionResult all = RunEveryForm(c, table);
    for (int64_t b = 0; b < c.batch; ++b) {
      if (c.QLen(b) == 0) continue;
      const AttentionResult one = Run(Alone(c, b), table, {Form::kTasks, Kind::kShuffled, 5});
      const int64_t first = c.q_starts[static_cast<size_t>(b)], last = c.q_starts[static_cast<size_t>(b) + 1];
      INFO(std::string(table.name), " sequence ", b);
      CHECK(Difference(RowsOf(all.out, 0, 4, 90, 2, first, last), one.out) == "");
      CHECK(Difference(RowsOf(F32(all.lse), 0, 4, 90, 1, first, last), F32(one.lse)) == "");
    }
    // Rows of no sequence are as they were.
    for (int64_t row : {0, 2, 88, 89}) {
      CHECK(Difference(RowsOf(all.out, 0, 4, 90, 2, row, row + 1), Unwritten(c.out_type, {4, 2})) == "");
    }
  }
}

TEST_CASE("options: padding on the left equals the keys behind it") {
  for (const KernelTable& table : Tables()) {
    OptionsCase c = FromCase(RandomCase({3, 4, 2, 7, 1200, 3, 2}, 3));
    SourceCase& s = c.sources[0];
    s.right = 0;
    s.left = 900;
    s.kv_firsts = {0, 1, 555};
    s.kv_lens = {1200, 1100, 1199};
    s.q_offsets = {1193, 1092, 637};
    c.alibi = true;
    const AttentionResult all = RunEveryForm(c, table);
    for (int64_t b = 0; b < 3; ++b) {
      const size_t at = static_cast<size_t>(b);
      OptionsCase one = c;
      one.batch = 1;
      one.q = RowsOf(c.q, b, 4, 7, 3, 0, 7);
      SourceCase& o = one.sources[0];
      o.k = RowsOf(s.k, b, 2, 1200, 3, s.kv_firsts[at], 1200);
      o.v = RowsOf(s.v, b, 2, 1200, 2, s.kv_firsts[at], 1200);
      o.kv_len = 1200 - s.kv_firsts[at];
      o.kv_lens = {s.kv_lens[at] - s.kv_firsts[at]};
      o.q_offsets = {s.q_offsets[at]};
      o.kv_firsts.clear();
      const AttentionResult got = Run(one, table, {Form::kExecute, Kind::kReverse, 4});
      INFO(std::string(table.name), " sequence ", b);
      CHECK(Difference(got.out, RowsOf(all.out, b, 4, 7, 2, 0, 7)) == "");
      CHECK(Difference(F32(got.lse), RowsOf(F32(all.lse), b, 4, 7, 1, 0, 7)) == "");
    }
  }
}

OptionsCase LongCase(int64_t left, int64_t right, uint64_t seed) {
  ApiCase a = RandomCase({1, 4, 2, 33, 2048, 3, 2}, seed);
  a.out_type = DType::kF32;
  a.left = left;
  a.right = right;
  a.q_offset = 2048 - 33;
  OptionsCase c = FromCase(a);
  c.alibi = true;
  c.sinks = {F32({0.5f, -1.0f, 3.0f, 1.0f}), {4}};
  c.sinks.shape = {1, 4};
  return c;
}

TEST_CASE("options: keys in several sources are one softmax, in bytes where blocks stay whole") {
  for (const KernelTable& table : Tables()) {
    for (int64_t left : {-1, 1000}) {
      const OptionsCase whole = LongCase(left, 0, 4);
      const AttentionResult expected = RunEveryForm(whole, table);
      CHECK(Difference(expected, Expected(whole)) == "");
      OptionsCase split = whole;
      split.sources = {KeysOf(whole, 0, 512), KeysOf(whole, 512, 1536), KeysOf(whole, 1536, 2048)};
      INFO(std::string(table.name), " left ", left);
      CHECK(Difference(RunEveryForm(split, table), expected) == "");
      split.sources = {KeysOf(whole, 0, 0), KeysOf(whole, 0, 1024), KeysOf(whole, 1024, 2048),
                       KeysOf(whole, 2048, 2048)};
      CHECK(Difference(RunEveryForm(split, table), expected) == "");
      for (int64_t at : {1, 511, 700, 2047}) {
        split.sources = {KeysOf(whole, 0, at), KeysOf(whole, at, 2048)};
        const AttentionResult got = Run(split, table, EveryForm()[static_cast<size_t>(at) % EveryForm().size()]);
        CAPTURE(at);
        CHECK(Near(got.out, TrueValues(expected.out), 2e-6 * 8) == "");  // no value is beyond 8
        CHECK(Near(got.lse, TrueValues(expected.lse), 1e-5) == "");
      }
    }
  }
}

// ----------------------------------------------------------------------------------------------------------- the rest

TEST_CASE("options: the standard slopes are those that are told") {
  for (const KernelTable& table : Tables()) {
    for (int64_t heads : {1, 8, 12}) {
      OptionsCase c = FromCase(RandomCase({2, heads, heads, 5, 40, 3, 2}, 5));
      c.alibi = true;
      c.sources[0].q_offset = 35;
      const AttentionResult standard = RunEveryForm(c, table);
      std::vector<float> slopes(static_cast<size_t>(heads));
      REQUIRE(etalon_alibi_slopes(heads, slopes.data(), nullptr) == ETALON_OK);
      c.slopes = {F32(slopes), {heads}};
      INFO(std::string(table.name), " heads ", heads);
      OptionsCall call(c, table);
      call.slopes->tensor.rank = 1;  // [num_q_heads]
      REQUIRE(call.Run({}, nullptr) == ETALON_OK);
      CHECK(Difference(call.Result(), standard) == "");
      c.alibi = false;
      c.slopes = {};
      CHECK(Difference(Run(c, table), standard) != "");
    }
  }
}

// As in multi-head latent attention: values are the first channels of the keys.
TEST_CASE("options: k and v in one memory") {
  for (const KernelTable& table : Tables()) {
    for (DType type : {DType::kF32, DType::kF16, DType::kBF16}) {
      ApiCase a = RandomCase({2, 6, 2, 5, 700, 24, 16}, 6);
      Random random(9);
      a.k = Array(type, random.Normals(a.k.size()));
      a.v = Array(type, a.v.size());
      for (int64_t row = 0; row < 2 * 2 * 700; ++row) {
        for (int64_t i = 0; i < 16; ++i) a.v.SetWord(row * 16 + i, a.k.Word(row * 24 + i));
      }
      const AttentionResult expected = Run(a, table);
      ApiCall call(a, table);
      etalon_tensor v = call.k.tensor;
      v.shape[3] = 16;
      call.args.v = &v;
      for (const How& how : EveryForm()) {
        INFO(std::string(table.name), " ", Describe(how));
        call.out.Restore();
        REQUIRE(call.Run(how, nullptr) == ETALON_OK);
        CHECK(Difference(call.Result(), expected) == "");
      }
      CHECK(call.Damage() == "");
    }
  }
}

// A workspace has room for each of the arrays that a call may bring.
TEST_CASE("options: a batch with every array of numbers, in each of several sources") {
  OptionsCase c = FromCase(RandomCase({1, 2, 1, 130, 900, 3, 2}, 11));
  c.batch = 43;
  Random random(12);
  const auto starts = [&](int64_t rows) {
    std::vector<int64_t> numbers = {0};
    for (int64_t b = 1; b < c.batch; ++b)
      numbers.push_back(std::min(rows, numbers.back() + random.Below(2 * rows / 43)));
    numbers.push_back(rows);
    return numbers;
  };
  c.q_starts = starts(130);
  for (int64_t b = 0; b < c.batch; ++b) c.q_lens.push_back(random.Below(c.QLen(b) + 1));
  c.alibi = true;
  c.sources.resize(3, c.sources[0]);
  for (size_t n = 0; n < c.sources.size(); ++n) {
    SourceCase& s = c.sources[n];
    s.right = static_cast<int64_t>(n);
    s.kv_starts = starts(900);
    for (int64_t b = 0; b < c.batch; ++b) {
      s.kv_lens.push_back(random.Below(c.Columns(n, b) + 1));
      s.kv_firsts.push_back(random.Below(s.kv_lens.back() + 1));
      s.q_offsets.push_back(random.Below(20));
      s.prefix_lens.push_back(random.Below(20));
    }
  }
  for (const KernelTable& table : Tables()) {
    INFO(std::string(table.name));
    CHECK(Difference(RunEveryForm(c, table), Expected(c)) == "");
  }
}

// Only the memory of tensors and prepared masks is needed once a call has begun.
TEST_CASE("options: a begun call needs none of the structs and arrays") {
  for (const KernelTable& table : Tables()) {
    for (uint64_t seed = 1; seed <= 60; ++seed) {
      const OptionsCase c = RandomOptions(seed);
      const AttentionResult expected = Expected(c);
      const int32_t workers = static_cast<int32_t>(1 + seed % 9);
      OptionsCall call(c, table);
      etalon_attention_desc desc = call.PlanDesc();
      desc.max_workers = workers;
      etalon_plan plan;
      REQUIRE(etalon_plan_init(&plan, &desc, nullptr) == ETALON_OK);
      GuardBuffer memory(etalon_plan_workspace_bytes(&plan), Guard::kAbove, 0);
      const etalon_workspace workspace = {memory.data(), memory.bytes()};
      int64_t num_tasks;
      REQUIRE(etalon_begin(&plan, &call.args, &workspace, &num_tasks, nullptr) == ETALON_OK);
      call.Forget();
      std::memset(static_cast<void*>(&plan), 0xEE, sizeof plan);
      for (int64_t t = num_tasks; t-- > 0;) {
        REQUIRE(etalon_run(memory.data(), t, t + 1, static_cast<int32_t>(t % workers)) == ETALON_OK);
      }
      INFO("seed ", seed, " ", std::string(table.name), ": ", Describe(c));
      CHECK(Difference(call.Result(), expected) == "");
    }
  }
}

}  // namespace
}  // namespace etalon::test
