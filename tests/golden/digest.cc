#include "tests/golden/digest.h"

#include <cstdio>

#include "lib/attention/mask.h"
#include "lib/base/arithmetic.h"
#include "lib/base/environment.h"
#include "tests/support/generate.h"
#include "tests/support/hash.h"
#include "tests/support/kernel_case.h"

namespace etalon::test {
namespace {

// ---- element-wise functions
// -------------------------------------------------------------------------------------------

// `count` bit patterns spread over first ... last, both ends included.
std::vector<float> Sweep(uint32_t first, uint32_t last, uint32_t count) {
  std::vector<float> x;
  for (uint64_t i = 0; i < count; ++i) {
    x.push_back(FromBits(first + static_cast<uint32_t>((last - first) * i / (count - 1))));
  }
  return x;
}

constexpr uint32_t kSweep = 20011;

void HashExp(const KernelTable& table, Hash* hash) {
  hash->Add(
      RunMap(table, &KernelTable::exp, Sweep(0x80000000u, 0xFFFFFFFFu, kSweep)));     // all not positive, all NaN signs
  hash->Add(RunMap(table, &KernelTable::exp, Sweep(0xC2AE9900u, 0xC2AE9A40u, 321)));  // around the cut
  hash->Add(RunMap(table, &KernelTable::exp, {0.0f, FromBits(kCanonicalNaN)}));
}

void HashLog(const KernelTable& table, Hash* hash) {
  hash->Add(RunMap(table, &KernelTable::log, Sweep(0x33800000u, 0x53800000u, kSweep)));  // 2^-24 ... 2^40
  hash->Add(RunMap(table, &KernelTable::log, Sweep(0x3F7FFF80u, 0x3F800080u, 257)));     // around 1
}

void HashTanh(const KernelTable& table, Hash* hash) {
  hash->Add(RunMap(table, &KernelTable::tanh, Sweep(0x00000000u, 0xFFFFFFFFu, kSweep)));
  hash->Add(RunMap(table, &KernelTable::tanh, Sweep(0x3F1FFF80u, 0x3F200080u, 257)));  // where the two branches meet
}

// Products next to their addend, so that one rounding and two differ.
void HashFma(const KernelTable& table, Hash* hash) {
  Random random(11);
  std::vector<float> a, b, c;
  for (int i = 0; i < 20000; ++i) {
    const uint64_t x = random.Next(), y = random.Next();
    const uint32_t exponent_a = 1 + static_cast<uint32_t>(random.Below(254));
    const uint32_t exponent_b = 1 + static_cast<uint32_t>(random.Below(254));
    int64_t exponent_c = static_cast<int64_t>(exponent_a) + exponent_b - 127 + random.Below(60) - 30;
    exponent_c = exponent_c < 0 ? 0 : exponent_c > 254 ? 254 : exponent_c;
    a.push_back(FromBits(static_cast<uint32_t>(x & 0x807FFFFFu) | exponent_a << 23));
    b.push_back(FromBits(static_cast<uint32_t>((x >> 32) & 0x807FFFFFu) | exponent_b << 23));
    c.push_back(FromBits(static_cast<uint32_t>(y & 0x807FFFFFu) | static_cast<uint32_t>(exponent_c) << 23));
  }
  hash->Add(RunFma(table, a, b, c));
}

// A kernel like the others, in the library's environment: some hardware's conversions round as the host says.
template <typename Function>
void InEnvironment(Function function) {
  RunInEnvironment([](void* f) { (*static_cast<Function*>(f))(); }, &function);
}

void HashConvert(const KernelTable& table, Hash* hash) {
  for (const DType type : {DType::kF16, DType::kBF16}) {
    Array all(type, 65536);
    for (int64_t i = 0; i < 65536; ++i) all.SetWord(i, static_cast<uint32_t>(i));
    std::vector<float> wide(65536);
    InEnvironment([&] { table.widen(type, all.data(), wide.data(), wide.size()); });
    hash->Add(wide);
    const std::vector<float> x = Sweep(0u, 0xFFFFFFFFu, 65521);
    Array narrow(type, 65521);
    InEnvironment([&] { table.narrow(type, x.data(), narrow.data(), x.size()); });
    hash->Add(narrow);
  }
}

// ---- attention
// ----------------------------------------------------------------------------------------------------------

enum Option : unsigned {
  kPlain = 0,
  kSoftcap = 1u << 0,
  kAlibi = 1u << 1,
  kBias = 1u << 2,     // f32
  kBiasF16 = 1u << 3,  // with a few -inf
  kMask = 1u << 4,
  kSinks = 1u << 5,
  kCausal = 1u << 6,   // bottom-right
  kWindow = 1u << 7,   // 40 keys to the left
  kLarge = 1u << 8,    // logits of deviation about 20
  kSpecial = 1u << 9,  // NaN, infinities, zeros of both signs and subnormals among q, k, v
  kTwoSources = 1u << 10,
};

struct Shape {
  const char* name;
  int64_t rows, keys, head_dim, value_dim, base;
  DType q, k, v, out;
  unsigned options;
};

constexpr DType kF32 = DType::kF32, kF16 = DType::kF16, kBF16 = DType::kBF16;

constexpr Shape kShapes[] = {
    {"attention/f32/d64", 9, 300, 64, 64, 0, kF32, kF32, kF32, kF32, kPlain},
    {"attention/f32/d80-causal", 33, 200, 80, 80, 0, kF32, kF32, kF32, kF32, kCausal},
    {"attention/f32/d33-v17-window", 20, 700, 33, 17, 0, kF32, kF32, kF32, kF32, kCausal | kWindow},
    {"attention/f32/d128-large", 4, 260, 128, 128, 0, kF32, kF32, kF32, kF32, kLarge},
    {"attention/f32/d8-blocks", 5, 1601, 8, 8, 0, kF32, kF32, kF32, kF32, kPlain},
    {"attention/f32/d1", 3, 513, 1, 1, 0, kF32, kF32, kF32, kF32, kLarge},
    {"attention/f32/base", 6, 900, 16, 24, 333, kF32, kF32, kF32, kF32, kSinks},
    {"attention/f16", 8, 400, 40, 24, 0, kF16, kF16, kF16, kF16, kPlain},
    {"attention/bf16", 8, 400, 40, 24, 0, kBF16, kBF16, kBF16, kBF16, kCausal},
    {"attention/mixed", 8, 400, 24, 40, 0, kF32, kF16, kBF16, kBF16, kPlain},
    {"attention/softcap", 8, 200, 16, 16, 0, kF32, kF32, kF32, kF32, kSoftcap | kLarge},
    {"attention/alibi", 8, 200, 16, 16, 0, kF32, kF32, kF32, kF32, kAlibi | kCausal},
    {"attention/bias", 8, 200, 16, 16, 0, kF32, kF32, kF32, kF32, kBias},
    {"attention/bias-f16", 8, 200, 16, 16, 0, kF32, kF32, kF32, kF32, kBiasF16},
    {"attention/mask", 8, 600, 16, 16, 0, kF32, kF32, kF32, kF32, kMask},
    {"attention/sinks", 8, 200, 16, 16, 0, kF32, kF32, kF32, kF32, kSinks | kMask},
    {"attention/sources", 8, 700, 16, 16, 0, kF32, kF16, kF32, kF32, kTwoSources | kSinks},
    {"attention/everything", 16, 700, 20, 12, 100, kF16, kBF16, kF32, kF32,
     kSoftcap | kAlibi | kBiasF16 | kMask | kSinks | kCausal | kTwoSources},
    {"attention/special", 40, 200, 5, 7, 0, kF32, kF32, kF32, kF32, kSpecial},
    {"attention/special-f16", 40, 150, 3, 3, 0, kF16, kF16, kF16, kF16, kSpecial | kSinks},
};

// Factors are powers of two, so that inputs do not depend on the rounding mode.
Array Values(Random* random, DType type, int64_t n, float factor, bool special) {
  std::vector<float> values = random->Normals(n, factor);
  if (special) {
    constexpr uint32_t kSpecials[] = {0x7FC00001u, 0xFFC00000u, 0x7F800000u, 0xFF800000u, 0x80000000u,
                                      0x00000000u, 0x00000001u, 0x80000001u, 0x7F7FFFFFu, 0xFF7FFFFFu};
    for (float& x : values) {
      if (random->Below(300) == 0) x = FromBits(kSpecials[random->Below(10)]);
    }
  }
  return Array(type, values);
}

SourceData MakeSource(const Shape& shape, int64_t keys, int64_t base, Random* random) {
  SourceData source;
  source.num_keys = keys;
  source.base = base;
  const bool special = (shape.options & kSpecial) != 0;
  source.k = Values(random, shape.k, keys * shape.head_dim, 1.0f, special);
  source.v = Values(random, shape.v, keys * shape.value_dim, 1.0f, special);
  if ((shape.options & kCausal) != 0) {
    Geometry geometry;
    geometry.right = 0;
    geometry.left = (shape.options & kWindow) != 0 ? 40 : -1;
    geometry.q_offset = base + keys - shape.rows;
    for (int64_t r = 0; r < shape.rows; ++r) source.spans.push_back(VisibleSpan(geometry, r, base, base + keys));
  }
  const int64_t pairs = shape.rows * keys;
  if ((shape.options & kBias) != 0) source.bias = Array(kF32, random->Normals(pairs));
  if ((shape.options & kBiasF16) != 0) {
    std::vector<float> bias = random->Normals(pairs);
    for (float& b : bias) {
      if (random->Below(9) == 0) b = NegativeInfinity();
    }
    source.bias = Array(kF16, bias);
  }
  if ((shape.options & kMask) != 0) {
    for (int64_t r = 0; r < shape.rows; ++r) {
      for (int64_t i = 0; i < keys; ++i) {
        source.mask.push_back(r != 1 && random->Below(3) != 0 ? 1 : 0);  // row 1 sees nothing
      }
    }
  }
  return source;
}

AttentionCase MakeAttention(const Shape& shape, uint64_t seed) {
  Random random(seed);
  AttentionCase c;
  c.rows = shape.rows;
  c.head_dim = shape.head_dim;
  c.value_dim = shape.value_dim;
  c.out_type = shape.out;
  c.scale = FromBits(0x3E4CCCCDu);  // .2: not a power of two, so that scaling rounds
  if ((shape.options & kSoftcap) != 0) c.softcap = 5.0f;
  c.q = Values(&random, shape.q, shape.rows * shape.head_dim, (shape.options & kLarge) != 0 ? 16.0f : 1.0f,
               (shape.options & kSpecial) != 0);
  for (int64_t r = 0; r < shape.rows; ++r) {
    c.q_pos.push_back(shape.base + shape.keys - shape.rows + r);
    if ((shape.options & kAlibi) != 0) c.slopes.push_back(FromBits((127u - static_cast<uint32_t>(r % 8)) << 23));
    if ((shape.options & kSinks) != 0) c.sinks.push_back(r % 5 == 4 ? NegativeInfinity() : random.Normal());
  }
  c.sources.push_back(MakeSource(shape, shape.keys, shape.base, &random));
  if ((shape.options & kTwoSources) != 0) c.sources.push_back(MakeSource(shape, shape.keys / 3, 0, &random));
  return c;
}

void HashAttention(const KernelTable& table, const Shape& shape, uint64_t seed, Hash* hash) {
  const AttentionCase c = MakeAttention(shape, seed);
  const AttentionResult result = RunAttend(table, c);
  hash->Add(result.out);
  hash->Add(result.lse);
  const StatesResult states = RunBlockStates(table, c);
  hash->Add(states.m);
  hash->Add(states.l);
  hash->Add(states.o);
  const AttentionResult folded = RunFold(table, c, states);
  hash->Add(folded.out);
  hash->Add(folded.lse);
}

// ---- primitives
// -----------------------------------------------------------------------------------------------------------

void HashPrimitives(const KernelTable& table, Hash* hash) {
  const Shape shape = {"", 7, 650, 24, 19, 50, kF16, kBF16, kF16, kBF16, kSoftcap | kAlibi | kBias | kMask};
  const AttentionCase c = MakeAttention(shape, 21);
  const std::vector<float> s = RunScores(table, c);
  hash->Add(s);
  const SoftmaxResult softmax = RunSoftmax(table, {shape.rows, shape.keys, s, {}, c.sources[0].mask});
  hash->Add(softmax.w);
  hash->Add(softmax.lse);
  std::vector<Span> spans;
  for (int64_t r = 0; r < shape.rows; ++r) spans.push_back({r * 60, shape.keys - r * 51});
  hash->Add(
      RunWeightedSum(table, {shape.rows, shape.keys, shape.value_dim, softmax.w, c.sources[0].v, spans, {}, kF32}));
}

void HashMerge(const KernelTable& table, Hash* hash) {
  Random random(31);
  for (const DType type : {kF32, kF16, kBF16}) {
    MergeCase c;
    c.rows = 64;
    c.value_dim = 13;
    c.out1 = Array(type, random.Normals(c.rows * c.value_dim));
    c.out2 = Array(type, random.Normals(c.rows * c.value_dim));
    c.lse1 = random.Normals(c.rows, 4.0f);
    c.lse2 = random.Normals(c.rows, 4.0f);
    c.lse1[3] = c.lse2[4] = c.lse1[5] = c.lse2[5] = NegativeInfinity();
    const AttentionResult result = RunMerge(table, c);
    hash->Add(result.out);
    hash->Add(result.lse);
  }
}

}  // namespace

std::vector<DigestLine> ComputeDigest(const KernelTable& table) {
  struct Function {
    const char* name;
    void (*run)(const KernelTable&, Hash*);
  };
  constexpr Function kFunctions[] = {{"exp", HashExp},    {"log", HashLog},         {"tanh", HashTanh},
                                     {"fma", HashFma},    {"convert", HashConvert}, {"primitives", HashPrimitives},
                                     {"merge", HashMerge}};
  std::vector<DigestLine> lines;
  for (const Function& function : kFunctions) {
    Hash hash;
    function.run(table, &hash);
    lines.push_back({function.name, hash.value()});
  }
  uint64_t seed = 100;
  for (const Shape& shape : kShapes) {
    Hash hash;
    HashAttention(table, shape, seed++, &hash);
    lines.push_back({shape.name, hash.value()});
  }
  Hash all;
  all.Word(kArithmeticVersion, 4);
  for (const DigestLine& line : lines) {
    all.Word(static_cast<uint32_t>(line.hash), 4);
    all.Word(static_cast<uint32_t>(line.hash >> 32), 4);
  }
  lines.push_back({"digest", all.value()});
  return lines;
}

std::string FormatDigest(const std::vector<DigestLine>& lines) {
  std::string text;
  for (const DigestLine& line : lines) {
    char hash[32];
    std::snprintf(hash, sizeof hash, " %016llX\n", static_cast<unsigned long long>(line.hash));
    text += line.name + hash;
  }
  return text;
}

}  // namespace etalon::test
