// Where arrays lie and what lies around them: layouts, alignments, guard pages, poison in everything that must not be
// read, workspaces with a past.
#include <cmath>
#include <cstring>
#include <string>

#include "tests/api/api_test.h"

namespace etalon::test {
namespace {

constexpr float kPoisons[] = {NAN, HUGE_VALF, -HUGE_VALF, 1e30f};
const Layout kLayouts[] = {Packed, HeadsInside, Padded, Backward};

ApiCase Causal(const Sizes& size, uint64_t seed) {
  ApiCase c = RandomCase(size, seed);
  c.q_offset = size.kv_len - size.q_len;
  c.right = 0;
  return c;
}

TEST_CASE("memory: every layout of each tensor, against a guard page on either side") {
  for (const KernelTable& table : Tables()) {
    uint64_t seed = 0;
    for (const Sizes& size :
         {Sizes{2, 4, 2, 3, 7, 5, 3}, Sizes{3, 2, 2, 35, 130, 2, 6}, Sizes{1, 6, 1, 2, 1100, 3, 1}}) {
      const ApiCase c = Causal(size, ++seed);
      const AttentionResult expected = Expected(c);
      for (size_t n = 0; n < 4 * 5 * 2; ++n) {
        Places places;
        Place* const each[] = {&places.q, &places.k, &places.v, &places.out, &places.lse};
        for (size_t i = 0; i < 5; ++i) {
          each[i]->layout = kLayouts[(n + n / 4 * i) % 4];
          each[i]->guard = (n + i) % 2 == 0 ? Guard::kAbove : Guard::kBelow;
          each[i]->gaps = kPoisons[(n + i) % 4];
        }
        const How& how = EveryForm()[n % EveryForm().size()];
        INFO(std::string(table.name), " ", Describe(size), ", layouts ", n, ", ", Describe(how));
        CHECK(Difference(Run(c, table, how, places), expected) == "");
      }
    }
  }
}

TEST_CASE("memory: any alignment to the element") {
  for (const KernelTable& table : Tables()) {
    for (uint64_t seed = 1; seed < 4; ++seed) {
      const ApiCase c = Causal({1, 2, 1, 3, 131, 16, 16}, seed);
      const AttentionResult expected = Expected(c);
      for (int element = 0; element < 16; ++element) {
        Places places;
        const Array* const arrays[] = {&c.q, &c.k, &c.v};
        Place* const each[] = {&places.q, &places.k, &places.v, &places.out, &places.lse};
        for (size_t i = 0; i < 5; ++i) {
          const DType type = i < 3 ? arrays[i]->type() : i == 3 ? c.out_type : DType::kF32;
          each[i]->offset = (element + static_cast<int>(i)) % 16 * static_cast<int>(ElementSize(type));
        }
        INFO(std::string(table.name), " seed ", seed, " element ", element);
        CHECK(Difference(Run(c, table, {}, places), expected) == "");
      }
    }
  }
}

// Poison in the keys and values that no query sees, and in the queries that do not count.
ApiCase Poisoned(ApiCase c, float poison) {
  const auto fill = [&](Array* a, int64_t first, int64_t count) {
    const Array word(a->type(), std::vector<float>{poison});
    for (int64_t i = 0; i < count; ++i) a->SetWord(first + i, word.Word(0));
  };
  const Sizes& s = c.size;
  for (int64_t b = 0; b < s.batch; ++b) {
    for (int64_t t = 0; t < s.kv_len; ++t) {
      bool seen = false;
      for (int64_t i = 0; i < s.q_len; ++i) seen |= Sees(c, b, i, t);
      for (int64_t h = b * s.num_kv_heads; h < (b + 1) * s.num_kv_heads && !seen; ++h) {
        fill(&c.k, (h * s.kv_len + t) * s.head_dim, s.head_dim);
        fill(&c.v, (h * s.kv_len + t) * s.value_dim, s.value_dim);
      }
    }
    const int64_t q_len = c.q_lens.empty() ? s.q_len : c.q_lens[static_cast<size_t>(b)];
    for (int64_t h = b * s.num_q_heads; h < (b + 1) * s.num_q_heads; ++h) {
      fill(&c.q, (h * s.q_len + q_len) * s.head_dim, (s.q_len - q_len) * s.head_dim);
    }
  }
  return c;
}

TEST_CASE("memory: what no query sees is not felt") {
  for (const KernelTable& table : Tables()) {
    for (int64_t left : {-1, 0, 40}) {
      ApiCase c = RandomCase({3, 4, 2, 5, 700, 4, 3}, static_cast<uint64_t>(left) + 20);
      c.left = left;
      c.right = 2;
      c.q_lens = {5, 2, 0};
      c.kv_lens = {129, 700, 3};
      c.q_offsets = {100, 640, 0};
      const AttentionResult expected = Expected(c);
      for (float poison : kPoisons) {
        INFO(std::string(table.name), " left ", left, " poison ", poison);
        CHECK(FormsReport(Poisoned(c, poison), table, expected) == "");
      }
    }
  }
}

TEST_CASE("memory: a key is felt by the rows that see it and no others") {
  for (const KernelTable& table : Tables()) {
    ApiCase c = RandomCase({1, 2, 1, 6, 6, 3, 2}, 3);
    c.left = 2;
    c.right = 1;
    const AttentionResult clean = Expected(c);
    for (int64_t t = 0; t < 6; ++t) {
      ApiCase one = c;
      const Array nan(one.v.type(), std::vector<float>{NAN});
      for (int64_t i = 0; i < 2; ++i) one.v.SetWord(t * 2 + i, nan.Word(0));
      const AttentionResult got = Run(one, table);
      for (int64_t row = 0; row < 12; ++row) {
        INFO(std::string(table.name), " key ", t, " row ", row);
        const bool same = Difference(Slice(got.out, row * 2, 2), Slice(clean.out, row * 2, 2)).empty();
        CHECK(same != Sees(c, 0, row % 6, t));
      }
    }
  }
}

// The same heads and sequences, from one that is stored once.
TEST_CASE("memory: strides of 0 repeat an input") {
  for (const KernelTable& table : Tables()) {
    const ApiCase one = Causal({1, 1, 1, 1, 600, 5, 3}, 4);
    ApiCase many = one;
    many.size = {3, 4, 2, 6, 600, 5, 3};
    const auto repeat = [](const Array& a, int64_t times) {
      Array all(a.type(), a.size() * times);
      for (int64_t i = 0; i < all.size(); ++i) all.SetWord(i, a.Word(i % a.size()));
      return all;
    };
    many.q = repeat(one.q, 3 * 4 * 6);
    many.k = repeat(one.k, 3 * 2);
    many.v = repeat(one.v, 3 * 2);
    Places places;
    places.q.layout = Repeated;  // queries too
    places.k.layout = places.v.layout = [](const Shape& shape) -> Shape { return {0, 0, shape[3], 1}; };
    INFO(std::string(table.name));
    CHECK(FormsReport(many, table, Expected(many), places) == "");
    // And one key and value for all positions.
    ApiCase flat = many;
    flat.k = repeat(Slice(one.k, 0, 5), 3 * 2 * 600);
    flat.v = repeat(Slice(one.v, 0, 3), 3 * 2 * 600);
    places.k.layout = places.v.layout = Repeated;
    CHECK(FormsReport(flat, table, Expected(flat), places) == "");
  }
}

TEST_CASE("memory: strides of dimensions of size 1 and 0 do not count") {
  for (const KernelTable& table : Tables()) {
    for (const Sizes& size : {Sizes{1, 1, 1, 1, 1, 1, 1}, Sizes{1, 2, 1, 1, 130, 3, 1}, Sizes{1, 1, 1, 3, 0, 2, 2}}) {
      const ApiCase c = RandomCase(size, 5);
      const AttentionResult expected = Expected(c);
      for (int64_t stride : {int64_t{0}, int64_t{1}, INT64_MIN, INT64_MAX}) {
        for (const How& how : EveryForm()) {
          ApiCall call(c, table);
          for (GuardedTensor* t : {&call.q, &call.k, &call.v, &call.out, &call.lse}) {
            for (int32_t d = 0; d < t->tensor.rank; ++d) {
              if (t->tensor.shape[d] <= 1 || t->Values().size() == 0) t->tensor.stride_bytes[d] = stride;
            }
          }
          INFO(std::string(table.name), " ", Describe(size), " stride ", stride, " ", Describe(how));
          CHECK(call.Run(how, nullptr) == ETALON_OK);
          CHECK(Difference(call.Result(), expected) == "");
        }
      }
    }
  }
}

TEST_CASE("memory: leading dimensions of size 1 may be left out") {
  for (const KernelTable& table : Tables()) {
    const ApiCase heads = Causal({1, 4, 2, 3, 9, 5, 3}, 6), plain = Causal({1, 1, 1, 3, 9, 5, 3}, 7);
    for (const ApiCase& c : {heads, plain}) {
      const int32_t fewest = c.size.num_q_heads == 1 ? 2 : 3;
      const AttentionResult expected = Expected(c);
      for (int32_t rank = fewest; rank <= 4; ++rank) {
        for (const How& how : EveryForm()) {
          ApiCall call(c, table);
          call.q.WithRank(rank);
          call.k.WithRank(fewest);  // each by itself
          call.v.WithRank(4);
          call.out.WithRank(rank);
          call.lse.WithRank(rank - 1);
          INFO(std::string(table.name), " rank ", rank, " ", Describe(how));
          CHECK(call.Run(how, nullptr) == ETALON_OK);
          CHECK(Difference(call.Result(), expected) == "");
        }
      }
    }
  }
}

TEST_CASE("memory: values that are the keys, or a part of them") {
  for (const KernelTable& table : Tables()) {
    for (int64_t value_dim : {16, 11, 1}) {
      ApiCase c = Causal({2, 4, 1, 3, 530, 16, value_dim}, 8);
      c.v = Array(c.k.type(), 2 * 530 * value_dim);
      for (int64_t i = 0; i < c.v.size(); ++i) c.v.SetWord(i, c.k.Word(i / value_dim * 16 + i % value_dim));
      const AttentionResult expected = Expected(c);
      for (const How& how : EveryForm()) {
        ApiCall call(c, table);
        etalon_tensor v = call.k.tensor;
        v.shape[3] = value_dim;
        call.args.v = &v;
        call.v.tensor = v;  // for the types of a plan
        INFO(std::string(table.name), " value_dim ", value_dim, " ", Describe(how));
        CHECK(call.Run(how, nullptr) == ETALON_OK);
        CHECK(Difference(call.Result(), expected) == "");
        if (value_dim == 16) {
          call.args.v = call.args.k;  // the same struct
          CHECK(call.Run(how, nullptr) == ETALON_OK);
          CHECK(Difference(call.Result(), expected) == "");
        }
      }
    }
  }
}

TEST_CASE("memory: a workspace may hold what an earlier call left, or one that was never run") {
  for (const KernelTable& table : Tables()) {
    GuardBuffer memory(1 << 20, Guard::kAbove, 0);
    for (uint64_t round = 0; round < 12; ++round) {
      const Sizes sizes[] = {{1, 2, 1, 1, 1100, 8, 8}, {3, 4, 2, 40, 50, 3, 5}, {2, 1, 1, 2, 1, 1, 1}};
      const ApiCase c = Causal(sizes[round % 3], round);
      ApiCall call(c, table);
      etalon_attention_desc desc = call.PlanDesc();
      desc.max_workers = static_cast<int32_t>(1 + round);
      etalon_plan plan;
      REQUIRE(etalon_plan_init(&plan, &desc, nullptr) == ETALON_OK);
      REQUIRE(etalon_plan_workspace_bytes(&plan) <= memory.bytes());
      const etalon_workspace workspace = {memory.data(), memory.bytes()};
      int64_t num_tasks;
      REQUIRE(etalon_begin(&plan, &call.args, &workspace, &num_tasks, nullptr) == ETALON_OK);
      if (round % 2 == 0) {
        CHECK(etalon_run(memory.data(), 0, num_tasks / 2, 0) == ETALON_OK);  // and then dropped
        REQUIRE(etalon_begin(&plan, &call.args, &workspace, &num_tasks, nullptr) == ETALON_OK);
      }
      CHECK(etalon_run(memory.data(), 0, num_tasks, 0) == ETALON_OK);
      INFO(std::string(table.name), " round ", round);
      CHECK(Difference(call.Result(), Expected(c)) == "");
    }
  }
}

TEST_CASE("memory: after begin, only the memory of the tensors is needed") {
  for (const KernelTable& table : Tables()) {
    ApiCase c = RandomCase({3, 2, 1, 3, 1100, 4, 4}, 9);
    c.q_lens = {3, 1, 2};
    c.kv_lens = {1100, 600, 0};
    c.q_offsets = {1, 2, 3};
    c.right = 590;
    for (int32_t workers : {1, 5}) {
      ApiCall call(c, table);
      std::vector<int64_t> q_lens = c.q_lens, kv_lens = c.kv_lens, q_offsets = c.q_offsets;
      call.args.q_lens = q_lens.data();
      call.args.kv_lens = kv_lens.data();
      call.args.q_offsets = q_offsets.data();
      etalon_attention_desc desc = call.PlanDesc();
      desc.max_workers = workers;
      etalon_plan plan;
      REQUIRE(etalon_plan_init(&plan, &desc, nullptr) == ETALON_OK);
      std::memset(&desc, 0xFF, sizeof desc);
      GuardBuffer memory(etalon_plan_workspace_bytes(&plan), Guard::kAbove, 0);
      etalon_workspace workspace = {memory.data(), memory.bytes()};
      int64_t num_tasks;
      REQUIRE(etalon_begin(&plan, &call.args, &workspace, &num_tasks, nullptr) == ETALON_OK);
      std::memset(&plan, 0xFF, sizeof plan);
      std::memset(&call.args, 0xFF, sizeof call.args);
      std::memset(&workspace, 0xFF, sizeof workspace);
      for (std::vector<int64_t>* lengths : {&q_lens, &kv_lens, &q_offsets}) lengths->assign(3, INT64_MAX);
      for (GuardedTensor* t : {&call.q, &call.k, &call.v, &call.out, &call.lse}) {
        std::memset(&t->tensor, 0xFF, sizeof t->tensor);
      }
      CHECK(etalon_run(memory.data(), 0, num_tasks, 0) == ETALON_OK);
      INFO(std::string(table.name), " workers ", workers);
      CHECK(Difference(call.Result(), Expected(c)) == "");
    }
  }
}

}  // namespace
}  // namespace etalon::test
