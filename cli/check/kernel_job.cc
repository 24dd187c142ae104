#include "cli/check/kernel_job.h"

#include <algorithm>
#include <memory>

#include "cli/check/function_range.h"
#include "cli/fnv.h"
#include "lib/base/arithmetic.h"
#include "tests/support/reference.h"

namespace etalon::cli {
namespace {

using test::AttentionCase;
using SharedCase = std::shared_ptr<const AttentionCase>;

constexpr int64_t kDecodeRows = 8;

uint64_t HashOf(const std::vector<float>& values, uint64_t hash = kFnvStart) {
  return Fnv1aBytes(values.data(), values.size() * sizeof(float), hash);
}

KernelOutput OutputOf(const std::vector<float>& values) { return {test::TrueValues(values), HashOf(values)}; }

std::vector<float> Floats(const test::Array& array) {
  std::vector<float> values;
  for (int64_t i = 0; i < array.size(); ++i) values.push_back(array[i]);
  return values;
}

KernelOutput OutputOf(const test::Array& f32) { return OutputOf(Floats(f32)); }

// The truth rounded to f32: what the next kernel is given.
std::vector<float> Rounded(const Truth& truth) {
  std::vector<float> values;
  for (const DoubleDouble& x : truth.value) values.push_back(static_cast<float>(x.hi));
  return values;
}

// A part of an array for a file. There is no bf16 in .npy files, but widening is exact and changes no bit of a result.
NamedArray Part(const char* name, const test::Array& array, int64_t first, std::vector<int64_t> shape) {
  if (array.type() == DType::kF16) return MakeNamedArray(name, NpyType::kF16, std::move(shape), array.at(first));
  if (array.type() == DType::kF32) return MakeNamedArray(name, NpyType::kF32, std::move(shape), array.at(first));
  const std::vector<float> values = Floats(array);
  return MakeNamedArray(name, NpyType::kF32, std::move(shape), values.data() + first);
}

NamedArray Part(const char* name, const std::vector<float>& values, size_t first, std::vector<int64_t> shape) {
  return MakeNamedArray(name, NpyType::kF32, std::move(shape), values.data() + first);
}

// A row and the keys that it sees, as `etalon attend` takes them.
std::vector<NamedArray> AttentionInput(const AttentionCase& c, int64_t row, KeyRange keys) {
  const int64_t n = keys.last - keys.first;
  return {Part("q", c.q, row * c.head_dim, {1, 1, c.head_dim}),
          Part("k", c.sources[0].k, keys.first * c.head_dim, {1, n, c.head_dim}),
          Part("v", c.sources[0].v, keys.first * c.value_dim, {1, n, c.value_dim}),
          MakeNamedArray("scale", NpyType::kF32, {1}, &c.scale)};
}

AttentionCase OneRow(const AttentionCase& c, int64_t row) {
  AttentionCase one = c;
  one.rows = 1;
  one.q = test::Array(c.q.type(), c.head_dim);
  for (int64_t i = 0; i < c.head_dim; ++i) one.q.SetWord(i, c.q.Word(row * c.head_dim + i));
  return one;
}

// All jobs of one case share its data and the exact scores.
class CaseJobs {
 public:
  CaseJobs(const FamilyCase& family_case, const Wanted& wanted)
      : case_(std::make_shared<const AttentionCase>(family_case.attention)),
        positions_(family_case.positions),
        wanted_(wanted),
        scores_(TrueScores(*case_)),
        values_(test::TrueValues(case_->sources[0].v)) {}

  std::vector<KernelJob> Take() { return std::move(jobs_); }

  void Scores() {
    if (!wanted_("scores")) return;
    const SharedCase c = case_;
    Add(
        "scores", scores_, [c](const KernelTable& table) { return OutputOf(test::RunScores(table, *c)); },
        [c](size_t row) {
          std::vector<NamedArray> input = AttentionInput(*c, static_cast<int64_t>(row), All(*c));
          input.erase(input.begin() + 2);  // v
          return input;
        });
  }

