// From bytes to a call that is right. Sizes are small, but some cross chunks and blocks.
#include <cstdio>

#include "tests/fuzz/call.h"
#include "tests/fuzz/tensors.h"
#include "tests/support/host_environment.h"

namespace etalon::fuzz {
namespace {

constexpr int64_t kMostWork = 40000;  // multiplications of an expectation
constexpr int64_t kFarthest = int64_t{1} << 62;

int64_t Length(Bytes* in) {
  switch (in->Below(8)) {
    case 5:
      return 1 + in->Below(40);
    case 6:
      return in->Pick<int64_t>({15, 16, 17, 31, 32, 33, 63, 64, 65});
    case 7:
      return in->Below(2);
    default:
      return 1 + in->Below(8);
  }
}

int64_t LongLength(Bytes* in) {
  if (in->OneIn(3)) return 600 + in->Below(500);
  return in->Pick<int64_t>({513, 512, 1025, 1025, 1024, 1023, 640, 1537, 1537, 127, 128, 129, 257});
}

int64_t Work(const int64_t* s) {
  return s[kBatch] * s[kQHeads] * s[kQLen] * (s[kKvLen] + 4 * s[kBlocks] + 1) * (s[kHeadDim] + s[kValueDim]);
}

// Sizes so large that only a tensor without elements can have them.
void MakeHuge(Bytes* in, Call* call) {
  int64_t* s = call->sizes;
  const int64_t huge[] = {int64_t{1} << 33, int64_t{1} << 62, (int64_t{1} << 40) + 1};
  const bool without_keys = call->function == kScores && in->OneIn(2);
  s[without_keys ? kKvLen : kBatch] = 0;
  s[kQLen] = in->Pick(huge);
  if (without_keys) s[kBatch] = s[kQHeads] = s[kKvHeads] = 1;  // rows must be countable
  if (!without_keys) s[kKvLen] = in->Pick(huge);
}

void DecodeSizes(Bytes* in, Call* call) {
  int64_t* s = call->sizes;
  s[kBatch] = in->Pick<int64_t>({1, 1, 1, 1, 2, 2, 3, 0});
  s[kKvHeads] = 1 + in->Below(3);
  s[kQHeads] = s[kKvHeads] * (1 + in->Below(3));
  s[kQLen] = Length(in);
  s[kKvLen] = in->OneIn(4) ? LongLength(in) : Length(in);
  s[kHeadDim] = 1 + in->Below(in->OneIn(4) ? 20 : 5);
  s[kValueDim] = 1 + in->Below(in->OneIn(4) ? 20 : 5);
  s[kBlocks] = in->Below(5);
  while (Work(s) > kMostWork) {
    int64_t* most = &s[kQLen];
    if (s[kQLen] <= 4) most = &s[kQHeads];
    if (s[kQLen] <= 4 && s[kQHeads] <= s[kKvHeads]) most = &s[kBatch];
    if (*most <= 1) {
      s[kHeadDim] = (s[kHeadDim] + 1) / 2;
      s[kValueDim] = (s[kValueDim] + 1) / 2;
      if (s[kHeadDim] + s[kValueDim] == 2) s[kKvHeads] = s[kQHeads] = s[kQLen] = 1;
    } else if (most == &s[kQHeads]) {
      *most -= s[kKvHeads];
    } else {
      *most /= 2;
    }
  }
  if (in->OneIn(32)) MakeHuge(in, call);
  if (call->function == kBlockStates) s[kBlocks] = (s[kKvLen] + 511) / 512;
}

int64_t Reach(Bytes* in, int64_t kv_len) {
  switch (in->Below(8)) {
    case 3:
      return 0;
    case 4:
      return in->Below(6);
    case 5:
      return in->Below(600);
    case 6:
      return in->Pick<int64_t>({INT64_MAX, INT64_MIN, INT64_MAX - 1, kFarthest, kFarthest + 1, -2});
    case 7:
      return kv_len / 2;
    default:
      return -1;
  }
}

int64_t Offset(Bytes* in, const int64_t* sizes) {
  switch (in->Below(8)) {
    case 4:
      return sizes[kKvLen] - sizes[kQLen];
    case 5:
      return in->Below(700);
    case 6:
      return -in->Below(60);
    case 7:
      return in->Pick<int64_t>({kFarthest, -kFarthest, kFarthest - 5, 5 - kFarthest, 1000000007});
    default:
      return 0;
  }
}

Block* Array(const char* name, int64_t count, Call* call) {
  return call->arena.Add(name, static_cast<size_t>(count) * sizeof(int64_t));
}

Block* DecodeLengths(Bytes* in, const char* name, int64_t most, Call* call) {
  Block* lengths = Array(name, call->sizes[kBatch], call);
  for (int64_t b = 0; b < call->sizes[kBatch]; ++b) {
    int64_t length = in->OneIn(3) ? most : in->Below(1600);
    if (in->OneIn(4)) length = length / 512 * 512 + 1;  // one key of a block
    if (length > most) length = most == 0 ? 0 : length % most;
    lengths->Put(static_cast<size_t>(b) * sizeof length, length);
  }
  return lengths;
}

void DecodeSequences(Bytes* in, Call* call) {
  const FunctionInfo& info = *call->info;
  const int64_t* sizes = call->sizes;
  const int64_t left = Reach(in, sizes[kKvLen]);
  const int64_t right = Reach(in, sizes[kKvLen]);
  const int64_t offset = Offset(in, sizes);
  Block* limits = info.has_desc ? call->desc : call->args;
  limits->Put(info.has_desc ? offsetof(etalon_attention_desc, left) : info.left, left);
  limits->Put(info.has_desc ? offsetof(etalon_attention_desc, right) : info.right, right);
  call->args->Put(info.q_offset, offset);
  if (in->OneIn(3)) {
    call->q_offsets = Array("q_offsets", sizes[kBatch], call);
    for (int64_t b = 0; b < sizes[kBatch]; ++b) {
      int64_t more = in->Below(40) - 20;
      if (in->OneIn(8)) more = offset > 0 ? -kFarthest : kFarthest;
      if ((more > 0 && offset > kFarthest - more) || (more < 0 && offset < -kFarthest - more)) more = 0;
      call->q_offsets->Put(static_cast<size_t>(b) * sizeof more, more);
    }
    call->args->Put(info.q_offsets, call->q_offsets->data());
  }
  if (in->OneIn(3)) {
    call->q_lens = DecodeLengths(in, "q_lens", sizes[kQLen], call);
    call->args->Put(info.q_lens, call->q_lens->data());
  }
  if (in->OneIn(3)) {
    call->kv_lens = DecodeLengths(in, "kv_lens", sizes[kKvLen], call);
    call->args->Put(info.kv_lens, call->kv_lens->data());
  }
}

// As a caller of this version, or a newer one, prepares it.
template <typename Descriptor>
Block* NewDescriptor(Bytes* in, const char* name, etalon_status (*init)(Descriptor*, size_t), Call* call) {
  size_t size = sizeof(Descriptor);
  if (in->OneIn(6)) size += 8 * static_cast<size_t>(1 + in->Below(4));
  if (in->OneIn(32)) size = 4096;
  Block* block = call->arena.Add(name, size);
  if (init(reinterpret_cast<Descriptor*>(block->data()), size) != ETALON_OK) Stop(std::string(name) + ": _init failed");
  if (block->Get<size_t>() != size) Stop(std::string(name) + ": _init set another struct_size");
  return block;
}

Block* NewArgs(Bytes* in, Call* call) {
  switch (call->function) {
    case kSoftmax:
      return NewDescriptor(in, "args", etalon_softmax_args_init, call);
    case kWeightedSum:
      return NewDescriptor(in, "args", etalon_weighted_sum_args_init, call);
    case kMerge:
      return NewDescriptor(in, "args", etalon_merge_args_init, call);
    case kMergeStates:
      return NewDescriptor(in, "args", etalon_merge_states_args_init, call);
    default:
      return NewDescriptor(in, "args", etalon_attention_args_init, call);
  }
}

const char* DecodeTarget(Bytes* in, Call* call) {
  if (!in->OneIn(4)) return nullptr;
  etalon_target target;
  if (etalon_get_target(static_cast<int32_t>(in->Below(etalon_num_targets())), &target) != ETALON_OK) Stop("no target");
  if (target.missing != 0) return nullptr;
  const size_t size = std::strlen(target.name) + 1;
  Block* name = call->arena.Add("target", size);  // read while the function runs, no longer
  std::memcpy(name->data(), target.name, size);
  return reinterpret_cast<const char*>(name->data());
}

// A size or type of a descriptor: set, or left to the arguments.
template <typename T>
T Given(Bytes* in, bool planned, T value) {
  return planned || in->OneIn(3) ? value : T{0};
}

void DecodeDesc(Bytes* in, Call* call, int32_t max_workers) {
  const int64_t* sizes = call->sizes;
  const bool planned = call->function == kBeginAndRun || call->function == kExecute;
  etalon_attention_desc* desc = reinterpret_cast<etalon_attention_desc*>(call->desc->data());
  desc->num_q_heads = Given(in, planned, sizes[kQHeads]);
  desc->num_kv_heads = Given(in, planned, sizes[kKvHeads]);
  desc->head_dim = Given(in, planned, sizes[kHeadDim]);
  desc->value_dim = Given(in, planned, sizes[kValueDim]);
  // A maximum of 0 would mean "as args" in the one-call forms.
  desc->max_batch = Given(in, planned, sizes[kBatch] + in->Below(3));
  desc->max_q_len = Given(in, planned, sizes[kQLen] + (sizes[kQLen] < kFarthest ? in->Below(70) : 0));
  desc->max_kv_len = Given(in, planned, sizes[kKvLen] + (sizes[kKvLen] < kFarthest ? in->Below(1500) : 0));
  int32_t* dtypes[] = {&desc->q_dtype, &desc->k_dtype, &desc->v_dtype, &desc->out_dtype};
  const char* names[] = {"q", "k", "v", "out"};
  for (size_t slot = 0; slot < call->info->slots.size(); ++slot) {
    for (size_t i = 0; i < 4; ++i) {
      if (std::strcmp(call->info->slots[slot].name, names[i]) != 0) continue;
      *dtypes[i] = Given(in, planned, TensorOf(*call, slot)->dtype);
    }
  }
  desc->scale = in->Pick({0.0f, 0.0f, 0.0f, 1.0f, 0.125f, -0.5f, 30.0f, -0.0f, 0x1p-140f, 0x1p100f});
  desc->softcap = in->OneIn(16) ? -0.0f : 0.0f;
  desc->max_workers = max_workers;
  desc->num_sources = static_cast<int32_t>(in->Below(2));
  desc->target = DecodeTarget(in, call);
}

void DecodeParallel(Bytes* in, Call* call, int32_t max_workers) {
  call->has_parallel = in->OneIn(2);
  const int32_t most = call->info->has_workspace ? (max_workers == 0 ? 1 : max_workers) : 1000;
  call->parallel = {RunParts, &call->loop, 1 + static_cast<int32_t>(in->Below(most)), 0};
  call->loop.seed = in->Seed();
}

}  // namespace

void Decode(Bytes* in, Function function, Call* call) {
  call->function = function;
  call->info = &InfoOf(call->function);
  // First, and always as many bytes, so that what follows is the same call however it is mutated.
  const int64_t num_mutations = in->Pick<int64_t>({0, 0, 0, 0, 1, 1, 2, 3});
  for (int64_t i = 0; i < 3; ++i) {
    Mutation mutation;
    mutation.kind = in->Next();
    mutation.slot = in->Next();
    mutation.place = in->Next();
    mutation.how = in->Next();
    if (i < num_mutations) call->planned.push_back(mutation);
  }
  DecodeSizes(in, call);
  if (call->info->has_desc) call->desc = NewDescriptor(in, "desc", etalon_attention_desc_init, call);
  call->args = NewArgs(in, call);
  if (call->info->slots[0].in_states || call->function == kBlockStates) {
    call->states = call->arena.Add("states", sizeof(etalon_states));
  }
  DecodeTensors(in, call);
  if (call->info->HasSequences()) DecodeSequences(in, call);

  const int32_t max_workers = in->OneIn(2) ? static_cast<int32_t>(in->Below(10)) : 0;
  if (call->info->has_desc) {
    DecodeDesc(in, call, max_workers);
  } else {
    call->args->Put(call->info->target, DecodeTarget(in, call));
    if (call->info->has_workspace) call->args->Put(call->info->max_workers, max_workers);
    if (call->info->states != kNowhere) call->args->Put(call->info->states, call->states->data());
  }
  DecodeParallel(in, call, max_workers);
  if (in->OneIn(4)) call->workspace_extra = static_cast<size_t>(in->Below(200));
  call->wants_error = !in->OneIn(8);
  call->query_without_memory = in->OneIn(2);
  call->twice = in->OneIn(4);
  if (in->OneIn(4)) call->environment = test::kHostEnvironments[in->Below(5)];
}

Block* PointerBlock(const Call& call, const Slot& slot) { return slot.in_states ? call.states : call.args; }

const etalon_tensor* TensorOf(const Call& call, size_t slot) {
  const Slot& s = call.info->slots[slot];
  return PointerBlock(call, s)->Get<const etalon_tensor*>(s.offset);
}

std::string Describe(const Call& call) {
  std::string text = call.info->name;
  for (int i = 0; i < kNumSizes; ++i) {
    text += std::string(i == 0 ? ": " : ", ") + kSizeNames[i] + " " + std::to_string(call.sizes[i]);
  }
  return text + (call.mutations.empty() ? "; not mutated" : "; mutated:" + call.mutations);
}

}  // namespace etalon::fuzz
