#include "tests/support/kernel_case.h"

#include <algorithm>
#include <cstdlib>
#include <memory>

#include "arch/dispatch.h"
#include "lib/base/arithmetic.h"
#include "lib/base/environment.h"
#include "lib/base/workspace.h"

namespace etalon::test {
namespace {

// Runs any callable in the library's environment.
template <typename Function>
void Guarded(Function function) {
  RunInEnvironment([](void* f) { (*static_cast<Function*>(f))(); }, &function);
}

struct Free {
  void operator()(void* p) const { std::free(p); }
};
using Scratch = std::unique_ptr<void, Free>;

// Filled with a byte that reads as NaN: scratch must never be read before it is written.
Scratch MakeScratch(const KernelTable& table, int64_t head_dim, int64_t value_dim) {
  const size_t needed = ScratchBytes(table, static_cast<size_t>(head_dim), static_cast<size_t>(value_dim));
  const size_t rounded = (needed + kWorkspaceAlignment - 1) / kWorkspaceAlignment * kWorkspaceAlignment;
  void* memory = std::aligned_alloc(kWorkspaceAlignment, rounded);
  std::memset(memory, 0xFF, rounded);
  return Scratch(memory);
}

// The arguments that point into a case; they live as long as this object and the case.
class Tile {
 public:
  Tile(const AttentionCase& c, AttentionResult* result) : case_(c) {
    for (int64_t r = 0; r < c.rows; ++r) {
      const size_t i = static_cast<size_t>(r);
      QueryRow row = {};
      row.q = c.q.size() == 0 ? nullptr : c.q.at(r * c.head_dim);
      row.slope = c.slopes.empty() ? 0.0f : c.slopes[i];
      row.sink = c.sinks.empty() ? 0.0f : c.sinks[i];
      if (result != nullptr) {
        row.out = result->out.at(r * c.value_dim);
        row.lse = &result->lse[i];
      }
      rows_.push_back(row);
    }
    for (const SourceData& s : c.sources) {
      KeySource source = {};
      source.k = s.k.data();
      source.v = s.v.data();
      source.k_type = s.k.type();
      source.v_type = s.v.type();
      source.k_stride_bytes = c.head_dim * static_cast<int64_t>(ElementSize(s.k.type()));
      source.v_stride_bytes = c.value_dim * static_cast<int64_t>(ElementSize(s.v.type()));
      source.base = s.base;
      source.num_keys = s.num_keys;
      source.bias_type = s.bias.type();
      source.bias_stride_bytes = static_cast<int64_t>(ElementSize(s.bias.type()));
      source.mask_stride_bytes = 1;
      source.mask_type = s.mask_form == MaskForm::kBytes ? MaskType::kBytes : MaskType::kBits;
      source.first_column = s.first_column;
      sources_.push_back(source);
      for (int64_t r = 0; r < c.rows; ++r) {
        const size_t i = static_cast<size_t>(r);
        RowKeys keys = {};
        keys.span = s.spans.empty() ? Span{s.base, s.base + s.num_keys} : s.spans[i];
        keys.position = (c.q_pos.empty() ? 0 : c.q_pos[i]) + s.q_shift;
        if (s.bias.size() > 0) keys.bias = s.bias.at(r * s.num_keys);
        if (!s.mask.empty()) SetMask(s, r, &keys);
        keys_.push_back(keys);
      }
    }
  }

  // The tile against sources first ... first + count - 1.
  AttendArgs Attend(size_t first, size_t count, void* scratch) const {
    AttendArgs args = {};
    args.rows = rows_.data();
    args.num_rows = rows_.size();
    args.sources = sources_.data() + first;
    args.num_sources = count;
    args.keys = keys_.data() + first * rows_.size();
    args.head_dim = static_cast<size_t>(case_.head_dim);
    args.value_dim = static_cast<size_t>(case_.value_dim);
    args.options = Options();
    args.out_type = case_.out_type;
    args.sinks = !case_.sinks.empty();
    args.scratch = scratch;
    return args;
  }

  ScoreOptions Options() const { return {case_.q.type(), case_.scale, case_.softcap, !case_.slopes.empty()}; }
  const std::vector<QueryRow>& rows() const { return rows_; }
  const std::vector<RowKeys>& keys() const { return keys_; }
  const KeySource& source(size_t i) const { return sources_[i]; }

