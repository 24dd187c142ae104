// Fused attention of a whole prompt, in percent of the FMA loop.
#include "bench/rows.h"
#include "bench/subjects/subjects.h"

namespace etalon::bench {
namespace {

std::string NameOf(const AttentionShape& s, const std::string& target, const char* mask) {
  std::string name = std::string("prefill/") + TypeName(s.type) + "/" + target + "/";
  if (s.q_heads > 1) name += "h" + std::to_string(s.q_heads) + "_";
  return name + "n" + std::to_string(s.q_len) + "_d" + std::to_string(s.head_dim) + "/" + mask;
}

}  // namespace

void AddPrefillRows(const std::string& target, const Sizes& sizes, std::vector<Row>* rows) {
  const auto add = [&](int64_t n, int64_t head_dim, bool causal, bool reach, ElementType type = ElementType::kF32) {
    AttentionShape shape;
    shape.q_len = shape.kv_len = sizes.Length(n);
    shape.head_dim = head_dim;
    shape.type = type;
    if (causal) shape = shape.Causal();
    rows->push_back(
        {NameOf(shape, target, causal ? "causal" : "full"), reach, [=] { return PrefillSubject(shape, target); }});
  };
  for (const int64_t n : {512, 1024, 2048, 4096}) add(n, 128, false, n != 4096);
  for (const int64_t n : {64, 128}) add(n, 128, false, n == 64);
  for (const int64_t head_dim : {64, 80, 256}) {
    for (const int64_t n : {512, 2048}) add(n, head_dim, false, true);
  }
  for (const int64_t n : {64, 128, 512, 2048, 4096}) add(n, 128, true, n >= 128 && n <= 2048);
  for (const int64_t n : {128, 512, 2048}) add(n, 64, true, false);
  // Lengths and channels that no tile divides.
  add(1000, 128, true, false);
  add(577, 72, false, false);
  for (const ElementType type : {ElementType::kF16, ElementType::kBF16}) {
    for (const int64_t head_dim : {64, 128}) add(2048, head_dim, false, true, type);
    add(2048, 128, true, false, type);
  }

  AttentionShape heads;
  heads.q_heads = heads.kv_heads = 8;
  heads.head_dim = 128;
  heads.q_len = heads.kv_len = sizes.Length(1024);
  // Engines' layout: tokens are 4 KiB apart, so those of one head fall into few sets of the cache.
  AttentionShape strided = heads;
  strided.tokens_outermost = true;
  rows->push_back({NameOf(strided, target, "full_bshd"), true, [=] { return PrefillSubject(strided, target); }});
  rows->push_back(
      {NameOf(strided, target, "causal_bshd"), false, [=] { return PrefillSubject(strided.Causal(), target); }});
  AttentionShape grouped = heads.Causal();
  grouped.kv_heads = 2;
  rows->push_back({NameOf(grouped, target, "causal_g4"), false, [=] { return PrefillSubject(grouped, target); }});

  rows->push_back({NameOf(heads, target, "full_2_threads"), true, [=] { return TwoThreadSubject(heads, target); }});
  rows->push_back(
      {NameOf(heads, target, "causal_2_threads"), true, [=] { return TwoThreadSubject(heads.Causal(), target); }});
}

}  // namespace etalon::bench
