// The calls that the other errors_test_*.cc spoil, unspoilt; and the functions that have no tensors.
#include <doctest/doctest.h>

#include <cstddef>
#include <cstring>
#include <set>

#include "tests/api/errors_trial.h"

namespace etalon::test {
namespace {

TEST_CASE("errors: a valid call of each function is accepted") {
  for (Functions function = 1; function < kEnd; function <<= 1) {
    CHECK(NameOf(function) != "no function");
    Expect("nothing", function, nullptr, ETALON_OK, "");
  }
  CHECK(NameOf(kEnd) == "no function");
}

TEST_CASE("errors: what a valid call reads is as it was") {
  static Trial trial;
  for (Functions function = 1; function < kEnd; function <<= 1) {
    Prepare(function, &trial);
    const std::vector<unsigned char> inputs(Slot(0), Slot(3));  // q, k and v
    const Trial before = trial;
    REQUIRE(Call(&trial, nullptr) == ETALON_OK);
    CHECK(std::vector<unsigned char>(Slot(0), Slot(3)) == inputs);
    CHECK(std::memcmp(&trial.desc, &before.desc, sizeof trial.desc) == 0);
    CHECK(std::memcmp(&trial.args, &before.args, sizeof trial.args) == 0);
    CHECK(std::memcmp(trial.q_lens, before.q_lens, sizeof trial.q_lens) == 0);
  }
}

// What a user reads: the field, what it holds, what it should.
TEST_CASE("errors: the text is a sentence") {
  struct Case {
    Functions function;
    void (*spoil)(Trial&);
    const char* text;
  };
  const Case cases[] = {
      {kAttention, [](Trial& t) { t.k.shape[3] = 1234567890; },
       "args.k.shape[3] is 1234567890, but args.q.shape[3] is 6"},
      {kAttention, [](Trial& t) { t.q.shape[2] = INT64_MIN; },
       "args.q.shape[2] is -9223372036854775808, must not be negative"},
      {kExecute, [](Trial& t) { t.kv_lens[1] = 100; }, "args.kv_lens[1] is 100, must be 0 ... 7"},
      {kBegin, [](Trial& t) { t.desc.value.max_q_len = 0, Replan(&t); },
       "args.q.shape[2] is 3, above desc.max_q_len, which is 0"},
      {kSoftmax, [](Trial& t) { t.lse.data = t.scores.data; }, "args.lse shares memory with args.scores"},
      {kPlanInit, [](Trial& t) { t.desc.value.target = "avx9000"; },
       "desc.target names no kernel table of this build (etalon_get_target lists them): avx9000"},
      // Not of our making, so it may be anything: no byte that a terminal obeys, no half of a character.
      {kPlanInit, [](Trial& t) { t.desc.value.target = "\x1b[2J\n\t\x7f\x80\xc3\xbc\xff"; },
       "desc.target names no kernel table of this build (etalon_get_target lists them): ?[2J???????"},
      {kPlanInit,
       [](Trial& t) {
         t.desc.value.target =
             "abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyz"
             "abcdefghijklmnopqrstuvwxyz";
       },
       "desc.target names no kernel table of this build (etalon_get_target lists them): "
       "abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyz"
       "abcd..."},
      {kPlanInit, [](Trial& t) { t.desc.value.struct_size = SIZE_MAX; },
       "desc.struct_size is 18446744073709551615: prepare the descriptor with its _init function"},
  };
  static Trial trial;
  for (const Case& c : cases) {
    Prepare(c.function, &trial);
    c.spoil(trial);
    etalon_error error;
    CHECK(Call(&trial, &error) != ETALON_OK);
    CHECK(std::string(error.text) == c.text);
  }
}

TEST_CASE("errors: pointers of the functions themselves") {
  Expect({
      {"desc", kWithDesc, [](Trial& t) { t.pass.desc = nullptr; }, ETALON_NULL_POINTER, "desc"},
      {"args", kWithArgs & ~kPlanInfo, [](Trial& t) { t.pass.args = nullptr; }, ETALON_NULL_POINTER, "args"},
      {"args", kPlanInfo, [](Trial& t) { t.pass.args = nullptr; }, ETALON_OK, ""},
      {"args", kSoftmax, [](Trial& t) { t.pass.softmax = nullptr; }, ETALON_NULL_POINTER, "args"},
      {"args", kSumming, [](Trial& t) { t.pass.sum = nullptr; }, ETALON_NULL_POINTER, "args"},
      {"args", kMerge, [](Trial& t) { t.pass.merge = nullptr; }, ETALON_NULL_POINTER, "args"},
      {"args", kMerging, [](Trial& t) { t.pass.merge_states = nullptr; }, ETALON_NULL_POINTER, "args"},
      {"states", kMerging, [](Trial& t) { t.merge_states.value.states = nullptr; }, ETALON_NULL_POINTER, "args.states"},
      {"states", kBlockStates, [](Trial& t) { t.pass.states = nullptr; }, ETALON_NULL_POINTER, "states"},
      {"args", kPreparing, [](Trial& t) { t.pass.mask_args = nullptr; }, ETALON_NULL_POINTER, "args"},
      {"mask", kMaskPrepare, [](Trial& t) { t.pass.prepared = nullptr; }, ETALON_NULL_POINTER, "mask"},
      {"memory", kMaskPrepare, [](Trial& t) { t.pass.workspace = nullptr; }, ETALON_NULL_POINTER, "memory"},
      {"plan", kPlanned | kPlanInit, [](Trial& t) { t.pass.plan = nullptr; }, ETALON_NULL_POINTER, "plan"},
      {"plan", kPlanInfo, [](Trial& t) { t.pass.plan = nullptr, t.pass.args = nullptr; }, ETALON_NULL_POINTER, "plan"},
      {"info", kPlanInfo, [](Trial& t) { t.pass.info = nullptr; }, ETALON_NULL_POINTER, "info"},
      {"bytes", kQueries, [](Trial& t) { t.pass.bytes = nullptr; }, ETALON_NULL_POINTER, "bytes"},
      {"num_tasks", kBegin, [](Trial& t) { t.pass.num_tasks = nullptr; }, ETALON_NULL_POINTER, "num_tasks"},
      {"parallel", kWithParallel, [](Trial& t) { t.pass.parallel = nullptr; }, ETALON_OK, ""},
  });
}

// A zeroed descriptor, with room for newer fields, through its _init function.
template <typename Descriptor>
void CheckInit(const char* name, etalon_status (*init)(Descriptor*, size_t), size_t first_size = sizeof(Descriptor)) {
  CAPTURE(std::string(name));
  static Roomy<Descriptor> roomy, before;
  std::memset(static_cast<void*>(&before), 0xA5, sizeof before);
  const size_t size = sizeof(Descriptor);
  CHECK(init(nullptr, size) == ETALON_NULL_POINTER);
  for (size_t wrong : {size_t{0}, size_t{1}, first_size - 1, first_size - 8, sizeof roomy + 1, SIZE_MAX}) {
    CAPTURE(wrong);
    std::memcpy(static_cast<void*>(&roomy), &before, sizeof roomy);
    CHECK(init(&roomy.value, wrong) == ETALON_BAD_STRUCT_SIZE);
    CHECK(std::memcmp(&roomy, &before, sizeof roomy) == 0);
  }
  for (size_t right : {first_size, size, size + 1, size + 8, sizeof roomy}) {
    CAPTURE(right);
    std::memcpy(static_cast<void*>(&roomy), &before, sizeof roomy);
    CHECK(init(&roomy.value, right) == ETALON_OK);
    CHECK(roomy.value.struct_size == right);
    const unsigned char* bytes = reinterpret_cast<const unsigned char*>(&roomy);
    bool zero = true, kept = true;
    for (size_t i = size; i < right; ++i) zero &= bytes[i] == 0;
    for (size_t i = right; i < sizeof roomy; ++i) kept &= bytes[i] == 0xA5;
    CHECK(zero);
    CHECK(kept);
  }
}

TEST_CASE("errors: the _init functions") {
  CheckInit("attention_desc", etalon_attention_desc_init);
  CheckInit("attention_args", etalon_attention_args_init, offsetof(etalon_attention_args, kv_firsts));
  CheckInit("key_source", etalon_key_source_init, offsetof(etalon_key_source, places));
  CheckInit("kv_places", etalon_kv_places_init);
  CheckInit("kv_append_args", etalon_kv_append_args_init);
  CheckInit("mask_args", etalon_mask_args_init);
  CheckInit("plan_info", etalon_plan_info_init);
  CheckInit("softmax_args", etalon_softmax_args_init);
  CheckInit("weighted_sum_args", etalon_weighted_sum_args_init);
  CheckInit("merge_args", etalon_merge_args_init);
  CheckInit("merge_states_args", etalon_merge_states_args_init);
}

TEST_CASE("errors: etalon_tensor_init") {
  struct Case {
    int32_t dtype;
    int32_t rank;
    std::vector<int64_t> shape;
    etalon_status status;
    const char* field;
  };
  const int64_t big = int64_t{1} << 61;
  const Case cases[] = {
      {ETALON_F32, 2, {3, 4}, ETALON_OK, ""},
      {0, 2, {3, 4}, ETALON_BAD_DTYPE, "dtype"},
      {6, 2, {3, 4}, ETALON_BAD_DTYPE, "dtype"},
      {-1, 2, {3, 4}, ETALON_BAD_DTYPE, "dtype"},
      {ETALON_F32, 0, {3, 4}, ETALON_BAD_RANK, "rank"},
      {ETALON_F32, -1, {3, 4}, ETALON_BAD_RANK, "rank"},
      {ETALON_F32, 6, {1, 1, 1, 1, 1, 1}, ETALON_BAD_RANK, "rank"},
      {ETALON_F32, INT32_MAX, {1, 1, 1, 1, 1, 1}, ETALON_BAD_RANK, "rank"},
      {ETALON_F32, 2, {-1, 4}, ETALON_BAD_SHAPE, "shape[0]"},
      {ETALON_F32, 2, {3, -1}, ETALON_BAD_SHAPE, "shape[1]"},
      {ETALON_F32, 3, {0, 3, INT64_MIN}, ETALON_BAD_SHAPE, "shape[2]"},
      {ETALON_F32, 1, {big}, ETALON_OVERFLOW, "shape[0]"},  // 2^63 bytes
      {ETALON_F32, 2, {2, big / 2}, ETALON_OVERFLOW, "shape[0]"},
      {ETALON_F16, 3, {5, big, 2}, ETALON_OVERFLOW, "shape[1]"},
      {ETALON_F16, 1, {big}, ETALON_OK, ""},
      {ETALON_BOOL, 1, {big * 2}, ETALON_OK, ""},
      {ETALON_BITS, 2, {2, big * 2}, ETALON_OVERFLOW, "shape[0]"},
      {ETALON_F32, 2, {INT64_MAX, 0}, ETALON_OK, ""},  // no bytes
      {ETALON_F32, 2, {0, INT64_MAX}, ETALON_OK, ""},
  };
  for (const Case& c : cases) {
    CAPTURE(std::string(c.field));
    for (bool with_error : {true, false}) {
      etalon_tensor tensor, before;
      std::memset(&tensor, 0xA5, sizeof tensor);
      std::memcpy(&before, &tensor, sizeof tensor);
      etalon_error error;
      std::memset(&error, 0xEE, sizeof error);
      CHECK(etalon_tensor_init(&tensor, nullptr, c.dtype, c.rank, c.shape.data(), with_error ? &error : nullptr) ==
            c.status);
      if (with_error) CheckError(error, c.status, c.field);
      CHECK((std::memcmp(&tensor, &before, sizeof tensor) == 0) == (c.status != ETALON_OK));
    }
  }
  etalon_error error;
  etalon_tensor tensor = {};
  const int64_t shape[] = {1};
  CHECK(etalon_tensor_init(nullptr, nullptr, ETALON_F32, 1, shape, &error) == ETALON_NULL_POINTER);
  CheckError(error, ETALON_NULL_POINTER, "tensor");
  CHECK(etalon_tensor_init(&tensor, nullptr, ETALON_F32, 1, nullptr, &error) == ETALON_NULL_POINTER);
  CheckError(error, ETALON_NULL_POINTER, "shape");
  CHECK(etalon_tensor_init(nullptr, nullptr, ETALON_F32, 1, shape, nullptr) == ETALON_NULL_POINTER);
}

TEST_CASE("errors: functions that answer without a status") {
  CHECK(etalon_plan_workspace_bytes(nullptr) == 0);
  static etalon_plan zero;
  CHECK(etalon_plan_workspace_bytes(&zero) == 0);
  for (int32_t dtype : {0, 6, -1, INT32_MIN, INT32_MAX}) CHECK(etalon_dtype_bytes(dtype) == 0);
  CHECK(etalon_dtype_bytes(ETALON_BOOL) == 1);
  CHECK(etalon_dtype_bytes(ETALON_BITS) == 1);
  CHECK(etalon_dtype_bytes(ETALON_F32) == 4);
  CHECK(etalon_dtype_bytes(ETALON_F16) == 2);
  CHECK(etalon_dtype_bytes(ETALON_BF16) == 2);
  for (int64_t kv_len : {int64_t{0}, int64_t{-1}, INT64_MIN}) CHECK(etalon_num_blocks(kv_len) == 0);
  CHECK(etalon_num_blocks(1) == 1);
  CHECK(etalon_num_blocks(512) == 1);
  CHECK(etalon_num_blocks(513) == 2);
  CHECK(etalon_num_blocks(INT64_MAX) == (int64_t{1} << 54));
  CHECK(etalon_cpu_feature_name(0) == nullptr);
  CHECK(etalon_cpu_feature_name(3) == nullptr);
  CHECK(etalon_cpu_feature_name(UINT64_MAX) == nullptr);
  CHECK(etalon_cpu_feature_name(uint64_t{1} << 63) == nullptr);
}

TEST_CASE("errors: etalon_get_target") {
  etalon_target target = {"kept", 1, 2};
  CHECK(etalon_get_target(0, nullptr) == ETALON_NULL_POINTER);
  for (int32_t index : {-1, etalon_num_targets(), INT32_MIN, INT32_MAX}) {
    CHECK(etalon_get_target(index, &target) == ETALON_BAD_VALUE);
    CHECK(std::string(target.name) == "kept");
    CHECK(target.missing == 1);
    CHECK(target.required == 2);
  }
}

TEST_CASE("errors: every status has a name and a text of its own") {
  std::set<std::string> names, texts;
  for (etalon_status status = ETALON_OK; status <= ETALON_CACHE_FULL; ++status) {
    const std::string name = etalon_status_name(status);
    CHECK(name.find("ETALON_") == 0);
    CHECK(names.insert(name).second);
    CHECK(texts.insert(etalon_status_text(status)).second);
  }
  CHECK(std::string(etalon_status_name(ETALON_BAD_TASKS)) == "ETALON_BAD_TASKS");
  for (etalon_status status : {-1, ETALON_CACHE_FULL + 1, INT32_MIN, INT32_MAX}) {
    CHECK(std::string(etalon_status_name(status)) == "unknown status");
    CHECK(std::string(etalon_status_text(status)) == "unknown status");
  }
}

}  // namespace
}  // namespace etalon::test