  void SoftmaxAndWeightedSum() {
    if (!wanted_("softmax") && !wanted_("weighted sum")) return;
    const auto softmax = std::make_shared<test::SoftmaxCase>();
    softmax->rows = case_->rows;
    softmax->num_keys = num_keys();
    softmax->s = Rounded(scores_);
    const Truth weights = TrueSoftmax(*softmax);
    if (wanted_("softmax")) {
      Add(
          "softmax", weights,
          [softmax](const KernelTable& table) { return OutputOf(test::RunSoftmax(table, *softmax).w); },
          [softmax](size_t row) {
            const size_t n = static_cast<size_t>(softmax->num_keys);
            return std::vector<NamedArray>{Part("s", softmax->s, row * n, {softmax->num_keys})};
          });
    }
    if (!wanted_("weighted sum")) return;
    const auto sum = std::make_shared<test::WeightedSumCase>();
    sum->rows = case_->rows;
    sum->num_keys = num_keys();
    sum->value_dim = case_->value_dim;
    sum->w = Rounded(weights);
    sum->v = case_->sources[0].v;
    Add(
        "weighted sum", TrueWeightedSum(*sum),
        [sum](const KernelTable& table) { return OutputOf(test::RunWeightedSum(table, *sum)); },
        [sum](size_t row) {
          const size_t n = static_cast<size_t>(sum->num_keys);
          return std::vector<NamedArray>{Part("w", sum->w, row * n, {sum->num_keys}),
                                         Part("v", sum->v, 0, {sum->num_keys, sum->value_dim})};
        });
  }

  // All rows at once, `name` in out; then their logsumexps, and some of them one at a time, as a decoder calls.
  void Attention(const std::string& name) {
    if (!wanted_(name) && !wanted_("lse") && !wanted_("decode")) return;
    const SharedCase c = case_;
    Truth out, lse, few;
    for (int64_t r = 0; r < c->rows; ++r) {
      const TrueRow row = RowOf(r, All(*c));
      out.Append(row.out);
      lse.Append(row.lse);
      if (r < kDecodeRows) few.Append(row.out);
    }
    const auto input = [c](size_t row) { return AttentionInput(*c, static_cast<int64_t>(row), All(*c)); };
    if (wanted_(name)) {
      Add(name, out, [c](const KernelTable& table) { return OutputOf(test::RunAttend(table, *c).out); }, input);
    }
    if (name != "attention") return;
    if (wanted_("decode")) {
      Add(
          "decode", few,
          [c](const KernelTable& table) {
            std::vector<float> values;
            for (int64_t r = 0; r < std::min(c->rows, kDecodeRows); ++r) {
              const std::vector<float> row = Floats(test::RunAttend(table, OneRow(*c, r)).out);
              values.insert(values.end(), row.begin(), row.end());
            }
            return OutputOf(values);
          },
          input);
    }
    if (wanted_("lse")) {
      Add("lse", lse, [c](const KernelTable& table) { return OutputOf(test::RunAttend(table, *c).lse); }, input);
    }
  }

  void Causal() {
    if (!wanted_("causal")) return;
    const auto c = std::make_shared<AttentionCase>(*case_);
    Truth out;
    for (int64_t r = 0; r < c->rows; ++r) {
      const int64_t seen = positions_[static_cast<size_t>(r)] + 1;
      c->sources[0].spans.push_back({0, seen});
      out.Append(RowOf(r, {0, seen}).out);
    }
    Add(
        "causal", out, [c](const KernelTable& table) { return OutputOf(test::RunAttend(table, *c).out); },
        [c](size_t row) { return AttentionInput(*c, static_cast<int64_t>(row), {0, c->sources[0].spans[row].last}); });
  }

  // States are compared as o / l: m is any number near the maximum, and what it is off by cancels.
  void BlockStates() {
    if (!wanted_("block states")) return;
    const SharedCase c = case_;
    const int64_t blocks = (num_keys() + kBlock - 1) / kBlock;
    const auto range = [c](int64_t block) {
      return KeyRange{block * kBlock, std::min((block + 1) * kBlock, c->sources[0].num_keys)};
    };
    Truth out;
    for (int64_t r = 0; r < c->rows; ++r) {
      for (int64_t block = 0; block < blocks; ++block) out.Append(RowOf(r, range(block), false).out);
    }
    Add(
        "block states", out,
        [c](const KernelTable& table) {
          const test::StatesResult states = test::RunBlockStates(table, *c);
          KernelOutput output = {{}, HashOf(states.o, HashOf(states.l, HashOf(states.m)))};
          const size_t dim = static_cast<size_t>(c->value_dim);
          for (size_t i = 0; i < states.o.size(); ++i) {
            output.values.push_back(static_cast<double>(states.o[i]) / static_cast<double>(states.l[i / dim]));
          }
          return output;
        },
        [c, blocks, range](size_t row) {
          const int64_t r = static_cast<int64_t>(row);
          return AttentionInput(*c, r / blocks, range(r % blocks));
        });
    jobs_.back().output_is_f32 = false;
  }

