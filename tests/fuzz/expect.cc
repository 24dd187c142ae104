#include "tests/fuzz/expect.h"

#include <cmath>

#include "lib/base/arithmetic.h"
#include "tests/kernels/order_model.h"

namespace etalon::fuzz {
namespace {

using test::Array;

// A tensor of a call as it was before the call.
class Tensor {
 public:
  Tensor(const Call& call, const Judged& judged, size_t slot) : e_(judged.tensors[slot]) {
    wanted_ = judged.wanted[slot];
    if (wanted_ && !e_.empty) block_ = call.arena.Find(e_.First(), e_.Last());
  }

  bool wanted() const { return wanted_; }
  DType type() const { return e_.type(); }

  uint32_t Word(int64_t b, int64_t h, int64_t i, int64_t j = 0, int64_t c = 0) const {
    const uintptr_t at = e_.At(b, h, i, j, c);
    uint32_t word = 0;
    if (type() == DType::kF32) {
      std::memcpy(&word, block_->before(at), sizeof word);
    } else {
      uint16_t half;
      std::memcpy(&half, block_->before(at), sizeof half);
      word = half;
    }
    block_->Allow(at, static_cast<size_t>(e_.bytes()));
    return word;
  }
  float Float(int64_t b, int64_t h, int64_t i, int64_t j = 0, int64_t c = 0) const {
    return FromBits(Word(b, h, i, j, c));
  }

  void Expect(uint32_t word, int64_t b, int64_t h, int64_t i, int64_t j = 0, int64_t c = 0) const {
    const uint16_t half = static_cast<uint16_t>(word);
    const bool wide = type() == DType::kF32;
    block_->Expect(e_.At(b, h, i, j, c), wide ? static_cast<const void*>(&word) : &half,
                   wide ? sizeof word : sizeof half);
  }
  void Expect(float value, int64_t b, int64_t h, int64_t i, int64_t j = 0, int64_t c = 0) const {
    Expect(Bits(value), b, h, i, j, c);
  }

 private:
  const Elements& e_;
  bool wanted_;
  Block* block_ = nullptr;
};

class Model {
 public:
  Model(const Call& call, const Judged& judged) : call_(call), judged_(judged), n_(judged.sizes) {}

  bool Run() {
    RunFunction();
    return defined_;
  }

 private:
  void RunFunction() {
    switch (call_.function) {
      case kSoftmax:
        return ForHeads(n_[kQHeads], &Model::Softmax);
      case kWeightedSum:
        return ForHeads(n_[kKvHeads], &Model::WeightedSum);
      case kMerge:
        return ForHeads(n_[kQHeads], &Model::Merge);
      case kMergeStates:
        return ForHeads(n_[kQHeads], &Model::MergeStates);
      case kScores:
        return ForHeads(n_[kKvHeads], &Model::Scores);
      case kBlockStates:
        return ForHeads(n_[kKvHeads], &Model::BlockStates);
      default:
        return ForHeads(n_[kKvHeads], &Model::Attention);
    }
  }

  void ForHeads(int64_t heads, void (Model::*step)(int64_t, int64_t)) {
    for (int64_t b = 0; b < n_[kBatch]; ++b) {
      for (int64_t h = 0; h < heads; ++h) (this->*step)(b, h);
    }
  }

  Tensor At(size_t slot) const { return Tensor(call_, judged_, slot); }
  int64_t Group() const { return n_[kQHeads] / n_[kKvHeads]; }
  bool Sees(int64_t b, int64_t query, int64_t key) const {
    return judged_.sequences.Sees(b, query, key, n_[kQLen], n_[kKvLen]);
  }

  // [keys of a sequence][width], or zeros where nothing may be read.
  Array Rows(const Tensor& tensor, int64_t b, int64_t h, int64_t width, const std::vector<bool>& read) const {
    Array rows(tensor.type(), n_[kKvLen] * width);
    for (int64_t t = 0; t < n_[kKvLen]; ++t) {
      for (int64_t c = 0; read[static_cast<size_t>(t)] && c < width; ++c)
        rows.SetWord(t * width + c, tensor.Word(b, h, t, c));
    }
    return rows;
  }

