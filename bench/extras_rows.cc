// Fused attention with what else models ask for, in percent of the FMA loop over the pairs that are seen: what a mask
// hides counts for nothing, so that whoever computes it anyway is far below the limit.
#include <cstdio>

#include "bench/rows.h"
#include "bench/subjects/subjects.h"

namespace etalon::bench {

void AddExtrasRows(const std::string& target, const Sizes& sizes, std::vector<Row>* rows) {
  const auto add = [&](const AttentionShape& shape, const char* what) {
    char name[100];
    std::snprintf(name, sizeof name, "prefill/f32/%s/n%lld_d%lld/%s", target.c_str(),
                  static_cast<long long>(shape.q_len), static_cast<long long>(shape.head_dim), what);
    rows->push_back({name, true, [=] { return PrefillSubject(shape, target); }});
  };
  AttentionShape shape;
  shape.head_dim = 128;
  shape.q_len = shape.kv_len = sizes.Length(2048);
  const auto with = [&](const ExtrasSpec& extras) {
    AttentionShape changed = shape;
    changed.extras = extras;
    return changed;
  };
  ExtrasSpec softcap, alibi, bias, mask, documents, blocks, few_blocks;
  softcap.softcap = 50;
  alibi.alibi = true;
  bias.bias = true;
  mask.mask = true;
  documents.document = sizes.Length(1024);
  blocks.one_block_of = 4;
  few_blocks.one_block_of = 16;
  add(with(softcap), "softcap");
  add(with(alibi), "alibi");
  add(with(bias), "bias");
  add(with(mask), "mask");
  shape.q_len = shape.kv_len = sizes.Length(8192);
  add(shape.Causal(), "causal");
  AttentionShape window = shape.Causal();
  window.left = 511;
  add(window, "window512");
  add(with(documents), "documents1024");
  add(with(blocks), "blocks_1_of_4");
  add(with(few_blocks), "blocks_1_of_16");
}

}  // namespace etalon::bench
