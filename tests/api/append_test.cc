// etalon_kv_append: what it writes, what it leaves, and a cache that lives through a random walk of operations.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "tests/api/api_test.h"
#include "tests/api/guarded_tensor.h"
#include "tests/support/generate.h"

namespace etalon::test {
namespace {

constexpr uint32_t kMark = 0xFFFFFFFFu;  // NaN of any type

// A cache of one layout. k and v lie in pages if page_len > 0; pages are handed out in any order, when they are needed.
struct Layout3 {
  int64_t page_len;  // 0 = no pages
  int64_t ring_keep, ring_len;
  bool interleaved;  // k and v in one pool
};

class Cache {
 public:
  Cache(int64_t batch, int64_t heads, int64_t room, int64_t dim, DType type, const Layout3& layout, uint64_t seed)
      : layout_(layout), random_(seed) {
    const bool paged = layout.page_len > 0, ring = layout.ring_len > 0;
    slots_ = ring ? layout.ring_keep + layout.ring_len : room;
    max_pages_ = paged ? (slots_ + layout.page_len - 1) / layout.page_len : 0;
    const int64_t pages = paged ? batch * max_pages_ + 1 : batch, rows = paged ? layout.page_len : slots_;
    const int64_t element = static_cast<int64_t>(ElementSize(type)), row = dim * element;
    const int64_t between = layout.interleaved ? 2 : 1;
    memory_ = Array(type, 2 * pages * heads * rows * dim);
    for (int64_t i = 0; i < memory_.size(); ++i) memory_.SetWord(i, kMark);
    for (int which = 0; which < 2; ++which) {
      const int64_t shape[] = {pages, heads, rows, dim};
      etalon_tensor* tensor = which == 0 ? &k : &v;
      const int64_t half = layout.interleaved ? row : pages * heads * rows * row;
      REQUIRE(etalon_tensor_init(tensor, static_cast<unsigned char*>(memory_.data()) + which * half, DtypeOf(type), 4,
                                 shape, nullptr) == ETALON_OK);
      for (int place = 0; place < 3; ++place) tensor->stride_bytes[place] *= between;
    }
    REQUIRE(etalon_kv_places_init(&places, sizeof places) == ETALON_OK);
    places.ring_keep = layout.ring_keep;
    places.ring_len = layout.ring_len;
    if (paged) {
      table_.assign(static_cast<size_t>(batch * max_pages_), -1);
      for (int64_t i = 0; i < pages; ++i) free_.push_back(static_cast<int32_t>(i));
      places.page_table = table_.data();
      places.page_table_stride = places.max_pages = max_pages_;
    }
    kv_lens.assign(static_cast<size_t>(batch), 0);
  }
  Cache(const Cache&) = delete;

  // Pages for the slots that positions below `len` have.
  void Provide(int64_t b, int64_t len) {
    if (layout_.page_len == 0) return;
    const int64_t slots = std::min(len, slots_);
    for (int64_t page = 0; page * layout_.page_len < slots; ++page) {
      int32_t& id = table_[static_cast<size_t>(b * max_pages_ + page)];
      if (id >= 0) continue;
      const size_t any = static_cast<size_t>(random_.Below(static_cast<int64_t>(free_.size())));
      id = free_[any];
      free_.erase(free_.begin() + static_cast<std::ptrdiff_t>(any));
    }
  }
  // Gives back the pages that nothing below `len` lies in.
  void Release(int64_t b, int64_t len) {
    for (int64_t page = 0; page < max_pages_; ++page) {
      int32_t& id = table_[static_cast<size_t>(b * max_pages_ + page)];
      if (id < 0 || page * layout_.page_len < len) continue;
      free_.push_back(id);
      id = -1;
    }
  }

  const Array& memory() const { return memory_; }
  Array* mutable_memory() { return &memory_; }
  int64_t slots() const { return slots_; }

  etalon_tensor k, v;
  etalon_kv_places places;
  std::vector<int64_t> kv_lens;