  // The query rows of a key/value head, [group][q_len], and all that they read.
  test::AttentionCase CaseOf(int64_t b, int64_t g) const {
    test::AttentionCase c;
    const Tensor q = At(0), k = At(1);
    c.rows = Group() * n_[kQLen];
    c.head_dim = n_[kHeadDim];
    const float given = judged_.desc.scale;
    c.scale = given != 0 ? given : static_cast<float>(1.0 / std::sqrt(static_cast<double>(n_[kHeadDim])));
    c.q = Array(q.type(), c.rows * c.head_dim);
    c.sources.resize(1);
    test::SourceData& source = c.sources[0];
    source.num_keys = n_[kKvLen];
    std::vector<bool> read;  // keys beyond the length are not, the others may be
    for (int64_t t = 0; t < n_[kKvLen]; ++t) read.push_back(t < judged_.sequences.KvLen(b, n_[kKvLen]));
    for (int64_t r = 0; r < c.rows; ++r) {
      const bool exists = r % n_[kQLen] < judged_.sequences.QLen(b, n_[kQLen]);
      for (int64_t d = 0; exists && d < c.head_dim; ++d) {  // q beyond the length is not read
        c.q.SetWord(r * c.head_dim + d, q.Word(b, g * Group() + r / n_[kQLen], r % n_[kQLen], d));
      }
      for (int64_t t = 0; t < n_[kKvLen]; ++t) source.mask.push_back(Sees(b, r % n_[kQLen], t) ? 1 : 0);
    }
    source.k = Rows(k, b, g, c.head_dim, read);
    if (call_.function == kScores) return c;
    const Tensor v = At(2);
    c.value_dim = n_[kValueDim];
    source.v = Rows(v, b, g, c.value_dim, read);
    if (call_.function != kBlockStates) c.out_type = At(3).type();
    return c;
  }

  void Attention(int64_t b, int64_t g) {
    const test::AttentionCase c = CaseOf(b, g);
    const test::AttentionResult result = test::ModelAttention(c);
    const Tensor out = At(3), lse = At(4);
    for (int64_t r = 0; r < c.rows; ++r) {
      const int64_t h = g * Group() + r / n_[kQLen], i = r % n_[kQLen];
      for (int64_t d = 0; d < c.value_dim; ++d) out.Expect(result.out.Word(r * c.value_dim + d), b, h, i, d);
      if (lse.wanted()) lse.Expect(result.lse[static_cast<size_t>(r)], b, h, i);
    }
  }

  void Scores(int64_t b, int64_t g) {
    const test::AttentionCase c = CaseOf(b, g);
    const std::vector<float> scores = test::ModelScores(c);
    const Tensor out = At(2);
    for (int64_t r = 0; r < c.rows; ++r) {
      for (int64_t t = 0; t < n_[kKvLen]; ++t) {
        out.Expect(scores[static_cast<size_t>(r * n_[kKvLen] + t)], b, g * Group() + r / n_[kQLen], r % n_[kQLen], t);
      }
    }
  }

  void BlockStates(int64_t b, int64_t g) {
    const test::AttentionCase c = CaseOf(b, g);
    const test::StatesResult result = test::ModelStates(c);
    const Tensor m = At(3), l = At(4), o = At(5);
    for (int64_t r = 0; r < c.rows; ++r) {
      const int64_t h = g * Group() + r / n_[kQLen], i = r % n_[kQLen];
      for (int64_t n = 0; n < n_[kBlocks]; ++n) {
        const size_t at = static_cast<size_t>(r * n_[kBlocks] + n);
        m.Expect(result.m[at], b, h, i, n);
        l.Expect(result.l[at], b, h, i, n);
        for (int64_t d = 0; d < c.value_dim; ++d) {
          o.Expect(result.o[at * static_cast<size_t>(c.value_dim) + static_cast<size_t>(d)], b, h, i, n, d);
        }
      }
    }
  }

