// The field cases of shapes, strides, key caches and the standard case. Names begin with the id.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>

#include "tests/api/api_test.h"
#include "tests/api/primitive_calls.h"
#include "tests/support/reference.h"

namespace etalon::test {
namespace {

constexpr float kNone = -HUGE_VALF;

// The status that every function which takes the call gives, tried with much workspace; nothing may be written.
etalon_status Refusal(ApiCall* call, etalon_error* error) {
  GuardBuffer memory(1 << 20, Guard::kAbove, 0);
  const etalon_workspace workspace = {memory.data(), memory.bytes()};
  const etalon_status status = etalon_attention(&call->desc, &call->args, &workspace, nullptr, error);
  for (Form form : {Form::kOneCall, Form::kTasks, Form::kExecute}) {
    How how;
    how.form = form;
    CHECK(call->Run(how, nullptr) == status);
  }
  CHECK((call->out.Intact() && call->lse.Intact()));
  CHECK(std::all_of(memory.data(), memory.data() + memory.bytes(), [](unsigned char byte) { return byte == 0xFF; }));
  return status;
}

TEST_CASE("SHP-1: empty sizes") {
  for (const KernelTable& table : Tables()) {
    for (DType type : {DType::kF32, DType::kF16, DType::kBF16}) {
      for (int64_t right : {-1, 0}) {
        const Sizes shapes[] = {
            {2, 4, 2, 0, 5, 7, 7}, {2, 4, 2, 3, 0, 7, 7}, {0, 4, 2, 3, 5, 7, 7}, {2, 4, 2, 0, 0, 7, 7}};
        for (const Sizes& s : shapes) {
          ApiCase c;
          c.size = s;
          c.q = Array(type, Ramp(3, 1, s.batch * s.num_q_heads * s.q_len * 7));
          c.k = c.v = Array(type, Ramp(5, 2, s.batch * s.num_kv_heads * s.kv_len * 7));
          c.out_type = type;
          c.right = right;
          INFO(std::string(table.name), " ", Describe(s));
          const AttentionResult got = RunEveryForm(c, table);
          CHECK(Difference(got.out, Array(type, got.out.size())) == "");
          CHECK(Difference(got.lse, std::vector<float>(got.lse.size(), kNone)) == "");
          // No memory for what has no elements.
          ApiCall call(c, table);
          for (GuardedTensor* tensor : {&call.q, &call.k, &call.v, &call.out, &call.lse}) {
            if (tensor->Values().size() == 0) tensor->tensor.data = nullptr;
          }
          for (const How& how : EveryForm()) CHECK(call.Run(how, nullptr) == ETALON_OK);
          CHECK(Difference(call.Result(), got) == "");
        }
      }
    }
    ApiCase c;
    c.size = {2, 4, 2, 3, 5, 0, 7};
    c.v = Array(DType::kF32, 2 * 2 * 5 * 7);
    ApiCall no_head_dim(c, table);
    CHECK(Refusal(&no_head_dim, nullptr) == ETALON_BAD_HEAD_DIM);
  }
}

TEST_CASE("SHP-2: query heads in groups") {
  for (const KernelTable& table : Tables()) {
    ApiCase c = TrioCase({1, 4, 2, 3, 5, 6, 2});
    std::vector<float> v(20, 1.0f), expected;
    std::fill(v.begin() + 10, v.end(), 2.0f);
    c.v = F32(v);
    for (float head : {1.0f, 1.0f, 2.0f, 2.0f}) expected.insert(expected.end(), 6, head);
    INFO(std::string(table.name));
    CHECK(Near(RunEveryForm(c, table).out, {expected.begin(), expected.end()}, 2e-6) == "");
  }
}

TEST_CASE("SHP-3: head counts that do not fit") {
  const struct {
    int64_t num_q_heads, num_kv_heads;
    etalon_status status;
  } counts[] = {{4, 0, ETALON_NO_HEADS}, {6, 4, ETALON_BAD_HEADS}, {0, 0, ETALON_NO_HEADS}, {2, 4, ETALON_BAD_HEADS}};
  for (const KernelTable& table : Tables()) {
    for (const auto& one : counts) {
      ApiCall call(TrioCase({1, one.num_q_heads, one.num_kv_heads, 3, 5, 4, 4}), table);
      INFO(std::string(table.name), " heads ", one.num_q_heads, "/", one.num_kv_heads);
      CHECK(Refusal(&call, nullptr) == one.status);
    }
  }
}

TEST_CASE("SHP-4: an innermost stride of 2 is refused") {
  const Layout apart = [](const Shape& shape) {
    Shape strides = Packed(shape);
    for (int64_t& stride : strides) stride *= 2;
    return strides;
  };
  const char* const fields[] = {"args.q.stride_bytes[3]", "args.k.stride_bytes[3]", "args.v.stride_bytes[3]",
                                "args.out.stride_bytes[3]"};
  for (const KernelTable& table : Tables()) {
    for (int which = 1; which < 16; ++which) {
      Places places;
      Place* const each[] = {&places.q, &places.k, &places.v, &places.out};
      int first = -1;
      for (int i = 0; i < 4; ++i) {
        if ((which >> i & 1) == 0) continue;
        each[i]->layout = apart;
        each[i]->gaps = 1e30f;
        if (first < 0) first = i;
      }
      ApiCall call(TrioCase({1, 1, 1, 5, 5, 4, 4}), table, places);
      INFO(std::string(table.name), " tensors ", which);
      etalon_error error;
      CHECK(Refusal(&call, &error) == ETALON_BAD_STRIDE);
      CHECK(std::string(error.field) == fields[first]);
    }
  }
}

TEST_CASE("SHP-6: value_dim differs from head_dim") {
  for (const KernelTable& table : Tables()) {
    INFO(std::string(table.name));
    const AttentionResult got = RunEveryForm(TrioCase({1, 1, 1, 2, 5, 8, 16}), table);
    CHECK(Near(Slice(got.out, 0, 4), {-0.1001790, -0.1064417, 0.1123083, 0.1014943}, 1e-6) == "");
    CHECK(Near(Slice(got.out, 28, 4), {-0.0409951, -0.2087057, -0.3020513, -0.0833013}, 1e-6) == "");
    CHECK(Near(got.lse, {1.8998835, 1.6234847}, 1e-6) == "");
    for (int64_t value_dim : {1, 3, 8, 33}) {
      const ApiCase c = TrioCase({1, 1, 1, 2, 5, 8, value_dim});
      INFO("value_dim ", value_dim);
      CHECK(AccuracyReport(c, RunEveryForm(c, table)) == "");
    }
  }
}

TEST_CASE("SHP-7: head sizes that fill no vector") {
  const int64_t dims[] = {1, 3, 7, 17, 33, 59, 80, 127, 257};
  const double out[] = {-0.1698038, -0.0653776, -0.1096723, 0.2410640, 0.0643613,
                        -0.0744139, -0.1834004, -0.1048587, -0.2882388};
  const double lse[] = {2.4897309, 2.6425244, 2.3604227, 2.2418207, 2.1586182,
                        2.1770630, 2.2392447, 2.2365517, 2.2992084};
  for (const KernelTable& table : Tables()) {
    for (size_t i = 0; i < 9; ++i) {
      const ApiCase c = TrioCase({1, 1, 1, 1, 9, dims[i], dims[i]});
      INFO(std::string(table.name), " head_dim ", dims[i]);
      const AttentionResult got = RunEveryForm(c, table);
      CHECK(Near(Slice(got.out, 0, 1), {out[i]}, 2e-6) == "");
      CHECK(Near(got.lse, {lse[i]}, 2e-6) == "");
      CHECK(AccuracyReport(c, got) == "");
    }
  }
}

TEST_CASE("DSP-4: the standard case on every table") {
  ApiCase c = TrioCase({1, 4, 2, 7, 133, 40, 24});
  c.q_offset = 133 - 7;
  c.right = 0;
  const AttentionResult expected = Expected(c);
  for (const KernelTable& table : Tables()) {
    INFO(std::string(table.name));
    const AttentionResult got = RunEveryForm(c, table);
    double sum = 0, squares = 0;
    for (double x : TrueValues(got.out)) {
      sum += x;
      squares += x * x;
    }
    CHECK(std::fabs(sum - 0.0613988) <= 1e-4);
    CHECK(std::fabs(squares - 0.1851589) <= 1e-4);
    CHECK(Near(Slice(got.out, (3 * 7 + 6) * 24, 4), {-0.0022390, -0.0176189, -0.0118085, 0.0176983}, 2e-6) == "");
    CHECK(Near(Slice(got.out, 0, 4), {-0.0018237, 0.0072190, -0.0136568, -0.0134841}, 2e-6) == "");
    CHECK(Near({got.lse.front()}, {4.8613115}, 1e-5) == "");
    CHECK(Near({got.lse.back()}, {4.9067476}, 1e-5) == "");
    CHECK(Difference(got, expected) == "");
    for (int64_t h = 0; h < 4; ++h) {
      CHECK(Near(Slice(got.out, h * 7 * 24, 7 * 24), AttentionInF64(HeadCase(c, 0, h)).out, 2e-6) == "");
    }
  }
}

// Keys first ... last - 1 of a case with one head.
ApiCase SliceKeys(const ApiCase& c, int64_t first, int64_t last) {
  ApiCase part = c;
  part.size.kv_len = last - first;
  part.k = Slice(c.k, first * c.size.head_dim, (last - first) * c.size.head_dim);
  part.v = Slice(c.v, first * c.size.value_dim, (last - first) * c.size.value_dim);
  return part;
}

TEST_CASE("KVC-7: merges of states, empty ones among them") {
  const Sizes one_row;
  for (const KernelTable& table : Tables()) {
    INFO(std::string(table.name));
    const auto merge = [&](float o1, float lse1, float o2, float lse2) {
      return CallMerge(one_row, {1, 1, F32({o1}), F32({o2}), {lse1}, {lse2}}, table);
    };
    CHECK(Difference(merge(0, kNone, 0, kNone), {F32({0}), {kNone}}) == "");
    CHECK(Difference(merge(1, 0, 0, kNone), {F32({1}), {0}}) == "");
    CHECK(Difference(merge(0, kNone, 1, 0), {F32({1}), {0}}) == "");
    const AttentionResult got = merge(1, 0, 3, static_cast<float>(std::log(3.0)));
    CHECK(Near(got.out, {2.5}, 1e-6) == "");
    CHECK(Near(got.lse, {std::log(4.0)}, 1e-6) == "");

    const ApiCase whole = TrioCase({1, 1, 1, 2, 133, 40, 24});
    const AttentionResult unsplit = Run(whole, table);
    const std::vector<double> out = TrueValues(unsplit.out), lse = TrueValues(unsplit.lse);
    for (int64_t parts = 1; parts <= 16; ++parts) {
      INFO("parts ", parts);
      AttentionResult total = {Array(DType::kF32, 2 * 24), {kNone, kNone}};
      const auto add = [&](int64_t first, int64_t last) {
        const AttentionResult piece = Run(SliceKeys(whole, first, last), table);
        total = CallMerge(whole.size, {2, 24, total.out, piece.out, total.lse, piece.lse}, table);
      };
      for (int64_t part = 0; part < parts; ++part) {
        const int64_t first = 133 * part / parts, last = 133 * (part + 1) / parts;
        if (part % 4 == 3) add(first, first);  // an empty one
        add(first, last);
      }
      CHECK(Near(total.out, out, 2e-6) == "");
      CHECK(Near(total.lse, lse, 2e-6) == "");
    }
  }
}

TEST_CASE("KVC-8: prefill in chunks of queries equals prefill at once") {
  ApiCase whole = TrioCase({1, 1, 1, 80, 80, 16, 16});
  whole.right = 0;
  for (const KernelTable& table : Tables()) {
    const AttentionResult expected = Run(whole, table);
    CHECK(AccuracyReport(whole, expected) == "");
    const std::vector<int64_t> steps[] = {{80}, {33, 47}, {64, 16}, std::vector<int64_t>(80, 1)};
    for (const std::vector<int64_t>& chunks : steps) {
      int64_t first = 0;
      for (int64_t chunk : chunks) {
        ApiCase c = SliceKeys(whole, 0, first + chunk);  // the cache as it is by then
        c.size.q_len = chunk;
        c.q = Slice(whole.q, first * 16, chunk * 16);
        c.q_offset = first;
        INFO(std::string(table.name), " rows from ", first, ", ", chunk);
        const AttentionResult got = Run(c, table);
        CHECK(Difference(got.out, Slice(expected.out, first * 16, chunk * 16)) == "");
        CHECK(Difference(got.lse, {expected.lse.begin() + first, expected.lse.begin() + first + chunk}) == "");
        first += chunk;
      }
    }
  }
}

TEST_CASE("KVC-10: lengths around a page of 16") {
  for (const KernelTable& table : Tables()) {
    for (int64_t n : {1, 15, 16, 17, 31, 33, 255, 256, 257}) {
      const int64_t capacity = (n + 15) / 16 * 16;
      ApiCase c = OneHead(MeanCase(1, capacity));
      for (int64_t j = n; j < capacity; ++j) c.v.SetWord(j, Bits(1e9f));
      c.kv_lens = {n};
      INFO(std::string(table.name), " keys ", n);
      const AttentionResult got = RunEveryForm(c, table);
      CHECK(Near(got.out, {static_cast<double>(n - 1) / 2}, 1e-6 * static_cast<double>(n)) == "");
      CHECK(Near(got.lse, {std::log(static_cast<double>(n))}, 1e-5) == "");
      if (n == 257) CHECK(Near(got.lse, {5.5490761}, 1e-5) == "");
    }
  }
}

}  // namespace
}  // namespace etalon::test
