#include "tests/kernels/random_tile.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "lib/base/arithmetic.h"
#include "tests/kernels/kernel_test.h"

namespace etalon::test {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr unsigned char kUnwritten = 0xA5;
constexpr int64_t kMostPosition = int64_t{1} << 62;

DType AnyType(Random* random) { return static_cast<DType>(random->Below(3)); }
bool OneIn(Random* random, int64_t n) { return random->Below(n) == 0; }

template <typename T, size_t N>
T OneOf(Random* random, const T (&values)[N]) {
  return values[random->Below(static_cast<int64_t>(N))];
}

// Around multiples of what is in a vector or a register tile.
int64_t AnyDim(Random* random) {
  if (OneIn(random, 8)) return 1 + random->Below(5);
  if (OneIn(random, 8)) return OneOf(random, {64, 80, 96, 128, 256, 257});
  constexpr int64_t kUnits[] = {4, 8, 16, 24};
  return std::max<int64_t>(1, OneOf(random, kUnits) * (1 + random->Below(5)) + random->Below(3) - 1);
}

int64_t AnyRows(Random* random) {
  if (OneIn(random, 3)) return 1 + random->Below(9);  // those of decode
  if (OneIn(random, 3)) return 1 + random->Below(200);
  constexpr int64_t kUnits[] = {4, 8, 16, 24, 32, 48, 64, 96, 128};
  return std::max<int64_t>(
      1, std::min<int64_t>(200, OneOf(random, kUnits) * (1 + random->Below(2)) + random->Below(3) - 1));
}

int64_t AnyKeys(Random* random) {
  if (OneIn(random, 12)) return 0;
  if (OneIn(random, 2)) return 1 + random->Below(1700);
  return TailSizes()[static_cast<size_t>(random->Below(static_cast<int64_t>(TailSizes().size())))];
}

int64_t AnyBase(Random* random, int64_t num_keys) {
  if (OneIn(random, 3)) return 0;
  if (OneIn(random, 8)) return kMostPosition - num_keys - random->Below(700);
  if (OneIn(random, 8)) return (int64_t{1} << 31) - random->Below(1000);
  if (OneIn(random, 8)) return static_cast<int64_t>(random->Next() >> 3);
  constexpr int64_t kBases[] = {1, 127, 128, 129, 500, 511, 512, 513, 1000, 123456789};
  return OneOf(random, kBases);
}

Filling AnyFilling(Random* random) {
  if (random->Below(3) != 0) return Filling::kNormal;
  return static_cast<Filling>(random->Below(7));
}

// Bits of the number itself, for a type; NaN of either sign and with payload.
uint32_t SpecialWord(DType type, Random* random) {
  const int bits = type == DType::kF32 ? 32 : 16, mantissa = type == DType::kF32 ? 23 : type == DType::kF16 ? 10 : 7;
  const uint32_t sign = OneIn(random, 2) ? 1u << (bits - 1) : 0u;
  const uint32_t infinity = ((1u << (bits - 1 - mantissa)) - 1) << mantissa;
  const uint32_t words[] = {0,
                            1,
                            (1u << mantissa) - 1,
                            infinity - 1,
                            infinity,
                            infinity,
                            infinity | 1,
                            infinity | (1u << (mantissa - 1)),
                            infinity | ((1u << mantissa) - 1)};
  return sign | OneOf(random, words);
}

void StoreWord(DType type, void* row, int64_t c, uint32_t word) {
  std::memcpy(static_cast<unsigned char*>(row) + c * static_cast<int64_t>(ElementSize(type)), &word, ElementSize(type));
}

float Huge(DType type) { return type == DType::kF16 ? 60000.0f : 3e38f; }

int64_t AnyStride(Random* random, int64_t row_bytes, int64_t element, int64_t rows) {
  const int64_t sign = OneIn(random, 4) ? -1 : 1;
  if (OneIn(random, 12)) return 0;
  if (OneIn(random, 16)) return sign * element;  // rows overlap, which inputs may
  if (OneIn(random, 2)) return sign * row_bytes;
  if (OneIn(random, 2) || rows > 400) return sign * (row_bytes + element * (1 + random->Below(40)));
  constexpr int64_t kPowers[] = {512, 1024, 2048, 4096};
  const int64_t power = OneOf(random, kPowers);
  return sign * ((row_bytes + power - 1) / power * power);
}

// Where first >= last there are no keys, wherever the two lie.
Span NoKeys(Random* random, int64_t base, int64_t num_keys) {
  switch (random->Below(4)) {
    case 0:
      return {INT64_MAX, INT64_MIN};
    case 1:
      return {0, 0};
    case 2:
      return {base + num_keys, base};
    default: {
      const int64_t at = base + random->Below(num_keys + 1);
      return {at, at};
    }
  }
}

Span SomeKeys(Random* random, int64_t base, int64_t num_keys) {
  const int64_t a = random->Below(num_keys + 1), b = random->Below(num_keys + 1);
  return {base + std::min(a, b), base + std::max(a, b)};
}

std::string Number(int64_t n) { return std::to_string(n); }
const char* Name(DType type) { return type == DType::kF32 ? "f32" : type == DType::kF16 ? "f16" : "bf16"; }

}  // namespace

