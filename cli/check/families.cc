#include "cli/check/families.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "cli/check/normal_case.h"
#include "cli/layer.h"
#include "cli/reference.h"
#include "cli/shipped_layers.h"
#include "cli/text.h"
#include "cli/widen.h"
#include "tests/support/reference.h"

namespace etalon::cli {
namespace {

using test::Random;

constexpr int64_t kRealRows = 24;  // of each head of a shipped layer

// Not a multiple of a vector, of a chunk or of a block: tails are measured, too.
constexpr Shape kUsual = {64, 1000, 128};
constexpr Shape kLongShape = {4, 65536, 64};
constexpr Shape kTieShape = {64, 1000, 64};

// From the first key to the last; several rows stand at one where keys are few.
FamilyCase WithPositions(test::AttentionCase attention) {
  const int64_t last_key = attention.sources[0].num_keys - 1, last_row = std::max<int64_t>(attention.rows - 1, 1);
  std::vector<int64_t> positions;
  for (int64_t r = 0; r < attention.rows; ++r) positions.push_back(r * last_key / last_row);
  return {std::move(attention), std::move(positions)};
}

// All keys of a row are the same but for the last channel, which moves the score by about one unit in its last place.
// That channel is small enough for its steps to be small in f16 too, where it is subnormal.
FamilyCase NearTie(DType type) {
  const Shape& shape = kTieShape;
  Random random(64);
  const size_t dim = static_cast<size_t>(shape.dim);
  const std::vector<float> shared = random.Normals(shape.dim, kUnit);
  std::vector<float> q = random.Normals(shape.rows * shape.dim, kUnit);
  for (size_t i = 0; i < q.size(); ++i) q[i] = i % dim + 1 == dim ? 8.0f : q[i] + shared[i % dim];  // scores of about 8
  std::vector<float> k;
  for (int64_t j = 0; j < shape.keys; ++j) {
    k.insert(k.end(), shared.begin(), shared.end());
    k.back() = random.Normal() * 0x1p-20f;
  }
  const std::vector<float> v = random.Normals(shape.keys * shape.dim, kUnit);
  return WithPositions(AttentionOf(shape, type, q, k, v));
}

// First scores that are subnormal in f32, then values that are subnormal in their own type. An f16 has no room for the
// first: there q and k are subnormal themselves.
std::vector<FamilyCase> Subnormal(DType type) {
  const bool f16 = type == DType::kF16;
  const float small_q = f16 ? 0x1p-16f : 0x1p-70f;
  const float small_k = f16 ? 0x1p-16f : 0x1p-66f;
  return {WithPositions(NormalAttention(kUsual, type, 65, small_q, small_k)),
          WithPositions(NormalAttention(kUsual, type, 66, 1.0f, 1.0f, f16 ? 0x1p-17f : 0x1p-130f))};
}

// Elements over as many binades as the type has room for. What one channel of q is larger by, the channel of k is
// smaller by, so that scores stay logits; values differ from key to key and from channel to channel.
FamilyCase WideExponent(DType type) {
  const int reach = type == DType::kF16 ? 5 : 40;
  const int terms = 12;  // binades that the products of one score differ by
  const Shape& shape = kUsual;
  Random random(67);
  const size_t dim = static_cast<size_t>(shape.dim);
  const auto exponent = [&](int n) { return static_cast<int>(random.Below(2 * n + 1)) - n; };
  std::vector<int> channel;
  for (size_t c = 0; c < dim; ++c) channel.push_back(exponent(reach));
  std::vector<float> q = random.Normals(shape.rows * shape.dim, kUnit);
  std::vector<float> k = random.Normals(shape.keys * shape.dim, kUnit);
  std::vector<float> v = random.Normals(shape.keys * shape.dim, kUnit);
  for (size_t i = 0; i < q.size(); ++i) q[i] = std::ldexp(q[i], channel[i % dim]);
  for (size_t i = 0; i < k.size(); ++i) {
    const int smaller = static_cast<int>(random.Below(terms));
    k[i] = std::ldexp(k[i], -channel[i % dim] + 2 - (type == DType::kF16 ? smaller / 2 : smaller));
  }
  for (float& x : v) x = std::ldexp(x, exponent(2 * reach));
  return WithPositions(AttentionOf(shape, type, q, k, v));
}

double LargestOf(const std::vector<double>& values) {
  double largest = 0.0;
  for (const double x : values) largest = std::isfinite(x) ? std::max(largest, std::fabs(x)) : HUGE_VAL;
  return largest;
}

// Why there is no bound for this case (docs/numerics.md#bounds); empty if there is one.
std::string Unbounded(const test::AttentionCase& c) {
  const test::SourceData& source = c.sources[0];
  const std::vector<double> q = test::TrueValues(c.q), k = test::TrueValues(source.k), v = test::TrueValues(source.v);
  const std::string as = c.q.type() == DType::kF32 ? "" : c.q.type() == DType::kF16 ? " as f16" : " as bf16";
  for (const auto& [name, values] : {std::pair<const char*, const std::vector<double>&>{"q", q}, {"k", k}, {"v", v}}) {
    if (!std::isfinite(LargestOf(values))) return std::string(name) + " is not finite" + as;
  }
  const size_t dim = static_cast<size_t>(c.head_dim);
  std::vector<double> largest_key(dim, 0.0);
  for (size_t i = 0; i < k.size(); ++i) largest_key[i % dim] = std::max(largest_key[i % dim], std::fabs(k[i]));
  double largest_score = 0.0;
  for (size_t row = 0; row < q.size(); row += dim) {
    double size = 0.0;
    for (size_t i = 0; i < dim; ++i) size += std::fabs(q[row + i]) * std::max(largest_key[i], 1.0);
    largest_score = std::max(largest_score, size);
  }
  constexpr double kMost = 0.5 * std::numeric_limits<float>::max();  // leaves room for the roundings of any sum
  if (largest_score * std::max(std::fabs(static_cast<double>(c.scale)), 1.0) > kMost) return "scores may overflow f32";
  if (static_cast<double>(source.num_keys) * LargestOf(v) > kMost) return "sums of v may overflow f32";
  return "";
}

// Each head of each layer, a run of rows from the first to the last.
bool Real(DType type, std::vector<FamilyCase>* cases, std::string* error) {
  std::vector<std::string> files;
  if (!ShippedLayers(&files, error)) return false;
  for (const std::string& file : files) {
    Layer layer;
    if (!LoadLayer(file, &layer, error)) return false;
    for (int64_t head = 0; head < layer.q.heads; ++head) {
      const int64_t kv_head = head / (layer.q.heads / layer.k.heads);
      const std::vector<float> all_q = WidenedHead(layer.q, head);
      std::vector<float> q;
      const std::vector<int64_t> rows = SpreadRows(layer.q.len, kRealRows);
      for (const int64_t row : rows) {
        q.insert(q.end(), all_q.begin() + row * layer.q.dim, all_q.begin() + (row + 1) * layer.q.dim);
      }
      const Shape shape = {static_cast<int64_t>(rows.size()), layer.k.len, layer.q.dim};
      FamilyCase c =
          WithPositions(AttentionOf(shape, type, q, WidenedHead(layer.k, kv_head), WidenedHead(layer.v, kv_head)));
      c.attention.value_dim = layer.v.dim;
      c.attention.scale = layer.scale;
      const std::string unbounded = Unbounded(c.attention);
      if (!unbounded.empty()) {
        *error = PrintablePath(file) + ": " + unbounded + ", so that no bound is known: leave out the family `real`" +
                 (type == DType::kF32 ? "" : ", or the kernel that stores it so");
        return false;
      }
      cases->push_back(std::move(c));
    }
  }
  return true;
}

}  // namespace

const char* FamilyName(Family family) {
  switch (family) {
    case Family::kOrdinary:
      return "ordinary";
    case Family::kLargeLogits:
      return "large-logit";
    case Family::kLong:
      return "long";
    case Family::kNearTie:
      return "near-tie";
    case Family::kSubnormal:
      return "subnormal";
    case Family::kWideExponent:
      return "wide-exponent";
    default:
      return "real";
  }
}

const char* FamilyDescription(Family family) {
  switch (family) {
    case Family::kOrdinary:
      return "standard-normal q, k, v; logits of deviation 1; 64 rows, 1000 keys, 128 channels";
    case Family::kLargeLogits:
      return "the same with q times 30: logits of deviation 30";
    case Family::kLong:
      return "standard-normal; 4 rows, 65536 keys, 64 channels";
    case Family::kNearTie:
      return "scores of about 8 that differ by an ulp or so; 64 rows, 1000 keys, 64 channels";
    case Family::kSubnormal:
      return "scores that are subnormal in f32 (of f16: subnormal q and k), and, apart, subnormal values";
    case Family::kWideExponent:
      return "elements over 80 binades, values over 160 (of f16: 10 and 20)";
    default:
      return "the layers of the demo: 24 rows of each head";
  }
}

bool MakeFamily(Family family, DType type, std::vector<FamilyCase>* cases, std::string* error) {
  cases->clear();
  switch (family) {
    case Family::kOrdinary:
      *cases = {WithPositions(NormalAttention(kUsual, type, 61))};
      return true;
    case Family::kLargeLogits:
      *cases = {WithPositions(NormalAttention(kUsual, type, 62, 30.0f))};
      return true;
    case Family::kLong:
      *cases = {WithPositions(NormalAttention(kLongShape, type, 63))};
      return true;
    case Family::kNearTie:
      *cases = {NearTie(type)};
      return true;
    case Family::kSubnormal:
      *cases = Subnormal(type);
      return true;
    case Family::kWideExponent:
      *cases = {WideExponent(type)};
      return true;
    default:
      return Real(type, cases, error);
  }
}

}  // namespace etalon::cli
