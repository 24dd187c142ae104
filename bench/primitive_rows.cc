// The steps of attention by themselves.
#include <algorithm>

#include "bench/rows.h"
#include "bench/subjects/subjects.h"
#include "bench/support/caches.h"

namespace etalon::bench {
namespace {

std::string Name(const char* what, const std::string& target, const std::string& shape) {
  return std::string(what) + "/f32/" + target + "/" + shape;
}

}  // namespace

void AddPrimitiveRows(const std::string& target, const Sizes& sizes, std::vector<Row>* rows) {
  for (const int64_t full : {512, 2048}) {
    for (const int64_t head_dim : {64, 128}) {
      const int64_t n = sizes.Length(full);
      const std::string shape = "n" + std::to_string(n) + "_d" + std::to_string(head_dim);
      rows->push_back({Name("scores", target, shape), true, [=] { return ScoresSubject(n, head_dim, target); }});
      rows->push_back({Name("weighted_sum", target, shape), full == 2048 && head_dim == 128,
                       [=] { return WeightedSumSubject(n, head_dim, target); }});
    }
  }

  for (const Place& place : {PlaceInL2(), PlaceInDram()}) {
    for (const int64_t n : {128, 512, 1024, 2048, 4096}) {
      const int64_t all = static_cast<int64_t>(place.bytes / sizeof(float)) / n;
      const int64_t count = std::max<int64_t>(2, place.in_cache ? all : sizes.Length(all));
      const auto name = [&](int64_t c) {
        return Name("softmax", target, "rows" + std::to_string(c) + "_n" + std::to_string(n) + "/" + place.name);
      };
      rows->push_back({name(count), place.in_cache || n == 1024 || n == 4096,
                       [=] { return SoftmaxSubject(count, n, false, true, target); }});
      // The same bytes in two buffers.
      if (n != 1024) continue;
      rows->push_back(
          {name(count / 2) + "/to_other", false, [=] { return SoftmaxSubject(count / 2, n, false, false, target); }});
    }
  }
  const int64_t square = sizes.Length(1024);
  rows->push_back({Name("softmax", target, "n" + std::to_string(square) + "/causal"), true,
                   [=] { return SoftmaxSubject(square, square, true, true, target); }});

  for (const int64_t count : {256, 65536}) {
    const int64_t merged = sizes.Length(count);
    rows->push_back({Name("merge", target, "rows" + std::to_string(merged) + "_d128"), count == 65536,
                     [=] { return MergeSubject(merged, 128, target); }});
  }
}

}  // namespace etalon::bench
