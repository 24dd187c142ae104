// What the C++ header adds to the C interface: masks that own their memory, and names of types.
#include <doctest/doctest.h>

#include <etalon/etalon.hpp>
#include <string>
#include <utility>
#include <vector>

namespace etalon::test {
namespace {

// Four queries of 0 against four keys, whose values are 0 ... 3: outputs are means.
struct Means {
  std::vector<float> q = std::vector<float>(4), k = q, v = {0, 1, 2, 3}, out = q;
  Tensor q_tensor{q.data(), {4, 1}}, k_tensor{k.data(), {4, 1}}, v_tensor{v.data(), {4, 1}},
      out_tensor{out.data(), {4, 1}};
  AttentionDesc desc;
  AttentionArgs args;
  WorkspaceMemory memory;
  Means() {
    args.q = &q_tensor;
    args.k = &k_tensor;
    args.v = &v_tensor;
    args.out = &out_tensor;
  }
  std::vector<float> Run() {
    const Status status = Attention(desc, args, &memory);
    CHECK_MESSAGE(status.ok(), std::string(status.text()));
    return out;
  }
};

MaskDesc Documents(const int64_t* numbers) {
  MaskDesc desc;
  desc.batch = desc.num_heads = 1;
  desc.q_len = desc.kv_len = 4;
  desc.q_segments = desc.kv_segments = numbers;
  return desc;
}

TEST_CASE("cpp: masks of bytes and of bits") {
  Means means;
  const unsigned char bytes[16] = {1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 7, 0, 0, 1, 0, 1};
  const unsigned char bits[4] = {1, 2, 4, 10};
  const Tensor bytes_tensor(bytes, ElementType::kBool, {4, 4}), bits_tensor(bits, ElementType::kBits, {4, 1});
  for (const Tensor* mask : {&bytes_tensor, &bits_tensor}) {
    means.args.mask = mask;
    CHECK(means.Run() == std::vector<float>{0, 1, 2, 2});
  }
}

TEST_CASE("cpp: a mask owns its memory") {
  const int64_t pairs[] = {5, 5, -1, -1}, one[] = {0, 0, 0, 0};
  Means means;
  MaskMemory mask;
  CHECK(mask.get() == nullptr);
  MaskDesc documents = Documents(pairs);
  REQUIRE(mask.Prepare(documents).ok());
  means.args.prepared_mask = mask.get();
  CHECK(means.Run() == std::vector<float>{0.5f, 0.5f, 2.5f, 2.5f});

  MaskMemory moved = std::move(mask);
  CHECK(mask.get() == nullptr);  // NOLINT: what is left of it is what is asked
  means.args.prepared_mask = moved.get();
  CHECK(means.Run() == std::vector<float>{0.5f, 0.5f, 2.5f, 2.5f});
  mask = std::move(moved);
  CHECK(moved.get() == nullptr);  // NOLINT
  CHECK(mask.get() == means.args.prepared_mask);

  documents = Documents(one);
  REQUIRE(mask.Prepare(documents).ok());  // in the same memory
  means.args.prepared_mask = mask.get();
  CHECK(means.Run() == std::vector<float>{1.5f, 1.5f, 1.5f, 1.5f});

  documents.kv_segments = nullptr;
  const Status status = mask.Prepare(documents);
  CHECK(status.code() == ETALON_NULL_POINTER);
  CHECK(std::string(status.field()) == "args.kv_segments");
  CHECK(mask.get() != nullptr);  // found before anything was written
  CHECK(means.Run() == std::vector<float>{1.5f, 1.5f, 1.5f, 1.5f});
}

TEST_CASE("cpp: further sources and slopes") {
  Means means;
  float more[] = {9, 11};
  const Tensor k(means.k.data(), {2, 1}), v(more, {2, 1});
  KeySourceDesc source;
  source.k = &k;
  source.v = &v;
  CHECK(source.left == -1);
  const etalon_key_source* const sources[] = {&source};
  means.desc.num_sources = 2;
  means.args.more_sources = sources;
  const float mean = 26.0f / 6.0f;
  for (float x : means.Run()) CHECK(x == doctest::Approx(mean));
  float slopes[2];
  CHECK(AlibiSlopes(2, slopes).ok());
  CHECK(slopes[1] == 1.0f / 256);
  CHECK(AlibiSlopes(0, slopes).code() == ETALON_NO_HEADS);
}

}  // namespace
}  // namespace etalon::test