// ------------------------------------------------------------------------------------------------------------ rows

Rows::Rows(int64_t rows, int64_t elements, int64_t stride_bytes, DType type, int64_t shift)
    : rows_(rows), elements_(elements), stride_bytes_(stride_bytes), type_(type) {
  const int64_t size = static_cast<int64_t>(ElementSize(type)), last = std::max<int64_t>(0, rows - 1) * stride_bytes;
  origin_ = (shift % 4 == 0 ? 0 : shift * size) + std::max<int64_t>(0, -last);
  const int64_t bytes = rows == 0 ? 0 : origin_ + std::max<int64_t>(0, last) + elements * size;
  memory_ = std::make_unique<GuardBuffer>(static_cast<size_t>(bytes), shift % 4 == 0 ? Guard::kBelow : Guard::kAbove);
}

void Rows::Fill(Filling filling, Random* random) {
  for (int64_t r = 0; r < (stride_bytes_ == 0 ? std::min<int64_t>(rows_, 1) : rows_); ++r) {
    for (int64_t c = 0; c < elements_; ++c) {
      const bool special = (filling == Filling::kManySpecials && OneIn(random, 8)) ||
                           (filling == Filling::kFewSpecials && OneIn(random, 200));
      if (special) {
        StoreWord(type_, at(r), c, SpecialWord(type_, random));
        continue;
      }
      float x = random->Normal();
      if (filling == Filling::kTies) x = static_cast<float>(random->Below(3) - 1);
      if (filling == Filling::kSubnormal) x *= type_ == DType::kF16 ? 0x1p-17f : 0x1p-128f;
      if (filling == Filling::kHuge) x = std::copysign(Huge(type_), x);
      if (filling == Filling::kZeros) x = std::copysign(0.0f, x);
      StoreElement(type_, at(r), static_cast<size_t>(c), x);
    }
  }
}

