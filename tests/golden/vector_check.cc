#include "tests/golden/vector_check.h"

#include <cstdio>
#include <stdexcept>
#include <vector>

#include "lib/base/arithmetic.h"
#include "tests/support/hash.h"
#include "tests/support/kernel_case.h"

namespace etalon::test {
namespace {

DType TypeOf(const Tensor& tensor) { return tensor.AsArray().type(); }

float Param(const VectorCase& c, const std::string& name, float absent) {
  return c.Has(name) ? c.Input(name).AsFloats()[0] : absent;
}

std::vector<Span> Spans(const VectorCase& c, const std::string& name) {
  std::vector<Span> spans;
  if (!c.Has(name)) return spans;
  const std::vector<int64_t>& values = c.Input(name).integers;
  for (size_t i = 0; i + 1 < values.size(); i += 2) spans.push_back({values[i], values[i + 1]});
  return spans;
}

std::vector<uint8_t> Mask(const VectorCase& c, const std::string& name) {
  std::vector<uint8_t> mask;
  if (!c.Has(name)) return mask;
  for (const uint32_t word : c.Input(name).words) mask.push_back(static_cast<uint8_t>(word));
  return mask;
}

std::vector<float> Floats(const VectorCase& c, const std::string& name) {
  return c.Has(name) ? c.Input(name).AsFloats() : std::vector<float>();
}

// `number` is "" for scores, "0", "1" ... for the sources of attention.
SourceData Source(const VectorCase& c, const std::string& number) {
  SourceData source;
  const Tensor& k = c.Input("k" + number);
  source.num_keys = k.shape.at(0);
  source.k = k.AsArray();
  if (c.Has("v" + number)) source.v = c.Input("v" + number).AsArray();
  if (c.Has("base" + number)) source.base = c.Input("base" + number).integers.at(0);
  source.spans = Spans(c, "span" + number);
  if (c.Has("bias" + number)) source.bias = c.Input("bias" + number).AsArray();
  source.mask = Mask(c, "mask" + number);
  return source;
}

AttentionCase Attention(const VectorCase& c) {
  AttentionCase a;
  const Tensor& q = c.Input("q");
  a.rows = q.shape.at(0);
  a.head_dim = q.shape.at(1);
  a.q = q.AsArray();
  a.scale = Param(c, "scale", 1.0f);
  a.softcap = Param(c, "softcap", 0.0f);
  if (c.Has("q_pos")) a.q_pos = c.Input("q_pos").integers;
  a.slopes = Floats(c, "slope");
  a.sinks = Floats(c, "sink");
  return a;
}

// Collects what a case gives. The first difference tells enough.
class Comparison {
 public:
  // Words; NaN payloads count.
  void Add(const Tensor& expected, const Array& got) {
    hash_.Add(got);
    if (!difference_.empty()) return;
    if (static_cast<int64_t>(expected.words.size()) != got.size()) {
      difference_ =
          "got " + std::to_string(got.size()) + " elements, the model has " + std::to_string(expected.words.size());
      return;
    }
    for (int64_t i = 0; i < got.size(); ++i) {
      const uint32_t want = expected.words[static_cast<size_t>(i)];
      if (got.Word(i) == want) continue;
      char text[96];
      std::snprintf(text, sizeof text, "element %lld: got %08X, the model has %08X", static_cast<long long>(i),
                    static_cast<unsigned>(got.Word(i)), static_cast<unsigned>(want));
      difference_ = text;
      return;
    }
  }

  void Add(const Tensor& expected, const std::vector<float>& got, bool canonical = false) {
    Array array(DType::kF32, static_cast<int64_t>(got.size()));
    for (size_t i = 0; i < got.size(); ++i) {
      array.SetWord(static_cast<int64_t>(i), Bits(canonical ? Canonical(got[i]) : got[i]));
    }
    Add(expected, array);
  }

  const std::string& difference() const { return difference_; }
  uint64_t hash() const { return hash_.value(); }

