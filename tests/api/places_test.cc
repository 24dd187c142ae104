// Keys and values in pages, in rings, and in rings of pages: the field's cases, equality with the contiguous layout,
// and what is refused. Random places are those of options_random.cc.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "tests/api/options_call.h"
#include "tests/support/generate.h"

namespace etalon::test {
namespace {

constexpr float kNaN = NAN;

// One head, one channel, q = 0: an output is the mean of the values that its row sees, and the value of token t is t.
struct MeanCall {
  int64_t kv_len = 0;  // tokens that there ever were
  int64_t page_len = 0;
  int64_t num_pages = 1;
  std::vector<int32_t> table;  // none = no pages
  int64_t ring_keep = 0, ring_len = 0;
  int64_t q_len = 1, q_offset = 0, left = -1, right = -1;
  float unused = kNaN;  // value of the rows that hold no token

  int64_t RowOf(int64_t token) const {
    int64_t slot = token;
    if (ring_len > 0 && token >= ring_keep) slot = ring_keep + (token - ring_keep) % ring_len;
    return table.empty() ? slot : table[static_cast<size_t>(slot / page_len)] * page_len + slot % page_len;
  }
};

// A call in memory of its own, which a test may spoil.
struct MeanTensors {
  MeanTensors(const MeanCall& c, const char* target) : table(c.table), kv_len(c.kv_len) {
    const Shape shape = {c.num_pages, 1, c.page_len, 1};
    std::vector<float> values(static_cast<size_t>(Count(shape)), c.unused);
    for (int64_t t = 0; t < c.kv_len; ++t) {  // later tokens of a ring take the place of earlier ones
      const int64_t row = c.RowOf(t);
      if (row >= 0 && row < static_cast<int64_t>(values.size())) {
        values[static_cast<size_t>(row)] = static_cast<float>(t);
      }
    }
    k = std::make_unique<GuardedTensor>(Array(DType::kF32, values), shape);
    v = std::make_unique<GuardedTensor>(Array(DType::kF32, values), shape);
    const Shape rows = {1, 1, c.q_len, 1}, sums = {1, 1, c.q_len};
    q = std::make_unique<GuardedTensor>(Array(DType::kF32, std::vector<float>(static_cast<size_t>(c.q_len), 0.0f)),
                                        rows);
    out = std::make_unique<GuardedTensor>(Unwritten(DType::kF32, rows), rows);
    lse = std::make_unique<GuardedTensor>(Unwritten(DType::kF32, sums), sums);
    REQUIRE(etalon_attention_desc_init(&desc, sizeof desc) == ETALON_OK);
    REQUIRE(etalon_attention_args_init(&args, sizeof args) == ETALON_OK);
    REQUIRE(etalon_kv_places_init(&places, sizeof places) == ETALON_OK);
    places.page_table = table.empty() ? nullptr : table.data();
    places.page_table_stride = places.max_pages = static_cast<int64_t>(table.size());
    places.ring_keep = c.ring_keep;
    places.ring_len = c.ring_len;
    desc.left = c.left;
    desc.right = c.right;
    desc.target = target;
    args.q = q->get();
    args.k = k->get();
    args.v = v->get();
    args.out = out->get();
    args.lse = lse->get();
    args.q_offset = c.q_offset;
    args.kv_lens = &kv_len;
    args.places = &places;
  }

  etalon_status Run(etalon_error* error) {
    size_t bytes = 0;
    const etalon_status status = etalon_attention_workspace_bytes(&desc, &args, &bytes, error);
    if (status != ETALON_OK) return status;
    GuardBuffer memory(bytes, Guard::kAbove, 0, 0xFF);
    const etalon_workspace workspace = {memory.data(), bytes};
    return etalon_attention(&desc, &args, &workspace, nullptr, error);
  }