 private:
  // A row of the mask in its form; where that is two, even columns are left to the mask and odd ones to the runs.
  void SetMask(const SourceData& s, int64_t r, RowKeys* keys) {
    const bool both = s.mask_form == MaskForm::kRunsAndBits;
    const auto shown = [&](int64_t column) {
      return column < s.first_column || s.mask[static_cast<size_t>(r * s.num_keys + column - s.first_column)] != 0;
    };
    const int64_t columns = s.first_column + s.num_keys;
    if (s.mask_form == MaskForm::kBytes) {
      masks_.emplace_back(static_cast<size_t>(s.first_column), uint8_t{1});
      const auto row = s.mask.begin() + r * s.num_keys;
      masks_.back().insert(masks_.back().end(), row, row + s.num_keys);
      keys->mask = masks_.back().data();
    }
    if (s.mask_form == MaskForm::kBits || both) {
      masks_.emplace_back(static_cast<size_t>((columns + 7) / 8));
      for (int64_t i = 0; i < columns; ++i) {
        if (shown(i) || (both && i % 2 == 1))
          masks_.back()[static_cast<size_t>(i / 8)] |= static_cast<uint8_t>(1 << i % 8);
      }
      keys->mask = masks_.back().data();
    }
    if (s.mask_form == MaskForm::kRuns || both) {
      std::vector<Span> runs;
      for (int64_t i = 0; i < columns; ++i) {
        if (!shown(i) && !(both && i % 2 == 0)) continue;
        if (runs.empty() || runs.back().last != i) runs.push_back({i, i});
        runs.back().last = i + 1;
      }
      runs.reserve(1);  // not null if there are none
      runs_.push_back(std::move(runs));
      keys->runs = runs_.back().data();
      keys->num_runs = static_cast<int64_t>(runs_.back().size());
    }
  }

