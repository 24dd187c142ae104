// Fused attention of one new token, in percent of the read loop over the same keys and values. Groups of several query
// heads read them once, and are bound by arithmetic in the end.
#include <algorithm>
#include <memory>

#include "bench/rows.h"
#include "bench/support/attention.h"

namespace etalon::bench {
namespace {

constexpr int64_t kHeadDim = 128;

struct Place {
  std::string name;  // of a cache level
  int64_t kv_heads;
  int64_t kv_len;
};

// Lengths that put keys and values together well into each level: half of L2, a quarter of an L3 that others use too,
// four times as much as it holds.
std::vector<Place> Places(int64_t element_bytes, const Sizes& sizes) {
  const Caches caches = ThisCaches();
  const auto length = [&](size_t bytes, int64_t heads) {
    const int64_t row = 2 * kHeadDim * element_bytes * heads;
    return std::max<int64_t>(16, sizes.Length(static_cast<int64_t>(bytes) / row / 128 * 128));
  };
  std::vector<Place> places = {{"L2", 1, length(caches.l2 / 2, 1)}};
  if (caches.l3 != 0) places.push_back({"L3", 1, length(caches.l3 / 4, 1)});
  places.push_back({"DRAM", 8, length(std::max(4 * caches.l3, size_t{128} << 20), 8)});
  return places;
}

Subject OfProblem(const AttentionShape& shape, const std::string& target) {
  const auto problem = std::make_shared<AttentionProblem>(shape, target);
  const Loops* loops = LoopsForTable(target);
  const Bytes k = problem->k_bytes(), v = problem->v_bytes();
  Subject subject;
  subject.run = [problem] { problem->Run(); };
  subject.check = [problem] { return problem->Judged(); };
  subject.work = static_cast<double>(k.bytes + v.bytes);
  subject.unit = "B";
  subject.rivals = {{ReadLimit(loops, {k, v}), subject.work}};
  if (shape.q_heads > shape.kv_heads) subject.rivals.push_back({FmaLimit(loops), shape.Flop()});
  return subject;
}

}  // namespace

void AddDecodeRows(const std::string& target, const Sizes& sizes, std::vector<Row>* rows) {
  const auto add = [&](const char* type_name, ElementType type, int64_t group, const Place& place, bool reach) {
    AttentionShape shape;
    shape.q_heads = group * place.kv_heads;
    shape.kv_heads = place.kv_heads;
    shape.q_len = 1;
    shape.kv_len = place.kv_len;
    shape.head_dim = kHeadDim;
    shape.type = type;
    rows->push_back({std::string("decode/") + type_name + "/" + target + "/g" + std::to_string(group) + "_h" +
                         std::to_string(shape.q_heads) + "_kv" + std::to_string(place.kv_len) + "_d128/" + place.name,
                     reach, [=] { return OfProblem(shape, target); }});
  };
  for (const int64_t group : {1, 4, 8}) {
    for (const Place& place : Places(4, sizes)) add("f32", ElementType::kF32, group, place, true);
    for (const Place& place : Places(2, sizes)) {
      add("f16", ElementType::kF16, group, place, false);
      add("bf16", ElementType::kBF16, group, place, false);
    }
  }
}

}  // namespace etalon::bench
