// Fused attention of one new token, in percent of the read loop over the same keys and values. Groups of several query
// heads read them once, and are bound by arithmetic in the end.
#include "bench/rows.h"
#include "bench/subjects/subjects.h"
#include "bench/support/caches.h"

namespace etalon::bench {
void AddDecodeRows(const std::string& target, const Sizes& sizes, std::vector<Row>* rows) {
  const auto add = [&](const char* type_name, ElementType type, int64_t group, const Place& place, bool reach) {
    const AttentionShape shape = DecodeShape(type, group, place, sizes);
    rows->push_back({std::string("decode/") + type_name + "/" + target + "/g" + std::to_string(group) + "_h" +
                         std::to_string(shape.q_heads) + "_kv" + std::to_string(shape.kv_len) + "_d128/" + place.name,
                     reach, [=] { return DecodeSubject(shape, target); }});
  };
  std::vector<Place> places = Places();
  places.erase(places.begin());  // L1 is too small for keys and values
  for (const int64_t group : {1, 4, 8}) {
    for (const Place& place : places) add("f32", ElementType::kF32, group, place, true);
    for (const Place& place : places) {
      add("f16", ElementType::kF16, group, place, false);
      add("bf16", ElementType::kBF16, group, place, false);
    }
  }
}

// The same from pages of any order.
void AddPagedRows(const std::string& target, const Sizes& sizes, std::vector<Row>* rows) {
  for (const int64_t page_len : {16, 128}) {
    for (const Place& place : Places()) {
      if (std::string(place.name) == "L1") continue;
      for (const ElementType type : {ElementType::kF32, ElementType::kBF16}) {
        AttentionShape shape = DecodeShape(type, 1, place, sizes);
        shape.page_len = page_len;
        rows->push_back({std::string("paged_decode/") + TypeName(type) + "/" + target + "/pages" +
                             std::to_string(page_len) + "_kv" + std::to_string(shape.kv_len) + "_d128/" + place.name,
                         false, [=] { return DecodeSubject(shape, target); }});
      }
    }
  }
}

}  // namespace etalon::bench