// ------------------------------------------------------------------------------------------------------------ tile

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
  const int64_t positions = random_.Below(4);
  const bool wild_slopes = OneIn(&random_, 6), null_lse = OneIn(&random_, 4), wild_sinks = OneIn(&random_, 2);
  for (int64_t r = 0; r < n; ++r) {
    QueryRow* row = &rows_[static_cast<size_t>(r)];
    row->q = q_.at(r);
    row->out = out_.at(r);
    row->lse = null_lse && OneIn(&random_, 2) ? nullptr : &lse_[static_cast<size_t>(r)];
    const int64_t near = r + random_.Below(3);
    row->position = positions == 0   ? near
                    : positions == 1 ? kMostPosition - near
                    : positions == 2 ? -kMostPosition + near
                                     : random_.Below(4000) - 2000;
    if (positions == 3 && OneIn(&random_, 4)) row->position = static_cast<int64_t>(random_.Next());
    if (positions == 3 && OneIn(&random_, 16)) row->position = OneIn(&random_, 2) ? INT64_MIN : INT64_MAX;
    row->slope = random_.Normal() * 0.01f;
    if (wild_slopes) row->slope = OneOf(&random_, {0.0f, -0.0f, 1e-30f, 1e30f, kInfinity, -kInfinity, NAN});
    row->sink = random_.Normal() * 3.0f;
    if (wild_sinks) row->sink = OneOf(&random_, {0.0f, -0.0f, 100.0f, -100.0f, kInfinity, -kInfinity, NAN});
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
  DrawSpans(&source, keys.data());
  if (OneIn(&random_, 4)) DrawBias(data.get(), &source, keys.data());
  if (OneIn(&random_, 4)) DrawMask(data.get(), &source, keys.data());
  if (OneIn(&random_, 3)) Poison(data.get(), source, keys.data());
  Say("]");
  bool any = false;
  for (const RowKeys& k : keys) any |= k.span.first < k.span.last;
  if (!any) source.k = source.v = nullptr;
  data_.push_back(std::move(data));
  sources_.push_back(source);
  keys_.push_back(keys);
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

void RandomTile::DrawMask(Source* data, KeySource* source, RowKeys* keys) {
  source->mask_stride_bytes = OneOf(&random_, {1, 1, 1, 2, 7, -1, 0});
  const int64_t kinds = 1 + random_.Below(3), dense = 1 + random_.Below(6);
  const int64_t last = std::max<int64_t>(0, source->num_keys - 1) * source->mask_stride_bytes;
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

bool RandomTile::Allowed(const KeySource& source, const RowKeys& keys, int64_t key) const {
  const int64_t position = source.base + key;
  if (position < keys.span.first || position >= keys.span.last) return false;
  if (keys.mask != nullptr && keys.mask[key * source.mask_stride_bytes] == 0) return false;
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

void RandomTile::Take(const std::vector<float>& values) {
  const unsigned char* bytes = reinterpret_cast<const unsigned char*>(values.data());
  written_.insert(written_.end(), bytes, bytes + values.size() * sizeof(float));
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
  written_.clear();
  Take(lse_);
  Take(out_.Copy());
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
  Take(s);
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
  Take(m_);
  Take(l_);
  Take(o_);
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
  written_.clear();
  Take(lse_);
  Take(out_.Copy());
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
  std::string text =
      "position " + Number(r.position) + " slope " + std::to_string(r.slope) + " sink " + std::to_string(r.sink);
  for (const std::vector<RowKeys>& keys : keys_) {
    text += " [" + Number(keys[row].span.first) + ", " + Number(keys[row].span.last) + ")";
    if (keys[row].bias != nullptr) text += " bias";
    if (keys[row].mask != nullptr) text += " mask";
  }
  return text;
}

// Of Attend and Fold; the others are arrays of floats.
std::string RandomTile::Where(size_t offset) const {
  if (offset < lse_.size() * sizeof(float)) return "lse of row " + std::to_string(offset / sizeof(float));
  const int64_t at = static_cast<int64_t>(offset - lse_.size() * sizeof(float));
  const int64_t size = static_cast<int64_t>(ElementSize(out_type_));
  for (size_t r = 0; r < rows_.size(); ++r) {
    const int64_t first = static_cast<const unsigned char*>(rows_[r].out) - out_.start();
    if (at >= first && at < first + value_dim_ * size)
      return "row " + std::to_string(r) + " channel " + Number((at - first) / size);
  }
  return "memory that belongs to no row";
}

// ------------------------------------------------------------------------------------------------------ primitives

ByteVector RandomSoftmaxRows(uint64_t seed, const KernelTable& table, std::string* text) {
  Random random(seed);
  const int64_t n = AnyRows(&random), num_keys = AnyKeys(&random) / (1 + n / 20);
  const bool in_place = OneIn(&random, 3), masked = OneIn(&random, 2), spans = OneIn(&random, 2),
             nulls = OneIn(&random, 4);
  const int64_t mask_stride = OneOf(&random, {1, 1, 2, -1, 0}), stride = num_keys + random.Below(5);
  Rows s(n, num_keys, stride * 4, DType::kF32, random.Below(8)),
      w(n, num_keys, stride * 4, DType::kF32, random.Below(8));
  const Filling filling = AnyFilling(&random);
  s.Fill(filling, &random);
  const int64_t absent = random.Below(3);
  for (int64_t r = 0; r < n && absent > 0; ++r) {
    for (int64_t j = 0; j < num_keys; ++j) {
      if (OneIn(&random, absent == 1 ? 2 : 20)) StoreElement(DType::kF32, s.at(r), static_cast<size_t>(j), -kInfinity);
    }
  }
  w.Overwrite(kUnwritten);
  const int64_t last = std::max<int64_t>(0, num_keys - 1) * mask_stride;
  ByteVector mask(static_cast<size_t>(std::abs(last) + 1));
  for (unsigned char& m : mask) m = static_cast<unsigned char>(OneIn(&random, 3) ? 0 : 3);
  std::vector<float> lse(static_cast<size_t>(n), 7.0f);
  std::vector<SoftmaxRow> rows;
  for (int64_t r = 0; r < n; ++r) {
    SoftmaxRow row = {};
    row.s = reinterpret_cast<const float*>(s.at(r));
    row.w = reinterpret_cast<float*>(in_place ? s.at(r) : w.at(r));
    row.lse = nulls && OneIn(&random, 2) ? nullptr : &lse[static_cast<size_t>(r)];
    row.span = !spans              ? Span{0, num_keys}
               : OneIn(&random, 4) ? NoKeys(&random, 0, num_keys)
                                   : SomeKeys(&random, 0, num_keys);
    row.mask = masked && !OneIn(&random, 4) ? mask.data() + std::max<int64_t>(0, -last) : nullptr;
    rows.push_back(row);
  }
  *text = "rows " + Number(n) + " keys " + Number(num_keys) + " filling " + Number(static_cast<int64_t>(filling)) +
          (in_place ? " in place" : "") + (spans ? " spans" : "") + (masked ? " mask/" + Number(mask_stride) : "");
  const SoftmaxArgs args = {rows.data(), rows.size(), num_keys, mask_stride};
  InEnvironment([&] { table.softmax(args); });
  ByteVector written = (in_place ? s : w).Copy();
  const unsigned char* bytes = reinterpret_cast<const unsigned char*>(lse.data());
  written.insert(written.end(), bytes, bytes + lse.size() * sizeof(float));
  return written;
}

ByteVector RandomWeightedSumRows(uint64_t seed, const KernelTable& table, std::string* text) {
  Random random(seed);
  const int64_t n = AnyRows(&random), num_keys = AnyKeys(&random) / (1 + n / 8), value_dim = AnyDim(&random);
  const DType v_type = AnyType(&random), out_type = AnyType(&random);
  const int64_t v_size = static_cast<int64_t>(ElementSize(v_type)),
                out_size = static_cast<int64_t>(ElementSize(out_type));
  Rows v(num_keys, value_dim, AnyStride(&random, value_dim * v_size, v_size, num_keys), v_type, random.Below(8));
  const Filling v_filling = AnyFilling(&random), w_filling = AnyFilling(&random);
  v.Fill(v_filling, &random);
  Rows w(n, num_keys, (num_keys + random.Below(5)) * 4, DType::kF32, random.Below(8));
  w.Fill(w_filling, &random);
  Rows out(n, value_dim, (value_dim + random.Below(5)) * out_size * (OneIn(&random, 3) ? -1 : 1), out_type,
           random.Below(8));
  out.Overwrite(kUnwritten);
  const bool masked = OneIn(&random, 2), spans = OneIn(&random, 2), causal = OneIn(&random, 2);
  const int64_t mask_stride = OneOf(&random, {1, 1, 2, -1, 0}), last = std::max<int64_t>(0, num_keys - 1) * mask_stride;
  ByteVector mask(static_cast<size_t>(std::abs(last) + 1));
  for (unsigned char& m : mask) m = static_cast<unsigned char>(OneIn(&random, 3) ? 0 : 3);
  std::vector<WeightedSumRow> rows;
  for (int64_t r = 0; r < n; ++r) {
    WeightedSumRow row = {};
    row.w = reinterpret_cast<const float*>(w.at(r));
    row.out = out.at(r);
    row.span = {0, num_keys};
    if (spans) row.span = OneIn(&random, 4) ? NoKeys(&random, 0, num_keys) : SomeKeys(&random, 0, num_keys);
    if (spans && causal) row.span = {0, std::min(num_keys, num_keys / 2 + r)};
    row.mask = masked && !OneIn(&random, 4) ? mask.data() + std::max<int64_t>(0, -last) : nullptr;
    rows.push_back(row);
  }
  *text = "rows " + Number(n) + " keys " + Number(num_keys) + " value_dim " + Number(value_dim) + " v " + Name(v_type) +
          "/" + Number(v.stride_bytes()) + " filling " + Number(static_cast<int64_t>(v_filling)) + " w filling " +
          Number(static_cast<int64_t>(w_filling)) + " out " + Name(out_type) + (spans ? " spans" : "") +
          (masked ? " mask/" + Number(mask_stride) : "");
  const ScratchMemory scratch(table, 0, value_dim);
  WeightedSumArgs args = {};
  args.rows = rows.data();
  args.num_rows = rows.size();
  args.v = v.at(0);
  args.v_stride_bytes = v.stride_bytes();
  args.v_type = v_type;
  args.out_type = out_type;
  args.num_keys = num_keys;
  args.mask_stride_bytes = mask_stride;
  args.value_dim = static_cast<size_t>(value_dim);
  args.scratch = scratch.get();
  InEnvironment([&] { table.weighted_sum(args); });
  return out.Copy();
}

ByteVector RandomMergeRows(uint64_t seed, const KernelTable& table, std::string* text) {
  Random random(seed);
  const int64_t n = AnyRows(&random), value_dim = AnyDim(&random);
  const DType type = AnyType(&random);
  const int64_t size = static_cast<int64_t>(ElementSize(type)), shift = random.Below(8);
  const int64_t stride = (value_dim + random.Below(5)) * size * (OneIn(&random, 3) ? -1 : 1);
  Rows out1(n, value_dim, stride, type, shift), out2(n, value_dim, stride, type, shift),
      out(n, value_dim, stride, type, shift);
  out1.Fill(AnyFilling(&random), &random);
  out2.Fill(AnyFilling(&random), &random);
  out.Overwrite(kUnwritten);
  std::vector<float> lse1 = random.Normals(n, 5.0f), lse2 = random.Normals(n, 5.0f), lse(static_cast<size_t>(n), 7.0f);
  const int64_t odd = random.Below(3);
  for (std::vector<float>* values : {&lse1, &lse2}) {
    for (float& x : *values) {
      if (OneIn(&random, 4)) x = -kInfinity;
      if (odd == 0 && OneIn(&random, 4)) x = OneOf(&random, {kInfinity, NAN, 1e38f, -1e38f, 1e-40f, 0.0f, -0.0f});
    }
  }
  const int64_t into = random.Below(4), lse_into = random.Below(4);
  MergeArgs args = {};
  args.num_rows = static_cast<size_t>(n);
  args.value_dim = static_cast<size_t>(value_dim);
  args.type = type;
  args.out1 = out1.at(0);
  args.out2 = out2.at(0);
  Rows* target = into == 0 ? &out1 : into == 1 ? &out2 : &out;
  args.out = target->at(0);
  args.out1_stride_bytes = args.out2_stride_bytes = args.out_stride_bytes = stride;
  args.lse1 = lse1.data();
  args.lse2 = lse2.data();
  std::vector<float>* lse_target = lse_into == 0 ? &lse1 : lse_into == 1 ? &lse2 : &lse;
  args.lse = lse_into == 3 ? nullptr : lse_target->data();
  *text = "rows " + Number(n) + " value_dim " + Number(value_dim) + " " + Name(type) + "/" + Number(stride) + " into " +
          Number(into) + " lse into " + Number(lse_into);
  InEnvironment([&] { table.merge(args); });
  ByteVector written = target->Copy();
  const unsigned char* bytes = reinterpret_cast<const unsigned char*>(lse_target->data());
  written.insert(written.end(), bytes, bytes + lse_target->size() * sizeof(float));
  return written;
}

}  // namespace etalon::test