  void Softmax(int64_t b, int64_t h) {
    test::SoftmaxCase c;
    const Tensor scores = At(0), weights = At(1), lse = At(2);
    c.rows = n_[kQLen];
    c.num_keys = n_[kKvLen];
    for (int64_t i = 0; i < c.rows; ++i) {
      for (int64_t t = 0; t < c.num_keys; ++t) {
        c.s.push_back(scores.Float(b, h, i, t));
        c.mask.push_back(Sees(b, i, t) ? 1 : 0);
      }
    }
    const test::SoftmaxResult result = test::ModelSoftmax(c);
    for (int64_t i = 0; i < c.rows; ++i) {
      for (int64_t t = 0; t < c.num_keys; ++t) {
        weights.Expect(result.w[static_cast<size_t>(i * c.num_keys + t)], b, h, i, t);
      }
      if (lse.wanted()) lse.Expect(result.lse[static_cast<size_t>(i)], b, h, i);
    }
  }

  void WeightedSum(int64_t b, int64_t g) {
    test::WeightedSumCase c;
    const Tensor weights = At(0), v = At(1), out = At(2);
    c.rows = Group() * n_[kQLen];
    c.num_keys = n_[kKvLen];
    c.value_dim = n_[kValueDim];
    c.out_type = out.type();
    std::vector<bool> read(static_cast<size_t>(c.num_keys));  // what no row sees is not
    for (int64_t r = 0; r < c.rows; ++r) {
      const int64_t h = g * Group() + r / n_[kQLen], i = r % n_[kQLen];
      for (int64_t t = 0; t < c.num_keys; ++t) {
        const bool sees = Sees(b, i, t);
        c.w.push_back(sees ? weights.Float(b, h, i, t) : 0.0f);
        c.mask.push_back(sees ? 1 : 0);
        if (sees) read[static_cast<size_t>(t)] = true;
      }
    }
    c.v = Rows(v, b, g, c.value_dim, read);
    const Array result = test::ModelWeightedSum(c);
    for (int64_t r = 0; r < c.rows; ++r) {
      for (int64_t d = 0; d < c.value_dim; ++d) {
        out.Expect(result.Word(r * c.value_dim + d), b, g * Group() + r / n_[kQLen], r % n_[kQLen], d);
      }
    }
  }

  void Merge(int64_t b, int64_t h) {
    test::MergeCase c;
    const Tensor out1 = At(0), lse1 = At(1), out2 = At(2), lse2 = At(3), out = At(4), lse = At(5);
    c.rows = n_[kQLen];
    c.value_dim = n_[kValueDim];
    c.out1 = Array(out.type(), c.rows * c.value_dim);
    c.out2 = c.out1;
    for (int64_t i = 0; i < c.rows; ++i) {
      c.lse1.push_back(lse1.Float(b, h, i));
      c.lse2.push_back(lse2.Float(b, h, i));
      for (int64_t d = 0; d < c.value_dim; ++d) {
        c.out1.SetWord(i * c.value_dim + d, out1.Word(b, h, i, d));
        c.out2.SetWord(i * c.value_dim + d, out2.Word(b, h, i, d));
      }
    }
    const test::AttentionResult result = test::ModelMerge(c);
    for (int64_t i = 0; i < c.rows; ++i) {
      for (int64_t d = 0; d < c.value_dim; ++d) out.Expect(result.out.Word(i * c.value_dim + d), b, h, i, d);
      if (lse.wanted()) lse.Expect(result.lse[static_cast<size_t>(i)], b, h, i);
    }
  }

