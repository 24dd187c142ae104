#include "tests/kernels/random_tile.h"

#include <algorithm>
#include <cmath>

#include "lib/base/arithmetic.h"
#include "tests/kernels/kernel_test.h"

namespace etalon::test {
namespace {

constexpr int64_t kMostPosition = int64_t{1} << 62;

}  // namespace

RandomTile::RandomTile(uint64_t seed, int64_t work) : random_(seed), work_(work) {
  head_dim_ = AnyDim(&random_);
  value_dim_ = AnyDim(&random_);
  rows_.resize(static_cast<size_t>(AnyRows(&random_)));
  DrawQueries();
  const int64_t sources = OneIn(&random_, 2) ? 1 : random_.Below(4);
  for (int64_t i = 0; i < std::max<int64_t>(1, sources); ++i) DrawSource();
  // A query that sees nothing is not read.
  for (size_t r = 0; r < rows_.size(); ++r) {
    bool sees = false;
    for (const std::vector<RowKeys>& keys : keys_) sees |= keys[r].span.first < keys[r].span.last;
    if (!sees) rows_[r].q = nullptr;
  }
  score_stride_ = (sources_[0].num_keys + random_.Below(9)) * (OneIn(&random_, 3) ? -1 : 1);
  states_source_ = static_cast<size_t>(random_.Below(static_cast<int64_t>(sources_.size())));
  const KeySource& s = sources_[states_source_];
  const int64_t first = s.base / kBlock, last = (s.base + s.num_keys + kBlock - 1) / kBlock;
  first_block_ = std::max<int64_t>(0, first - random_.Below(2));
  last_block_ = std::min((int64_t{1} << 53), last + random_.Below(2));
  if (OneIn(&random_, 3)) first_block_ += random_.Below(last_block_ - first_block_ + 1);
  if (OneIn(&random_, 3)) last_block_ -= random_.Below(last_block_ - first_block_ + 1);
  state_stride_ = last_block_ - first_block_ + random_.Below(3);
}

void RandomTile::DrawQueries() {
  const int64_t n = static_cast<int64_t>(rows_.size());
  const DType q_type = AnyType(&random_);
  const int64_t size = static_cast<int64_t>(ElementSize(q_type));
  q_ = Rows(n, head_dim_, AnyStride(&random_, head_dim_ * size, size, n), q_type, random_.Below(8));
  const Filling filling = AnyFilling(&random_);
  q_.Fill(filling, &random_);
  out_type_ = AnyType(&random_);
  const int64_t out_size = static_cast<int64_t>(ElementSize(out_type_));
  const int64_t out_stride = (value_dim_ + (OneIn(&random_, 2) ? 0 : random_.Below(20))) * out_size;
  out_ = Rows(n, value_dim_, OneIn(&random_, 3) ? -out_stride : out_stride, out_type_, random_.Below(8));
  lse_.resize(rows_.size());
  constexpr float kScales[] = {1.0f, 0.0f, -1.5f, 1e-30f, 1e30f};
  options_.q_type = q_type;
  options_.scale = OneIn(&random_, 3) ? OneOf(&random_, kScales) : ScaleOf(head_dim_);
  overflows_ = OneIn(&random_, 6);
  if (overflows_) options_.scale = 1e35f;
  constexpr float kCaps[] = {2.0f, 30.0f, 30.0f, 1e-30f, 1e30f};
  if (OneIn(&random_, 4)) options_.softcap = OneOf(&random_, kCaps);
  options_.alibi = OneIn(&random_, 4);
  sinks_ = OneIn(&random_, 3);
  const bool wild_slopes = OneIn(&random_, 6), null_lse = OneIn(&random_, 4), wild_sinks = OneIn(&random_, 2);
  for (int64_t r = 0; r < n; ++r) {
    QueryRow* row = &rows_[static_cast<size_t>(r)];
    row->q = q_.at(r);
    row->out = out_.at(r);
    row->lse = null_lse && OneIn(&random_, 2) ? nullptr : &lse_[static_cast<size_t>(r)];
    row->slope = random_.Normal() * 0.01f;
    if (wild_slopes)
      row->slope = OneOf(&random_, {0.0f, -0.0f, 1e-30f, 1e30f, kInfinity, -kInfinity, FromBits(0xFFA00001u)});
    row->sink = random_.Normal() * 3.0f;
    if (wild_sinks)
      row->sink = OneOf(&random_, {0.0f, -0.0f, 100.0f, -100.0f, kInfinity, -kInfinity, FromBits(0xFFA00001u)});
    if (overflows_ && OneIn(&random_, 3)) {
      for (int64_t c = 0; c < head_dim_; ++c) StoreElement(q_type, q_.at(r), static_cast<size_t>(c), 1000.0f);
    }
  }
  Say("rows " + Number(n) + " head_dim " + Number(head_dim_) + " value_dim " + Number(value_dim_) + " q " +
      Name(q_type) + "/" + Number(q_.stride_bytes()) + " filling " + Number(static_cast<int64_t>(filling)) + " out " +
      Name(out_type_) + "/" + Number(out_.stride_bytes()) + " scale " + std::to_string(options_.scale));
  if (options_.softcap > 0) Say("softcap " + std::to_string(options_.softcap));
  if (options_.alibi) Say(wild_slopes ? "wild alibi" : "alibi");
  if (sinks_) Say(wild_sinks ? "wild sinks" : "sinks");
  if (overflows_) Say("overflows");
}

void RandomTile::DrawSource() {
  const int64_t n = static_cast<int64_t>(rows_.size());
  const int64_t dims = n * (head_dim_ + value_dim_);
  KeySource source = {};
  source.num_keys = std::min(AnyKeys(&random_), std::max<int64_t>(1, work_ / dims));
  products_ += source.num_keys * dims;
  source.base = AnyBase(&random_, source.num_keys);
  source.k_type = AnyType(&random_);
  source.v_type = AnyType(&random_);
  const auto rows_of = [&](DType type, int64_t dim) {
    const int64_t size = static_cast<int64_t>(ElementSize(type));
    return Rows(source.num_keys, dim, AnyStride(&random_, dim * size, size, source.num_keys), type, random_.Below(8));
  };
  auto data = std::make_unique<Source>();
  data->k = rows_of(source.k_type, head_dim_);
  data->v = rows_of(source.v_type, value_dim_);
  const Filling k_filling = AnyFilling(&random_), v_filling = AnyFilling(&random_);
  data->k.Fill(k_filling, &random_);
  data->v.Fill(v_filling, &random_);
  if (overflows_ && data->k.stride_bytes() != 0) {  // s = -inf in some rows
    for (int64_t t = 0; t < source.num_keys; ++t) {
      if (random_.Below(3) != 0) continue;
      const float x = OneIn(&random_, 8) ? Huge(source.k_type) : -Huge(source.k_type);
      for (int64_t c = 0; c < head_dim_; ++c) StoreElement(source.k_type, data->k.at(t), static_cast<size_t>(c), x);
    }
  }
  source.k_stride_bytes = data->k.stride_bytes();
  source.v_stride_bytes = data->v.stride_bytes();
  source.k = data->k.at(0);
  source.v = data->v.at(0);
  std::vector<RowKeys> keys(rows_.size());
  Say("[" + Number(source.base) + " + " + Number(source.num_keys) + " k " + Name(source.k_type) + "/" +
      Number(source.k_stride_bytes) + " filling " + Number(static_cast<int64_t>(k_filling)) + " v " +
      Name(source.v_type) + "/" + Number(source.v_stride_bytes) + " filling " +
      Number(static_cast<int64_t>(v_filling)));
  DrawPositions(keys.data());
  DrawSpans(&source, keys.data());
  if (OneIn(&random_, 4)) DrawBias(data.get(), &source, keys.data());
  if (OneIn(&random_, 4)) source.first_column = random_.Below(300);
  if (OneIn(&random_, 4)) DrawMask(data.get(), &source, keys.data());
  if (OneIn(&random_, 4)) DrawRuns(data.get(), source, keys.data());
  if (OneIn(&random_, 3)) Poison(data.get(), source, keys.data());
  Say("]");
  bool any = false;
  for (const RowKeys& k : keys) any |= k.span.first < k.span.last;
  if (!any) source.k = source.v = nullptr;
  data_.push_back(std::move(data));
  sources_.push_back(source);
  keys_.push_back(keys);
}

void RandomTile::DrawPositions(RowKeys* keys) {
  const int64_t positions = random_.Below(5), far = random_.Below(4);
  for (size_t r = 0; r < rows_.size(); ++r) {
    const int64_t near = static_cast<int64_t>(r) + random_.Below(3);
    int64_t* position = &keys[r].position;
    *position = positions == 0   ? near
                : positions == 1 ? kMostPosition - near
                : positions == 2 ? -kMostPosition + near
                : positions == 3 ? (int64_t{1} << (30 + far)) + near - 2  // 32 bits do, or do not
                                 : random_.Below(4000) - 2000;
    if (positions == 4 && OneIn(&random_, 4)) *position = static_cast<int64_t>(random_.Next());
    if (positions == 4 && OneIn(&random_, 16)) *position = OneIn(&random_, 2) ? INT64_MIN : INT64_MAX;
  }
}

void RandomTile::DrawSpans(KeySource* source, RowKeys* keys) {
  const int64_t n = static_cast<int64_t>(rows_.size()), base = source->base, num_keys = source->num_keys;
  const Span all = {base, base + num_keys};
  const int64_t mode = random_.Below(8), start = random_.Below(num_keys + 1), window = random_.Below(num_keys + 1);
  for (int64_t r = 0; r < n; ++r) {
    Span* span = &keys[r].span;
    switch (mode) {
      case 0:
      case 1:
        *span = all;
        break;
      case 2:  // causal
        *span = {base, base + std::min(num_keys, start + r)};
        break;
      case 3:  // a window that moves
        *span = {base + std::min(num_keys, std::max<int64_t>(0, start + r - window)),
                 base + std::min(num_keys, start + r)};
        break;
      case 4:
        *span = SomeKeys(&random_, base, num_keys);
        break;
      case 5:  // one key, or all
        *span = {base + random_.Below(num_keys + 1), 0};
        span->last = std::min(span->first + 1, all.last);
        if (OneIn(&random_, 3)) *span = all;
        break;
      case 6:
        *span = OneIn(&random_, 2) ? NoKeys(&random_, base, num_keys) : SomeKeys(&random_, base, num_keys);
        break;
      default:  // all but a few
        *span = all;
        if (OneIn(&random_, 4)) *span = NoKeys(&random_, base, num_keys);
    }
    if (OneIn(&random_, 40)) *span = NoKeys(&random_, base, num_keys);
  }
  Say("spans " + Number(mode));
}

void RandomTile::DrawBias(Source* data, KeySource* source, RowKeys* keys) {
  const DType type = AnyType(&random_);
  const int64_t size = static_cast<int64_t>(ElementSize(type));
  source->bias_type = type;
  source->bias_stride_bytes = size * OneOf(&random_, {1, 1, 1, 2, 5, -1, 0});
  const int64_t kinds = 1 + random_.Below(3), absent = random_.Below(4);
  for (int64_t i = 0; i < kinds; ++i) {  // rows share them
    Rows bias(source->num_keys, 1, source->bias_stride_bytes, type, random_.Below(8));
    bias.Fill(AnyFilling(&random_), &random_);
    for (int64_t t = 0; t < source->num_keys && absent != 0; ++t) {
      const bool whole_chunk = absent == 2 && (source->base + t) / kChunk % 2 == 0;
      if (whole_chunk || OneIn(&random_, 4)) StoreElement(type, bias.at(t), 0, -kInfinity);
    }
    data->biases.push_back(std::move(bias));
  }
  for (size_t r = 0; r < rows_.size(); ++r) {
    const int64_t kind = random_.Below(kinds + (absent == 3 ? 1 : 0));
    if (kind < kinds) keys[r].bias = data->biases[static_cast<size_t>(kind)].at(0);
  }
  Say(std::string("bias ") + Name(type) + "/" + Number(source->bias_stride_bytes));
}

// Runs of columns, of which some begin before the source does, or end beyond it.
void RandomTile::DrawRuns(Source* data, const KeySource& source, RowKeys* keys) {
  const int64_t kinds = 1 + random_.Below(3), longest = 1 + random_.Below(OneIn(&random_, 2) ? 20 : 700);
  const int64_t end = source.first_column + source.num_keys + random_.Below(100);
  for (int64_t i = 0; i < kinds; ++i) {
    std::vector<Span> runs;
    for (int64_t at = random_.Below(longest + 1); at < end;) {
      const int64_t last = at + 1 + random_.Below(longest);
      runs.push_back({at, last});
      at = last + 1 + random_.Below(longest);
    }
    if (OneIn(&random_, 8)) runs.clear();
    runs.reserve(1);  // not null if there are none
    data->runs.push_back(std::move(runs));
  }
  for (size_t r = 0; r < rows_.size(); ++r) {
    const int64_t kind = random_.Below(kinds + 1);
    if (kind == kinds) continue;
    const std::vector<Span>& runs = data->runs[static_cast<size_t>(kind)];
    keys[r].runs = runs.data();
    keys[r].num_runs = static_cast<int64_t>(runs.size());
  }
  Say("runs/" + Number(longest));
}

void RandomTile::DrawMask(Source* data, KeySource* source, RowKeys* keys) {
  if (OneIn(&random_, 3)) return DrawBits(data, source, keys);
  source->mask_stride_bytes = OneOf(&random_, {1, 1, 1, 2, 7, -1, 0});
  const int64_t kinds = 1 + random_.Below(3), dense = 1 + random_.Below(6);
  const int64_t last = std::max<int64_t>(0, source->first_column + source->num_keys - 1) * source->mask_stride_bytes;
  for (int64_t i = 0; i < kinds; ++i) {
    ByteVector mask(static_cast<size_t>(std::abs(last) + 1));
    for (unsigned char& m : mask) m = OneIn(&random_, dense) ? 0 : static_cast<unsigned char>(1 + random_.Below(255));
    data->masks.push_back(std::move(mask));
  }
  for (size_t r = 0; r < rows_.size(); ++r) {
    const int64_t kind = random_.Below(kinds + 1);
    if (kind < kinds) keys[r].mask = data->masks[static_cast<size_t>(kind)].data() + std::max<int64_t>(0, -last);
  }
  Say("mask/" + Number(source->mask_stride_bytes));
}

void RandomTile::DrawBits(Source* data, KeySource* source, RowKeys* keys) {
  source->mask_type = MaskType::kBits;
  const int64_t kinds = 1 + random_.Below(3), dense = random_.Below(4);
  for (int64_t i = 0; i < kinds; ++i) {
    ByteVector mask(static_cast<size_t>((source->first_column + source->num_keys + 7) / 8));
    for (unsigned char& m : mask) {
      m = dense == 0 ? 0xFF : static_cast<unsigned char>(random_.Below(256));
      if (dense > 1 && OneIn(&random_, dense)) m = OneIn(&random_, 2) ? 0 : 0xFF;
    }
    data->masks.push_back(std::move(mask));
  }
  for (size_t r = 0; r < rows_.size(); ++r) {
    const int64_t kind = random_.Below(kinds + 1);
    if (kind < kinds) keys[r].mask = data->masks[static_cast<size_t>(kind)].data();
  }
  Say("bits/" + Number(source->first_column));
}

bool RandomTile::Allowed(const KeySource& source, const RowKeys& keys, int64_t key) const {
  const int64_t position = source.base + key;
  if (position < keys.span.first || position >= keys.span.last) return false;
  const int64_t column = key + source.first_column;
  if (keys.mask != nullptr) {
    const bool bits = source.mask_type == MaskType::kBits;
    if ((bits ? keys.mask[column / 8] >> column % 8 & 1 : keys.mask[column * source.mask_stride_bytes]) == 0)
      return false;
  }
  bool in_runs = keys.runs == nullptr;
  for (int64_t i = 0; i < keys.num_runs; ++i) in_runs |= keys.runs[i].first <= column && column < keys.runs[i].last;
  if (!in_runs) return false;
  if (keys.bias == nullptr) return true;
  const unsigned char* bias = static_cast<const unsigned char*>(keys.bias) + key * source.bias_stride_bytes;
  return LoadElement(source.bias_type, bias, 0) != -kInfinity;
}

// Keys that some rows, or all, do not see hold NaN and infinities: these rows must not notice.
void RandomTile::Poison(Source* data, const KeySource& source, const RowKeys* keys) {
  if (data->v.stride_bytes() == 0 || data->k.stride_bytes() == 0) return;
  const bool unseen_only = OneIn(&random_, 2);
  for (int64_t t = 0; t < source.num_keys; ++t) {
    size_t seen = 0;
    for (size_t r = 0; r < rows_.size(); ++r) seen += Allowed(source, keys[r], t) ? 1 : 0;
    if (seen == rows_.size() || (unseen_only && seen > 0)) continue;
    if (OneIn(&random_, 2)) {
      StoreWord(source.v_type, data->v.at(t), random_.Below(value_dim_), SpecialWord(source.v_type, &random_));
    }
    if (OneIn(&random_, 4)) {
      StoreWord(source.k_type, data->k.at(t), random_.Below(head_dim_), SpecialWord(source.k_type, &random_));
    }
  }
  Say(unseen_only ? "unseen keys poisoned" : "keys poisoned");
}

AttendArgs RandomTile::Args(void* scratch) const {
  AttendArgs args = {};
  args.rows = rows_.data();
  args.num_rows = rows_.size();
  args.sources = sources_.data();
  args.num_sources = sources_.size();
  args.head_dim = static_cast<size_t>(head_dim_);
  args.value_dim = static_cast<size_t>(value_dim_);
  args.options = options_;
  args.out_type = out_type_;
  args.sinks = sinks_;
  args.scratch = scratch;
  return args;
}

void RandomTile::Attend(const KernelTable& table) {
  const ScratchMemory scratch(table, head_dim_, value_dim_);
  AttendArgs args = Args(scratch.get());
  std::vector<RowKeys> keys;
  for (const std::vector<RowKeys>& of_source : keys_) keys.insert(keys.end(), of_source.begin(), of_source.end());
  args.keys = keys.data();
  out_.Overwrite(kUnwritten);
  std::fill(lse_.begin(), lse_.end(), 7.0f);
  InEnvironment([&] { table.attend(args); });
  written_ = out_.Copy();
  Append(lse_, &written_);
}

void RandomTile::Scores(const KernelTable& table) {
  const ScratchMemory scratch(table, head_dim_, 0);
  const int64_t n = static_cast<int64_t>(rows_.size()), last = (n - 1) * score_stride_;
  std::vector<float> s(static_cast<size_t>(std::abs(last) + sources_[0].num_keys), 7.0f);
  const ScoresArgs args = {rows_.data(),
                           rows_.size(),
                           keys_[0].data(),
                           &sources_[0],
                           static_cast<size_t>(head_dim_),
                           options_,
                           s.data() + std::max<int64_t>(0, -last),
                           score_stride_,
                           scratch.get()};
  InEnvironment([&] { table.scores(args); });
  written_.clear();
  Append(s, &written_);
}

void RandomTile::BlockStates(const KernelTable& table) {
  const ScratchMemory scratch(table, head_dim_, value_dim_);
  BlockStatesArgs args = {};
  args.tile = Args(scratch.get());
  args.tile.sources = &sources_[states_source_];
  args.tile.num_sources = 1;
  args.tile.keys = keys_[states_source_].data();
  args.first_block = first_block_;
  args.last_block = last_block_;
  const size_t states = rows_.size() * static_cast<size_t>(state_stride_);
  m_.assign(states, 7.0f);
  l_.assign(states, 7.0f);
  o_.assign(states * static_cast<size_t>(value_dim_), 7.0f);
  args.states = {m_.data(), l_.data(), o_.data(), state_stride_};
  InEnvironment([&] { table.block_states(args); });
  written_.clear();
  Append(m_, &written_);
  Append(l_, &written_);
  Append(o_, &written_);
}

void RandomTile::KeepStates() {
  kept_m_ = m_;
  kept_l_ = l_;
  kept_o_ = o_;
}

void RandomTile::Fold(const KernelTable& table) {
  const ScratchMemory scratch(table, 0, value_dim_);
  std::vector<float> m = kept_m_, l = kept_l_, o = kept_o_;  // States has no const form
  FoldArgs args = {};
  args.rows = rows_.data();
  args.num_rows = rows_.size();
  args.states = {m.data(), l.data(), o.data(), state_stride_};
  args.num_states = last_block_ - first_block_;
  args.value_dim = static_cast<size_t>(value_dim_);
  args.out_type = out_type_;
  args.sinks = sinks_;
  args.scratch = scratch.get();
  out_.Overwrite(kUnwritten);
  std::fill(lse_.begin(), lse_.end(), 7.0f);
  InEnvironment([&] { table.fold(args); });
  written_ = out_.Copy();
  Append(lse_, &written_);
}

void RandomTile::KeepRows(size_t first, size_t last) {
  const auto keep = [&](auto* values) {
    values->erase(values->begin() + static_cast<ptrdiff_t>(last), values->end());
    values->erase(values->begin(), values->begin() + static_cast<ptrdiff_t>(first));
  };
  keep(&rows_);
  for (std::vector<RowKeys>& keys : keys_) keep(&keys);
}

std::string RandomTile::DescribeRow(size_t row) const {
  const QueryRow& r = rows_[row];
  std::string text = "slope " + std::to_string(r.slope) + " sink " + std::to_string(r.sink);
  for (const std::vector<RowKeys>& keys : keys_) {
    text += " position " + Number(keys[row].position) + " [" + Number(keys[row].span.first) + ", " +
            Number(keys[row].span.last) + ")";
    if (keys[row].bias != nullptr) text += " bias";
    if (keys[row].mask != nullptr) text += " mask";
    if (keys[row].runs != nullptr) text += " runs";
  }
  return text;
}

// Of Attend and Fold; the others are arrays of floats.
std::string RandomTile::Where(size_t offset) const {
  const int64_t at = static_cast<int64_t>(offset), size = static_cast<int64_t>(ElementSize(out_type_));
  if (at >= out_.bytes()) return "lse of row " + Number((at - out_.bytes()) / 4);
  for (size_t r = 0; r < rows_.size(); ++r) {
    const int64_t first = static_cast<const unsigned char*>(rows_[r].out) - out_.start();
    if (at < first || at >= first + value_dim_ * size) continue;
    return "row " + std::to_string(r) + " channel " + Number((at - first) / size);
  }
  return "memory that belongs to no row";
}

}  // namespace etalon::test