  const AttentionCase& case_;
  std::vector<QueryRow> rows_;
  std::vector<KeySource> sources_;
  std::vector<RowKeys> keys_;
  std::vector<std::vector<uint8_t>> masks_;
  std::vector<std::vector<Span>> runs_;
};

AttentionResult MakeResult(int64_t rows, int64_t value_dim, DType type) {
  return {Array(type, rows * value_dim), std::vector<float>(static_cast<size_t>(rows))};
}

int64_t FirstBlock(const SourceData& s) { return s.base / kBlock; }
int64_t NumBlocks(const SourceData& s) {
  return s.num_keys == 0 ? 0 : (s.base + s.num_keys - 1) / kBlock - FirstBlock(s) + 1;
}

}  // namespace

Array::Array(DType type, const std::vector<float>& values) : Array(type, static_cast<int64_t>(values.size())) {
  for (size_t i = 0; i < values.size(); ++i) {
    if (type == DType::kF32) {
      SetWord(static_cast<int64_t>(i), Bits(values[i]));  // not StoreElement: inputs may hold any NaN
    } else {
      StoreElement(type, bytes_.data(), i, values[i]);
    }
  }
}

Array Array::FromBits(DType type, const std::vector<uint32_t>& words) {
  Array array(type, static_cast<int64_t>(words.size()));
  for (size_t i = 0; i < words.size(); ++i) array.SetWord(static_cast<int64_t>(i), words[i]);
  return array;
}

uint32_t Array::Word(int64_t i) const {
  uint32_t word = 0;
  std::memcpy(&word, at(i), ElementSize(type_));
  return word;
}

void Array::SetWord(int64_t i, uint32_t word) { std::memcpy(at(i), &word, ElementSize(type_)); }

std::vector<float> RunScores(const KernelTable& table, const AttentionCase& c) {
  const Tile tile(c, nullptr);
  const Scratch scratch = MakeScratch(table, c.head_dim, 0);
  const int64_t num_keys = c.sources[0].num_keys;
  std::vector<float> s(static_cast<size_t>(c.rows * num_keys));
  const ScoresArgs args = {
      tile.rows().data(), tile.rows().size(), tile.keys().data(), &tile.source(0), static_cast<size_t>(c.head_dim),
      tile.Options(),     s.data(),           num_keys,           scratch.get()};
  Guarded([&] { table.scores(args); });
  return s;
}

AttentionResult RunAttend(const KernelTable& table, const AttentionCase& c) {
  AttentionResult result = MakeResult(c.rows, c.value_dim, c.out_type);
  const Tile tile(c, &result);
  const Scratch scratch = MakeScratch(table, c.head_dim, c.value_dim);
  const AttendArgs args = tile.Attend(0, c.sources.size(), scratch.get());
  Guarded([&] { table.attend(args); });
  return result;
}

StatesResult RunBlockStates(const KernelTable& table, const AttentionCase& c, int64_t blocks_per_call) {
  StatesResult result;
  for (const SourceData& s : c.sources) result.per_row += NumBlocks(s);
  const size_t count = static_cast<size_t>(c.rows * result.per_row);
  result.m.resize(count);
  result.l.resize(count);
  result.o.resize(count * static_cast<size_t>(c.value_dim));
  const Tile tile(c, nullptr);
  const Scratch scratch = MakeScratch(table, c.head_dim, c.value_dim);
  int64_t at = 0;
  for (size_t i = 0; i < c.sources.size(); ++i) {
    const int64_t count_here = NumBlocks(c.sources[i]);
    for (int64_t last = count_here; last > 0;) {
      const int64_t first = last - std::min(last, blocks_per_call), to = at + first;
      BlockStatesArgs args = {};
      args.tile = tile.Attend(i, 1, scratch.get());
      args.first_block = FirstBlock(c.sources[i]) + first;
      args.last_block = FirstBlock(c.sources[i]) + last;
      args.states = {result.m.data() + to, result.l.data() + to, result.o.data() + to * c.value_dim, result.per_row};
      Guarded([&] { table.block_states(args); });
      last = first;
    }
    at += count_here;
  }
  return result;
}

AttentionResult RunFold(const KernelTable& table, const AttentionCase& c, const StatesResult& states) {
  AttentionResult result = MakeResult(c.rows, c.value_dim, c.out_type);
  const Tile tile(c, &result);
  const Scratch scratch = MakeScratch(table, 0, c.value_dim);
  StatesResult copy = states;  // States has no const form
  FoldArgs args = {};
  args.rows = tile.rows().data();
  args.num_rows = tile.rows().size();
  args.states = {copy.m.data(), copy.l.data(), copy.o.data(), copy.per_row};
  args.num_states = copy.per_row;
  args.value_dim = static_cast<size_t>(c.value_dim);
  args.out_type = c.out_type;
  args.sinks = !c.sinks.empty();
  args.scratch = scratch.get();
  Guarded([&] { table.fold(args); });
  return result;
}

SoftmaxResult RunSoftmax(const KernelTable& table, const SoftmaxCase& c, bool in_place) {
  SoftmaxResult result;
  std::vector<float> s = c.s;
  if (in_place) {
    result.w = c.s;
  } else {
    result.w.resize(c.s.size());
  }
  result.lse.resize(static_cast<size_t>(c.rows));
  std::vector<SoftmaxRow> rows;
  for (int64_t r = 0; r < c.rows; ++r) {
    const size_t i = static_cast<size_t>(r);
    const int64_t at = r * c.num_keys;
    SoftmaxRow row = {};
    row.w = result.w.data() + at;
    row.s = in_place ? row.w : s.data() + at;
    row.lse = &result.lse[i];
    row.span = c.spans.empty() ? Span{0, c.num_keys} : c.spans[i];
    row.mask = c.mask.empty() ? nullptr : c.mask.data() + at;
    rows.push_back(row);
  }
  const SoftmaxArgs args = {rows.data(), rows.size(), c.num_keys, 1};
  Guarded([&] { table.softmax(args); });
  return result;
}

Array RunWeightedSum(const KernelTable& table, const WeightedSumCase& c) {
  Array out(c.out_type, c.rows * c.value_dim);
  const Scratch scratch = MakeScratch(table, 0, c.value_dim);
  std::vector<WeightedSumRow> rows;
  for (int64_t r = 0; r < c.rows; ++r) {
    const int64_t at = r * c.num_keys;
    WeightedSumRow row = {};
    row.w = c.w.data() + at;
    row.out = out.at(r * c.value_dim);
    row.span = c.spans.empty() ? Span{0, c.num_keys} : c.spans[static_cast<size_t>(r)];
    row.mask = c.mask.empty() ? nullptr : c.mask.data() + at;
    rows.push_back(row);
  }
  WeightedSumArgs args = {};
  args.rows = rows.data();
  args.num_rows = rows.size();
  args.v = c.v.data();
  args.v_stride_bytes = c.value_dim * static_cast<int64_t>(ElementSize(c.v.type()));
  args.v_type = c.v.type();
  args.out_type = c.out_type;
  args.num_keys = c.num_keys;
  args.mask_stride_bytes = 1;
  args.value_dim = static_cast<size_t>(c.value_dim);
  args.scratch = scratch.get();
  Guarded([&] { table.weighted_sum(args); });
  return out;
}

AttentionResult RunMerge(const KernelTable& table, const MergeCase& c) {
  AttentionResult result = MakeResult(c.rows, c.value_dim, c.out1.type());
  const int64_t stride = c.value_dim * static_cast<int64_t>(ElementSize(c.out1.type()));
  MergeArgs args = {};
  args.num_rows = static_cast<size_t>(c.rows);
  args.value_dim = static_cast<size_t>(c.value_dim);
  args.type = c.out1.type();
  args.out1 = c.out1.data();
  args.out2 = c.out2.data();
  args.out = result.out.data();
  args.out1_stride_bytes = args.out2_stride_bytes = args.out_stride_bytes = stride;
  args.lse1 = c.lse1.data();
  args.lse2 = c.lse2.data();
  args.lse = result.lse.data();
  Guarded([&] { table.merge(args); });
  return result;
}

std::vector<float> RunMap(const KernelTable& table, void (*KernelTable::*function)(const float*, float*, size_t),
                          const std::vector<float>& x) {
  std::vector<float> y(x.size());
  Guarded([&] { (table.*function)(x.data(), y.data(), x.size()); });
  return y;
}

std::vector<float> RunFma(const KernelTable& table, const std::vector<float>& a, const std::vector<float>& b,
                          const std::vector<float>& c) {
  std::vector<float> y(a.size());
  Guarded([&] { table.fma(a.data(), b.data(), c.data(), y.data(), a.size()); });
  return y;
}

}  // namespace etalon::test