 private:
  std::string difference_;
  Hash hash_;
};

int64_t CheckAttention(const VectorCase& c, const KernelTable& table, Comparison* comparison) {
  AttentionCase a = Attention(c);
  a.value_dim = c.Expected("out").shape.at(1);
  a.out_type = TypeOf(c.Expected("out"));
  for (int i = 0; c.Has("k" + std::to_string(i)); ++i) a.sources.push_back(Source(c, std::to_string(i)));
  const AttentionResult result = RunAttend(table, a);
  comparison->Add(c.Expected("out"), result.out);
  comparison->Add(c.Expected("lse"), result.lse);
  const StatesResult states = RunBlockStates(table, a);
  if (c.expected.count("m") != 0) {
    comparison->Add(c.Expected("m"), states.m);
    comparison->Add(c.Expected("l"), states.l);
    comparison->Add(c.Expected("o"), states.o);
  }
  const AttentionResult folded = RunFold(table, a, states);  // the detour over states must not show
  comparison->Add(c.Expected("out"), folded.out);
  comparison->Add(c.Expected("lse"), folded.lse);
  return a.rows;
}

int64_t CheckScores(const VectorCase& c, const KernelTable& table, Comparison* comparison) {
  AttentionCase a = Attention(c);
  a.sources.push_back(Source(c, ""));
  comparison->Add(c.Expected("s"), RunScores(table, a));
  return a.rows;
}

int64_t CheckSoftmax(const VectorCase& c, const KernelTable& table, Comparison* comparison) {
  SoftmaxCase s;
  s.rows = c.Input("s").shape.at(0);
  s.num_keys = c.Input("s").shape.at(1);
  s.s = Floats(c, "s");
  s.spans = Spans(c, "span");
  s.mask = Mask(c, "mask");
  for (const bool in_place : {false, true}) {
    const SoftmaxResult result = RunSoftmax(table, s, in_place);
    comparison->Add(c.Expected("w"), result.w);
    comparison->Add(c.Expected("lse"), result.lse);
  }
  return s.rows;
}

int64_t CheckWeightedSum(const VectorCase& c, const KernelTable& table, Comparison* comparison) {
  WeightedSumCase w;
  w.rows = c.Input("w").shape.at(0);
  w.num_keys = c.Input("w").shape.at(1);
  w.value_dim = c.Expected("out").shape.at(1);
  w.w = Floats(c, "w");
  w.v = c.Input("v").AsArray();
  w.spans = Spans(c, "span");
  w.mask = Mask(c, "mask");
  w.out_type = TypeOf(c.Expected("out"));
  comparison->Add(c.Expected("out"), RunWeightedSum(table, w));
  return w.rows;
}

int64_t CheckMerge(const VectorCase& c, const KernelTable& table, Comparison* comparison) {
  MergeCase m;
  m.rows = c.Input("out1").shape.at(0);
  m.value_dim = c.Input("out1").shape.at(1);
  m.out1 = c.Input("out1").AsArray();
  m.out2 = c.Input("out2").AsArray();
  m.lse1 = Floats(c, "lse1");
  m.lse2 = Floats(c, "lse2");
  const AttentionResult result = RunMerge(table, m);
  comparison->Add(c.Expected("out"), result.out);
  comparison->Add(c.Expected("lse"), result.lse);
  return m.rows;
}

int64_t CheckFold(const VectorCase& c, const KernelTable& table, Comparison* comparison) {
  AttentionCase a;
  a.rows = c.Input("m").shape.at(0);
  a.value_dim = c.Expected("out").shape.at(1);
  a.out_type = TypeOf(c.Expected("out"));
  a.sinks = Floats(c, "sink");
  StatesResult states;
  states.per_row = c.Input("m").shape.at(1);
  states.m = Floats(c, "m");
  states.l = Floats(c, "l");
  states.o = Floats(c, "o");
  const AttentionResult result = RunFold(table, a, states);
  comparison->Add(c.Expected("out"), result.out);
  comparison->Add(c.Expected("lse"), result.lse);
  return a.rows;
}

// Element-wise functions: their table entries may keep a NaN's payload.
int64_t CheckElements(const VectorCase& c, const KernelTable& table, Comparison* comparison) {
  if (c.op == "fma") {
    comparison->Add(c.Expected("y"), RunFma(table, Floats(c, "a"), Floats(c, "b"), Floats(c, "c")), true);
  } else if (c.op == "widen") {
    const Array x = c.Input("x").AsArray();
    std::vector<float> y(static_cast<size_t>(x.size()));
    table.widen(x.type(), x.data(), y.data(), y.size());
    comparison->Add(c.Expected("y"), y, true);
  } else if (c.op == "narrow") {
    const std::vector<float> x = Floats(c, "x");
    Array y(TypeOf(c.Expected("y")), static_cast<int64_t>(x.size()));
    table.narrow(y.type(), x.data(), y.data(), x.size());
    comparison->Add(c.Expected("y"), y);
  } else {
    const auto function = c.op == "exp" ? &KernelTable::exp : c.op == "log" ? &KernelTable::log : &KernelTable::tanh;
    comparison->Add(c.Expected("y"), RunMap(table, function, Floats(c, "x")), true);
  }
  return 0;
}

// Returns how many query rows were compared.
int64_t Check(const VectorCase& c, const KernelTable& table, Comparison* comparison) {
  if (c.op == "attention") return CheckAttention(c, table, comparison);
  if (c.op == "scores") return CheckScores(c, table, comparison);
  if (c.op == "softmax") return CheckSoftmax(c, table, comparison);
  if (c.op == "weighted_sum") return CheckWeightedSum(c, table, comparison);
  if (c.op == "merge") return CheckMerge(c, table, comparison);
  if (c.op == "fold") return CheckFold(c, table, comparison);
  for (const char* op : {"fma", "exp", "log", "tanh", "widen", "narrow"}) {
    if (c.op == op) return CheckElements(c, table, comparison);
  }
  throw std::runtime_error("case " + c.name + " has an unknown op " + c.op);
}

}  // namespace

VectorResult CheckVector(const VectorCase& c, const KernelTable& table) {
  Comparison comparison;
  const int64_t rows = Check(c, table, &comparison);
  return {comparison.difference(), comparison.hash(), rows};
}

}  // namespace etalon::test
