// layer.cc: how an engine calls Etalon for a layer: a plan made once, a workspace and threads of its own, a prompt in
// chunks and then token by token over a growing f16 cache. At the end the outputs are compared with those of the whole
// prompt in one call: the same bytes.
#include <etalon/etalon.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

namespace {

constexpr int64_t kHeads = 8, kKvHeads = 2, kDim = 32, kTokens = 1100;
constexpr int32_t kWorkers = 3;

void Require(etalon_status status, const etalon_error& error) {
  if (status == ETALON_OK) return;
  std::puts(error.text);
  std::exit(1);
}

// A view of tokens first ... first + count - 1 of an array [tokens, heads, kDim]. A tensor's dimensions are always
// [heads, tokens, channels]; how they lie in memory is said by strides.
etalon_tensor Tokens(const void* data, int32_t dtype, int64_t heads, int64_t first, int64_t count) {
  const int64_t element = static_cast<int64_t>(etalon_dtype_bytes(dtype));
  const int64_t token_bytes = heads * kDim * element;
  etalon_tensor tensor = {};
  tensor.data = const_cast<char*>(static_cast<const char*>(data)) + first * token_bytes;
  tensor.dtype = dtype;
  tensor.rank = 3;
  const int64_t shape[] = {heads, count, kDim}, strides[] = {kDim * element, token_bytes, element};
  std::memcpy(tensor.shape, shape, sizeof shape);
  std::memcpy(tensor.stride_bytes, strides, sizeof strides);
  return tensor;
}

// What an engine keeps for all layers of the same kind.
class AttentionStage {
 public:
  AttentionStage(int64_t max_q_len, int64_t max_kv_len) {
    etalon_error error = {};
    etalon_attention_desc desc;
    Require(etalon_attention_desc_init(&desc, sizeof desc), error);
    desc.num_q_heads = kHeads;
    desc.num_kv_heads = kKvHeads;
    desc.head_dim = desc.value_dim = kDim;
    desc.q_dtype = desc.out_dtype = ETALON_F32;
    desc.k_dtype = desc.v_dtype = ETALON_F16;
    desc.max_batch = 1;
    desc.max_q_len = max_q_len;
    desc.max_kv_len = max_kv_len;
    desc.max_workers = kWorkers;
    desc.right = 0;  // causal
    Require(etalon_plan_init(&plan_, &desc, &error), error);
    // Once, for every call the plan allows. Nothing is allocated from here on.
    const size_t bytes = etalon_plan_workspace_bytes(&plan_);
    memory_.resize(bytes + 63);
    const uintptr_t first = reinterpret_cast<uintptr_t>(memory_.data());
    workspace_ = {memory_.data() + (64 - first % 64) % 64, bytes};
  }

  // Attention of tokens first ... first + count - 1, whose keys and values are in the caches already.
  void Run(const float* q, const uint16_t* k_cache, const uint16_t* v_cache, int64_t first, int64_t count, float* out) {
    const etalon_tensor q_tensor = Tokens(q, ETALON_F32, kHeads, first, count);
    const etalon_tensor k_tensor = Tokens(k_cache, ETALON_F16, kKvHeads, 0, first + count);
    const etalon_tensor v_tensor = Tokens(v_cache, ETALON_F16, kKvHeads, 0, first + count);
    const etalon_tensor out_tensor = Tokens(out, ETALON_F32, kHeads, first, count);
    etalon_error error = {};
    etalon_attention_args args;
    Require(etalon_attention_args_init(&args, sizeof args), error);
    args.q = &q_tensor;
    args.k = &k_tensor;
    args.v = &v_tensor;
    args.out = &out_tensor;
    args.q_offset = first;  // the position of the first query among the keys

    int64_t num_tasks;
    Require(etalon_begin(&plan_, &args, &workspace_, &num_tasks, &error), error);
    // The engine's own threads take the tasks, here in equal parts.
    std::vector<std::thread> threads;
    for (int32_t worker = 0; worker < kWorkers; ++worker) {
      threads.emplace_back([this, num_tasks, worker] {
        const int64_t from = num_tasks * worker / kWorkers, to = num_tasks * (worker + 1) / kWorkers;
        if (etalon_run(workspace_.data, from, to, worker) != ETALON_OK) std::abort();
      });
    }
    for (std::thread& thread : threads) thread.join();
  }

 private:
  etalon_plan plan_;
  std::vector<unsigned char> memory_;
  etalon_workspace workspace_ = {};
};

uint32_t Next(uint32_t* state) { return *state = *state * 1664525u + 1013904223u; }

}  // namespace

int main() {
  uint32_t state = 1;
  std::vector<float> q(kTokens * kHeads * kDim), whole(q.size()), parts(q.size());
  std::vector<uint16_t> k(kTokens * kKvHeads * kDim), v(k.size());
  for (float& x : q) x = static_cast<float>(static_cast<int32_t>(Next(&state))) * 0x1p-31f;
  for (uint16_t& x : k) x = static_cast<uint16_t>(Next(&state) >> 16 & 0xBFFF);  // f16 below 2 in size
  for (uint16_t& x : v) x = static_cast<uint16_t>(Next(&state) >> 16 & 0xBFFF);

  AttentionStage at_once(kTokens, kTokens);
  at_once.Run(q.data(), k.data(), v.data(), 0, kTokens, whole.data());

  AttentionStage stage(256, kTokens);
  int64_t done = 0;
  for (; done + 256 <= 1024; done += 256) stage.Run(q.data(), k.data(), v.data(), done, 256, parts.data());
  for (; done < kTokens; ++done) stage.Run(q.data(), k.data(), v.data(), done, 1, parts.data());

  const bool same = std::memcmp(whole.data(), parts.data(), whole.size() * sizeof(float)) == 0;
  std::printf("%d tokens, 4 chunks of 256 and then one by one: %s\n", static_cast<int>(kTokens),
              same ? "the same bytes as at once" : "DIFFERENT BYTES");
  return same ? 0 : 1;
}
