// Versions, and callers who are older or newer than the library.
#include <doctest/doctest.h>
#include <etalon/etalon.h>

#include <cstring>
#include <string>
#include <vector>

namespace etalon::test {
namespace {

TEST_CASE("version: the library, its header and the build agree") {
  const std::string header = std::to_string(ETALON_VERSION_MAJOR) + "." + std::to_string(ETALON_VERSION_MINOR) + "." +
                             std::to_string(ETALON_VERSION_PATCH);
  CHECK(std::string(etalon_version()) == header);
  CHECK(header == ETALON_TEST_PROJECT_VERSION);
  CHECK(etalon_arithmetic_version() == 1);
}

// A descriptor as a newer header has it: ours, and fields that we do not know.
template <typename Descriptor>
struct Newer {
  Descriptor known;
  int64_t unknown[3];
};
constexpr size_t kAppended = 3 * sizeof(int64_t);
static_assert(sizeof(Newer<etalon_attention_desc>) == sizeof(etalon_attention_desc) + kAppended, "");

// One layer with its arrays. Descriptors are given as the caller's version has them.
struct Layer {
  std::vector<float> q, k, v, out, lse;
  etalon_tensor q_tensor, k_tensor, v_tensor, out_tensor, lse_tensor;
  alignas(64) unsigned char memory[1 << 18];

  Layer() : q(12), k(28), v(21), out(9), lse(3) {
    for (size_t i = 0; i < q.size(); ++i) q[i] = 0.25f * static_cast<float>(i % 5) - 0.5f;
    for (size_t i = 0; i < k.size(); ++i) k[i] = 0.125f * static_cast<float>(i % 11) - 0.75f;
    for (size_t i = 0; i < v.size(); ++i) v[i] = 0.5f * static_cast<float>(i % 7) - 1.0f;
    Pack(&q_tensor, &q, {3, 4});
    Pack(&k_tensor, &k, {7, 4});
    Pack(&v_tensor, &v, {7, 3});
    Pack(&out_tensor, &out, {3, 3});
    Pack(&lse_tensor, &lse, {3});
  }

  static void Pack(etalon_tensor* tensor, std::vector<float>* data, const std::vector<int64_t>& shape) {
    REQUIRE(etalon_tensor_init(tensor, data->data(), ETALON_F32, static_cast<int32_t>(shape.size()), shape.data(),
                               nullptr) == ETALON_OK);
  }

  etalon_status Run(const etalon_attention_desc* desc, const etalon_attention_args* args) {
    const etalon_workspace workspace = {memory, sizeof memory};
    std::memset(out.data(), 0xFF, out.size() * sizeof out[0]);
    return etalon_attention(desc, args, &workspace, nullptr, nullptr);
  }

