#include "bench/support/extras.h"

#include <cstring>

#include "bench/support/attention.h"
#include "tests/support/generate.h"

namespace etalon::bench {
namespace {

constexpr int64_t kBlockTokens = 128;

// As good as random, and known without a table.
uint64_t Hash(int64_t a, int64_t b) {
  return test::Random(static_cast<uint64_t>(a) * 0x9E3779B97F4A7C15u + static_cast<uint64_t>(b)).Next();
}

}  // namespace

bool ExtrasSpec::Shows(int64_t row, int64_t key) const {
  if (mask && Hash(row, key) % 8 == 0) return false;
  if (document > 0 && row / document != key / document) return false;
  const int64_t q_block = row / kBlockTokens, kv_block = key / kBlockTokens;
  return one_block_of == 0 || q_block == kv_block || Hash(q_block, kv_block) % static_cast<uint64_t>(one_block_of) == 0;
}

Extras::Extras(const ExtrasSpec& spec, int64_t heads, int64_t q_len, int64_t kv_len)
    : spec_(spec),
      q_len_(q_len),
      kv_len_(kv_len),
      slopes_(spec.alibi ? static_cast<size_t>(heads) : 0),
      bias_data_(spec.bias ? FloatBytes(q_len * kv_len) : 0),
      mask_data_(spec.mask ? static_cast<size_t>(q_len * kv_len) : 0),
      bias_(bias_data_.floats(), {1, 1, q_len, kv_len}),
      mask_(mask_data_.data(), static_cast<ElementType>(ETALON_BOOL), {1, 1, q_len, kv_len}) {
  Status status;
  if (spec.alibi) status.Set(etalon_alibi_slopes(heads, slopes_.data(), status.error()));
  Require(status);
  if (spec.bias) FillNormal(&bias_data_, ElementType::kF32, 4);
  for (int64_t i = 0; spec.mask && i < q_len * kv_len; ++i) {
    static_cast<uint8_t*>(mask_data_.data())[i] = spec.Shows(i / kv_len, i % kv_len) ? 1 : 0;
  }
  if (spec.document > 0 || spec.one_block_of > 0) PrepareMask();
}

void Extras::PrepareMask() {
  etalon_mask_args args;
  Status status;
  status.Set(etalon_mask_args_init(&args, sizeof args));
  Require(status);
  args.batch = args.num_heads = 1;
  args.q_len = q_len_;
  args.kv_len = kv_len_;
  std::vector<int64_t> documents, starts = {0}, blocks;
  if (spec_.document > 0) {
    for (int64_t i = 0; i < std::max(q_len_, kv_len_); ++i) documents.push_back(i / spec_.document);
    args.q_segments = args.kv_segments = documents.data();
  } else {
    for (int64_t row = 0; row < q_len_; row += kBlockTokens) {
      for (int64_t key = 0; key < kv_len_; key += kBlockTokens) {
        if (spec_.Shows(row, key)) blocks.push_back(key / kBlockTokens);
      }
      starts.push_back(static_cast<int64_t>(blocks.size()));
    }
    args.q_block = args.kv_block = kBlockTokens;
    args.block_starts = starts.data();
    args.blocks = blocks.data();
  }
  size_t bytes;
  status.Set(etalon_mask_bytes(&args, &bytes, status.error()));
  Require(status);
  prepared_data_ = std::make_unique<Buffer>(bytes);
  const etalon_workspace memory = {prepared_data_->data(), bytes};
  status.Set(etalon_mask_prepare(&args, &memory, &prepared_, status.error()));
  Require(status);
}

void Extras::SetDesc(AttentionDesc* desc) const {
  desc->softcap = spec_.softcap;
  if (spec_.alibi) desc->options |= ETALON_OPTION_ALIBI;
  if (spec_.bias) desc->options |= ETALON_OPTION_BIAS;
  if (spec_.Masks()) desc->options |= ETALON_OPTION_MASK;
}

void Extras::SetArgs(AttentionArgs* args) const {
  if (spec_.bias) args->bias = &bias_;
  if (spec_.mask) args->mask = &mask_;
  args->prepared_mask = prepared_;
}

std::unique_ptr<Extras::Row> Extras::RowOf(int64_t head, int64_t row) const {
  std::vector<uint8_t> shown;
  for (int64_t t = 0; spec_.Masks() && t < kv_len_; ++t) shown.push_back(spec_.Shows(row, t) ? 1 : 0);
  auto result = std::make_unique<Row>(Row{std::move(shown), bias_, mask_, mask_});
  result->bias = Tensor(bias_data_.data(), ElementType::kF32, {1, 1, 1, kv_len_});
  if (spec_.bias) result->bias.data = const_cast<float*>(static_cast<const float*>(bias_data_.data()) + row * kv_len_);
  result->mask = Tensor(result->shown.data(), static_cast<ElementType>(ETALON_BOOL), {1, 1, 1, kv_len_});
  result->slope = Tensor(slopes_.data() + (spec_.alibi ? head : 0), {1});
  return result;
}

void Extras::SetRowArgs(const Row& row, AttentionArgs* args) const {
  if (spec_.bias) args->bias = &row.bias;
  if (spec_.Masks()) args->mask = &row.mask;
  if (spec_.alibi) args->slopes = &row.slope;
}

void Extras::SetCase(int64_t head, const std::vector<int64_t>& rows, test::AttentionCase* c) const {
  test::SourceData* source = &c->sources[0];
  c->softcap = spec_.softcap;
  if (spec_.alibi) c->slopes.assign(rows.size(), slopes_[static_cast<size_t>(head)]);
  for (const int64_t row : rows) {
    c->q_pos.push_back(row + kv_len_ - q_len_);
    for (int64_t t = 0; spec_.Masks() && t < kv_len_; ++t) source->mask.push_back(spec_.Shows(row, t) ? 1 : 0);
  }
  if (!spec_.bias) return;
  std::vector<float> bias;
  for (const int64_t row : rows) {
    const float* of_row = static_cast<const float*>(bias_data_.data()) + row * kv_len_;
    bias.insert(bias.end(), of_row, of_row + kv_len_);
  }
  source->bias = test::Array(DType::kF32, bias);
}

}  // namespace etalon::bench
