#include "tests/api/entry_points.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "tests/support/generate.h"

namespace etalon::test {
namespace {

constexpr size_t kWorkspaceBytes = size_t{16} << 20;  // three workers at 512 channels take some 5 MiB
enum Answer {
  kAttentionBytes,
  kPlanBytes,
  kDefaultScale,
  kKeyTiles,
  kBytesRead,
  kNumTasks,
  kSumOfSizes,
  kMaskBytes,
  kMaskSum,
  kMaskedTiles,
  kSlopes,  // of 24 heads
  kAnswers = kSlopes + 24
};

// Finite numbers of any sign about 1, and every 7th as small as a number of the type can be: those are lost where
// subnormals are flushed. Words, since this may run in an environment that flushes them.
uint32_t WordOf(DType type, uint64_t random) {
  const uint32_t bits = static_cast<uint32_t>(random >> 32);
  const bool tiny = random % 7 == 0;
  switch (type) {
    case DType::kF16:
      return (bits & 0x8000u) | (tiny ? 1 + (bits & 0x1FFu) : 0x3800u + (bits & 0x7FFu));
    case DType::kBF16:
      return (bits & 0x8000u) | (tiny ? 1 + (bits & 0x3Fu) : 0x3F00u + (bits & 0xFFu));
    default:
      return (bits & 0x80000000u) | (tiny ? 1 + (bits & 0x3FFFFFu) : 0x3F000000u + (bits & 0xFFFFFFu));
  }
}

void TakeTurns(void* workers, int64_t num_tasks, etalon_task_fn fn, void* arg) {
  const int32_t count = *static_cast<const int32_t*>(workers);
  for (int64_t task = 0; task < num_tasks; ++task) fn(arg, task, task + 1, static_cast<int32_t>(task % count));
}

uint64_t BitsOf(float x) {
  uint32_t bits;
  std::memcpy(&bits, &x, sizeof bits);
  return bits;
}

size_t BytesIn(const Array& array) { return static_cast<size_t>(array.size()) * ElementSize(array.type()); }

int32_t Dtype(DType type) { return type == DType::kF16 ? ETALON_F16 : type == DType::kBF16 ? ETALON_BF16 : ETALON_F32; }

}  // namespace

EntryPoints::Data EntryPoints::Make(DType type, const std::vector<int64_t>& shape, uint64_t seed) {
  int64_t count = 1;
  for (int64_t size : shape) count *= size;
  Data data = {Array(type, count), {}};
  Random random(seed);
  for (int64_t i = 0; i < count; ++i) data.array.SetWord(i, WordOf(type, random.Next()));
  // The bytes of an array do not move with it: they are on the heap.
  const etalon_status status = etalon_tensor_init(&data.tensor, data.array.data(), Dtype(type),
                                                  static_cast<int32_t>(shape.size()), shape.data(), nullptr);
  if (status != ETALON_OK) std::abort();
  return data;
}

EntryPoints::EntryPoints(const Config& config) : config_(config), answers_(kAnswers) {
  const Config& c = config_;
  const int64_t blocks = (c.kv_len + 511) / 512;
  const std::vector<int64_t> rows = {c.batch, c.num_q_heads, c.q_len};
  const auto with = [](std::vector<int64_t> shape, std::initializer_list<int64_t> inner) {
    shape.insert(shape.end(), inner);
    return shape;
  };
  const DType f32 = DType::kF32;
  uint64_t seed = 0;
  q_ = Make(c.q_type, with(rows, {c.head_dim}), ++seed);
  k_ = Make(c.k_type, {c.batch, c.num_kv_heads, c.kv_len, c.head_dim}, ++seed);
  v_ = Make(c.v_type, {c.batch, c.num_kv_heads, c.kv_len, c.value_dim}, ++seed);
  for (Data* data : {&in_scores_, &in_weights_, &scores_, &weights_}) *data = Make(f32, with(rows, {c.kv_len}), ++seed);
  for (Data* data : {&out1_, &out2_, &out_, &task_out_, &plan_out_, &sum_, &merged_, &folded_, &options_out_}) {
    *data = Make(c.out_type, with(rows, {c.value_dim}), ++seed);
  }
  for (Data* data :
       {&lse1_, &lse2_, &lse_, &task_lse_, &plan_lse_, &softmax_lse_, &merged_lse_, &folded_lse_, &options_lse_}) {
    *data = Make(f32, rows, ++seed);
  }
  for (Data* data : {&in_m_, &in_l_, &m_, &l_}) *data = Make(f32, with(rows, {blocks}), ++seed);
  for (Data* data : {&in_o_, &o_}) *data = Make(f32, with(rows, {blocks, c.value_dim}), ++seed);
  bias_ = Make(c.k_type, with(rows, {c.kv_len}), ++seed);
  sinks_ = Make(c.q_type, {c.num_q_heads}, ++seed);
  option_scores_ = Make(f32, with(rows, {c.kv_len}), ++seed);
  constexpr int64_t kPageLen = 5;
  const int64_t pages = (c.kv_len + kPageLen - 1) / kPageLen;  // of a sequence
  cache_k_ = Make(c.v_type, {c.batch * pages, c.num_kv_heads, kPageLen, c.head_dim}, ++seed);
  cache_v_ = Make(c.v_type, {c.batch * pages, c.num_kv_heads, kPageLen, c.value_dim}, ++seed);
  cache_out_ = Make(c.out_type, with(rows, {c.value_dim}), ++seed);
  cache_lse_ = Make(f32, rows, ++seed);
  for (int64_t i = c.batch * pages; i > 0; --i) page_table_.push_back(static_cast<int32_t>(i - 1));
  const int64_t mask_shape[] = {c.batch, 1, c.q_len, c.kv_len};
  mask_bytes_.resize(static_cast<size_t>(c.batch * c.q_len * c.kv_len));
  for (size_t i = 0; i < mask_bytes_.size(); ++i) mask_bytes_[i] = static_cast<unsigned char>(i % 7 < 4 ? 1 : 0);
  if (etalon_tensor_init(&mask_, mask_bytes_.data(), ETALON_BOOL, 4, mask_shape, nullptr) != ETALON_OK) std::abort();
  for (int64_t i = 0; i < in_l_.array.size(); ++i) in_l_.array.SetWord(i, in_l_.array.Word(i) & 0x7FFFFFFFu);
  for (int64_t b = 0; b < c.batch; ++b) {
    q_offsets_.push_back(b);
    q_lens_.push_back(c.q_len - (b == 1 ? 1 : 0));
    kv_lens_.push_back(c.kv_len - b);
    kv_firsts_.push_back(b + 1);
  }
  states_ = {&m_.tensor, &l_.tensor, &o_.tensor};
  in_states_ = {&in_m_.tensor, &in_l_.tensor, &in_o_.tensor};
  parallel_ = {TakeTurns, const_cast<int32_t*>(&config_.workers), config_.workers, 0};
  memory_.resize(kWorkspaceBytes + 64);
  Prepare();
  Clear();
}

void EntryPoints::Prepare() {
  const Config& c = config_;
  Expect("desc_init", etalon_attention_desc_init(&desc_, sizeof desc_));
  desc_.num_q_heads = c.num_q_heads;
  desc_.num_kv_heads = c.num_kv_heads;
  desc_.head_dim = c.head_dim;
  desc_.value_dim = c.value_dim;
  desc_.max_batch = c.batch;
  desc_.max_q_len = c.q_len;
  desc_.max_kv_len = c.kv_len;
  desc_.q_dtype = Dtype(c.q_type);
  desc_.k_dtype = Dtype(c.k_type);
  desc_.v_dtype = Dtype(c.v_type);
  desc_.out_dtype = Dtype(c.out_type);
  desc_.left = c.kv_len - 3;
  desc_.right = 0;
  std::memcpy(&desc_.scale, &c.scale, sizeof desc_.scale);
  desc_.max_workers = c.workers;
  desc_.target = c.target;
  Expect("args_init", etalon_attention_args_init(&args_, sizeof args_));
  args_.q = &q_.tensor;
  args_.k = &k_.tensor;
  args_.v = &v_.tensor;
  args_.q_offset = c.kv_len - c.q_len;
  args_.q_offsets = q_offsets_.data();
  args_.q_lens = q_lens_.data();
  args_.kv_lens = kv_lens_.data();
  Expect("plan_init", etalon_plan_init(&plan_, &desc_, nullptr));
}

std::vector<EntryPoints::Data*> EntryPoints::Outputs() {
  return {
      &out_,         &lse_,         &task_out_,    &task_lse_,      &plan_out_, &plan_lse_, &scores_,    &weights_,
      &softmax_lse_, &sum_,         &merged_,      &merged_lse_,    &m_,        &l_,        &o_,         &folded_,
      &folded_lse_,  &options_out_, &options_lse_, &option_scores_, &cache_k_,  &cache_v_,  &cache_out_, &cache_lse_};
}

void EntryPoints::Clear() {
  for (Data* data : Outputs()) std::memset(data->array.data(), 0x99, BytesIn(data->array));
  std::fill(memory_.begin(), memory_.end(), static_cast<unsigned char>(0xAA));
  std::fill(answers_.begin(), answers_.end(), 0);
}

std::vector<unsigned char> EntryPoints::Results() const {
  std::vector<unsigned char> all;
  for (Data* data : const_cast<EntryPoints*>(this)->Outputs()) {
    const unsigned char* bytes = static_cast<const unsigned char*>(data->array.data());
    all.insert(all.end(), bytes, bytes + BytesIn(data->array));
  }
  const unsigned char* answers = reinterpret_cast<const unsigned char*>(answers_.data());
  all.insert(all.end(), answers, answers + answers_.size() * sizeof answers_[0]);
  return all;
}

void EntryPoints::Expect(const char* what, etalon_status got, etalon_status want) {
  if (got != want && failed_ == nullptr) failed_ = what;
}

etalon_workspace* EntryPoints::Workspace(size_t bytes) {
  const size_t start = (64 - reinterpret_cast<uintptr_t>(memory_.data()) % 64) % 64;
  workspace_ = {memory_.data() + start, bytes};
  if (bytes > kWorkspaceBytes) {
    failed_ = "the workspace of this test is too small";
    workspace_ = {};  // which every call refuses
  }
  return &workspace_;
}

void EntryPoints::Constants() {
  if (std::strcmp(etalon_status_name(ETALON_OK), "ETALON_OK") != 0) failed_ = "status_name";
  if (std::strcmp(etalon_status_text(ETALON_OK), "success") != 0) failed_ = "status_text";
  if (etalon_version()[0] == '\0') failed_ = "version";
  if (etalon_arithmetic_version() < 1) failed_ = "arithmetic_version";
  if (etalon_dtype_bytes(ETALON_F16) != 2) failed_ = "dtype_bytes";
  float slopes[24];
  Expect("alibi_slopes", etalon_alibi_slopes(24, slopes, nullptr));
  for (int i = 0; i < 24; ++i) answers_[static_cast<size_t>(kSlopes + i)] = BitsOf(slopes[i]);
  if (etalon_num_blocks(config_.kv_len) != m_.tensor.shape[3]) failed_ = "num_blocks";
  answers_[kDefaultScale] = BitsOf(etalon_default_scale(config_.head_dim));
}

void EntryPoints::Describe() {
  etalon_error error;
  etalon_tensor tensor;
  Expect("tensor_init",
         etalon_tensor_init(&tensor, q_.array.data(), q_.tensor.dtype, q_.tensor.rank, q_.tensor.shape, &error));
  if (std::memcmp(&tensor, &q_.tensor, sizeof tensor) != 0) failed_ = "tensor_init";
  etalon_attention_desc desc;
  etalon_attention_args args;
  Expect("desc_init", etalon_attention_desc_init(&desc, sizeof desc));
  Expect("args_init", etalon_attention_args_init(&args, sizeof args));
  answers_[kSumOfSizes] = desc.struct_size + args.struct_size;
}

void EntryPoints::Attention() {
  etalon_error error;
  etalon_attention_args args = args_;
  args.out = &out_.tensor;
  args.lse = &lse_.tensor;
  size_t bytes = 0;
  Expect("attention_workspace_bytes", etalon_attention_workspace_bytes(&desc_, &args, &bytes, &error));
  Expect("attention", etalon_attention(&desc_, &args, Workspace(bytes), &parallel_, &error));
  answers_[kAttentionBytes] = bytes;
}

void EntryPoints::Plan() {
  etalon_error error;
  etalon_plan plan;
  etalon_plan_info info;
  etalon_attention_args args = args_;
  args.out = &out_.tensor;
  Expect("supports", etalon_supports(&desc_, &error));
  Expect("plan_init", etalon_plan_init(&plan, &desc_, &error));
  Expect("plan_info_init", etalon_plan_info_init(&info, sizeof info));
  Expect("plan_get_info", etalon_plan_get_info(&plan, &args, &info, &error));
  answers_[kPlanBytes] = etalon_plan_workspace_bytes(&plan);
  answers_[kKeyTiles] = static_cast<uint64_t>(info.key_tiles);
  answers_[kBytesRead] = static_cast<uint64_t>(info.bytes_read);
}

void EntryPoints::Begin() {
  etalon_error error;
  etalon_attention_args args = args_;
  args.out = &task_out_.tensor;
  args.lse = &task_lse_.tensor;
  etalon_workspace* workspace = Workspace(etalon_plan_workspace_bytes(&plan_));
  int64_t tasks = 0;
  Expect("begin", etalon_begin(&plan_, &args, workspace, &tasks, &error));
  for (int64_t t = tasks; t-- > 0;) {
    Expect("run", etalon_run(workspace->data, t, t + 1, static_cast<int32_t>(t % config_.workers)));
  }
  answers_[kNumTasks] = static_cast<uint64_t>(tasks);
}

void EntryPoints::Execute() {
  etalon_error error;
  etalon_attention_args args = args_;
  args.out = &plan_out_.tensor;
  args.lse = &plan_lse_.tensor;
  Expect("execute", etalon_execute(&plan_, &args, Workspace(etalon_plan_workspace_bytes(&plan_)), &parallel_, &error));
}

void EntryPoints::Scores() {
  etalon_error error;
  etalon_attention_args args = args_;
  args.v = nullptr;
  args.out = &scores_.tensor;
  size_t bytes = 0;
  Expect("scores_workspace_bytes", etalon_scores_workspace_bytes(&desc_, &args, &bytes, &error));
  Expect("scores", etalon_scores(&desc_, &args, Workspace(bytes), &parallel_, &error));
}

// Everything that may come beside q, k and v: of two sources, in several parts.
void EntryPoints::Options() {
  etalon_error error;
  etalon_mask_args mask_args;
  Expect("mask_args_init", etalon_mask_args_init(&mask_args, sizeof mask_args));
  mask_args.batch = config_.batch;
  mask_args.num_heads = 1;
  mask_args.q_len = config_.q_len;
  mask_args.kv_len = config_.kv_len;
  mask_args.mask = &mask_;
  size_t mask_bytes = 0;
  Expect("mask_bytes", etalon_mask_bytes(&mask_args, &mask_bytes, &error));
  if (mask_bytes > sizeof mask_memory_) {
    failed_ = "the memory of masks of this test is too small";
    return;
  }
  const etalon_workspace memory = {mask_memory_, mask_bytes};
  const etalon_mask* mask = nullptr;
  Expect("mask_prepare", etalon_mask_prepare(&mask_args, &memory, &mask, &error));
  answers_[kMaskBytes] = mask_bytes;
  for (size_t i = 0; i < mask_bytes; ++i) answers_[kMaskSum] = answers_[kMaskSum] * 31 + mask_memory_[i];

  etalon_key_source source;
  Expect("key_source_init", etalon_key_source_init(&source, sizeof source));
  source.k = &k_.tensor;
  source.v = &v_.tensor;
  source.left = 100;
  source.mask = &mask_;
  const etalon_key_source* const more[] = {&source};
  etalon_attention_desc desc = desc_;
  std::memcpy(&desc.softcap, &config_.softcap, sizeof desc.softcap);
  desc.options = ETALON_OPTION_ALIBI | ETALON_OPTION_BIAS | ETALON_OPTION_MASK | ETALON_OPTION_SINKS;
  desc.num_sources = 2;
  etalon_attention_args args = args_;
  args.out = &options_out_.tensor;
  args.lse = &options_lse_.tensor;
  args.bias = &bias_.tensor;
  args.sinks = &sinks_.tensor;
  args.prepared_mask = mask;
  args.kv_firsts = kv_firsts_.data();
  args.prefix_lens = kv_firsts_.data();
  args.more_sources = more;
  size_t bytes = 0;
  Expect("attention_workspace_bytes", etalon_attention_workspace_bytes(&desc, &args, &bytes, &error));
  Expect("attention", etalon_attention(&desc, &args, Workspace(bytes), &parallel_, &error));

  etalon_plan plan;
  etalon_plan_info info;
  Expect("plan_init", etalon_plan_init(&plan, &desc, &error));
  Expect("plan_info_init", etalon_plan_info_init(&info, sizeof info));
  Expect("plan_get_info", etalon_plan_get_info(&plan, &args, &info, &error));
  answers_[kMaskedTiles] = static_cast<uint64_t>(info.key_tiles);

  desc.num_sources = 1;
  desc.options = ETALON_OPTION_ALIBI | ETALON_OPTION_BIAS | ETALON_OPTION_MASK;
  args.more_sources = nullptr;
  args.v = args.lse = args.sinks = nullptr;
  args.out = &option_scores_.tensor;
  Expect("scores_workspace_bytes", etalon_scores_workspace_bytes(&desc, &args, &bytes, &error));
  Expect("scores", etalon_scores(&desc, &args, Workspace(bytes), &parallel_, &error));
}

// All keys and values into pages, and attention over them.
void EntryPoints::Cache() {
  etalon_error error;
  etalon_kv_places places;
  Expect("kv_places_init", etalon_kv_places_init(&places, sizeof places));
  places.page_table = page_table_.data();
  places.page_table_stride = places.max_pages = static_cast<int64_t>(page_table_.size()) / config_.batch;
  etalon_kv_append_args append;
  Expect("kv_append_args_init", etalon_kv_append_args_init(&append, sizeof append));
  append.new_k = &k_.tensor;
  append.new_v = &v_.tensor;
  append.k = &cache_k_.tensor;
  append.v = &cache_v_.tensor;
  append.places = &places;
  append.target = config_.target;
  Expect("kv_append", etalon_kv_append(&append, &parallel_, &error));
  etalon_attention_desc desc = desc_;
  desc.k_dtype = desc.v_dtype;
  etalon_attention_args args = args_;
  args.k = &cache_k_.tensor;
  args.v = &cache_v_.tensor;
  args.places = &places;
  args.out = &cache_out_.tensor;
  args.lse = &cache_lse_.tensor;
  size_t bytes = 0;
  Expect("attention_workspace_bytes", etalon_attention_workspace_bytes(&desc, &args, &bytes, &error));
  Expect("attention", etalon_attention(&desc, &args, Workspace(bytes), &parallel_, &error));
}

void EntryPoints::Softmax() {
  etalon_error error;
  etalon_softmax_args args;
  Expect("softmax_args_init", etalon_softmax_args_init(&args, sizeof args));
  args.scores = &in_scores_.tensor;
  args.weights = &weights_.tensor;
  args.lse = &softmax_lse_.tensor;
  args.right = 0;
  args.q_offset = args_.q_offset;
  args.q_offsets = args_.q_offsets;
  args.q_lens = args_.q_lens;
  args.kv_lens = args_.kv_lens;
  args.target = config_.target;
  Expect("softmax", etalon_softmax(&args, &parallel_, &error));
}

void EntryPoints::WeightedSum() {
  etalon_error error;
  etalon_weighted_sum_args args;
  Expect("weighted_sum_args_init", etalon_weighted_sum_args_init(&args, sizeof args));
  args.weights = &in_weights_.tensor;
  args.v = &v_.tensor;
  args.out = &sum_.tensor;
  args.left = 100;
  args.q_offset = args_.q_offset;
  args.q_offsets = args_.q_offsets;
  args.q_lens = args_.q_lens;
  args.kv_lens = args_.kv_lens;
  args.target = config_.target;
  args.max_workers = config_.workers;
  size_t bytes = 0;
  Expect("weighted_sum_workspace_bytes", etalon_weighted_sum_workspace_bytes(&args, &bytes, &error));
  Expect("weighted_sum", etalon_weighted_sum(&args, Workspace(bytes), &parallel_, &error));
}

void EntryPoints::Merge() {
  etalon_error error;
  etalon_merge_args args;
  Expect("merge_args_init", etalon_merge_args_init(&args, sizeof args));
  args.out1 = &out1_.tensor;
  args.lse1 = &lse1_.tensor;
  args.out2 = &out2_.tensor;
  args.lse2 = &lse2_.tensor;
  args.out = &merged_.tensor;
  args.lse = &merged_lse_.tensor;
  args.target = config_.target;
  Expect("merge", etalon_merge(&args, &parallel_, &error));
}

void EntryPoints::BlockStates() {
  etalon_error error;
  size_t bytes = 0;
  Expect("block_states_workspace_bytes", etalon_block_states_workspace_bytes(&desc_, &args_, &bytes, &error));
  Expect("block_states", etalon_block_states(&desc_, &args_, &states_, Workspace(bytes), &parallel_, &error));
}

void EntryPoints::MergeStates() {
  etalon_error error;
  etalon_merge_states_args args;
  Expect("merge_states_args_init", etalon_merge_states_args_init(&args, sizeof args));
  args.states = &in_states_;
  args.out = &folded_.tensor;
  args.lse = &folded_lse_.tensor;
  args.target = config_.target;
  args.max_workers = config_.workers;
  size_t bytes = 0;
  Expect("merge_states_workspace_bytes", etalon_merge_states_workspace_bytes(&args, &bytes, &error));
  Expect("merge_states", etalon_merge_states(&args, Workspace(bytes), &parallel_, &error));
}

void EntryPoints::Targets() {
  for (int32_t i = 0; i < etalon_num_targets(); ++i) {
    etalon_target target;
    Expect("get_target", etalon_get_target(i, &target));
  }
  for (int bit = 0; bit < 64; ++bit) {
    const uint64_t feature = etalon_cpu_features() & uint64_t{1} << bit;
    if (feature != 0 && etalon_cpu_feature_name(feature) == nullptr) failed_ = "cpu_feature_name";
  }
}

// The way of an error, with its text.
void EntryPoints::Refuse() {
  etalon_error error;
  etalon_attention_args args = args_;
  args.out = &out_.tensor;
  etalon_tensor wrong = lse_.tensor;
  wrong.rank = 4;
  args.lse = &wrong;
  Expect("refused", etalon_attention(&desc_, &args, Workspace(0), &parallel_, &error), ETALON_BAD_RANK);
  args.k = nullptr;
  Expect("refused", etalon_execute(&plan_, &args, Workspace(0), &parallel_, &error), ETALON_NULL_POINTER);
}

const std::vector<EntryPoints::Entry>& EntryPoints::All() {
  using E = EntryPoints;
  static const std::vector<Entry> entries = {
      {"status_name status_text version arithmetic_version dtype_bytes num_blocks default_scale alibi_slopes",
       &E::Constants},
      {"tensor_init attention_desc_init attention_args_init", &E::Describe},
      {"attention_workspace_bytes attention", &E::Attention},
      {"supports plan_init plan_info_init plan_get_info plan_workspace_bytes", &E::Plan},
      {"begin run", &E::Begin},
      {"execute", &E::Execute},
      {"scores_workspace_bytes scores", &E::Scores},
      {"mask_args_init mask_bytes mask_prepare key_source_init attention_workspace_bytes attention scores",
       &E::Options},
      {"kv_places_init kv_append_args_init kv_append attention_workspace_bytes attention", &E::Cache},
      {"softmax_args_init softmax", &E::Softmax},
      {"weighted_sum_args_init weighted_sum_workspace_bytes weighted_sum", &E::WeightedSum},
      {"merge_args_init merge", &E::Merge},
      {"block_states_workspace_bytes block_states", &E::BlockStates},
      {"merge_states_args_init merge_states_workspace_bytes merge_states", &E::MergeStates},
      {"num_targets get_target cpu_features cpu_feature_name", &E::Targets},
      {"attention execute", &E::Refuse},
  };
  return entries;
}

}  // namespace etalon::test