  template <typename Args>
  void Fill(Args* args) {
    args->q = &q_tensor;
    args->k = &k_tensor;
    args->v = &v_tensor;
    args->out = &out_tensor;
    args->lse = &lse_tensor;
  }
};

TEST_CASE("version: a newer caller who sets nothing that we do not know gets the same bits") {
  static Layer layer;
  etalon_attention_desc desc;
  etalon_attention_args args;
  REQUIRE(etalon_attention_desc_init(&desc, sizeof desc) == ETALON_OK);
  REQUIRE(etalon_attention_args_init(&args, sizeof args) == ETALON_OK);
  desc.right = 1;
  layer.Fill(&args);
  REQUIRE(layer.Run(&desc, &args) == ETALON_OK);
  const std::vector<float> out = layer.out, lse = layer.lse;

  Newer<etalon_attention_desc> newer_desc;
  Newer<etalon_attention_args> newer_args;
  std::memset(&newer_desc, 0xFF, sizeof newer_desc);  // _init leaves no field as it was, known or not
  std::memset(&newer_args, 0xFF, sizeof newer_args);
  REQUIRE(etalon_attention_desc_init(&newer_desc.known, sizeof newer_desc) == ETALON_OK);
  REQUIRE(etalon_attention_args_init(&newer_args.known, sizeof newer_args) == ETALON_OK);
  newer_desc.known.right = 1;
  layer.Fill(&newer_args.known);
  REQUIRE(layer.Run(&newer_desc.known, &newer_args.known) == ETALON_OK);
  CHECK(std::memcmp(layer.out.data(), out.data(), out.size() * sizeof out[0]) == 0);
  CHECK(std::memcmp(layer.lse.data(), lse.data(), lse.size() * sizeof lse[0]) == 0);

  newer_desc.unknown[2] = 1;
  CHECK(layer.Run(&newer_desc.known, &newer_args.known) == ETALON_UNSUPPORTED);
  newer_desc.unknown[2] = 0;
  newer_args.unknown[0] = 1;
  CHECK(layer.Run(&newer_desc.known, &newer_args.known) == ETALON_UNSUPPORTED);
}

TEST_CASE("version: a newer caller gets the plan info that we have, and zeros") {
  etalon_attention_desc desc;
  REQUIRE(etalon_attention_desc_init(&desc, sizeof desc) == ETALON_OK);
  desc.num_q_heads = desc.num_kv_heads = 1;
  desc.head_dim = desc.value_dim = 4;
  desc.q_dtype = desc.k_dtype = desc.v_dtype = desc.out_dtype = ETALON_F32;
  static etalon_plan plan;
  REQUIRE(etalon_plan_init(&plan, &desc, nullptr) == ETALON_OK);
  Newer<etalon_plan_info> info;
  std::memset(&info, 0xFF, sizeof info);
  REQUIRE(etalon_plan_info_init(&info.known, sizeof info) == ETALON_OK);
  REQUIRE(etalon_plan_get_info(&plan, nullptr, &info.known, nullptr) == ETALON_OK);
  CHECK(info.known.struct_size == sizeof info);
  CHECK(info.known.workspace_bytes == etalon_plan_workspace_bytes(&plan));
  CHECK(info.known.max_workers == 1);
  CHECK(info.known.num_tasks == 0);
  for (int64_t field : info.unknown) CHECK(field == 0);
  // Asked once more, with what it holds by now.
  CHECK(etalon_plan_get_info(&plan, nullptr, &info.known, nullptr) == ETALON_OK);
}

// The descriptors of 0.1, the first version: the smallest that any caller has. When a field is appended these numbers
// stay, and a caller of this size is tested beside the newest; until then a byte less is rubbish.
TEST_CASE("version: the first sizes" * doctest::skip(sizeof(void*) != 8)) {
  etalon_attention_desc desc;
  etalon_attention_args args;
  etalon_plan_info info;
  etalon_softmax_args softmax;
  etalon_weighted_sum_args sum;
  etalon_merge_args merge;
  etalon_merge_states_args states;
  CHECK(etalon_attention_desc_init(&desc, 128) == ETALON_OK);
  CHECK(etalon_attention_desc_init(&desc, 127) == ETALON_BAD_STRUCT_SIZE);
  CHECK(etalon_attention_args_init(&args, 112) == ETALON_OK);
  CHECK(etalon_attention_args_init(&args, 111) == ETALON_BAD_STRUCT_SIZE);
  CHECK(etalon_plan_info_init(&info, 72) == ETALON_OK);
  CHECK(etalon_plan_info_init(&info, 71) == ETALON_BAD_STRUCT_SIZE);
  CHECK(etalon_softmax_args_init(&softmax, 96) == ETALON_OK);
  CHECK(etalon_softmax_args_init(&softmax, 95) == ETALON_BAD_STRUCT_SIZE);
  CHECK(etalon_weighted_sum_args_init(&sum, 104) == ETALON_OK);
  CHECK(etalon_weighted_sum_args_init(&sum, 103) == ETALON_BAD_STRUCT_SIZE);
  CHECK(etalon_merge_args_init(&merge, 64) == ETALON_OK);
  CHECK(etalon_merge_args_init(&merge, 63) == ETALON_BAD_STRUCT_SIZE);
  CHECK(etalon_merge_states_args_init(&states, 56) == ETALON_OK);
  CHECK(etalon_merge_states_args_init(&states, 55) == ETALON_BAD_STRUCT_SIZE);
  CHECK(desc.left == -1);
  CHECK(desc.right == -1);
  CHECK(softmax.left == -1);
  CHECK(softmax.right == -1);
  CHECK(sum.left == -1);
  CHECK(sum.right == -1);
}

}  // namespace
}  // namespace etalon::test
