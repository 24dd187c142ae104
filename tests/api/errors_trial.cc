#include "tests/api/errors_trial.h"

#include <doctest/doctest.h>

#include <cstdlib>
#include <cstring>

namespace etalon::test {
namespace {

// Aligned to a slot, so that the free memory at the end is too.
alignas(kSlotBytes) unsigned char memory[kSlots * kSlotBytes + kWorkspaceBytes + kSlotBytes];

// Every byte is a finite number in every type.
constexpr unsigned char kFill = 0x3C;

// In the middle of its slot, so that another tensor can be moved across either edge and meets nothing else.
void* InSlot(int index) { return Slot(index) + 1536; }

void RunAsOne(void*, int64_t num_tasks, etalon_task_fn fn, void* arg) { fn(arg, 0, num_tasks, 0); }

// Each _init by itself is tested elsewhere.
template <typename Descriptor>
void Init(Roomy<Descriptor>* descriptor, etalon_status (*init)(Descriptor*, size_t)) {
  REQUIRE(init(&descriptor->value, sizeof descriptor->value) == ETALON_OK);
}

void PrepareTensors(Trial* t) {
  t->q = PackedTensor(InSlot(0), ETALON_F32, {kBatch, kQHeads, kQLen, kHeadDim});
  t->k = PackedTensor(InSlot(1), ETALON_F16, {kBatch, kKvHeads, kKvLen, kHeadDim});
  t->v = PackedTensor(InSlot(2), ETALON_BF16, {kBatch, kKvHeads, kKvLen, kValueDim});
  t->out = PackedTensor(InSlot(3), ETALON_F16, {kBatch, kQHeads, kQLen, kValueDim});
  t->lse = PackedTensor(InSlot(4), ETALON_F32, {kBatch, kQHeads, kQLen});
  t->weights = PackedTensor(InSlot(5), ETALON_F32, {kBatch, kQHeads, kQLen, kKvLen});
  t->scores = PackedTensor(InSlot(6), ETALON_F32, {kBatch, kQHeads, kQLen, kKvLen});
  t->m = PackedTensor(InSlot(7), ETALON_F32, {kBatch, kQHeads, kQLen, 1});
  t->l = PackedTensor(InSlot(8), ETALON_F32, {kBatch, kQHeads, kQLen, 1});
  t->o = PackedTensor(InSlot(9), ETALON_F32, {kBatch, kQHeads, kQLen, 1, kValueDim});
  t->out1 = PackedTensor(InSlot(10), ETALON_F16, {kBatch, kQHeads, kQLen, kValueDim});
  t->lse1 = PackedTensor(InSlot(11), ETALON_F32, {kBatch, kQHeads, kQLen});
  t->out2 = PackedTensor(InSlot(12), ETALON_F16, {kBatch, kQHeads, kQLen, kValueDim});
  t->lse2 = PackedTensor(InSlot(13), ETALON_F32, {kBatch, kQHeads, kQLen});
  t->slopes = PackedTensor(InSlot(14), ETALON_F32, {kBatch, kQHeads});
  t->bias = PackedTensor(InSlot(15), ETALON_BF16, {kBatch, kQHeads, kQLen, kKvLen});
  t->mask = PackedTensor(InSlot(16), ETALON_BOOL, {kBatch, kQHeads, kQLen, kKvLen});
  t->sinks = PackedTensor(InSlot(17), ETALON_F16, {kBatch, kQHeads});
  t->k2 = PackedTensor(InSlot(18), ETALON_F16, {kBatch, kKvHeads, kKvLen + 2, kHeadDim});
  t->v2 = PackedTensor(InSlot(19), ETALON_BF16, {kBatch, kKvHeads, kKvLen + 2, kValueDim});
}

void PrepareDescriptors(Trial* t) {
  Init(&t->desc, etalon_attention_desc_init);
  etalon_attention_desc& d = t->desc.value;
  d.num_q_heads = kQHeads;
  d.num_kv_heads = kKvHeads;
  d.head_dim = kHeadDim;
  d.value_dim = kValueDim;
  d.max_batch = kBatch;
  d.max_q_len = kQLen;
  d.max_kv_len = kKvLen;
  d.q_dtype = ETALON_F32;
  d.k_dtype = ETALON_F16;
  d.v_dtype = ETALON_BF16;
  d.out_dtype = ETALON_F16;
  d.max_workers = kMaxWorkers;

  Init(&t->args, etalon_attention_args_init);
  etalon_attention_args& a = t->args.value;
  a.q = &t->q;
  a.k = &t->k;
  if ((t->function & kScoring) == 0) a.v = &t->v;
  if ((t->function & kFused) != 0) a.out = &t->out;
  if ((t->function & kFused) != 0) a.lse = &t->lse;
  if ((t->function & kScoring) != 0) a.out = &t->scores;
  a.q_offset = kKvLen - kQLen;
  a.q_offsets = t->q_offsets;
  a.q_lens = t->q_lens;
  a.kv_lens = t->kv_lens;

  Init(&t->softmax, etalon_softmax_args_init);
  etalon_softmax_args& s = t->softmax.value;
  s.scores = &t->scores;
  s.weights = &t->weights;
  s.lse = &t->lse;
  s.q_offsets = t->q_offsets;
  s.q_lens = t->q_lens;
  s.kv_lens = t->kv_lens;

  Init(&t->sum, etalon_weighted_sum_args_init);
  etalon_weighted_sum_args& w = t->sum.value;
  w.weights = &t->weights;
  w.v = &t->v;
  w.out = &t->out;
  w.q_offsets = t->q_offsets;
  w.q_lens = t->q_lens;
  w.kv_lens = t->kv_lens;
  w.max_workers = kMaxWorkers;

  Init(&t->merge, etalon_merge_args_init);
  etalon_merge_args& m = t->merge.value;
  m.out1 = &t->out1;
  m.lse1 = &t->lse1;
  m.out2 = &t->out2;
  m.lse2 = &t->lse2;
  m.out = &t->out;
  m.lse = &t->lse;

  Init(&t->merge_states, etalon_merge_states_args_init);
  etalon_merge_states_args& n = t->merge_states.value;
  n.states = &t->states;
  n.out = &t->out;
  n.lse = &t->lse;
  n.max_workers = kMaxWorkers;

  Init(&t->source, etalon_key_source_init);
  t->source.value.k = &t->k2;
  if ((t->function & kScoring) == 0) t->source.value.v = &t->v2;

  Init(&t->mask_args, etalon_mask_args_init);
  etalon_mask_args& p = t->mask_args.value;
  p.batch = kBatch;
  p.num_heads = kQHeads;
  p.q_len = kQLen;
  p.kv_len = kKvLen;
  p.mask = &t->mask;

  Init(&t->info, etalon_plan_info_init);
}

bool Printable(const char* text, size_t size) {
  for (size_t i = 0; i < size; ++i) {
    if (text[i] == '\0') return true;
    if (text[i] < ' ' || text[i] > '~') return false;
  }
  return false;  // no end
}

// Puts back what a spoil does to the environment: the tests may have been started with a table to test.
class TargetVariable {
 public:
  TargetVariable() : given_(std::getenv("ETALON_TARGET") != nullptr) {
    if (given_) value_ = std::getenv("ETALON_TARGET");
  }
  ~TargetVariable() { given_ ? setenv("ETALON_TARGET", value_.c_str(), 1) : unsetenv("ETALON_TARGET"); }

