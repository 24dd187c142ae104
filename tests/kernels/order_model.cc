#include "tests/kernels/order_model.h"

#include <cmath>
#include <map>

#include "tests/support/targets.h"

namespace etalon::test {
namespace {

const KernelTable& Functions() {
  static const KernelTable table = Definition();
  return table;
}

float Call(void (*function)(const float*, float*, size_t), float x) {
  float y;
  function(&x, &y, 1);
  return y;
}
float ExpOf(float x) { return Call(Functions().exp, x); }
float LogOf(float x) { return Call(Functions().log, x); }
float TanhOf(float x) { return Call(Functions().tanh, x); }

float OneNaN(float x) {
  if (!std::isnan(x)) return x;
  const uint32_t word = 0x7FC00000u;
  std::memcpy(&x, &word, sizeof x);
  return x;
}

bool Hidden(float s) { return s == -HUGE_VALF; }

// A zero of any type is written as +0, also where a small negative number narrows to it.
void WriteOut(Array* out, int64_t i, float x) {
  const Array one(out->type(), std::vector<float>{OneNaN(x)});
  const uint32_t sign = out->type() == DType::kF32 ? 0x80000000u : 0x8000u;
  out->SetWord(i, one.Word(0) == sign ? 0 : one.Word(0));
}

struct Partial {
  bool seen = false;  // a flag, where the kernels read it off l
  float m = -HUGE_VALF;
  float l = 0;
  std::vector<float> o;
};

Partial Folded(const Partial& left, const Partial& right) {
  if (!right.seen) return left;
  if (!left.seen) return right;
  Partial both = left;
  both.m = left.m > right.m || std::isnan(right.m) ? left.m : right.m;
  const float a = ExpOf(left.m - both.m), b = ExpOf(right.m - both.m);
  both.l = std::fma(left.l, a, right.l * b);
  for (size_t c = 0; c < both.o.size(); ++c) both.o[c] = std::fma(left.o[c], a, right.o[c] * b);
  return both;
}

// Blocks of a source for one row, by number.
std::map<int64_t, Partial> Blocks(const AttentionCase& c, const SourceData& source, const float* s) {
  std::map<int64_t, std::vector<int64_t>> chunks;  // visible keys
  for (int64_t i = 0; i < source.num_keys; ++i) {
    if (!Hidden(s[i])) chunks[(source.base + i) / 128].push_back(i);
  }
  std::map<int64_t, Partial> blocks;
  for (const auto& [number, keys] : chunks) {
    Partial chunk;
    chunk.seen = true;
    chunk.o.resize(static_cast<size_t>(c.value_dim));
    for (int64_t i : keys) chunk.m = s[i] > chunk.m ? s[i] : chunk.m;
    for (int64_t i : keys) {
      const float p = ExpOf(s[i] - chunk.m);
      chunk.l = chunk.l + p;
      for (int64_t j = 0; j < c.value_dim; ++j) {
        float& o = chunk.o[static_cast<size_t>(j)];
        o = std::fma(p, source.v[i * c.value_dim + j], o);
      }
    }
    Partial& block = blocks[number / 4];
    block = Folded(block, chunk);
  }
  return blocks;
}

}  // namespace

std::vector<float> ModelScores(const AttentionCase& c, size_t source_index) {
  const SourceData& source = c.sources[source_index];
  std::vector<float> scores;
  for (int64_t r = 0; r < c.rows; ++r) {
    const size_t row = static_cast<size_t>(r);
    for (int64_t i = 0; i < source.num_keys; ++i) {
      const int64_t t = source.base + i;
      float s = 0;
      for (int64_t d = 0; d < c.head_dim; ++d) {
        const float scaled = c.q[r * c.head_dim + d] * c.scale;
        s = std::fma(scaled, source.k[i * c.head_dim + d], s);
      }
      if (c.softcap > 0) s = c.softcap * TanhOf(s / c.softcap);
      if (!c.slopes.empty()) {
        const int64_t position = (c.q_pos.empty() ? 0 : c.q_pos[row]) + source.q_shift;
        const uint64_t difference = static_cast<uint64_t>(position) - static_cast<uint64_t>(t);  // may need 64 bits
        const uint64_t distance = position < t ? 0 - difference : difference;
        s = std::fma(c.slopes[row], -static_cast<float>(distance), s);
      }
      if (source.bias.size() > 0) {
        const float bias = source.bias[r * source.num_keys + i];
        s = Hidden(bias) ? bias : s + bias;
      }
      if (!source.spans.empty() && (t < source.spans[row].first || t >= source.spans[row].last)) s = -HUGE_VALF;
      if (!source.mask.empty() && source.mask[static_cast<size_t>(r * source.num_keys + i)] == 0) s = -HUGE_VALF;
      scores.push_back(OneNaN(s));
    }
  }
  return scores;
}

StatesResult ModelStates(const AttentionCase& c) {
  StatesResult result;
  std::vector<std::vector<float>> scores;
  for (size_t n = 0; n < c.sources.size(); ++n) scores.push_back(ModelScores(c, n));
  for (int64_t r = 0; r < c.rows; ++r) {
    result.per_row = 0;
    for (size_t n = 0; n < c.sources.size(); ++n) {
      const SourceData& source = c.sources[n];
      if (source.num_keys == 0) continue;
      std::map<int64_t, Partial> blocks = Blocks(c, source, scores[n].data() + r * source.num_keys);
      for (int64_t b = source.base / 512; b <= (source.base + source.num_keys - 1) / 512; ++b) {
        const Partial& block = blocks[b];
        ++result.per_row;
        result.m.push_back(std::isnan(block.l) ? OneNaN(NAN) : OneNaN(block.m + 0.0f));
        result.l.push_back(OneNaN(block.l));
        for (size_t j = 0; j < static_cast<size_t>(c.value_dim); ++j) {
          result.o.push_back(block.seen ? OneNaN(block.o[j] + 0.0f) : 0.0f);
        }
      }
    }
  }
  return result;
}

AttentionResult ModelAttention(const AttentionCase& c) {
  AttentionResult result = {Array(c.out_type, c.rows * c.value_dim), {}};
  std::vector<std::vector<float>> scores;
  for (size_t n = 0; n < c.sources.size(); ++n) scores.push_back(ModelScores(c, n));
  for (int64_t r = 0; r < c.rows; ++r) {
    Partial total;
    for (size_t n = 0; n < c.sources.size(); ++n) {
      const SourceData& source = c.sources[n];
      for (const auto& entry : Blocks(c, source, scores[n].data() + r * source.num_keys)) {
        total = Folded(total, entry.second);
      }
    }
    if (!c.sinks.empty() && !Hidden(c.sinks[static_cast<size_t>(r)])) {
      Partial sink;
      sink.seen = true;
      sink.m = c.sinks[static_cast<size_t>(r)];
      sink.l = 1;
      sink.o.resize(static_cast<size_t>(c.value_dim));
      total = Folded(total, sink);
    }
    for (int64_t j = 0; j < c.value_dim; ++j) {
      WriteOut(&result.out, r * c.value_dim + j, total.seen ? total.o[static_cast<size_t>(j)] / total.l + 0.0f : 0.0f);
    }
    result.lse.push_back(total.seen ? OneNaN(total.m + LogOf(total.l)) : -HUGE_VALF);
  }
  return result;
}

SoftmaxResult ModelSoftmax(const SoftmaxCase& c) {
  SoftmaxResult result;
  for (int64_t r = 0; r < c.rows; ++r) {
    std::vector<bool> visible;
    float max = -HUGE_VALF;
    bool any = false;
    for (int64_t j = 0; j < c.num_keys; ++j) {
      const size_t at = static_cast<size_t>(r * c.num_keys + j);
      const Span span = c.spans.empty() ? Span{0, c.num_keys} : c.spans[static_cast<size_t>(r)];
      const bool sees = j >= span.first && j < span.last && (c.mask.empty() || c.mask[at] != 0) && !Hidden(c.s[at]);
      visible.push_back(sees);
      any = any || sees;
      if (sees && c.s[at] > max) max = c.s[at];
    }
    std::vector<float> p(static_cast<size_t>(c.num_keys));
    for (size_t j = 0; j < p.size(); ++j) {
      if (visible[j]) p[j] = ExpOf(c.s[static_cast<size_t>(r * c.num_keys) + j] - max);
    }
    float l = 0;
    for (size_t first = 0; first < p.size(); first += 128) {
      std::vector<float> sums(16);
      for (size_t j = first; j < p.size() && j < first + 128; ++j) {
        if (visible[j]) sums[j - first - (j - first) / 16 * 16] += p[j];
      }
      for (size_t half : {8, 4, 2, 1}) {
        for (size_t i = 0; i < half; ++i) sums[i] = sums[i] + sums[i + half];
      }
      l = l + sums[0];
    }
    for (size_t j = 0; j < p.size(); ++j) result.w.push_back(visible[j] ? OneNaN(p[j] * (1.0f / l)) : 0.0f);
    result.lse.push_back(any ? OneNaN(max + LogOf(l)) : -HUGE_VALF);
  }
  return result;
}

Array ModelWeightedSum(const WeightedSumCase& c) {
  Array out(c.out_type, c.rows * c.value_dim);
  for (int64_t r = 0; r < c.rows; ++r) {
    const Span span = c.spans.empty() ? Span{0, c.num_keys} : c.spans[static_cast<size_t>(r)];
    for (int64_t i = 0; i < c.value_dim; ++i) {
      float total = 0;
      for (int64_t first = 0; first < c.num_keys; first += 128) {
        float o = 0;
        for (int64_t j = first; j < c.num_keys && j < first + 128; ++j) {
          const size_t at = static_cast<size_t>(r * c.num_keys + j);
          if (j < span.first || j >= span.last || (!c.mask.empty() && c.mask[at] == 0)) continue;
          o = std::fma(c.w[at], c.v[j * c.value_dim + i], o);
        }
        total = total + o;
      }
      WriteOut(&out, r * c.value_dim + i, total + 0.0f);
    }
  }
  return out;
}

AttentionResult ModelMerge(const MergeCase& c) {
  AttentionResult result = {Array(c.out1.type(), c.rows * c.value_dim), {}};
  for (int64_t r = 0; r < c.rows; ++r) {
    const float lse1 = c.lse1[static_cast<size_t>(r)], lse2 = c.lse2[static_cast<size_t>(r)];
    const float max = lse1 > lse2 || std::isnan(lse2) ? lse1 : lse2;
    const float a = ExpOf(lse1 - max), b = ExpOf(lse2 - max), l = a + b;
    for (int64_t j = r * c.value_dim; j < (r + 1) * c.value_dim; ++j) {
      float out = std::fma(c.out1[j], a, c.out2[j] * b) / l + 0.0f;
      if (Hidden(lse1)) out = Hidden(lse2) ? 0.0f : c.out2[j];
      if (Hidden(lse2) && !Hidden(lse1)) out = c.out1[j];
      WriteOut(&result.out, j, out);
    }
    const float joined = Hidden(lse1) ? lse2 : Hidden(lse2) ? lse1 : max + LogOf(l);
    result.lse.push_back(OneNaN(joined));
  }
  return result;
}

}  // namespace etalon::test
