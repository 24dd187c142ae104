// batches.cc: how a server's batches look to Etalon: documents packed into one sequence, sequences of any lengths
// packed into one tensor, padding on the left, and a prompt that all sequences share. The queries are 0, so a row's
// output is the mean of the values that it sees.
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <etalon/etalon.hpp>
#include <vector>

namespace {

using Numbers = std::vector<float>;

void Require(const etalon::Status& status) {
  if (status.ok()) return;
  std::puts(status.text());
  std::exit(1);
}

void Run(const etalon::AttentionDesc& desc, const etalon::AttentionArgs& args, const Numbers& out) {
  etalon::WorkspaceMemory memory;
  Require(etalon::Attention(desc, args, &memory));
  for (const float x : out) std::printf("%g ", x);
}

// Three tokens of one document and two of another; causal inside each.
void Documents() {
  const int64_t len = 5;
  const std::vector<int64_t> document = {7, 7, 7, 8, 8};
  const Numbers zeros(5), values = {0, 1, 2, 3, 4};
  Numbers out(5);
  const etalon::Tensor q(zeros.data(), {len, 1}), v(values.data(), {len, 1}), o(out.data(), {len, 1});

  etalon::MaskDesc mask_desc;
  mask_desc.batch = mask_desc.num_heads = 1;
  mask_desc.q_len = mask_desc.kv_len = len;
  mask_desc.q_segments = mask_desc.kv_segments = document.data();
  etalon::MaskMemory mask;  // for as long as a call uses it: all layers, say
  Require(mask.Prepare(mask_desc));
  etalon::AttentionDesc desc;
  desc.right = 0;  // causal; the mask hides more
  etalon::AttentionArgs args;
  args.q = &q, args.k = &q, args.v = &v, args.out = &o;
  args.prepared_mask = mask.get();
  Run(desc, args, out);
}

// Prompts of two, no and three tokens, one after the other and nothing between them.
void Ragged() {
  const int64_t rows = 5;
  const Numbers zeros(5), values = {0, 1, 2, 3, 4};
  Numbers out(5);
  const etalon::Tensor q(zeros.data(), {rows, 1}), v(values.data(), {rows, 1}), o(out.data(), {rows, 1});
  etalon::AttentionDesc desc;
  desc.right = 0;
  etalon::AttentionArgs args;
  args.q = &q, args.k = &q, args.v = &v, args.out = &o;
  const int64_t starts[] = {0, 2, 2, 5};  // sequence b has rows starts[b] ... starts[b + 1] - 1
  args.num_sequences = 3;
  args.q_starts = args.kv_starts = starts;
  Run(desc, args, out);
}

// One new token for each of two sequences; the cache of the first one begins with two tokens of padding.
void LeftPadding() {
  const int64_t batch = 2, kv_len = 4;
  const Numbers zeros(8), values = {NAN, NAN, 2, 3, 0, 1, 2, 3};
  Numbers out(2);
  const etalon::Tensor q(zeros.data(), {batch, 1, 1, 1}), o(out.data(), {batch, 1, 1, 1});
  const etalon::Tensor k(zeros.data(), {batch, 1, kv_len, 1}), v(values.data(), {batch, 1, kv_len, 1});
  etalon::AttentionDesc desc;
  desc.right = 0;
  etalon::AttentionArgs args;
  args.q = &q, args.k = &k, args.v = &v, args.out = &o;
  const int64_t firsts[] = {2, 0};     // the key that stands at position 0
  const int64_t positions[] = {1, 3};  // of the new tokens: kv_len - 1 - firsts[b]
  args.kv_firsts = firsts;
  args.q_offsets = positions;
  Run(desc, args, out);
}

// Two sequences of two tokens behind one prompt of three, which is in memory once.
void SharedPrompt() {
  const int64_t batch = 2, prompt_len = 3, own_len = 2;
  const Numbers zeros(4), prompt_values = {0, 1, 2}, own_values = {10, 20, 30, 40};
  Numbers out(4);
  const etalon::Tensor q(zeros.data(), {batch, 1, own_len, 1}), o(out.data(), {batch, 1, own_len, 1});
  constexpr etalon::ElementType kF32 = etalon::ElementType::kF32;
  const etalon::Tensor prompt_k(zeros.data(), kF32, {batch, 1, prompt_len, 1}, {0, 12, 4, 4});  // a batch stride of 0
  const etalon::Tensor prompt_v(prompt_values.data(), kF32, {batch, 1, prompt_len, 1}, {0, 12, 4, 4});
  const etalon::Tensor own_v(own_values.data(), {batch, 1, own_len, 1});

  etalon::KeySourceDesc own;
  own.k = &q, own.v = &own_v;
  own.right = 0;  // among their own tokens rows are causal, from position 0
  const etalon_key_source* const more_sources[] = {&own};

  etalon::AttentionDesc desc;
  desc.num_sources = 2;
  etalon::AttentionArgs args;
  args.q = &q, args.k = &prompt_k, args.v = &prompt_v, args.out = &o;  // of the prompt a row sees everything
  args.more_sources = more_sources;
  Run(desc, args, out);
}

}  // namespace

int main() {
  Documents();
  Ragged();
  LeftPadding();
  SharedPrompt();
  // prints: 0 0.5 1 3 3.5 0 0.5 2 2.5 3 2.5 1.5 3.25 6.6 8.25 14.6
}
