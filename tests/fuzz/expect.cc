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

  // Of a tensor in which a size of 1 counts for all.
  uint32_t WordOfAll(int64_t b, int64_t h, int64_t i, int64_t column) const {
    return Word(Of(0, b), Of(1, h), Of(2, i), Of(3, column));
  }
  float NumberOfHead(int64_t b, int64_t h) const {
    const uint32_t word = Word(Of(0, b), Of(1, h), 0);
    if (type() == DType::kF32) return FromBits(word);
    const uint16_t half = static_cast<uint16_t>(word);
    return LoadElement(type(), &half, 0);
  }
  bool Shows(int64_t b, int64_t h, int64_t i, int64_t column) const {
    const bool bits = e_.dtype == ETALON_BITS;
    const uintptr_t at = e_.At(Of(0, b), Of(1, h), Of(2, i), Of(3, bits ? column / 8 : column));
    block_->Allow(at, 1);
    return bits ? (*block_->before(at) >> (column % 8) & 1) != 0 : *block_->before(at) != 0;
  }
  // Which of its bytes are read is left open.
  void AllowAll() const {
    e_.ForEach([&](uintptr_t at) { block_->Allow(at, static_cast<size_t>(e_.bytes())); });
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
  int64_t Of(int place, int64_t index) const { return e_.shape[place] == 1 ? 0 : index; }

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
      case kMaskPrepare:
        return;  // what it writes is known by what it does: run_mask.cc
      case kSoftmax:
        return ForHeads(n_[kQHeads], &Model::Softmax);
      case kWeightedSum:
        return ForHeads(n_[kKvHeads], &Model::WeightedSum);
      case kMerge:
        return ForHeads(n_[kQHeads], &Model::Merge);
      case kMergeStates:
        return ForHeads(n_[kQHeads], &Model::MergeStates);
      case kScores:
        return ForHeads(n_[kQHeads], &Model::Scores);
      case kBlockStates:
        return ForHeads(n_[kQHeads], &Model::BlockStates);
      default:
        return ForHeads(n_[kQHeads], &Model::Attention);
    }
  }

  void ForHeads(int64_t heads, void (Model::*step)(int64_t, int64_t)) {
    for (int64_t b = 0; b < n_[kBatch]; ++b) {
      for (int64_t h = 0; h < heads; ++h) (this->*step)(b, h);
    }
  }

  Tensor At(size_t slot) const { return Tensor(call_, judged_, slot); }
  Tensor Named(const char* name, int source = 0) const { return At(call_.SlotOf(name, source)); }
  int64_t Group() const { return n_[kQHeads] / n_[kKvHeads]; }
  const Queries& queries() const { return judged_.queries; }
  // Row `query` exists and sees the key, dense masks apart.
  bool Sees(const Source& source, int64_t b, int64_t h, int64_t query, int64_t key) const {
    return query < queries().Length(b) && source.Sees(b, h, query, key);
  }

  // [keys of a sequence][width], or zeros where nothing may be read. The first of them is `first` in the tensor.
  Array Rows(const Tensor& tensor, int64_t b, int64_t h, int64_t first, int64_t width,
             const std::vector<bool>& read) const {
    const int64_t keys = static_cast<int64_t>(read.size());
    Array rows(tensor.type(), keys * width);
    for (int64_t t = 0; t < keys; ++t) {
      for (int64_t c = 0; read[static_cast<size_t>(t)] && c < width; ++c)
        rows.SetWord(t * width + c, tensor.Word(b, h, first + t, c));
    }
    return rows;
  }

  // Keys of a source for the rows of a query head: those at positions 0 ... up to the end of the sequence's rows.
  test::SourceData SourceOf(int index, int64_t b, int64_t h) const {
    const Source& source = judged_.sources[index];
    const Tensor bias = Named("bias", index), mask = Named("mask", index);
    test::SourceData data;
    const int64_t first = source.First(b), rows = queries().Rows(b);
    data.num_keys = source.Rows(b) - first;
    data.q_shift = static_cast<int64_t>(source.Offset(b));
    std::vector<bool> read;  // keys beyond the length are not, the others may be
    for (int64_t t = 0; t < data.num_keys; ++t) read.push_back(t < source.End(b) - first);
    if (bias.wanted()) data.bias = Array(bias.type(), rows * data.num_keys);
    for (int64_t i = 0; i < rows; ++i) {
      for (int64_t t = 0; t < data.num_keys; ++t) {
        const bool sees = Sees(source, b, h, i, t);
        data.mask.push_back(sees && (!mask.wanted() || mask.Shows(b, h, i, first + t)) ? 1 : 0);
        if (bias.wanted()) data.bias.SetWord(i * data.num_keys + t, bias.WordOfAll(b, h, i, first + t));
      }
    }
    const int64_t batch = source.args.kv_starts == nullptr ? b : 0;
    const int64_t row = (source.args.kv_starts == nullptr ? 0 : source.args.kv_starts[b]) + first;
    const int64_t kv_head = h / Group();
    data.k = Rows(Named("k", index), batch, kv_head, row, n_[kHeadDim], read);
    if (call_.function != kScores) data.v = Rows(Named("v", index), batch, kv_head, row, n_[kValueDim], read);
    return data;
  }

  // The query rows of a head of a sequence, and all that they read.
  test::AttentionCase CaseOf(int64_t b, int64_t h) const {
    test::AttentionCase c;
    const Tensor q = At(0), slopes = Named("slopes");
    c.rows = queries().Rows(b);
    c.head_dim = n_[kHeadDim];
    const float given = judged_.desc.scale;
    c.scale = given != 0 ? given : static_cast<float>(1.0 / std::sqrt(static_cast<double>(n_[kHeadDim])));
    c.softcap = judged_.desc.softcap;
    c.q = Array(q.type(), c.rows * c.head_dim);
    for (int64_t i = 0; i < c.rows; ++i) {
      c.q_pos.push_back(i);
      for (int64_t d = 0; i < queries().Length(b) && d < c.head_dim; ++d) {  // q beyond the length is not read
        c.q.SetWord(i * c.head_dim + d, q.Word(queries().BatchOf(b), h, queries().FirstRow(b) + i, d));
      }
    }
    if (slopes.wanted()) {
      c.slopes.assign(static_cast<size_t>(c.rows), slopes.NumberOfHead(b, h));
    } else if ((judged_.desc.options & ETALON_OPTION_ALIBI) != 0) {
      c.slopes.assign(static_cast<size_t>(c.rows), StandardSlope(h, n_[kQHeads]));
    }
    for (int i = 0; i < judged_.num_sources; ++i) c.sources.push_back(SourceOf(i, b, h));
    if (call_.function == kScores) return c;
    c.value_dim = n_[kValueDim];
    if (call_.function != kBlockStates) c.out_type = At(3).type();
    return c;
  }

  void Attention(int64_t b, int64_t h) {
    test::AttentionCase c = CaseOf(b, h);
    const Tensor out = At(3), lse = At(4), sinks = Named("sinks");
    if (sinks.wanted()) c.sinks.assign(static_cast<size_t>(c.rows), sinks.NumberOfHead(b, h));
    const test::AttentionResult result = test::ModelAttention(c);
    for (int64_t i = 0; i < c.rows; ++i) {
      const int64_t batch = queries().BatchOf(b), row = queries().FirstRow(b) + i;
      for (int64_t d = 0; d < c.value_dim; ++d) out.Expect(result.out.Word(i * c.value_dim + d), batch, h, row, d);
      if (lse.wanted()) lse.Expect(result.lse[static_cast<size_t>(i)], batch, h, row);
    }
  }

  void Scores(int64_t b, int64_t h) {
    const test::AttentionCase c = CaseOf(b, h);
    const std::vector<float> scores = test::ModelScores(c);
    const Tensor out = At(2);
    const int64_t first = judged_.sources[0].First(b), keys = c.sources[0].num_keys;
    for (int64_t i = 0; i < c.rows; ++i) {
      for (int64_t column = 0; column < first; ++column) out.Expect(NegativeInfinity(), b, h, i, column);
      for (int64_t t = 0; t < keys; ++t) out.Expect(scores[static_cast<size_t>(i * keys + t)], b, h, i, first + t);
    }
  }

  // Blocks are counted from the first real key; those that padding on the left leaves over are empty.
  void BlockStates(int64_t b, int64_t h) {
    const test::AttentionCase c = CaseOf(b, h);
    const test::StatesResult result = test::ModelStates(c);
    const Tensor m = At(3), l = At(4), o = At(5);
    for (int64_t i = 0; i < c.rows; ++i) {
      for (int64_t n = 0; n < n_[kBlocks]; ++n) {
        const bool there = n < result.per_row;
        const size_t at = static_cast<size_t>(i * result.per_row + n);
        m.Expect(there ? result.m[at] : NegativeInfinity(), b, h, i, n);
        l.Expect(there ? result.l[at] : 0.0f, b, h, i, n);
        for (int64_t d = 0; d < c.value_dim; ++d) {
          o.Expect(there ? result.o[at * static_cast<size_t>(c.value_dim) + static_cast<size_t>(d)] : 0.0f, b, h, i, n,
                   d);
        }
      }
    }
  }

  void Softmax(int64_t b, int64_t h) {
    test::SoftmaxCase c;
    const Tensor scores = At(0), weights = At(1), lse = At(2), mask = Named("mask");
    c.rows = n_[kQLen];
    c.num_keys = n_[kKvLen];
    for (int64_t i = 0; i < c.rows; ++i) {
      for (int64_t t = 0; t < c.num_keys; ++t) {
        c.s.push_back(scores.Float(b, h, i, t));
        const bool sees = Sees(judged_.sources[0], b, h, i, t) && (!mask.wanted() || mask.Shows(b, h, i, t));
        c.mask.push_back(sees ? 1 : 0);
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
    const Tensor weights = At(0), v = At(1), out = At(2), mask = Named("mask");
    c.rows = Group() * n_[kQLen];
    c.num_keys = n_[kKvLen];
    c.value_dim = n_[kValueDim];
    c.out_type = out.type();
    std::vector<bool> read(static_cast<size_t>(c.num_keys));  // what no row reaches is not
    const Source& source = judged_.sources[0];
    for (int64_t r = 0; r < c.rows; ++r) {
      const int64_t h = g * Group() + r / n_[kQLen], i = r % n_[kQLen];
      for (int64_t t = 0; t < c.num_keys; ++t) {
        const bool reaches = Sees(source, b, h, i, t), sees = reaches && (!mask.wanted() || mask.Shows(b, h, i, t));
        c.w.push_back(sees ? weights.Float(b, h, i, t) : 0.0f);
        c.mask.push_back(sees ? 1 : 0);
        if (reaches) read[static_cast<size_t>(t)] = true;
      }
    }
    c.v = Rows(v, b, g, 0, c.value_dim, read);
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
    const Tensor m = At(0), l = At(1), o = At(2), out = At(3), lse = At(4), sinks = Named("sinks");
    const float sink = sinks.wanted() ? sinks.NumberOfHead(b, h) : NegativeInfinity();
    const bool has_sink = sink != NegativeInfinity();  // which is like one more state
    for (int64_t i = 0; i < n_[kQLen]; ++i) {
      bool any = false;
      float max = NegativeInfinity(), sum = 0;
      std::vector<float> sums(static_cast<size_t>(n_[kValueDim]));
      for (int64_t n = 0; n < n_[kBlocks] + (has_sink ? 1 : 0); ++n) {
        const bool is_sink = n == n_[kBlocks];
        const float max2 = is_sink ? sink : m.Float(b, h, i, n), sum2 = is_sink ? 1.0f : l.Float(b, h, i, n);
        if (sum2 != 0 && !std::isnan(sum2) && !(sum2 >= 1 && sum2 < 0x1p40f)) defined_ = false;
        const float both = std::isnan(max) || max2 > max ? max2 : max;
        const float weight = Exp(max - both), weight2 = Exp(max2 - both);
        for (int64_t d = 0; d < n_[kValueDim]; ++d) {
          const float one2 = is_sink ? 0.0f : o.Float(b, h, i, n, d);
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
  const Sizes& n_;
  bool defined_ = true;
};

}  // namespace

// 2^(-8 h / 2^n) for h = 1 ... 2^n; then those of twice as many heads, every other one.
float StandardSlope(int64_t head, int64_t num_heads) {
  int64_t whole = 1;
  while (whole * 2 <= num_heads) whole *= 2;
  const bool beyond = head >= whole;
  const int64_t number = beyond ? 2 * (head - whole) + 1 : head + 1;
  const double heads = static_cast<double>(beyond ? 2 * whole : whole);
  return static_cast<float>(std::exp2(-8.0 * static_cast<double>(number) / heads));
}

bool Expect(const Call& call, const Judged& judged) {
  bool any = call.function == kMaskPrepare;  // which has an output of another kind
  for (size_t i = 0; i < call.slots.size(); ++i) {
    any = any || (call.slots[i].output && judged.wanted[i] && !judged.tensors[i].empty);
  }
  if (!any) return true;  // without an element, sizes may be anything
  for (size_t i = 0; i < call.slots.size(); ++i) {
    if (call.slots[i].broadcast && judged.wanted[i]) Tensor(call, judged, i).AllowAll();
  }
  return Model(call, judged).Run();
}

}  // namespace etalon::fuzz
