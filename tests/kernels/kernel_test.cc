#include "tests/kernels/kernel_test.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "arch/dispatch.h"
#include "lib/base/workspace.h"

namespace etalon::test {
namespace {

template <typename Word>
std::string WordDifference(int64_t got_size, int64_t want_size, Word got, Word want) {
  if (got_size != want_size) return "sizes differ";
  for (int64_t i = 0; i < got_size; ++i) {
    if (got(i) == want(i)) continue;
    char line[100];
    std::snprintf(line, sizeof line, "element %lld: got %08X, want %08X", static_cast<long long>(i),
                  static_cast<unsigned>(got(i)), static_cast<unsigned>(want(i)));
    return line;
  }
  return "";
}

std::string Named(const char* name, const std::string& difference) {
  return difference.empty() ? "" : std::string(name) + " " + difference + "; ";
}

uint32_t CanonicalWord(DType type) {
  return type == DType::kF32 ? 0x7FC00000u : type == DType::kF16 ? 0x7E00u : 0x7FC0u;
}

uint32_t SignOf(DType type) { return type == DType::kF32 ? 0x80000000u : 0x8000u; }
uint32_t InfinityWord(DType type) {
  return type == DType::kF32 ? 0x7F800000u : type == DType::kF16 ? 0x7C00u : 0x7F80u;
}

const char* TypeName(DType type) { return type == DType::kF32 ? "f32" : type == DType::kF16 ? "f16" : "bf16"; }

DType RandomType(Random* random) { return static_cast<DType>(random->Below(3)); }

int64_t RandomSize(Random* random, int64_t max) {
  const std::vector<int64_t>& sizes = TailSizes();
  int64_t n;
  do {
    n = sizes[static_cast<size_t>(random->Below(static_cast<int64_t>(sizes.size())))];
  } while (n > max);
  return n;
}

// NaN of both signs and with payload, infinities, zeros, subnormals and the largest finite numbers, in a few places.
void Sprinkle(Random* random, Array* a, bool nan_too) {
  const uint32_t sign = SignOf(a->type()), infinity = InfinityWord(a->type());
  const uint32_t words[] = {0,
                            sign,
                            1,
                            sign | 1,
                            infinity - 1,
                            infinity,
                            sign | infinity,
                            infinity | 1,
                            sign | infinity | 3,
                            CanonicalWord(a->type())};
  const int64_t kinds = nan_too ? 10 : 5;
  const int64_t count = 1 + random->Below(3);
  for (int64_t i = 0; i < count && a->size() > 0; ++i) {
    const int64_t where = random->Below(a->size());
    a->SetWord(where, words[random->Below(kinds)]);
  }
}

void Sprinkle(Random* random, std::vector<float>* values, bool nan_too) {
  Array a(DType::kF32, *values);
  Sprinkle(random, &a, nan_too);
  std::memcpy(values->data(), a.data(), values->size() * sizeof(float));
}

Span RandomSpan(Random* random, int64_t base, int64_t n) {
  switch (random->Below(4)) {
    case 0:
      return {base, base + n};
    case 1:
      return {base + n / 2, base + random->Below(n / 2 + 1)};  // none, most often with first > last
    default: {
      const int64_t a = random->Below(n + 1), b = random->Below(n + 1);
      return {base + std::min(a, b), base + std::max(a, b)};
    }
  }
}

std::vector<uint8_t> RandomMask(Random* random, int64_t n) {
  std::vector<uint8_t> mask(static_cast<size_t>(n));
  for (uint8_t& m : mask) m = random->Below(3) == 0 ? 0 : static_cast<uint8_t>(1 + random->Below(255));
  return mask;
}

}  // namespace

std::string Difference(const std::vector<float>& got, const std::vector<float>& want) {
  const auto word = [](const std::vector<float>& v) {
    return [&v](int64_t i) { return Bits(v[static_cast<size_t>(i)]); };
  };
  return WordDifference(static_cast<int64_t>(got.size()), static_cast<int64_t>(want.size()), word(got), word(want));
}

std::string Difference(const Array& got, const Array& want) {
  if (got.type() != want.type()) return "types differ";
  const auto word = [](const Array& a) { return [&a](int64_t i) { return a.Word(i); }; };
  return WordDifference(got.size(), want.size(), word(got), word(want));
}

std::string Difference(const AttentionResult& got, const AttentionResult& want) {
  return Named("out", Difference(got.out, want.out)) + Named("lse", Difference(got.lse, want.lse));
}

std::string Difference(const StatesResult& got, const StatesResult& want) {
  return Named("m", Difference(got.m, want.m)) + Named("l", Difference(got.l, want.l)) +
         Named("o", Difference(got.o, want.o));
}

std::string Difference(const SoftmaxResult& got, const SoftmaxResult& want) {
  return Named("w", Difference(got.w, want.w)) + Named("lse", Difference(got.lse, want.lse));
}

std::string NotCanonical(const Array& values) {
  const uint32_t sign = SignOf(values.type()), infinity = InfinityWord(values.type());
  for (int64_t i = 0; i < values.size(); ++i) {
    const uint32_t word = values.Word(i);
    if ((word & ~sign) > infinity && word != CanonicalWord(values.type())) {
      return "element " + std::to_string(i) + " is another NaN";
    }
  }
  return "";
}

std::string NotCanonical(const std::vector<float>& values) { return NotCanonical(Array(DType::kF32, values)); }

std::string NotCanonicalOut(const Array& out) {
  for (int64_t i = 0; i < out.size(); ++i) {
    if (out.Word(i) == SignOf(out.type())) return "element " + std::to_string(i) + " is -0";
  }
  return NotCanonical(out);
}

std::string NotCanonicalOut(const AttentionResult& result) {
  return Named("out", NotCanonicalOut(result.out)) + Named("lse", NotCanonical(result.lse));
}

std::string Describe(const AttentionCase& c) {
  std::string text = "rows " + std::to_string(c.rows) + " head_dim " + std::to_string(c.head_dim) + " value_dim " +
                     std::to_string(c.value_dim) + " q " + TypeName(c.q.type()) + " out " + TypeName(c.out_type);
  if (c.softcap > 0) text += " softcap";
  if (!c.slopes.empty()) text += " alibi";
  if (!c.sinks.empty()) text += " sinks";
  for (const SourceData& s : c.sources) {
    text += " [" + std::to_string(s.base) + " + " + std::to_string(s.num_keys) + " keys " + TypeName(s.k.type()) + " " +
            TypeName(s.v.type());
    if (!s.spans.empty()) text += " spans";
    if (s.bias.size() > 0) text += std::string(" bias ") + TypeName(s.bias.type());
    if (!s.mask.empty()) text += " mask/" + std::to_string(static_cast<int>(s.mask_form));
    text += "]";
  }
  return text;
}

AttentionCase RandomAttention(uint64_t seed, const RandomOptions& options) {
  Random random(seed);
  AttentionCase c;
  c.rows = 1 + random.Below(4);
  c.head_dim = RandomSize(&random, options.max_dim);
  c.value_dim = RandomSize(&random, options.max_dim);
  c.scale = ScaleOf(c.head_dim);
  c.q = Array{RandomType(&random), random.Normals(c.rows * c.head_dim, random.Below(2) == 0 ? 1.0f : 3.0f)};
  c.out_type = RandomType(&random);
  const bool with = options.options;
  if (with && random.Below(3) == 0) c.softcap = random.Below(2) == 0 ? 2.0f : 30.0f;
  if (with && random.Below(3) == 0) {
    for (int64_t r = 0; r < c.rows; ++r) {
      c.slopes.push_back(random.Normal() * 0.01f);
      c.q_pos.push_back(random.Below(2000) - 500);
    }
  }
  if (with && random.Below(3) == 0) {
    for (int64_t r = 0; r < c.rows; ++r) {
      c.sinks.push_back(random.Below(4) == 0 ? -HUGE_VALF : random.Normal() * 2.0f);
    }
  }
  const int64_t sources = with ? 1 + random.Below(3) : 1;
  for (int64_t n = 0; n < sources; ++n) {
    SourceData s;
    s.num_keys = with && random.Below(16) == 0 ? 0 : RandomSize(&random, options.max_keys);
    constexpr int64_t kBases[] = {0, 0, 1, 100, 127, 500, 512, 1000, 123456789};
    s.base = with ? kBases[random.Below(9)] : 0;
    s.k = Array{RandomType(&random), random.Normals(s.num_keys * c.head_dim)};
    s.v = Array{RandomType(&random), random.Normals(s.num_keys * c.value_dim)};
    if (with && random.Below(2) == 0) {
      for (int64_t r = 0; r < c.rows; ++r) s.spans.push_back(RandomSpan(&random, s.base, s.num_keys));
    }
    if (with && random.Below(3) == 0) {
      std::vector<float> bias = random.Normals(c.rows * s.num_keys, 2.0f);
      for (float& b : bias) b = random.Below(5) == 0 ? -HUGE_VALF : b;
      s.bias = Array(RandomType(&random), bias);
    }
    if (with && random.Below(3) == 0) s.mask = RandomMask(&random, c.rows * s.num_keys);
    s.mask_form = static_cast<MaskForm>(random.Below(4));
    if (random.Below(2) == 0) s.first_column = random.Below(200);
    if (n > 0) s.q_shift = random.Below(300) - 100;
    if (options.specials) {
      const int64_t where = random.Below(6);
      if (where == 0) Sprinkle(&random, &c.q, true);
      if (where <= 2) Sprinkle(&random, &s.k, where == 1);
      if (where >= 2 && where <= 4) Sprinkle(&random, &s.v, where >= 3);
      if (where == 5 && s.bias.size() > 0) Sprinkle(&random, &s.bias, true);
    }
    c.sources.push_back(s);
  }
  if (options.specials && random.Below(8) == 0 && !c.sinks.empty()) c.sinks[0] = random.Below(2) == 0 ? NAN : HUGE_VALF;
  return c;
}

SoftmaxCase RandomSoftmax(uint64_t seed, bool specials) {
  Random random(seed);
  SoftmaxCase c;
  c.rows = 1 + random.Below(4);
  c.num_keys = RandomSize(&random, 513);
  c.s = random.Normals(c.rows * c.num_keys, random.Below(2) == 0 ? 1.0f : 20.0f);
  if (random.Below(2) == 0) {
    for (int64_t r = 0; r < c.rows; ++r) c.spans.push_back(RandomSpan(&random, 0, c.num_keys));
  }
  if (random.Below(2) == 0) c.mask = RandomMask(&random, c.rows * c.num_keys);
  if (random.Below(2) == 0) {
    for (float& s : c.s) s = random.Below(6) == 0 ? -HUGE_VALF : s;
  }
  if (specials) Sprinkle(&random, &c.s, true);
  return c;
}

WeightedSumCase RandomWeightedSum(uint64_t seed, bool specials) {
  Random random(seed);
  WeightedSumCase c;
  c.rows = 1 + random.Below(4);
  c.num_keys = RandomSize(&random, 513);
  c.value_dim = RandomSize(&random, 129);
  c.w = random.Normals(c.rows * c.num_keys);
  c.v = Array{RandomType(&random), random.Normals(c.num_keys * c.value_dim)};
  c.out_type = RandomType(&random);
  if (random.Below(2) == 0) {
    for (int64_t r = 0; r < c.rows; ++r) c.spans.push_back(RandomSpan(&random, 0, c.num_keys));
  }
  if (random.Below(2) == 0) c.mask = RandomMask(&random, c.rows * c.num_keys);
  if (specials) {
    Sprinkle(&random, &c.v, true);
    Sprinkle(&random, &c.w, random.Below(2) == 0);
  }
  return c;
}

MergeCase RandomMerge(uint64_t seed, bool specials) {
  Random random(seed);
  MergeCase c;
  c.rows = 1 + random.Below(8);
  c.value_dim = RandomSize(&random, 129);
  const DType type = RandomType(&random);
  c.out1 = Array{type, random.Normals(c.rows * c.value_dim)};
  c.out2 = Array{type, random.Normals(c.rows * c.value_dim)};
  c.lse1 = random.Normals(c.rows, 5.0f);
  c.lse2 = random.Normals(c.rows, 5.0f);
  for (float& x : c.lse1) x = random.Below(4) == 0 ? -HUGE_VALF : x;
  for (float& x : c.lse2) x = random.Below(4) == 0 ? -HUGE_VALF : x;
  if (specials) {
    Sprinkle(&random, &c.out1, true);
    Sprinkle(&random, &c.out2, true);
    if (random.Below(2) == 0) Sprinkle(&random, &c.lse1, true);
  }
  return c;
}

PlainCase::PlainCase(Array q_in, Array k, Array v, int64_t head_dim_in, int64_t value_dim_in, float scale_in) {
  rows = q_in.size() / head_dim_in;
  head_dim = head_dim_in;
  value_dim = value_dim_in;
  scale = scale_in;
  q = std::move(q_in);
  SourceData s;
  s.num_keys = k.size() / head_dim;
  s.k = std::move(k);
  s.v = std::move(v);
  sources.push_back(s);
}

AttentionCase MeanCase(int64_t rows, int64_t num_keys, DType type) {
  std::vector<float> v(static_cast<size_t>(num_keys));
  for (size_t j = 0; j < v.size(); ++j) v[j] = static_cast<float>(j);
  const std::vector<float> zeros(static_cast<size_t>(std::max(rows, num_keys)), 0.0f);
  return PlainCase(Array(type, std::vector<float>(zeros.begin(), zeros.begin() + rows)),
                   Array(type, std::vector<float>(zeros.begin(), zeros.begin() + num_keys)), Array(type, v), 1, 1,
                   1.0f);
}

float ScaleOf(int64_t head_dim) { return static_cast<float>(1.0 / std::sqrt(static_cast<double>(head_dim))); }

bool Allows(const SourceData& source, int64_t row, int64_t i) {
  const size_t at = static_cast<size_t>(row * source.num_keys + i);
  if (!source.spans.empty()) {
    const Span& span = source.spans[static_cast<size_t>(row)];
    if (source.base + i < span.first || source.base + i >= span.last) return false;
  }
  if (!source.mask.empty() && source.mask[at] == 0) return false;
  return source.bias.size() == 0 || source.bias[static_cast<int64_t>(at)] != -HUGE_VALF;
}

Array Slice(const Array& a, int64_t first, int64_t count) {
  Array part(a.type(), count);
  if (count > 0) std::memcpy(part.data(), a.at(first), static_cast<size_t>(count) * ElementSize(a.type()));
  return part;
}

SourceData SliceSource(const AttentionCase& c, const SourceData& s, int64_t first, int64_t last, bool keep_positions) {
  SourceData part;
  const int64_t n = last - first;
  part.num_keys = n;
  part.base = keep_positions ? s.base + first : 0;
  part.k = Slice(s.k, first * c.head_dim, n * c.head_dim);
  part.v = Slice(s.v, first * c.value_dim, n * c.value_dim);
  part.mask_form = s.mask_form;
  part.q_shift = s.q_shift - (keep_positions ? 0 : s.base + first);
  if (s.bias.size() > 0) part.bias = Array(s.bias.type(), c.rows * n);
  for (int64_t r = 0; r < c.rows; ++r) {
    if (!s.spans.empty()) {
      const Span& span = s.spans[static_cast<size_t>(r)];
      const int64_t shift = s.base + first - part.base;
      part.spans.push_back({std::max(span.first, s.base + first) - shift, std::min(span.last, s.base + last) - shift});
    }
    for (int64_t i = 0; i < n; ++i) {
      const int64_t from = r * s.num_keys + first + i;
      if (s.bias.size() > 0) part.bias.SetWord(r * n + i, s.bias.Word(from));
      if (!s.mask.empty()) part.mask.push_back(s.mask[static_cast<size_t>(from)]);
    }
  }
  return part;
}

AttentionCase SliceRows(const AttentionCase& c, int64_t first, int64_t last) {
  AttentionCase part = c;
  part.rows = last - first;
  part.q = Slice(c.q, first * c.head_dim, part.rows * c.head_dim);
  const auto cut = [&](auto* values, int64_t width) {
    if (values->empty()) return;
    *values = {values->begin() + first * width, values->begin() + last * width};
  };
  cut(&part.q_pos, 1);
  cut(&part.slopes, 1);
  cut(&part.sinks, 1);
  for (SourceData& s : part.sources) {
    cut(&s.spans, 1);
    cut(&s.mask, s.num_keys);
    if (s.bias.size() > 0) s.bias = Slice(s.bias, first * s.num_keys, part.rows * s.num_keys);
  }
  return part;
}

Strided::Strided(int64_t rows, int64_t row_bytes, int64_t stride_bytes, int64_t element_bytes)
    : rows_(rows), row_bytes_(row_bytes), stride_bytes_(stride_bytes) {
  constexpr int64_t kCanary = 64;
  const int64_t reach = (rows - 1) * std::abs(stride_bytes);
  origin_ = kCanary + element_bytes + (stride_bytes < 0 ? reach : 0);
  bytes_.assign(static_cast<size_t>(2 * kCanary + element_bytes + reach + row_bytes), 0xFF);
}

Strided::Strided(const Array& packed, int64_t rows, int64_t stride_bytes)
    : Strided(rows, rows == 0 ? 0 : packed.size() / rows * static_cast<int64_t>(ElementSize(packed.type())),
              stride_bytes, static_cast<int64_t>(ElementSize(packed.type()))) {
  for (int64_t r = 0; r < rows; ++r) {
    std::memcpy(bytes_.data() + origin_ + r * stride_bytes_, packed.at(r * (packed.size() / rows)),
                static_cast<size_t>(row_bytes_));
  }
}

bool Strided::Intact() const {
  std::vector<unsigned char> copy = bytes_;
  for (int64_t r = 0; r < rows_; ++r) {
    std::memset(copy.data() + origin_ + r * stride_bytes_, 0xFF, static_cast<size_t>(row_bytes_));
  }
  return std::all_of(copy.begin(), copy.end(), [](unsigned char byte) { return byte == 0xFF; });
}

Array Strided::Packed(DType type) const {
  const int64_t width = row_bytes_ / static_cast<int64_t>(ElementSize(type));
  Array packed(type, rows_ * width);
  for (int64_t r = 0; r < rows_; ++r) {
    std::memcpy(packed.at(r * width), bytes_.data() + origin_ + r * stride_bytes_, static_cast<size_t>(row_bytes_));
  }
  return packed;
}

ScratchMemory::ScratchMemory(const KernelTable& table, int64_t head_dim, int64_t value_dim) {
  const size_t needed = ScratchBytes(table, static_cast<size_t>(head_dim), static_cast<size_t>(value_dim));
  const size_t rounded = (needed + kWorkspaceAlignment - 1) / kWorkspaceAlignment * kWorkspaceAlignment;
  memory_ = std::aligned_alloc(kWorkspaceAlignment, rounded);
  std::memset(memory_, 0xFF, rounded);
}

ScratchMemory::~ScratchMemory() { std::free(memory_); }

}  // namespace etalon::test