  std::unique_ptr<GuardedTensor> q, k, v, out, lse;
  std::vector<int32_t> table;
  int64_t kv_len;
  etalon_kv_places places;
  etalon_attention_desc desc;
  etalon_attention_args args;
};

AttentionResult Means(const MeanCall& c, const KernelTable& table) {
  MeanTensors call(c, table.name);
  etalon_error error;
  CHECK_MESSAGE(call.Run(&error) == ETALON_OK, std::string(error.text));
  return {call.out->Values(), Floats(call.lse->Values())};
}

void CheckMeans(const MeanCall& c, const std::vector<float>& want) {
  for (const KernelTable& table : Tables()) {
    INFO(std::string(table.name));
    CHECK(Difference(Means(c, table).out, Array(DType::kF32, want)) == "");
  }
}

TEST_CASE("KVC-1: queries behind cached tokens, for every permutation of the page table") {
  MeanCall c;
  c.kv_len = 10;
  c.page_len = 4;
  c.num_pages = 3;
  c.q_len = 2;
  c.q_offset = 8;
  c.right = 0;
  std::vector<int32_t> table = {0, 1, 2};
  do {
    c.table = table;
    CheckMeans(c, {4.0f, 4.5f});
  } while (std::next_permutation(table.begin(), table.end()));
  c.table.clear();  // the rows of one page, in order: contiguous
  c.num_pages = 1;
  c.page_len = c.ring_len = 10;
  CheckMeans(c, {4.0f, 4.5f});
}

TEST_CASE("KVC-2: entries of the table that are not in use are not looked at") {
  MeanCall c;
  c.kv_len = 20;
  c.page_len = 16;
  c.num_pages = 2;
  c.table = std::vector<int32_t>{1, 0, INT32_MAX, -7, 123456, INT32_MIN, 2, -1};
  CheckMeans(c, {9.5f});
}

TEST_CASE("KVC-3: a window that is a ring") {
  MeanCall c;
  c.page_len = c.ring_len = 8;
  for (const auto& [tokens, mean] :
       {std::pair<int64_t, float>{6, 2.5f}, {8, 3.5f}, {9, 4.5f}, {10, 5.5f}, {17, 12.5f}}) {
    c.kv_len = tokens;
    CheckMeans(c, {mean});
  }
}

TEST_CASE("KVC-3: and with tokens that are kept, and in pages") {
  for (const bool paged : {false, true}) {
    MeanCall c;
    c.ring_keep = 2;
    c.ring_len = 7;
    c.page_len = paged ? 4 : 9;
    if (paged) c.table = std::vector<int32_t>{2, 0, 1}, c.num_pages = 3;
    for (int64_t tokens = 1; tokens < 40; ++tokens) {
      c.kv_len = tokens;
      double sum = 0.0, count = 0.0;
      for (int64_t t = 0; t < tokens; ++t) {
        if (t >= 2 && t < tokens - 7) continue;
        sum += static_cast<double>(t);
        count += 1.0;
      }
      for (const KernelTable& table : Tables()) {
        CHECK(Means(c, table).out[0] == doctest::Approx(sum / count).epsilon(1e-6));
      }
    }
  }
}

TEST_CASE("KVC-10: tails of pages") {
  MeanCall c;
  c.page_len = 16;
  c.unused = 1e9f;
  for (const int64_t n : {1, 15, 16, 17, 31, 33, 255, 256, 257}) {
    c.kv_len = n;
    c.num_pages = (n + 15) / 16;
    c.table.clear();
    for (int64_t i = c.num_pages; i > 0; --i) c.table.push_back(static_cast<int32_t>(i - 1));
    for (const KernelTable& table : Tables()) {
      const AttentionResult got = Means(c, table);
      INFO(std::string(table.name), " n ", n);
      CHECK(got.out[0] == doctest::Approx(static_cast<double>(n - 1) / 2.0).epsilon(1e-6));
      CHECK(got.lse[0] == doctest::Approx(std::log(static_cast<double>(n))).epsilon(1e-6));
    }
  }
}

TEST_CASE("NUM-2: very negative scores, paged") {
  const float q = 1.0f;
  const auto run = [&](const std::vector<float>& k, const std::vector<float>& v, const KernelTable& table) {
    MeanCall c;
    c.kv_len = static_cast<int64_t>(k.size());
    c.page_len = 1;
    c.num_pages = c.kv_len;
    for (int64_t i = c.num_pages; i > 0; --i) c.table.push_back(static_cast<int32_t>(i - 1));
    MeanTensors call(c, table.name);
    call.desc.scale = 1.0f;
    std::memcpy(call.q->tensor.data, &q, sizeof q);
    for (size_t t = 0; t < k.size(); ++t) {
      const size_t row = static_cast<size_t>(c.RowOf(static_cast<int64_t>(t)));
      static_cast<float*>(call.k->tensor.data)[row] = k[t];
      static_cast<float*>(call.v->tensor.data)[row] = v[t];
    }
    etalon_error error;
    CHECK_MESSAGE(call.Run(&error) == ETALON_OK, std::string(error.text));
    return std::pair<float, float>(call.out->Values()[0], call.lse->Values()[0]);
  };
  for (const KernelTable& table : Tables()) {
    const auto [a, a_lse] = run({-245000.0f, -240000.0f}, {1.0f, 2.0f}, table);
    CHECK(a == 2.0f);
    CHECK(a_lse == -240000.0f);
    const auto [b, b_lse] = run(std::vector<float>(4, -60000.0f), {0.0f, 1.0f, 2.0f, 3.0f}, table);
    CHECK(b == 1.5f);
    CHECK(std::fabs(b_lse + 59998.614) < 0.005);
  }
}

// The status, the field, and that nothing was written.
void Refused(MeanTensors* call, etalon_status status, const std::string& field) {
  etalon_error error;
  const Array before = call->out->Values();
  INFO(field);
  CHECK(call->Run(&error) == status);
  CHECK(std::string(error.field) == field);
  CHECK(call->out->Values() == before);
}

TEST_CASE("MEM-3: pages that are not there") {
  for (const KernelTable& table : Tables()) {
    for (const int32_t wrong : {99, -1, 3, INT32_MIN, INT32_MAX}) {
      MeanCall c;
      c.kv_len = 6;
      c.page_len = 4;
      c.num_pages = 3;
      c.table = std::vector<int32_t>{0, wrong};
      MeanTensors call(c, table.name);
      Refused(&call, ETALON_BAD_VALUE, "args.places.page_table[1]");
      c.kv_len = 4;  // then nobody is in need of it
      CheckMeans(c, {1.5f});
    }
  }
}

// Windows hide pages, and those may be gone.
TEST_CASE("MEM-3: pages before a window, and behind what a prompt sees, need not be there") {
  MeanCall c;
  c.kv_len = 40;
  c.page_len = 4;
  c.num_pages = 10;
  c.q_len = 3;
  c.q_offset = 30;
  c.left = 5;
  c.right = 0;  // rows see 25 ... 32
  for (int32_t i = 0; i < 10; ++i) c.table.push_back(i < 6 || i > 8 ? -1 : i);
  CheckMeans(c, {27.5f, 28.5f, 29.5f});
  c.table[6] = -1;
  MeanTensors call(c, nullptr);
  Refused(&call, ETALON_BAD_VALUE, "args.places.page_table[6]");
}

MeanCall SomeCall() {
  MeanCall c;
  c.kv_len = 6;
  c.page_len = 4;
  c.num_pages = 3;
  c.table = std::vector<int32_t>{0, 2};
  return c;
}

TEST_CASE("places: what is refused") {
  const struct {
    std::function<void(MeanTensors*)> spoil;
    etalon_status status;
    const char* field;
  } kinds[] = {
      {[](MeanTensors* c) { c->places.struct_size = 3; }, ETALON_BAD_STRUCT_SIZE, "args.places.struct_size"},
      {[](MeanTensors* c) { c->places.max_pages = -1; }, ETALON_BAD_VALUE, "args.places.max_pages"},
      {[](MeanTensors* c) { c->places.page_table_stride = -1; }, ETALON_BAD_VALUE, "args.places.page_table_stride"},
      {[](MeanTensors* c) { c->places.ring_keep = -1; }, ETALON_BAD_VALUE, "args.places.ring_keep"},
      {[](MeanTensors* c) { c->places.ring_len = INT64_MIN; }, ETALON_BAD_VALUE, "args.places.ring_len"},
      {[](MeanTensors* c) { c->places.ring_keep = 1; }, ETALON_BAD_VALUE, "args.places.ring_keep"},
      {[](MeanTensors* c) { c->places.page_table = nullptr; }, ETALON_BAD_VALUE, "args.places.max_pages"},
      {[](MeanTensors* c) { c->places.max_pages = 1; }, ETALON_BAD_VALUE, "args.kv_lens[0]"},
      {[](MeanTensors* c) { c->kv_len = 9; }, ETALON_BAD_VALUE, "args.kv_lens[0]"},
      {[](MeanTensors* c) { c->kv_len = -1; }, ETALON_BAD_VALUE, "args.kv_lens[0]"},
      {[](MeanTensors* c) { c->places.ring_len = 9; }, ETALON_BAD_VALUE, "args.places.ring_len"},
      {[](MeanTensors* c) { c->places.ring_len = 8, c->places.ring_keep = 1; }, ETALON_BAD_VALUE,
       "args.places.ring_len"},
      {[](MeanTensors* c) { c->args.kv_lens = nullptr; }, ETALON_NULL_POINTER, "args.kv_lens"},
      {[](MeanTensors* c) { c->args.kv_firsts = &c->kv_len; }, ETALON_UNSUPPORTED, "args.kv_firsts"},
      {[](MeanTensors* c) { c->args.kv_starts = &c->kv_len, c->args.num_sequences = 1; }, ETALON_UNSUPPORTED,
       "args.kv_starts"},
      {[](MeanTensors* c) { c->places.page_table = reinterpret_cast<const int32_t*>(uintptr_t{6}); }, ETALON_MISALIGNED,
       "args.places.page_table"},
      {[](MeanTensors* c) { c->places.page_table = reinterpret_cast<const int32_t*>(UINTPTR_MAX - 3); },
       ETALON_OVERFLOW, "args.places.page_table"},
      {[](MeanTensors* c) {
         c->args.out = c->out->get();
         c->places.page_table = static_cast<const int32_t*>(c->out->tensor.data);
         std::memset(c->out->tensor.data, 0, 4);
         c->kv_len = 4;
         c->places.max_pages = 1;
       },
       ETALON_OVERLAP, "args.out"},
      {[](MeanTensors* c) { c->v->tensor.shape[0] = 2; }, ETALON_BAD_SHAPE, "args.v.shape[0]"},
  };
  for (const auto& kind : kinds) {
    MeanTensors call(SomeCall(), nullptr);
    kind.spoil(&call);
    etalon_error error;
    INFO(kind.field);
    CHECK(call.Run(&error) == kind.status);
    CHECK(std::string(error.field) == kind.field);
  }
  MeanTensors ring(SomeCall(), nullptr);  // a ring has room for any number
  ring.places.ring_len = 8;
  ring.kv_len = int64_t{1} << 61;
  etalon_error error;
  CHECK_MESSAGE(ring.Run(&error) == ETALON_OK, std::string(error.text));
}

TEST_CASE("places: say nothing, and keys lie one after the other") {
  MeanCall c;
  c.kv_len = c.page_len = 5;
  MeanTensors call(c, nullptr);
  call.args.kv_lens = nullptr;
  etalon_error error;
  CHECK_MESSAGE(call.Run(&error) == ETALON_OK, std::string(error.text));
  CHECK(call.out->Values()[0] == 2.0f);
}

// For page sizes around those of chunks, and types and shapes that kernels copy or not.
TEST_CASE("places: pages and rings give the bytes of the contiguous call") {
  Random random(5);
  for (const DType type : {DType::kF32, DType::kF16, DType::kBF16}) {
    for (const int64_t page_len : {int64_t{0}, int64_t{5}, int64_t{128}, int64_t{512}}) {
      for (const int64_t q_len : {1, 40}) {
        const bool every_form = type == DType::kF16 && page_len % 128 != 0;  // takes long under an emulator
        OptionsCase c;
        c.batch = 2;
        c.num_q_heads = 4;
        c.num_kv_heads = 2;
        c.head_dim = 20;
        c.value_dim = 18;
        c.q_len = q_len;
        c.q = Array(DType::kF32, random.Normals(c.batch * c.num_q_heads * q_len * c.head_dim));
        SourceCase s;
        s.kv_len = 1300;
        s.kv_lens = {1300, 700};
        s.k = Array(type, random.Normals(c.batch * c.num_kv_heads * s.kv_len * c.head_dim));
        s.v = Array(type, random.Normals(c.batch * c.num_kv_heads * s.kv_len * c.value_dim));
        s.q_offsets = {1300 - q_len, 700 - q_len};
        s.right = 0;
        if (page_len == 0) {  // a ring that still has all that the window wants
          s.left = 600;
          s.places.ring_len = 601 + q_len - 1;
        }
        c.sources = {s};
        OptionsCase plain = c;
        plain.sources[0].places = {};
        c.sources[0].places.page_len = page_len;
        c.sources[0].places.spare = 2;
        c.sources[0].places.seed = random.Next();
        for (const KernelTable& table : Tables()) {
          INFO(std::string(table.name), " ", Describe(c));
          CHECK(Difference(every_form ? RunEveryForm(c, table) : Run(c, table), Run(plain, table)) == "");
        }
      }
    }
  }
}

}  // namespace
}  // namespace etalon::test