  // Joins what the two halves of the keys give, where there are two.
  void Merge() {
    if (!wanted_("merge") || num_keys() < 2) return;
    Truth out1, out2, lse1, lse2;
    for (int64_t r = 0; r < case_->rows; ++r) {
      const TrueRow first = RowOf(r, {0, num_keys() / 2}), second = RowOf(r, {num_keys() / 2, num_keys()});
      out1.Append(first.out);
      lse1.Append(first.lse);
      out2.Append(second.out);
      lse2.Append(second.lse);
    }
    const auto c = std::make_shared<test::MergeCase>();
    c->rows = case_->rows;
    c->value_dim = case_->value_dim;
    c->out1 = test::Array(DType::kF32, Rounded(out1));
    c->out2 = test::Array(DType::kF32, Rounded(out2));
    c->lse1 = Rounded(lse1);
    c->lse2 = Rounded(lse2);
    Add(
        "merge", TrueMerge(*c), [c](const KernelTable& table) { return OutputOf(test::RunMerge(table, *c).out); },
        [c](size_t row) {
          const int64_t at = static_cast<int64_t>(row) * c->value_dim;
          return std::vector<NamedArray>{Part("out1", c->out1, at, {c->value_dim}), Part("lse1", c->lse1, row, {1}),
                                         Part("out2", c->out2, at, {c->value_dim}), Part("lse2", c->lse2, row, {1})};
        });
  }

 private:
  static KeyRange All(const AttentionCase& c) { return {0, c.sources[0].num_keys}; }
  int64_t num_keys() const { return case_->sources[0].num_keys; }

  TrueRow RowOf(int64_t row, KeyRange keys, bool divided = true) const {
    return TrueAttention(scores_, row, values_, case_->value_dim, keys, divided);
  }

  void Add(const std::string& kernel, const Truth& truth, std::function<KernelOutput(const KernelTable&)> run,
           std::function<std::vector<NamedArray>(size_t)> input) {
    jobs_.push_back({kernel, truth, std::move(run), std::move(input)});
  }

  SharedCase case_;
  std::vector<int64_t> positions_;
  const Wanted& wanted_;
  Truth scores_;
  std::vector<double> values_;
  std::vector<KernelJob> jobs_;
};

// That q, k and v of a kernel are stored as.
DType TypeOf(const std::string& kernel) {
  return kernel == "attention f16" ? DType::kF16 : kernel == "attention bf16" ? DType::kBF16 : DType::kF32;
}

void AddFunction(const FunctionRange& range, DoubleDouble (*exact)(DoubleDouble), const Wanted& wanted,
                 std::vector<KernelJob>* jobs) {
  if (!wanted(range.name)) return;
  const auto x = std::make_shared<const std::vector<float>>(Sweep(range, 200003));
  const auto function = range.function;
  jobs->push_back({range.name, TrueFunction(exact, range.max_ulp, *x),
                   [x, function](const KernelTable& table) { return OutputOf(test::RunMap(table, function, *x)); },
                   [x](size_t row) { return std::vector<NamedArray>{Part("x", *x, row, {1})}; }});
}

}  // namespace

const std::vector<std::string>& FamilyKernels() {
  static const std::vector<std::string> names = {"attention", "attention f16", "attention bf16", "causal",
                                                 "decode",    "lse",           "block states",   "scores",
                                                 "softmax",   "weighted sum",  "merge"};
  return names;
}

const std::vector<std::string>& FunctionKernels() {
  static const std::vector<std::string> names = {kExpRange.name, kLogRange.name, kTanhRange.name};
  return names;
}

bool MeasuresType(DType type, const Wanted& wanted) {
  const std::vector<std::string>& names = FamilyKernels();
  return std::any_of(names.begin(), names.end(),
                     [&](const std::string& name) { return TypeOf(name) == type && wanted(name); });
}

std::vector<KernelJob> JobsOf(const FamilyCase& family_case, DType type, const Wanted& wanted) {
  if (!MeasuresType(type, wanted)) return {};
  const Wanted of_type = [&](const std::string& name) { return TypeOf(name) == type && wanted(name); };
  CaseJobs jobs(family_case, of_type);
  if (type != DType::kF32) {
    jobs.Attention(type == DType::kF16 ? "attention f16" : "attention bf16");
    return jobs.Take();
  }
  jobs.Attention("attention");
  jobs.Causal();
  jobs.BlockStates();
  jobs.Scores();
  jobs.SoftmaxAndWeightedSum();
  jobs.Merge();
  return jobs.Take();
}

std::vector<KernelJob> FunctionJobs(const Wanted& wanted) {
  std::vector<KernelJob> jobs;
  AddFunction(kExpRange, Exp, wanted, &jobs);
  AddFunction(kLogRange, Log, wanted, &jobs);
  AddFunction(kTanhRange, Tanh, wanted, &jobs);
  return jobs;
}

}  // namespace etalon::cli