 private:
  bool given_;
  std::string value_;
};

struct Bytes {
  explicit Bytes(const Trial& trial) : trial_(sizeof trial), memory_(sizeof memory) {
    std::memcpy(trial_.data(), &trial, sizeof trial);
    std::memcpy(memory_.data(), memory, sizeof memory);
  }
  bool Are(const Trial& trial) const {
    return std::memcmp(trial_.data(), &trial, sizeof trial) == 0 &&
           std::memcmp(memory_.data(), memory, sizeof memory) == 0;
  }

 private:
  std::vector<unsigned char> trial_, memory_;
};

}  // namespace

std::string NameOf(Functions function) {
  static const char* const names[] = {"attention",
                                      "attention_workspace_bytes",
                                      "supports",
                                      "plan_init",
                                      "begin",
                                      "execute",
                                      "plan_get_info",
                                      "scores",
                                      "scores_bytes",
                                      "softmax",
                                      "weighted_sum",
                                      "weighted_sum_workspace_bytes",
                                      "merge",
                                      "block_states",
                                      "block_states_workspace_bytes",
                                      "merge_states",
                                      "merge_states_workspace_bytes",
                                      "mask_bytes",
                                      "mask_prepare"};
  for (int i = 0; (1u << i) < kEnd; ++i) {
    if (function == 1u << i) return names[i];
  }
  return "no function";
}

unsigned char* Slot(int index) { return memory + static_cast<size_t>(index) * kSlotBytes; }
unsigned char* FreeMemory() { return memory + kSlots * kSlotBytes + kWorkspaceBytes; }

etalon_tensor PackedTensor(void* data, int32_t dtype, const std::vector<int64_t>& shape) {
  etalon_tensor tensor;
  std::memset(&tensor, 0, sizeof tensor);
  REQUIRE(etalon_tensor_init(&tensor, data, dtype, static_cast<int32_t>(shape.size()), shape.data(), nullptr) ==
          ETALON_OK);
  return tensor;
}

void Prepare(Functions function, Trial* t) {
  std::memset(memory, kFill, sizeof memory);
  std::memset(static_cast<void*>(t), 0, sizeof *t);
  t->function = function;
  PrepareTensors(t);
  for (int64_t b = 0; b < kBatch; ++b) {
    t->q_offsets[b] = b;
    t->q_lens[b] = kQLen - b;
    t->kv_lens[b] = kKvLen - b;
    t->kv_firsts[b] = b;
    t->prefix_lens[b] = 2 + b;
  }
  for (int64_t b = 0; b <= kBatch; ++b) {
    t->q_starts[b] = b * kQLen;
    t->kv_starts[b] = b * kKvLen;
    t->block_starts[b] = b == 0 ? 0 : b + 1;
  }
  for (int64_t i = 0; i < kBatch * kQLen; ++i) t->q_segments[i] = i / 2;
  for (int64_t i = 0; i < kBatch * kKvLen; ++i) t->kv_segments[i] = 5 - i / 3;
  t->blocks[0] = 0, t->blocks[1] = 2, t->blocks[2] = 1;
  t->more_sources[0] = &t->source.value;
  PrepareDescriptors(t);
  t->states = {&t->m, &t->l, &t->o};
  t->parallel = {RunAsOne, nullptr, kMaxWorkers, 0};
  t->workspace = {Slot(kSlots), 0};
  t->num_tasks = -77;
  t->pass = {&t->desc.value,         &t->args.value, &t->softmax.value,   &t->sum.value, &t->merge.value,
             &t->merge_states.value, &t->states,     &t->mask_args.value, &t->prepared,  &t->workspace,
             &t->parallel,           &t->plan,       &t->info.value,      &t->bytes,     &t->num_tasks};
  if ((function & kPlanned) != 0) Replan(t);
  FitWorkspace(t);
}

void Replan(Trial* t) {
  if ((t->function & kPlanned) != 0) REQUIRE(etalon_plan_init(&t->plan, &t->desc.value, nullptr) == ETALON_OK);
}

void AddOptions(Trial* t) {
  etalon_attention_args& a = t->args.value;
  a.slopes = &t->slopes;
  a.bias = &t->bias;
  a.mask = &t->mask;
  if ((t->function & kFused) != 0) a.sinks = &t->sinks;
  a.kv_firsts = t->kv_firsts;
  a.prefix_lens = t->prefix_lens;
  t->softmax.value.mask = t->sum.value.mask = &t->mask;
  t->merge_states.value.sinks = &t->sinks;
  if ((t->function & kPlanned) != 0) {
    t->desc.value.options = ETALON_OPTION_ALIBI | ETALON_OPTION_BIAS | ETALON_OPTION_MASK | ETALON_OPTION_SINKS;
  }
  Replan(t), FitWorkspace(t);
}

void AddSource(Trial* t) {
  t->desc.value.num_sources = 2;
  t->desc.value.max_kv_len = kKvLen + 2;
  t->args.value.more_sources = t->more_sources;
  Replan(t), FitWorkspace(t);
}

void MakeRagged(Trial* t) {
  const auto join = [](etalon_tensor* tensor) {
    std::vector<int64_t> shape(tensor->shape, tensor->shape + tensor->rank);
    shape[2] *= shape[0];
    shape[0] = 1;
    *tensor = PackedTensor(tensor->data, tensor->dtype, shape);
  };
  for (etalon_tensor* tensor : {&t->q, &t->k, &t->v, &t->out, &t->lse}) join(tensor);
  t->args.value.num_sequences = kBatch;
  t->args.value.q_starts = t->q_starts;
  t->args.value.kv_starts = t->kv_starts;
}

void PrepareMask(Trial* t) {
  const etalon_workspace memory_of_mask = {Slot(20), 2 * kSlotBytes};
  REQUIRE(etalon_mask_prepare(&t->mask_args.value, &memory_of_mask, &t->prepared, nullptr) == ETALON_OK);
  t->args.value.mask = nullptr;
  t->args.value.prepared_mask = t->prepared;
  FitWorkspace(t);
}

Spoil WithOptions(void (*spoil)(Trial&)) {
  return [spoil](Trial& t) {
    AddOptions(&t);
    if (spoil != nullptr) spoil(t);
  };
}
Spoil WithSource(void (*spoil)(Trial&)) {
  return [spoil](Trial& t) {
    AddSource(&t);
    if (spoil != nullptr) spoil(t);
  };
}
Spoil WithRagged(void (*spoil)(Trial&)) {
  return [spoil](Trial& t) {
    MakeRagged(&t);
    if (spoil != nullptr) spoil(t);
  };
}
Spoil WithPrepared(void (*spoil)(Trial&)) {
  return [spoil](Trial& t) {
    AddOptions(&t);
    PrepareMask(&t);
    if (spoil != nullptr) spoil(t);
  };
}

void FitWorkspace(Trial* t) {
  size_t bytes = 0;
  etalon_status status = ETALON_OK;
  switch (t->function) {
    case kAttention:
      status = etalon_attention_workspace_bytes(&t->desc.value, &t->args.value, &bytes, nullptr);
      break;
    case kBegin:
    case kExecute:
      bytes = etalon_plan_workspace_bytes(&t->plan);
      break;
    case kScores:
      status = etalon_scores_workspace_bytes(&t->desc.value, &t->args.value, &bytes, nullptr);
      break;
    case kWeightedSum:
      status = etalon_weighted_sum_workspace_bytes(&t->sum.value, &bytes, nullptr);
      break;
    case kBlockStates:
      status = etalon_block_states_workspace_bytes(&t->desc.value, &t->args.value, &bytes, nullptr);
      break;
    case kMergeStates:
      status = etalon_merge_states_workspace_bytes(&t->merge_states.value, &bytes, nullptr);
      break;
    case kMaskPrepare:
      status = etalon_mask_bytes(&t->mask_args.value, &bytes, nullptr);
      break;
    default:
      break;
  }
  t->workspace.bytes = status == ETALON_OK ? bytes : 0;
  CHECK(t->workspace.bytes <= kWorkspaceBytes);
}

etalon_status Call(Trial* t, etalon_error* error) {
  const auto& p = t->pass;
  switch (t->function) {
    case kAttention:
      return etalon_attention(p.desc, p.args, p.workspace, p.parallel, error);
    case kAttentionBytes:
      return etalon_attention_workspace_bytes(p.desc, p.args, p.bytes, error);
    case kSupports:
      return etalon_supports(p.desc, error);
    case kPlanInit:
      return etalon_plan_init(p.plan, p.desc, error);
    case kBegin:
      return etalon_begin(p.plan, p.args, p.workspace, p.num_tasks, error);
    case kExecute:
      return etalon_execute(p.plan, p.args, p.workspace, p.parallel, error);
    case kPlanInfo:
      return etalon_plan_get_info(p.plan, p.args, p.info, error);
    case kScores:
      return etalon_scores(p.desc, p.args, p.workspace, p.parallel, error);
    case kScoresBytes:
      return etalon_scores_workspace_bytes(p.desc, p.args, p.bytes, error);
    case kSoftmax:
      return etalon_softmax(p.softmax, p.parallel, error);
    case kWeightedSum:
      return etalon_weighted_sum(p.sum, p.workspace, p.parallel, error);
    case kWeightedSumBytes:
      return etalon_weighted_sum_workspace_bytes(p.sum, p.bytes, error);
    case kMerge:
      return etalon_merge(p.merge, p.parallel, error);
    case kBlockStates:
      return etalon_block_states(p.desc, p.args, p.states, p.workspace, p.parallel, error);
    case kBlockStatesBytes:
      return etalon_block_states_workspace_bytes(p.desc, p.args, p.bytes, error);
    case kMergeStates:
      return etalon_merge_states(p.merge_states, p.workspace, p.parallel, error);
    case kMergeStatesBytes:
      return etalon_merge_states_workspace_bytes(p.merge_states, p.bytes, error);
    case kMaskBytes:
      return etalon_mask_bytes(p.mask_args, p.bytes, error);
    case kMaskPrepare:
      return etalon_mask_prepare(p.mask_args, p.workspace, p.prepared, error);
    default:
      REQUIRE(false);
      return ETALON_OK;
  }
}

void CheckError(const etalon_error& error, etalon_status status, const std::string& field) {
  CHECK(error.status == status);
  REQUIRE(Printable(error.field, sizeof error.field));
  REQUIRE(Printable(error.text, sizeof error.text));
  CHECK(std::string(error.field) == field);
  if (status == ETALON_OK) {
    CHECK(std::string(error.text).empty());
  } else {
    // "field, and what is wrong with it"
    CHECK(std::string(error.text).find(field + " ") == 0);
    CHECK(std::string(error.text).size() > field.size() + 5);
  }
}

void Expect(const std::string& what, Functions functions, const Spoil& spoil, etalon_status status,
            const std::string& field) {
  static Trial trial;
  for (Functions function = 1; function < kEnd; function <<= 1) {
    if ((functions & function) == 0) continue;
    CAPTURE(what);
    const std::string name = NameOf(function);
    CAPTURE(name);
    for (bool with_error : {true, false}) {
      CAPTURE(with_error);
      const TargetVariable keep;
      Prepare(function, &trial);
      if (spoil) spoil(trial);
      const Bytes before(trial);
      etalon_error error;
      std::memset(&error, 0xEE, sizeof error);
      CHECK(Call(&trial, with_error ? &error : nullptr) == status);
      if (with_error) CheckError(error, status, field);
      if (status != ETALON_OK) CHECK_MESSAGE(before.Are(trial), "something was written");
    }
  }
}

void Expect(const std::vector<Row>& rows) {
  for (const Row& row : rows) Expect(row.what, row.functions, row.spoil, row.status, row.field);
}

void Expect(Spoil (*start)(void (*)(Trial&)), const std::vector<Row>& rows) {
  for (const Row& row : rows) Expect(row.what, row.functions, start(row.spoil), row.status, row.field);
}

const std::vector<Argument>& Arguments() {
  using T = Trial;
  static const std::vector<Argument> arguments = {
      {kWithArgs, "args.q", &T::q, [](T& t) { return &t.args.value.q; }, 4, false, false, false},
      {kWithArgs, "args.k", &T::k, [](T& t) { return &t.args.value.k; }, 4, false, false, false},
      {kFused | kStating, "args.v", &T::v, [](T& t) { return &t.args.value.v; }, 4, false, false, false},
      {kFused, "args.out", &T::out, [](T& t) { return &t.args.value.out; }, 4, false, true, false},
      {kFused, "args.lse", &T::lse, [](T& t) { return &t.args.value.lse; }, 3, true, true, true},
      {kScoring, "args.out", &T::scores, [](T& t) { return &t.args.value.out; }, 4, true, true, false},
      {kSoftmax, "args.scores", &T::scores, [](T& t) { return &t.softmax.value.scores; }, 4, true, false, false},
      {kSoftmax, "args.weights", &T::weights, [](T& t) { return &t.softmax.value.weights; }, 4, true, true, false},
      {kSoftmax, "args.lse", &T::lse, [](T& t) { return &t.softmax.value.lse; }, 3, true, true, true},
      {kSumming, "args.weights", &T::weights, [](T& t) { return &t.sum.value.weights; }, 4, true, false, false},
      {kSumming, "args.v", &T::v, [](T& t) { return &t.sum.value.v; }, 4, false, false, false},
      {kSumming, "args.out", &T::out, [](T& t) { return &t.sum.value.out; }, 4, false, true, false},
      {kMerge, "args.out1", &T::out1, [](T& t) { return &t.merge.value.out1; }, 4, false, false, false},
      {kMerge, "args.lse1", &T::lse1, [](T& t) { return &t.merge.value.lse1; }, 3, true, false, false},
      {kMerge, "args.out2", &T::out2, [](T& t) { return &t.merge.value.out2; }, 4, false, false, false},
      {kMerge, "args.lse2", &T::lse2, [](T& t) { return &t.merge.value.lse2; }, 3, true, false, false},
      {kMerge, "args.out", &T::out, [](T& t) { return &t.merge.value.out; }, 4, false, true, false},
      {kMerge, "args.lse", &T::lse, [](T& t) { return &t.merge.value.lse; }, 3, true, true, true},
      {kBlockStates, "states->m", &T::m, [](T& t) { return &t.states.m; }, 4, true, true, false},
      {kBlockStates, "states->l", &T::l, [](T& t) { return &t.states.l; }, 4, true, true, false},
      {kBlockStates, "states->o", &T::o, [](T& t) { return &t.states.o; }, 5, true, true, false},
      {kMerging, "args.states->m", &T::m, [](T& t) { return &t.states.m; }, 4, true, false, false},
      {kMerging, "args.states->l", &T::l, [](T& t) { return &t.states.l; }, 4, true, false, false},
      {kMerging, "args.states->o", &T::o, [](T& t) { return &t.states.o; }, 5, true, false, false},
      {kMerging, "args.out", &T::out, [](T& t) { return &t.merge_states.value.out; }, 4, false, true, false},
      {kMerging, "args.lse", &T::lse, [](T& t) { return &t.merge_states.value.lse; }, 3, true, true, true},
  };
  return arguments;
}

}  // namespace etalon::test
