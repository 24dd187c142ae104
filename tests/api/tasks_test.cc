// Plans and their tasks: splits of the keys, any order and cut, shared plans, chunks of a prompt, batches, counted
// work.
#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <string>
#include <thread>

#include "tests/api/api_test.h"

namespace etalon::test {
namespace {

using Kind = Loop::Kind;

// A plan of the call as it is.
etalon_plan PlanOf(const ApiCall& call, int32_t workers) {
  etalon_attention_desc desc = call.PlanDesc();
  desc.max_workers = workers;
  etalon_plan plan;
  REQUIRE(etalon_plan_init(&plan, &desc, nullptr) == ETALON_OK);
  return plan;
}

etalon_plan_info InfoOf(const etalon_plan& plan, const etalon_attention_args* args) {
  etalon_plan_info info;
  REQUIRE(etalon_plan_info_init(&info, sizeof info) == ETALON_OK);
  REQUIRE(etalon_plan_get_info(&plan, args, &info, nullptr) == ETALON_OK);
  return info;
}

// Few tiles with many keys, causal, of types that the seed chooses.
ApiCase LongDecode(int64_t q_len, uint64_t seed) {
  ApiCase c = RandomCase({1, 3, 1, q_len, 5000, 3, 2}, seed);
  c.q_offset = 5000 - q_len;
  c.right = 0;
  return c;
}

// Sequences of very different lengths, at different places.
ApiCase Ragged(uint64_t seed) {
  ApiCase c = RandomCase({6, 4, 2, 9, 2100, 3, 2}, seed);
  c.right = 0;
  c.q_lens = {1, 9, 0, 3, 9, 1};
  c.kv_lens = {2100, 9, 700, 1, 0, 513};
  c.q_offsets = {2099, 0, 5, -1, 3, 511};
  return c;
}

TEST_CASE("tasks: keys are split where there are few tiles, and only there") {
  for (const KernelTable& table : Tables()) {
    ApiCase near = LongDecode(2, 1);
    near.left = 1000;  // keys 3998 to 4999
    const ApiCall decode(LongDecode(2, 1), table), window(near, table),
        wide(RandomCase({8, 8, 8, 40, 600, 2, 2}, 2), table);
    INFO(std::string(table.name));
    CHECK(InfoOf(PlanOf(decode, 1), &decode.args).key_splits == 1);
    CHECK(InfoOf(PlanOf(decode, 1), &decode.args).num_tasks == 1);
    CHECK(InfoOf(PlanOf(decode, 2), &decode.args).key_splits > 1);
    CHECK(InfoOf(PlanOf(decode, 4), &decode.args).key_splits >= 4);
    CHECK(InfoOf(PlanOf(decode, 64), &decode.args).key_splits == 10);  // no further than blocks
    CHECK(InfoOf(PlanOf(window, 64), &window.args).key_splits == 3);   // of which the row may see a key
    CHECK(InfoOf(PlanOf(wide, 4), &wide.args).key_splits == 1);
    CHECK(InfoOf(PlanOf(wide, 4), &wide.args).tile_rows == 128);  // tiles of heads: 64 are enough for four workers
    CHECK(InfoOf(PlanOf(wide, 4), &wide.args).num_tasks == 64);
    CHECK(InfoOf(PlanOf(wide, 20), &wide.args).tile_rows ==
          32);  // 64 are too few for 20, which get two of each 40 rows
    CHECK(InfoOf(PlanOf(wide, 20), &wide.args).num_tasks == 128);
  }
}

TEST_CASE("tasks: as many as the plan says, and not run twice") {
  for (const KernelTable& table : Tables()) {
    for (int32_t workers : {1, 2, 7, 64}) {
      for (const ApiCase& c : {LongDecode(1, 3), Ragged(4), RandomCase({2, 2, 2, 70, 40, 2, 2}, 5)}) {
        ApiCall call(c, table);
        const etalon_plan plan = PlanOf(call, workers);
        GuardBuffer memory(etalon_plan_workspace_bytes(&plan), Guard::kAbove, 0);
        const etalon_workspace workspace = {memory.data(), memory.bytes()};
        int64_t num_tasks;
        INFO(std::string(table.name), " workers ", workers, " ", Describe(c.size));
        REQUIRE(etalon_begin(&plan, &call.args, &workspace, &num_tasks, nullptr) == ETALON_OK);
        CHECK(num_tasks == InfoOf(plan, &call.args).num_tasks);
        CHECK(etalon_run(memory.data(), 0, 0, 0) == ETALON_OK);
        for (int64_t t = num_tasks; t-- > 0;) CHECK(etalon_run(memory.data(), t, t + 1, 0) == ETALON_OK);
        CHECK(etalon_run(memory.data(), 0, 1, 0) == ETALON_BAD_TASKS);
        CHECK(Difference(call.Result(), Expected(c)) == "");
      }
    }
  }
}

TEST_CASE("tasks: any number of workers, order and cut") {
  for (const KernelTable& table : Tables()) {
    for (const ApiCase& c : {LongDecode(1, 6), LongDecode(7, 7), Ragged(8), RandomCase({1, 4, 1, 17, 1030, 2, 3}, 9)}) {
      const AttentionResult expected = Expected(c);
      ApiCall call(c, table);
      for (int32_t workers : {1, 2, 3, 4, 5, 7, 8, 12, 16, 31, 64}) {
        for (Kind kind : {Kind::kForward, Kind::kReverse, Kind::kShuffled, Kind::kThreads}) {
          const int n = workers + static_cast<int>(kind);
          if ((kind == Kind::kThreads && workers > 8) || (kind != Kind::kShuffled && n % 2 == 0)) continue;
          const Form form = workers % 2 == 0 ? Form::kTasks : Form::kExecute;
          const How how = {form, kind, workers, 0xFF, Guard::kAbove, static_cast<uint64_t>(n)};
          INFO(std::string(table.name), " ", Describe(c.size), " ", Describe(how));
          call.out.Restore();
          call.lse.Restore();
          CHECK(call.Run(how, nullptr) == ETALON_OK);
          CHECK(Difference(call.Result(), expected) == "");
        }
      }
      CHECK(call.Damage() == "");
    }
  }
}

TEST_CASE("tasks: a plan serves calls of all sizes up to its maxima") {
  for (const KernelTable& table : Tables()) {
    ApiCall largest(RandomCase({3, 4, 2, 40, 1500, 3, 2}, 10), table);
    for (GuardedTensor* t : {&largest.q, &largest.k, &largest.v, &largest.out}) t->tensor.dtype = ETALON_F32;
    for (int32_t workers : {1, 3, 16}) {
      const etalon_plan plan = PlanOf(largest, workers);
      GuardBuffer memory(etalon_plan_workspace_bytes(&plan), Guard::kAbove, 0);
      const etalon_workspace workspace = {memory.data(), memory.bytes()};
      CHECK(InfoOf(plan, nullptr).workspace_bytes == memory.bytes());
      for (const Sizes& size :
           {Sizes{3, 4, 2, 40, 1500, 3, 2}, Sizes{1, 4, 2, 1, 1500, 3, 2}, Sizes{3, 4, 2, 2, 700, 3, 2},
            Sizes{0, 4, 2, 40, 1500, 3, 2}, Sizes{2, 4, 2, 40, 1, 3, 2}, Sizes{1, 4, 2, 7, 0, 3, 2}}) {
        const ApiCase c = TrioCase(size);
        ApiCall call(c, table);
        const Loop loop(Kind::kShuffled, workers);
        INFO(std::string(table.name), " workers ", workers, " ", Describe(size));
        CHECK(etalon_execute(&plan, &call.args, &workspace, loop.get(), nullptr) == ETALON_OK);
        CHECK(Difference(call.Result(), Expected(c)) == "");
        CHECK(memory.Intact());
      }
    }
  }
}

TEST_CASE("tasks: threads share a plan, each with a workspace of its own") {
  for (const KernelTable& table : Tables()) {
    const ApiCase c = LongDecode(2, 11);
    const AttentionResult expected = Expected(c);
    const ApiCall planned(c, table);
    const etalon_plan plan = PlanOf(planned, 3);
    std::atomic<int> failures{0};
    std::vector<AttentionResult> results(4);
    std::vector<std::thread> threads;
    for (size_t n = 0; n < results.size(); ++n) {
      threads.emplace_back([&, n] {
        ApiCall call(c, table);
        GuardBuffer memory(etalon_plan_workspace_bytes(&plan), Guard::kAbove, 0);
        const etalon_workspace workspace = {memory.data(), memory.bytes()};
        const Loop loop(n % 2 == 0 ? Kind::kShuffled : Kind::kThreads, 3, n);
        for (int round = 0; round < 5; ++round) {
          if (etalon_execute(&plan, &call.args, &workspace, loop.get(), nullptr) != ETALON_OK) ++failures;
        }
        results[n] = call.Result();
      });
    }
    for (std::thread& thread : threads) thread.join();
    INFO(std::string(table.name));
    CHECK(failures == 0);
    for (const AttentionResult& got : results) CHECK(Difference(got, expected) == "");
  }
}

// Sequence b of a batch by itself.
ApiCase OneSequence(const ApiCase& c, int64_t b) {
  const Sizes& s = c.size;
  ApiCase one = c;
  one.size.batch = 1;
  const auto part = [&](const Array& a) { return Slice(a, a.size() / s.batch * b, a.size() / s.batch); };
  one.q = part(c.q);
  one.k = part(c.k);
  one.v = part(c.v);
  for (std::vector<int64_t>* lengths : {&one.q_offsets, &one.q_lens, &one.kv_lens}) {
    if (!lengths->empty()) *lengths = {(*lengths)[static_cast<size_t>(b)]};
  }
  return one;
}

TEST_CASE("tasks: a batch equals its sequences one at a time") {
  for (const KernelTable& table : Tables()) {
    for (int32_t workers : {1, 4, 64}) {
      const ApiCase c = Ragged(12);
      const AttentionResult all = Run(c, table, {Form::kTasks, Kind::kShuffled, workers});
      for (int64_t b = 0; b < c.size.batch; ++b) {
        const AttentionResult one = Run(OneSequence(c, b), table, {Form::kExecute, Kind::kReverse, 1 + workers % 5});
        const int64_t rows = c.size.num_q_heads * c.size.q_len;
        INFO(std::string(table.name), " workers ", workers, " sequence ", b);
        CHECK(Difference(one.out, Slice(all.out, b * one.out.size(), one.out.size())) == "");
        CHECK(Difference(one.lse, {all.lse.begin() + b * rows, all.lse.begin() + (b + 1) * rows}) == "");
      }
      for (int64_t row = 0; row < c.size.batch * 4 * 9; ++row) {
        if (row % 9 < c.q_lens[static_cast<size_t>(row / 36)]) continue;  // beyond the sequence
        CHECK(Difference(Slice(all.out, row * 2, 2), Array(c.out_type, 2)) == "");
        CHECK(all.lse[static_cast<size_t>(row)] == -HUGE_VALF);
      }
    }
  }
}

// Queries first ... last - 1 of one sequence, when the cache holds the keys up to `last`.
ApiCase Chunk(const ApiCase& whole, int64_t first, int64_t last) {
  const Sizes& s = whole.size;
  ApiCase c = whole;
  c.size.q_len = last - first;
  c.q = Array(whole.q.type(), s.num_q_heads * c.size.q_len * s.head_dim);
  const size_t bytes = static_cast<size_t>(c.size.q_len * s.head_dim) * ElementSize(c.q.type());
  for (int64_t h = 0; h < s.num_q_heads && bytes > 0; ++h) {
    std::memcpy(c.q.at(h * c.size.q_len * s.head_dim), whole.q.at((h * s.q_len + first) * s.head_dim), bytes);
  }
  c.q_offset = whole.q_offset + first;
  c.kv_lens = {last};
  return c;
}

TEST_CASE("tasks: a prompt in chunks equals the prompt at once, and token by token") {
  for (const KernelTable& table : Tables()) {
    for (int64_t left : {-1, 100}) {
      ApiCase whole = RandomCase({1, 4, 2, 560, 560, 2, 3}, 13);
      whole.left = left;
      whole.right = 0;
      const AttentionResult expected = Run(whole, table, {Form::kTasks, Kind::kReverse, 3});
      for (int64_t size : {1, 7, 64, 300}) {
        for (int64_t first = 0; first < 560; first += size) {
          if (size == 1 && first > 20 && first < 500) continue;  // enough of those
          const int64_t last = std::min<int64_t>(560, first + size);
          const How how = {Form::kExecute, Kind::kShuffled, static_cast<int32_t>(1 + first % 9)};
          const AttentionResult got = Run(Chunk(whole, first, last), table, how);
          INFO(std::string(table.name), " left ", left, " rows ", first, " to ", last);
          for (int64_t h = 0; h < 4; ++h) {
            const int64_t rows = last - first, at = h * 560 + first;
            CHECK(Difference(Slice(got.out, h * rows * 3, rows * 3), Slice(expected.out, at * 3, rows * 3)) == "");
            CHECK(Difference({got.lse.begin() + h * rows, got.lse.begin() + (h + 1) * rows},
                             {expected.lse.begin() + at, expected.lse.begin() + at + rows}) == "");
          }
        }
      }
    }
  }
}

// ------------------------------------------------------------------------------------------------ counted work

struct Work {
  int64_t tiles = 0, key_tiles = 0, keys = 0;
};

// The header's words: tiles of tile_rows rows of a group, and the chunks of 128 keys of which a tile may see one.
Work CountWork(const ApiCase& c, int64_t tile_rows) {
  const Sizes& s = c.size;
  Work work;
  for (int64_t b = 0; b < s.batch; ++b) {
    const std::vector<Span> spans = SpansOf(c, b);
    const int64_t rows = s.num_q_heads / s.num_kv_heads * s.q_len;
    for (int64_t first = 0; first < rows; first += tile_rows) {
      int64_t low = s.kv_len, high = 0;
      for (int64_t row = first; row < std::min(rows, first + tile_rows); ++row) {
        const Span& span = spans[static_cast<size_t>(row % s.q_len)];
        if (span.first >= span.last) continue;
        low = std::min(low, span.first);
        high = std::max(high, span.last);
      }
      work.tiles += s.num_kv_heads;
      if (low >= high) continue;
      work.keys += s.num_kv_heads * (high - low);
      work.key_tiles += s.num_kv_heads * ((high - 1) / 128 - low / 128 + 1);
    }
  }
  return work;
}

// A call that has sizes and no memory.
etalon_plan_info CountedBy(const ApiCase& c, const KernelTable& table, int32_t workers) {
  ApiCase shapes = c;
  shapes.size.head_dim = shapes.size.value_dim = 0;  // the harness need not make the arrays
  shapes.q = Array(DType::kF32, 0);
  shapes.k = Array(DType::kF32, 0);
  shapes.v = Array(DType::kBF16, 0);
  ApiCall call(shapes, table);
  for (GuardedTensor* t : {&call.q, &call.k, &call.v, &call.out, &call.lse}) t->tensor.data = nullptr;
  for (GuardedTensor* t : {&call.q, &call.k}) t->tensor.shape[3] = 64;
  for (GuardedTensor* t : {&call.v, &call.out}) t->tensor.shape[3] = 48;
  etalon_attention_desc desc = call.PlanDesc();
  desc.head_dim = 64;
  desc.value_dim = 48;
  desc.max_workers = workers;
  etalon_plan plan;
  REQUIRE(etalon_plan_init(&plan, &desc, nullptr) == ETALON_OK);
  return InfoOf(plan, &call.args);
}

TEST_CASE("tasks: plan info counts the work") {
  for (const KernelTable& table : Tables()) {
    ApiCase cases[] = {Ragged(14),
                       LongDecode(3, 15),
                       LongDecode(40, 16),
                       RandomCase({2, 6, 2, 11, 300, 1, 1}, 17),
                       RandomCase({2, 6, 2, 0, 300, 1, 1}, 18),
                       RandomCase({2, 6, 2, 11, 0, 1, 1}, 19)};
    cases[3].left = 20;
    cases[3].right = 3;
    cases[3].q_offset = 120;
    for (const ApiCase& c : cases) {
      for (int32_t workers : {1, 3, 64}) {
        const etalon_plan_info info = CountedBy(c, table, workers);
        const Work work = CountWork(c, info.tile_rows);
        INFO(std::string(table.name), " workers ", workers, " ", Describe(c.size));
        CHECK(std::string(info.target) == table.name);
        CHECK(info.max_workers == workers);
        CHECK(info.key_tiles == work.key_tiles);
        CHECK(info.bytes_read == work.keys * (64 * 4 + 48 * 2));
        CHECK(info.num_tasks >= work.tiles);
        CHECK((info.key_splits == 1) == (work.tiles > 0 && info.num_tasks == work.tiles));
        CHECK((info.key_splits == 0) == (work.tiles == 0));
      }
    }
  }
}

// Groups whose heads begin in the middle of tiles, spans that stand still, move, and are not there.
TEST_CASE("tasks: plan info counts like a walk over every row, whatever the shape") {
  const KernelTable table = Tables().front();  // counts are not the table's
  Random random(20);
  for (int round = 0; round < 250; ++round) {
    ApiCase c;
    const int64_t q_lens[] = {random.Below(9), random.Below(70), random.Below(700), 32 * random.Below(30)};
    const int64_t kv_heads = 1 + random.Below(3), group = 1 + random.Below(random.Below(3) == 0 ? 70 : 6);
    c.size = {1 + random.Below(3), kv_heads * group, kv_heads, q_lens[round % 4], random.Below(1500), 1, 1};
    const auto any = [&] { return random.Below(round % 3 == 0 ? 100 : 1600); };
    c.left = random.Below(3) == 0 ? -1 : any();
    c.right = random.Below(3) == 0 ? -1 : any();
    c.q_offset = any() - any();
    if (round % 5 == 0) {
      c.q_offset = (round % 2 == 0 ? 1 : -1) * (int64_t{1} << 62);
      c.left = INT64_MAX - any();
      c.right = (int64_t{1} << 62) + any();
    }
    for (int64_t b = 0; b < c.size.batch; ++b) {
      if (round % 7 < 4) c.q_lens.push_back(random.Below(c.size.q_len + 1));
      if (round % 7 < 3) c.kv_lens.push_back(random.Below(c.size.kv_len + 1));
      if (round % 7 < 2 && round % 5 != 0) c.q_offsets.push_back(any() - any());
    }
    const int32_t workers = static_cast<int32_t>(1 + random.Below(9));
    const etalon_plan_info info = CountedBy(c, table, workers);
    const Work work = CountWork(c, info.tile_rows);
    INFO("round ", round, " ", Describe(c.size), " left ", c.left, " right ", c.right, " q_offset ", c.q_offset);
    CHECK(info.key_tiles == work.key_tiles);
    CHECK(info.bytes_read == work.keys * (64 * 4 + 48 * 2));
    CHECK(info.num_tasks >= work.tiles);
  }
}

// Sizes over which no loop could go.
TEST_CASE("tasks: plan info counts at once") {
  for (int64_t heads : {int64_t{1} << 25, (int64_t{1} << 25) + 1}) {
    for (int64_t q_len : {int64_t{1} << 25, (int64_t{1} << 25) - 3}) {
      etalon_attention_desc desc;
      REQUIRE(etalon_attention_desc_init(&desc, sizeof desc) == ETALON_OK);
      desc.num_q_heads = heads;
      desc.num_kv_heads = desc.max_batch = 1;
      desc.head_dim = desc.value_dim = 8;
      desc.max_q_len = desc.max_kv_len = q_len;
      desc.q_dtype = desc.k_dtype = desc.v_dtype = desc.out_dtype = ETALON_F32;
      desc.right = 0;
      const int64_t q_shape[] = {heads, q_len, 8}, kv_shape[] = {1, q_len, 8};
      etalon_tensor q, kv;
      REQUIRE(etalon_tensor_init(&q, nullptr, ETALON_F32, 3, q_shape, nullptr) == ETALON_OK);
      REQUIRE(etalon_tensor_init(&kv, nullptr, ETALON_F32, 3, kv_shape, nullptr) == ETALON_OK);
      etalon_attention_args args;
      REQUIRE(etalon_attention_args_init(&args, sizeof args) == ETALON_OK);
      args.q = args.out = &q;
      args.k = args.v = &kv;
      etalon_plan plan;
      REQUIRE(etalon_plan_init(&plan, &desc, nullptr) == ETALON_OK);
      const etalon_plan_info info = InfoOf(plan, &args);
      CHECK(info.key_splits == 1);
      CHECK(info.num_tasks == (heads * q_len + info.tile_rows - 1) / info.tile_rows);
      CHECK(info.tile_rows == 128);            // one worker is always busy
      if (heads % 2 == 0 && q_len % 2 == 0) {  // each chunk of a head has one tile, which sees the chunks up to it
        const int64_t chunks = q_len / 128;
        CHECK(info.key_tiles == heads * (chunks * (chunks + 1) / 2));
        CHECK(info.bytes_read == INT64_MAX);  // 2^77
      }
    }
  }
}

// A call with more heads than its splits would need tiles is never split, so there is nothing to keep.
TEST_CASE("tasks: no memory for states that no call has") {
  const auto bytes = [](int64_t kv_heads, int32_t workers, int64_t kv_len) {
    etalon_attention_desc desc;
    REQUIRE(etalon_attention_desc_init(&desc, sizeof desc) == ETALON_OK);
    desc.num_q_heads = desc.num_kv_heads = kv_heads;
    desc.head_dim = desc.value_dim = 8;
    desc.max_batch = 3;
    desc.max_q_len = 100;
    desc.max_kv_len = kv_len;
    desc.q_dtype = desc.k_dtype = desc.v_dtype = desc.out_dtype = ETALON_F32;
    desc.max_workers = workers;
    etalon_plan plan;
    REQUIRE(etalon_plan_init(&plan, &desc, nullptr) == ETALON_OK);
    return etalon_plan_workspace_bytes(&plan);
  };
  CHECK(bytes(8, 4, 1 << 20) == bytes(8, 4, 512));
  CHECK(bytes(8, 5, 1 << 20) > bytes(8, 5, 512));  // one sequence of few rows has 8 tiles, fewer than 10
  // 2 * 6 - 1 tiles of 5 heads are 10.
  CHECK(bytes(5, 6, 1 << 20) - bytes(5, 6, 512) == 10 * 32 * 2047 * (1 + 1 + 8) * sizeof(float));
}

// Cases of time, counted: key tiles visited, for calls of one worker (tiles of 128 rows) and of many.

TEST_CASE("PRF-1: causal does half of the work") {
  for (const KernelTable& table : Tables()) {
    for (int32_t workers : {1, 8, 64}) {
      ApiCase c;
      c.size = {1, 8, 8, 2048, 2048, 1, 1};
      const etalon_plan_info all = CountedBy(c, table, workers);
      c.right = 0;
      const etalon_plan_info causal = CountedBy(c, table, workers);
      INFO(std::string(table.name), " workers ", workers, " tile_rows ", causal.tile_rows);
      CHECK(all.tile_rows == causal.tile_rows);
      CHECK(all.key_tiles == 8 * (2048 / all.tile_rows) * (2048 / 128));
      CHECK(causal.key_tiles == 8 * (128 / causal.tile_rows) * (16 * 17 / 2));  // as many tiles end in each chunk
      CHECK(static_cast<double>(causal.key_tiles) <= 0.65 * static_cast<double>(all.key_tiles));
      CHECK(static_cast<double>(causal.bytes_read) <= 0.65 * static_cast<double>(all.bytes_read));
    }
  }
}

TEST_CASE("PRF-3: a window is a part of the work that does not grow") {
  for (const KernelTable& table : Tables()) {
    for (int32_t workers : {1, 8, 64}) {
      ApiCase c;
      c.size = {1, 2, 2, 8192, 8192, 1, 1};
      c.right = 0;
      const etalon_plan_info full = CountedBy(c, table, workers);
      c.left = 511;
      const etalon_plan_info window = CountedBy(c, table, workers);
      INFO(std::string(table.name), " workers ", workers, " tile_rows ", window.tile_rows);
      // The rows of a tile lie in one chunk and see it and the four before; the first tiles see fewer.
      const int64_t tiles_of_chunk = 128 / window.tile_rows;
      CHECK(window.key_tiles == 2 * tiles_of_chunk * (64 * 5 - (4 + 3 + 2 + 1)));
      CHECK(static_cast<double>(window.key_tiles) <= 0.25 * static_cast<double>(full.key_tiles));
      CHECK(static_cast<double>(window.bytes_read) <= 0.25 * static_cast<double>(full.bytes_read));
      c.size.q_len = c.size.kv_len = 16384;  // of which the tiles may be larger
      const etalon_plan_info twice = CountedBy(c, table, workers);
      CHECK(twice.key_tiles == 2 * (128 / twice.tile_rows) * (128 * 5 - (4 + 3 + 2 + 1)));
    }
  }
}

}  // namespace
}  // namespace etalon::test