  // The model of the order makes its states itself and folds no others: the fold of numerics.md once more.
  void MergeStates(int64_t b, int64_t h) {
    const Tensor m = At(0), l = At(1), o = At(2), out = At(3), lse = At(4);
    for (int64_t i = 0; i < n_[kQLen]; ++i) {
      bool any = false;
      float max = NegativeInfinity(), sum = 0;
      std::vector<float> sums(static_cast<size_t>(n_[kValueDim]));
      for (int64_t n = 0; n < n_[kBlocks]; ++n) {
        const float max2 = m.Float(b, h, i, n), sum2 = l.Float(b, h, i, n);
        if (sum2 != 0 && !std::isnan(sum2) && !(sum2 >= 1 && sum2 < 0x1p40f)) defined_ = false;
        const float both = std::isnan(max) || max2 > max ? max2 : max;
        const float weight = Exp(max - both), weight2 = Exp(max2 - both);
        for (int64_t d = 0; d < n_[kValueDim]; ++d) {
          const float one2 = o.Float(b, h, i, n, d);
          float& one = sums[static_cast<size_t>(d)];
          if (sum2 != 0) one = any ? std::fma(one, weight, one2 * weight2) : one2;
        }
        if (sum2 == 0) continue;
        sum = any ? std::fma(sum, weight, sum2 * weight2) : sum2;
        max = any ? both : max2;
        any = true;
      }
      for (int64_t d = 0; d < n_[kValueDim]; ++d) {
        out.Expect(OutputWord(out.type(), any ? sums[static_cast<size_t>(d)] / sum : 0.0f), b, h, i, d);
      }
      if (lse.wanted()) lse.Expect(any ? Canonical(max + Log(sum)) : NegativeInfinity(), b, h, i);
    }
  }

  // Every zero of an out is +0, also what becomes one when it is narrowed.
  static uint32_t OutputWord(DType type, float x) {
    if (type == DType::kF32) return std::isnan(x) ? 0x7FC00000u : x == 0 ? 0 : Bits(x);
    const uint16_t half = type == DType::kF16 ? NarrowF16(x) : NarrowBF16(x);
    return half == 0x8000u ? 0 : half;
  }

  const Call& call_;
  const Judged& judged_;
  const int64_t* n_;
  bool defined_ = true;
};

}  // namespace

bool Expect(const Call& call, const Judged& judged) {
  bool any = false;
  for (size_t i = 0; i < call.info->slots.size(); ++i) {
    any = any || (call.info->slots[i].output && judged.wanted[i] && !judged.tensors[i].empty);
  }
  return !any || Model(call, judged).Run();  // without an element, sizes may be anything
}

Counts Count(const Judged& judged, int64_t tile_rows) {
  const int64_t* n = judged.sizes;
  Counts counts;
  if (n[kBatch] == 0 || n[kQLen] == 0) return counts;
  const int64_t rows = n[kQHeads] / n[kKvHeads] * n[kQLen];
  const int64_t key_bytes = n[kHeadDim] * static_cast<int64_t>(judged.tensors[1].bytes()) +
                            n[kValueDim] * static_cast<int64_t>(judged.tensors[2].bytes());
  for (int64_t b = 0; b < n[kBatch]; ++b) {
    for (int64_t first = 0; first < rows; first += tile_rows) {
      int64_t low = INT64_MAX, high = -1;  // keys that a row of the tile sees
      for (int64_t r = first; r < rows && r < first + tile_rows; ++r) {
        for (int64_t t = 0; t < n[kKvLen]; ++t) {
          if (!judged.sequences.Sees(b, r % n[kQLen], t, n[kQLen], n[kKvLen])) continue;
          low = t < low ? t : low;
          high = t > high ? t : high;
        }
      }
      counts.tiles += n[kKvHeads];
      if (high < 0) continue;
      counts.key_tiles += (high / 128 - low / 128 + 1) * n[kKvHeads];
      counts.bytes_read += (high - low + 1) * key_bytes * n[kKvHeads];
    }
  }
  return counts;
}

}  // namespace etalon::fuzz
