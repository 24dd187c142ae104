// consumer.cc: somebody else's program, in C++17. Prints the bits of some results as ../expected.txt has them; what the
// host does with subnormals follows "#".
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <etalon/etalon.hpp>
#include <vector>

namespace {

// Elements are given by their bits: built with -ffast-math, this file could not even spell an infinity.
std::vector<float> FromBits(const std::vector<uint32_t>& bits) {
  std::vector<float> values(bits.size());
  std::memcpy(values.data(), bits.data(), bits.size() * sizeof(float));
  return values;
}

uint32_t Bits(float x) {
  uint32_t bits;
  std::memcpy(&bits, &x, sizeof bits);
  return bits;
}

void Print(const char* name, const std::vector<float>& values) {
  for (size_t i = 0; i < values.size(); ++i) {
    if (i % 12 == 0) std::printf("%s%s", i == 0 ? "" : "\n", name);
    std::printf(" %08X", static_cast<unsigned>(Bits(values[i])));
  }
  std::printf("\n");
}

void PrintHost() {
  volatile float half = 0.5f;  // not a constant that the compiler may multiply
  const float tiny = FromBits({0x00000010})[0];
  std::printf("# subnormals are %s\n", Bits(tiny * half) == 0x00000008 ? "kept" : "flushed");
}

void Require(const etalon::Status& status) {
  if (status.ok()) return;
  std::printf("%s: %s\n", etalon_status_name(status.code()), status.text());
  std::exit(1);
}

// Weights and logsumexp of rows of 4 scores, of which each row sees num_keys.
void Softmax(const char* name, const std::vector<uint32_t>& bits, int64_t num_keys = 4) {
  const int64_t rows = static_cast<int64_t>(bits.size()) / 4;
  const std::vector<float> scores = FromBits(bits);
  std::vector<float> weights(scores.size()), lse(scores.size() / 4);
  const etalon::Tensor scores_tensor(scores.data(), {rows, 4});
  const etalon::Tensor weights_tensor(weights.data(), {rows, 4});
  const etalon::Tensor lse_tensor(lse.data(), {rows});
  etalon::SoftmaxDesc args;
  args.scores = &scores_tensor;
  args.weights = &weights_tensor;
  args.lse = &lse_tensor;
  args.kv_lens = &num_keys;
  Require(etalon::Softmax(args));
  Print(name, weights);
  Print(name, lse);
}

struct Sizes {
  int64_t heads, kv_heads, rows, keys, head_dim, value_dim;
};

// Causal attention, aligned bottom-right, with default scale, of which the rows see num_keys.
void Attention(const char* name, const Sizes& n, const std::vector<float>& q, const std::vector<float>& k,
               const std::vector<float>& v, int64_t num_keys) {
  std::vector<float> out(static_cast<size_t>(n.heads * n.rows * n.value_dim));
  std::vector<float> lse(static_cast<size_t>(n.heads * n.rows));
  const etalon::Tensor q_tensor(q.data(), {n.heads, n.rows, n.head_dim});
  const etalon::Tensor k_tensor(k.data(), {n.kv_heads, n.keys, n.head_dim});
  const etalon::Tensor v_tensor(v.data(), {n.kv_heads, n.keys, n.value_dim});
  const etalon::Tensor out_tensor(out.data(), {n.heads, n.rows, n.value_dim});
  const etalon::Tensor lse_tensor(lse.data(), {n.heads, n.rows});
  etalon::AttentionDesc desc;
  desc.right = 0;
  etalon::AttentionArgs args;
  args.q = &q_tensor;
  args.k = &k_tensor;
  args.v = &v_tensor;
  args.out = &out_tensor;
  args.lse = &lse_tensor;
  args.q_offset = n.keys - n.rows;
  args.kv_lens = &num_keys;
  etalon::WorkspaceMemory memory;
  Require(etalon::Attention(desc, args, &memory));
  Print(name, out);
  Print(name, lse);
}

// The ramp of the field cases; exact, whatever the compiler makes of it.
std::vector<float> Ramp(int a, int b, int count) {
  std::vector<float> values;
  for (int i = 0; i < count; ++i) values.push_back(static_cast<float>((a * i + b) % 61 - 30) / 32.0f);
  return values;
}

}  // namespace

int main() {
  PrintHost();

  const uint32_t half = 0xBF000000, minus_infinity = 0xFF800000, nan = 0xFFC12345;
  Softmax("softmax_pair", {0, half, minus_infinity, minus_infinity});
  Softmax("softmax_masked",
          {minus_infinity, minus_infinity, minus_infinity, minus_infinity, 0, minus_infinity, 0, half});
  Softmax("softmax_empty", {0, minus_infinity, 0, half}, 0);
  Softmax("softmax_nan", {0, nan, half, minus_infinity});
  Softmax("softmax_tail", {0, 0, 0xC2AE6666, 0xC2AE0000});  // half of exp(-87.2) is subnormal, like that of exp(-87)

  const std::vector<float> q = Ramp(3, 1, 4 * 7 * 40), k = Ramp(5, 2, 2 * 133 * 40), v = Ramp(7, 3, 2 * 133 * 24);
  Attention("standard", {4, 2, 7, 133, 40, 24}, q, k, v, 133);
  const Sizes small = {1, 1, 1, 2, 2, 2};
  Attention("empty", small, q, k, v, 0);
  const std::vector<float> tiny = FromBits({0x00000005, 0x80400000, 0x00000014, 0x00000003});
  Attention("subnormal", small, q, tiny, tiny, 2);
  Attention("nan", small, q, k, FromBits({0, nan, half, half}), 2);

  PrintHost();
  return 0;
}