 private:
  Layout3 layout_;
  int64_t slots_, max_pages_;
  Random random_;
  Array memory_;
  std::vector<int32_t> table_, free_;
};

// New tokens of all sequences, [batch, heads, new_len, dim].
struct NewTokens {
  NewTokens(int64_t batch, int64_t heads, int64_t new_len, int64_t dim, DType type, Random* random)
      : shape{batch, heads, new_len, dim},
        k(type, random->Normals(Count(shape))),
        v(type, random->Normals(Count(shape))) {}
  Shape shape;
  Array k, v;
};

etalon_kv_append_args ArgsOf(Cache* cache, GuardedTensor* k, GuardedTensor* v) {
  etalon_kv_append_args args;
  REQUIRE(etalon_kv_append_args_init(&args, sizeof args) == ETALON_OK);
  args.new_k = k->get();
  args.new_v = v->get();
  args.k = &cache->k;
  args.v = &cache->v;
  args.places = &cache->places;
  args.kv_lens = cache->kv_lens.data();
  return args;
}

// What one sequence and head has been given, in the cache's type: the naive model.
struct Tokens {
  std::vector<std::vector<uint32_t>> k, v;  // [token][channel]
};

std::vector<uint32_t> RowOf(const Array& a, int64_t row, int64_t dim, DType type) {
  std::vector<uint32_t> words;
  for (int64_t i = 0; i < dim; ++i) {
    const bool same = a.type() == type;
    words.push_back(same ? a.Word(row * dim + i) : Array(type, std::vector<float>{a[row * dim + i]}).Word(0));
  }
  return words;
}

struct Attended {
  Array out;
  std::vector<float> lse;
};

// One query a sequence, at the last token, over whatever k, v and args say.
Attended Attend(const Shape& q_shape, const Array& q, const KernelTable& table,
                const std::function<void(etalon_attention_args*)>& fill) {
  const GuardedTensor queries(q, q_shape);
  const Shape sums = {q_shape[0], q_shape[1], q_shape[2]};
  const GuardedTensor out(Unwritten(DType::kF32, q_shape), q_shape), lse(Unwritten(DType::kF32, sums), sums);
  etalon_attention_desc desc;
  etalon_attention_args args;
  REQUIRE(etalon_attention_desc_init(&desc, sizeof desc) == ETALON_OK);
  REQUIRE(etalon_attention_args_init(&args, sizeof args) == ETALON_OK);
  desc.target = table.name;
  args.q = queries.get();
  args.out = out.get();
  args.lse = lse.get();
  fill(&args);
  etalon_error error;
  size_t bytes = 0;
  CHECK_MESSAGE(etalon_attention_workspace_bytes(&desc, &args, &bytes, &error) == ETALON_OK, std::string(error.text));
  GuardBuffer memory(bytes, Guard::kAbove, 0, 0);
  const etalon_workspace workspace = {memory.data(), bytes};
  CHECK_MESSAGE(etalon_attention(&desc, &args, &workspace, nullptr, &error) == ETALON_OK, std::string(error.text));
  return {out.Values(), Floats(lse.Values())};
}

constexpr Layout3 kLayouts[] = {{0, 0, 0, false},  {0, 0, 0, true},   {16, 0, 0, false}, {5, 0, 0, true},
                                {0, 0, 24, false}, {0, 3, 20, false}, {4, 2, 30, true},  {1, 0, 0, false}};

// A walk over a cache: append any number of tokens to each sequence, forget some at the end, or all; now and then more
// than there is room for. After each step attention over the cache gives the bytes of attention over plain arrays of
// what it should hold.
void Walk(const Layout3& layout, DType type, uint64_t seed, int steps, const KernelTable& table) {
  constexpr int64_t kSequences = 2, kHeads = 2, kRoom = 60, kDim = 6;
  Random random(seed);
  Cache cache(kSequences, kHeads, kRoom, kDim, type, layout, random.Next());
  const bool ring = layout.ring_len > 0;
  std::vector<Tokens> model(kSequences * kHeads);
  for (int step = 0; step < steps; ++step) {
    const int64_t what = random.Below(8);
    INFO("step ", step, " of ", what);
    if (what == 0 || (what == 1 && !ring)) {  // reset, truncate
      for (int64_t b = 0; b < kSequences; ++b) {
        int64_t& len = cache.kv_lens[static_cast<size_t>(b)];
        len = what == 0 ? 0 : random.Below(len + 1);
        cache.Release(b, len);
        for (int64_t h = 0; h < kHeads; ++h) {
          Tokens& tokens = model[static_cast<size_t>(b * kHeads + h)];
          tokens.k.resize(static_cast<size_t>(len));
          tokens.v.resize(static_cast<size_t>(len));
        }
      }
    } else {
      const DType new_types[] = {type, type, DType::kF32, DType::kF16, DType::kBF16};
      const int64_t new_len = random.Below(random.Below(4) == 0 ? 70 : 6);
      const NewTokens tokens(kSequences, kHeads, new_len, kDim, new_types[random.Below(5)], &random);
      GuardedTensor new_k(tokens.k, tokens.shape), new_v(tokens.v, tokens.shape);
      etalon_kv_append_args args = ArgsOf(&cache, &new_k, &new_v);
      std::vector<int64_t> new_lens;
      bool fits = true;
      for (int64_t b = 0; b < kSequences; ++b) {
        new_lens.push_back(random.Below(3) == 0 ? random.Below(new_len + 1) : new_len);
        const int64_t len = cache.kv_lens[static_cast<size_t>(b)] + new_lens.back();
        fits = fits && (ring || len <= kRoom);
        cache.Provide(b, len);
      }
      args.new_lens = new_lens.data();
      args.target = table.name;
      const int64_t room = cache.k.shape[2] * std::max<int64_t>(cache.places.max_pages, 1);
      bool in_pages = true;  // a page may have more room than the model wants to use
      for (int64_t b = 0; b < kSequences; ++b) {
        in_pages =
            in_pages && (ring || cache.kv_lens[static_cast<size_t>(b)] + new_lens[static_cast<size_t>(b)] <= room);
      }
      if (!fits && in_pages) continue;
      const Array before = cache.memory();
      etalon_error error;
      const etalon_status status = etalon_kv_append(&args, nullptr, &error);
      if (!fits) {
        CHECK(status == ETALON_CACHE_FULL);
        CHECK(cache.memory() == before);
        continue;
      }
      REQUIRE_MESSAGE(status == ETALON_OK, std::string(error.text));
      CHECK(new_k.Intact());
      for (int64_t b = 0; b < kSequences; ++b) {
        const size_t at = static_cast<size_t>(b);
        for (int64_t h = 0; h < kHeads; ++h) {
          for (int64_t i = 0; i < new_lens[at]; ++i) {
            const int64_t row = (b * kHeads + h) * new_len + i;
            model[static_cast<size_t>(b * kHeads + h)].k.push_back(RowOf(tokens.k, row, kDim, type));
            model[static_cast<size_t>(b * kHeads + h)].v.push_back(RowOf(tokens.v, row, kDim, type));
          }
        }
        cache.kv_lens[at] += new_lens[at];
      }
    }

    // Plain arrays of what there should be.
    const int64_t longest = *std::max_element(cache.kv_lens.begin(), cache.kv_lens.end());
    const Shape shape = {kSequences, kHeads, longest, kDim};
    Array k(type, Count(shape)), v(type, Count(shape));
    std::vector<uint8_t> there(static_cast<size_t>(kSequences * longest), 1);
    for (int64_t b = 0; b < kSequences; ++b) {
      const int64_t len = cache.kv_lens[static_cast<size_t>(b)];
      for (int64_t t = 0; t < len; ++t) {
        const bool gone = ring && t >= layout.ring_keep && t < len - layout.ring_len;
        there[static_cast<size_t>(b * longest + t)] = gone ? 0 : 1;
        for (int64_t h = 0; h < kHeads; ++h) {
          const Tokens& tokens = model[static_cast<size_t>(b * kHeads + h)];
          for (int64_t i = 0; i < kDim; ++i) {
            const int64_t at = ((b * kHeads + h) * longest + t) * kDim + i;
            k.SetWord(at, tokens.k[static_cast<size_t>(t)][static_cast<size_t>(i)]);
            v.SetWord(at, tokens.v[static_cast<size_t>(t)][static_cast<size_t>(i)]);
          }
        }
      }
    }
    const Shape q_shape = {kSequences, 2 * kHeads, 1, kDim};
    const Array q(DType::kF32, random.Normals(Count(q_shape)));
    const Attended got = Attend(q_shape, q, table, [&](etalon_attention_args* args) {
      args->k = &cache.k;
      args->v = &cache.v;
      args->places = &cache.places;
      args->kv_lens = cache.kv_lens.data();
    });
    const GuardedTensor plain_k(k, shape), plain_v(v, shape);
    etalon_tensor mask;
    const int64_t mask_shape[] = {kSequences, 1, 1, longest};
    REQUIRE(etalon_tensor_init(&mask, there.data(), ETALON_BOOL, 4, mask_shape, nullptr) == ETALON_OK);
    const Attended want = Attend(q_shape, q, table, [&](etalon_attention_args* args) {
      args->k = plain_k.get();
      args->v = plain_v.get();
      args->kv_lens = cache.kv_lens.data();
      args->mask = &mask;
    });
    REQUIRE(Difference(got.out, want.out) == "");
    REQUIRE(Difference(got.lse, want.lse) == "");
  }
}

// 10,080 steps over all layouts, types and tables together.
TEST_CASE("append: a random walk gives what plain arrays give, step by step") {
  const std::vector<KernelTable> tables = Tables();
  const int steps = static_cast<int>(10080 / (3 * 8 * tables.size())) + 1;
  uint64_t seed = 1;
  for (const KernelTable& table : tables) {
    for (const DType type : {DType::kF32, DType::kF16, DType::kBF16}) {
      for (const Layout3& layout : kLayouts) {
        INFO(std::string(table.name), " pages of ", layout.page_len, " ring ", layout.ring_keep, " + ", layout.ring_len,
             " seed ", seed);
        Walk(layout, type, seed++, steps, table);
      }
    }
  }
}

// Value of token t is t, one head, one channel.
struct Ramp {
  Ramp(int64_t first, int64_t count) {
    std::vector<float> values;
    for (int64_t i = 0; i < count; ++i) values.push_back(static_cast<float>(first + i));
    const Shape shape = {1, 1, count, 1};
    k = std::make_unique<GuardedTensor>(Array(DType::kF32, values), shape);
    v = std::make_unique<GuardedTensor>(Array(DType::kF32, values), shape);
  }
  std::unique_ptr<GuardedTensor> k, v;
};

etalon_status Append(Cache* cache, int64_t first, int64_t count, etalon_error* error = nullptr) {
  Ramp ramp(first, count);
  const etalon_kv_append_args args = ArgsOf(cache, ramp.k.get(), ramp.v.get());
  const etalon_status status = etalon_kv_append(&args, nullptr, error);
  if (status == ETALON_OK) cache->kv_lens[0] += count;
  return status;
}

TEST_CASE("KVC-9: a full cache takes no more, and keeps what it has") {
  for (const int64_t page_len : {0, 16, 4}) {
    const Layout3 layout = {page_len, 0, 0, false};
    for (const bool one_by_one : {true, false}) {
      Cache cache(1, 1, 16, 1, DType::kF32, layout, 1);
      cache.Provide(0, 16);
      etalon_error error;
      CHECK(Append(&cache, 0, 17, &error) == ETALON_CACHE_FULL);
      CHECK(std::string(error.field) == "args.kv_lens[0]");
      CHECK(cache.kv_lens[0] == 0);
      if (one_by_one) {
        for (int64_t t = 0; t < 16; ++t) REQUIRE(Append(&cache, t, 1) == ETALON_OK);
      } else {
        REQUIRE(Append(&cache, 0, 10) == ETALON_OK);
        const Array before = cache.memory();
        CHECK(Append(&cache, 10, 7) == ETALON_CACHE_FULL);
        CHECK(cache.memory() == before);
        REQUIRE(Append(&cache, 10, 6) == ETALON_OK);
      }
      const Array before = cache.memory();
      CHECK(Append(&cache, 16, 1) == ETALON_CACHE_FULL);
      CHECK(cache.memory() == before);
      for (const KernelTable& table : Tables()) {
        const Attended got =
            Attend({1, 1, 1, 1}, Array(DType::kF32, std::vector<float>{0.0f}), table, [&](etalon_attention_args* args) {
              args->k = &cache.k;
              args->v = &cache.v;
              args->places = &cache.places;
              args->kv_lens = cache.kv_lens.data();
            });
        CHECK(got.out[0] == 7.5f);
      }
    }
  }
}

TEST_CASE("append: numbers are rounded once, and copied where the type is the same") {
  Random random(3);
  std::vector<float> values = random.Normals(700);
  values[3] = NAN;
  values[4] = 1e30f;
  values[5] = 1e-40f;
  const Shape shape = {1, 1, 1, 700};
  for (const DType from : {DType::kF32, DType::kF16, DType::kBF16}) {
    for (const DType to : {DType::kF32, DType::kF16, DType::kBF16}) {
      for (const KernelTable& table : Tables()) {
        Array source(from, values);
        source.SetWord(6, from == DType::kF32 ? 0xFFC12345u : from == DType::kF16 ? 0xFE01u : 0xFFC1u);  // some NaN
        Cache cache(1, 1, 1, 700, to, {0, 0, 0, false}, 1);
        GuardedTensor k(source, shape), v(source, shape);
        etalon_kv_append_args args = ArgsOf(&cache, &k, &v);
        args.target = table.name;
        REQUIRE(etalon_kv_append(&args, nullptr, nullptr) == ETALON_OK);
        for (int64_t i = 0; i < 700; ++i) {
          uint32_t want = from == to ? source.Word(i) : Array(to, std::vector<float>{source[i]}).Word(0);
          if (from != to && to == DType::kF32 && source[i] != source[i]) want = 0x7FC00000u;
          CHECK(cache.memory().Word(i) == want);
          CHECK(cache.memory().Word(700 + i) == want);
        }
      }
    }
  }
}

TEST_CASE("append: what is refused leaves the cache as it was") {
  const auto refused = [](auto spoil, etalon_status status, const std::string& field) {
    Cache cache(1, 1, 16, 1, DType::kF32, {4, 0, 0, false}, 1);
    cache.Provide(0, 16);
    Ramp ramp(0, 3);
    etalon_kv_append_args args = ArgsOf(&cache, ramp.k.get(), ramp.v.get());
    spoil(&args, &cache, &ramp);
    const Array before = cache.memory();
    etalon_error error;
    CHECK(etalon_kv_append(&args, nullptr, &error) == status);
    CHECK(std::string(error.field) == field);
    CHECK(cache.memory() == before);
  };
  using Args = etalon_kv_append_args;
  static int64_t numbers[] = {-1};
  refused([](Args* a, Cache*, Ramp*) { a->struct_size = 1; }, ETALON_BAD_STRUCT_SIZE, "args.struct_size");
  refused([](Args* a, Cache*, Ramp*) { a->new_k = nullptr; }, ETALON_NULL_POINTER, "args.new_k");
  refused([](Args* a, Cache*, Ramp*) { a->v = nullptr; }, ETALON_NULL_POINTER, "args.v");
  refused([](Args* a, Cache*, Ramp*) { a->kv_lens = numbers; }, ETALON_BAD_VALUE, "args.kv_lens[0]");
  refused([](Args* a, Cache*, Ramp*) { a->new_lens = numbers; }, ETALON_BAD_VALUE, "args.new_lens[0]");
  refused([](Args* a, Cache*, Ramp*) { a->target = "none"; }, ETALON_UNKNOWN_TARGET, "args.target");
  refused([](Args*, Cache*, Ramp* r) { r->v->tensor.shape[2] = 2; }, ETALON_BAD_SHAPE, "args.new_v.shape[2]");
  refused([](Args*, Cache* c, Ramp*) { c->k.shape[1] = 0; }, ETALON_BAD_SHAPE, "args.k.shape[1]");
  refused([](Args*, Cache* c, Ramp*) { c->v.shape[0] = 2; }, ETALON_BAD_SHAPE, "args.v.shape[0]");
  refused([](Args*, Cache* c, Ramp*) { c->v.data = c->k.data; }, ETALON_OVERLAP, "args.k");
  refused([](Args* a, Cache* c, Ramp*) { a->new_k = &c->k, c->k.shape[0] = 1, a->new_lens = nullptr; },
          ETALON_BAD_SHAPE, "args.new_v.shape[2]");
  refused([](Args*, Cache* c, Ramp*) { c->Release(0, 0); }, ETALON_BAD_VALUE, "args.places.page_table[0]");
  refused([](Args* a, Cache* c, Ramp*) { c->kv_lens[0] = 3, c->Release(0, 3), a->new_lens = nullptr; },
          ETALON_BAD_VALUE, "args.places.page_table[1]");
}

}  // namespace
}  // namespace etalon::test
