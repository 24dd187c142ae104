#include <cstdio>
#include <etalon/etalon.hpp>
#include <vector>

int main() {
  constexpr int64_t heads = 2, len = 4, dim = 8;
  std::vector<float> q(heads * len * dim), k(q), v(q), out(q);
  for (int64_t i = 0; i < heads * len; ++i) v[i * dim] = static_cast<float>(i);  // equal scores: rows are means

  const etalon::Tensor q_view(q.data(), {heads, len, dim}), k_view(k.data(), {heads, len, dim});
  const etalon::Tensor v_view(v.data(), {heads, len, dim}), out_view(out.data(), {heads, len, dim});
  etalon::AttentionDesc desc;
  desc.right = 0;  // causal: no key to the right of the row's own
  etalon::AttentionArgs args;
  args.q = &q_view, args.k = &k_view, args.v = &v_view, args.out = &out_view;
  etalon::WorkspaceMemory memory;
  const etalon::Status status = etalon::Attention(desc, args, &memory);
  if (!status.ok()) return std::puts(status.text()), 1;
  for (int64_t i = 0; i < heads * len; ++i) std::printf("%g ", out[i * dim]);  // prints: 0 0.5 1 1.5 4 4.5 5 5.5
}
