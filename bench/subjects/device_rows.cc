#include "bench/subjects/device_rows.h"

#include <algorithm>

#include "bench/subjects/subjects.h"

namespace etalon::bench {
namespace {

std::string Number(const char* letter, int64_t n) { return std::string(" ") + letter + std::to_string(n); }

struct Prompt {
  ElementType type;
  bool causal;
  int64_t heads;
  int64_t group;  // query heads of a key head
  int64_t len;
  int64_t head_dim;
  bool two_threads = false;
};

AttentionShape PrefillShape(const Prompt& p, const Sizes& sizes) {
  AttentionShape shape;
  shape.type = p.type;
  shape.q_heads = p.heads;
  shape.kv_heads = p.heads / p.group;
  shape.q_len = shape.kv_len = sizes.Length(p.len);
  shape.head_dim = p.head_dim;
  return p.causal ? shape.Causal() : shape;
}

Subject MakePrefill(const Prompt& p, const std::string& target, const Sizes& sizes) {
  const AttentionShape shape = PrefillShape(p, sizes);
  if (!p.two_threads) return PrefillSubject(shape, target);
  Subject subject = TwoThreadSubject(shape, target);
  // Here every row has a limit: twice what one thread does.
  Rival& rival = subject.rivals[0];
  rival.limit.name = "2 x one thread";
  rival.limit.work = 2;
  rival.shown = Rival::Shown::kPercent;
  return subject;
}

DeviceRow PrefillRow(const Prompt& p, const Sizes& sizes) {
  const AttentionShape shape = PrefillShape(p, sizes);
  DeviceRow row;
  row.name = std::string("prefill ") + TypeName(p.type) + (p.causal ? " causal" : " full") +
             (p.group > 1 ? Number("g", p.group) : "") + Number("h", p.heads) + Number("n", shape.q_len) +
             Number("d", p.head_dim) + (p.two_threads ? " 2threads" : "");
  row.flop = shape.Flop();
  row.threads = p.two_threads ? 2 : 1;
  row.make = [p](const std::string& target, const Sizes& s) { return MakePrefill(p, target, s); };
  return row;
}

DeviceRow DecodeRow(ElementType type, int64_t group, const Place& place, const Sizes& sizes) {
  const AttentionShape shape = DecodeShape(type, group, place, sizes);
  DeviceRow row;
  row.name = std::string("decode ") + TypeName(type) + Number("g", group) + Number("h", shape.q_heads) +
             Number("kv", shape.kv_len) + Number("d", shape.head_dim) + " " + place.name;
  row.flop = shape.Flop();
  row.bytes = static_cast<double>(2 * shape.kv_heads * shape.kv_len * shape.head_dim * ElementBytes(type));
  row.make = [=](const std::string& target, const Sizes& s) {
    return DecodeSubject(DecodeShape(type, group, place, s), target);
  };
  return row;
}

DeviceRow SquareRow(const char* kernel, int64_t len, int64_t dim, const Sizes& sizes,
                    Subject (*subject)(int64_t, int64_t, const std::string&)) {
  const int64_t n = sizes.Length(len);
  DeviceRow row;
  row.name = kernel + std::string(" f32 full h1") + Number("n", n) + Number("d", dim);
  row.flop = 2.0 * static_cast<double>(n * n * dim);
  row.make = [=](const std::string& target, const Sizes& s) { return subject(s.Length(len), dim, target); };
  return row;
}

DeviceRow SoftmaxRow(int64_t all_rows, int64_t n, bool causal, const char* place, const Sizes& sizes) {
  // A causal one has a row for each key, and becomes shorter in both; others keep their length.
  const auto sizes_of = [=](const Sizes& s) {
    return std::pair<int64_t, int64_t>(s.Length(all_rows), causal ? s.Length(n) : n);
  };
  const auto [rows, len] = sizes_of(sizes);
  DeviceRow row;
  row.name = std::string("softmax f32 ") + (causal ? "causal" : "full") + Number("rows", rows) + Number("n", len) +
             " " + place;
  row.bytes = 2.0 * static_cast<double>(FloatBytes(rows * len));
  row.make = [=](const std::string& target, const Sizes& s) {
    const auto [made_rows, made_len] = sizes_of(s);
    return SoftmaxSubject(made_rows, made_len, causal, true, target);
  };
  return row;
}

DeviceRow MergeRow(int64_t all_rows, const char* place, const Sizes& sizes) {
  constexpr int64_t kDim = 128;
  const int64_t rows = sizes.Length(all_rows);
  DeviceRow row;
  row.name = "merge f32" + Number("rows", rows) + Number("d", kDim) + " " + place;
  row.bytes = 3.0 * static_cast<double>(FloatBytes(rows * kDim));
  row.make = [=](const std::string& target, const Sizes& s) { return MergeSubject(s.Length(all_rows), kDim, target); };
  return row;
}

}  // namespace

std::vector<DeviceRow> DeviceRows(const Sizes& sizes) {
  constexpr ElementType kF32 = ElementType::kF32, kF16 = ElementType::kF16, kBF16 = ElementType::kBF16;
  std::vector<DeviceRow> rows;
  // Short ones first: a slow table gets through these, if through no others.
  for (const Prompt& p : {Prompt{kF32, false, 1, 1, 256, 64}, Prompt{kF32, true, 1, 1, 256, 64}}) {
    rows.push_back(PrefillRow(p, sizes));
  }
  for (const ElementType type : {kF32, kF16, kBF16}) {
    for (const int64_t head_dim : {64, 128}) {
      for (const bool causal : {false, true}) {
        rows.push_back(PrefillRow({type, causal, 1, 1, 2048, head_dim}, sizes));
      }
    }
  }
  for (const bool causal : {false, true}) rows.push_back(PrefillRow({kF32, causal, 8, 1, 1024, 128}, sizes));
  rows.push_back(PrefillRow({kF32, true, 8, 4, 1024, 128}, sizes));
  for (const bool causal : {false, true}) rows.push_back(PrefillRow({kF32, causal, 8, 1, 1024, 128, true}, sizes));

  for (const int64_t group : {1, 4}) {
    for (const ElementType type : {kF32, kF16, kBF16}) {
      for (const Place& place : {PlaceInL2(), PlaceInDram()}) {
        if (type == kBF16 && place.in_cache) continue;
        rows.push_back(DecodeRow(type, group, place, sizes));
      }
    }
  }

  for (const int64_t head_dim : {64, 128}) rows.push_back(SquareRow("scores", 2048, head_dim, sizes, ScoresSubject));
  rows.push_back(SquareRow("weighted_sum", 2048, 128, sizes, WeightedSumSubject));
  for (const Place& place : {PlaceInL2(), PlaceInDram()}) {
    for (const int64_t n : {512, 4096}) {
      const int64_t all = static_cast<int64_t>(place.bytes / sizeof(float)) / n;
      rows.push_back(SoftmaxRow(all, n, false, place.name, sizes));
    }
  }
  rows.push_back(SoftmaxRow(1024, 1024, true, LevelOf(FloatBytes(1024 * 1024)), sizes));
  // Three arrays of rows of 128 channels.
  for (const Place& place : {PlaceInL2(), PlaceInDram()}) {
    rows.push_back(MergeRow(static_cast<int64_t>(place.bytes / (3 * 512)), place.name, sizes));
  }

  // Shrunk lengths may become equal.
  std::vector<DeviceRow> kept;
  for (DeviceRow& row : rows) {
    const auto same = [&](const DeviceRow& other) { return other.name == row.name; };
    if (std::none_of(kept.begin(), kept.end(), same)) kept.push_back(std::move(row));
  }
  return kept;
}

double EstimateRun(const DeviceRow& row, const std::string& target, const Sizes& sizes) {
  const Subject subject = row.make(target, Sizes{32 * sizes.shrink});
  double seconds = 1e30;
  for (int i = 0; i < 3; ++i) {
    const double start = Seconds(subject.clock);
    subject.run();
    seconds = std::min(seconds, Seconds(subject.clock) - start);
    if (seconds > 0.01) break;  // what a first call costs does not matter then
  }
  return seconds * (subject.unit == "B" ? row.bytes : row.flop) / subject.work;
}

}  // namespace etalon::bench
