// From bytes to a call that is right. Sizes are small, but some cross chunks and blocks.
#include "tests/fuzz/decode.h"

#include <algorithm>

#include "tests/support/host_environment.h"

namespace etalon::fuzz {
namespace {

int64_t Work(const Sizes& s) {
  return s[kBatch] * s[kQHeads] * s[kQLen] * (s[kKvLen] + 4 * s[kBlocks] + 1) * (s[kHeadDim] + s[kValueDim]);
}

// Sizes so large that only a tensor without elements can have them.
void MakeHuge(Bytes* in, Call* call) {
  Sizes& s = call->sizes;
  const int64_t huge[] = {int64_t{1} << 33, int64_t{1} << 62, (int64_t{1} << 40) + 1};
  const bool without_keys = call->function == kScores && in->OneIn(2);
  s[without_keys ? kKvLen : kBatch] = 0;
  s[kQLen] = in->Pick(huge);
  if (without_keys) s[kBatch] = s[kQHeads] = s[kKvHeads] = 1;  // rows must be countable
  if (!without_keys) s[kKvLen] = in->Pick(huge);
}

void DecodeSizes(Bytes* in, Call* call) {
  Sizes& s = call->sizes;
  s[kBatch] = in->Pick<int64_t>({1, 1, 1, 1, 2, 2, 3, 0});
  s[kKvHeads] = 1 + in->Below(3);
  s[kQHeads] = s[kKvHeads] * (1 + in->Below(3));
  s[kQLen] = DecodeLength(in);
  s[kKvLen] = in->OneIn(4) ? DecodeLongLength(in) : DecodeLength(in);
  s[kHeadDim] = 1 + in->Below(in->OneIn(4) ? 20 : 5);
  s[kValueDim] = 1 + in->Below(in->OneIn(4) ? 20 : 5);
  s[kBlocks] = in->Below(5);
  while (Work(s) > kMostDecodedWork) {
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
  if (in->OneIn(32)) {
    MakeHuge(in, call);
    call->ragged_q = call->ragged_kv = false;  // a tensor of rows of no sequence would have elements
  }
  if (call->function == kBlockStates) s[kBlocks] = (s[kKvLen] + 511) / 512;
  s[kQBatch] = call->ragged_q ? 1 : s[kBatch];
  s[kKvBatch] = call->ragged_kv ? 1 : s[kBatch];
  s[kQRows] = s[kQLen];
  s[kKvRows] = s[kKvLen];
}

int64_t Longest(const std::vector<int64_t>& lengths) {
  return lengths.empty() ? 0 : *std::max_element(lengths.begin(), lengths.end());
}

// Where the sequences of a ragged batch lie.
Rows DecodeRagged(Bytes* in, Call* call) {
  Sizes& s = call->sizes;
  using Args = etalon_attention_args;
  const size_t batch = static_cast<size_t>(s[kBatch]);
  Rows rows = {std::vector<int64_t>(batch, s[kQLen]), std::vector<int64_t>(batch, s[kKvLen])};
  if (call->ragged_q) {
    rows.q = DecodeStarts(in, s[kQRows], call->args, offsetof(Args, q_starts), "q_starts", call);
    s[kQLen] = Longest(rows.q);
  }
  if (call->ragged_kv) {
    rows.kv = DecodeStarts(in, s[kKvRows], call->args, offsetof(Args, kv_starts), "kv_starts", call);
    s[kKvLen] = Longest(rows.kv);
  }
  if (call->ragged_q || call->ragged_kv) call->args->Put(offsetof(Args, num_sequences), s[kBatch]);
  return rows;
}

void DecodeSequences(Bytes* in, const Rows& rows, Call* call) {
  const FunctionInfo& info = *call->info;
  const Sizes& sizes = call->sizes;
  const int64_t left = DecodeReach(in, sizes[kKvLen]);
  const int64_t right = DecodeReach(in, sizes[kKvLen]);
  const int64_t offset = DecodeOffset(in, sizes[kQLen], sizes[kKvLen]);
  Block* limits = info.has_desc ? call->desc : call->args;
  limits->Put(info.has_desc ? offsetof(etalon_attention_desc, left) : info.left, left);
  limits->Put(info.has_desc ? offsetof(etalon_attention_desc, right) : info.right, right);
  call->args->Put(info.q_offset, offset);
  if (in->OneIn(3)) DecodeOffsets(in, offset, call->args, info.q_offsets, "q_offsets", call);
  if (in->OneIn(3)) DecodeLengths(in, rows.q, call->args, info.q_lens, "q_lens", call);
  if (in->OneIn(3)) DecodeLengths(in, rows.kv, call->args, info.kv_lens, "kv_lens", call);
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
  const Sizes& sizes = call->sizes;
  const bool planned = IsPlanned(call->function);
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
  for (size_t slot = 0; slot < call->info->plain.size(); ++slot) {
    for (size_t i = 0; i < 4; ++i) {
      if (std::strcmp(call->slots[slot].name, names[i]) != 0) continue;
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

// A call of etalon_mask_prepare of its own.
void DecodeMaskCall(Bytes* in, Call* call) {
  Sizes& s = call->sizes;
  s[kBatch] = in->Pick<int64_t>({1, 1, 2, 3, 0});
  s[kQHeads] = 1 + in->Below(3);
  s[kQLen] = DecodeLength(in);
  s[kKvLen] = in->OneIn(3) ? DecodeLongLength(in) : DecodeLength(in);
  while (s[kBatch] * s[kQHeads] * s[kQLen] * s[kKvLen] > kMostDecodedWork) {
    int64_t* most = s[kBatch] > 1 ? &s[kBatch] : &s[kQLen];
    *most /= 2;
  }
  DecodeMask(in, static_cast<MaskWay>(in->Below(static_cast<int64_t>(MaskWay::kNumWays))), call);
}

void DecodeHost(Bytes* in, Call* call) {
  if (in->OneIn(4)) call->workspace_extra = static_cast<size_t>(in->Below(200));
  call->wants_error = !in->OneIn(8);
  call->query_without_memory = in->OneIn(2);
  call->twice = in->OneIn(4);
  if (in->OneIn(4)) call->environment = test::kHostEnvironments[in->Below(5)];
}

}  // namespace

void Decode(Bytes* in, Function function, bool ragged_q, bool ragged_kv, Call* call) {
  call->function = function;
  call->info = &InfoOf(function);
  call->slots = SlotsOf(function, 1);
  call->tensors.resize(call->slots.size());
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
  if (function == kMaskPrepare) {
    DecodeMaskCall(in, call);
    call->loop.seed = in->Seed();
    return DecodeHost(in, call);
  }
  call->ragged_q = ragged_q && IsWholeAttention(function);
  call->ragged_kv = ragged_kv && IsWholeAttention(function);
  DecodeSizes(in, call);
  if (call->info->has_desc) call->desc = NewDescriptor(in, "desc", etalon_attention_desc_init, call);
  call->args = NewArgs(in, call);
  if (function == kMergeStates || function == kBlockStates) {
    call->states = call->arena.Add("states", sizeof(etalon_states));
  }
  if (call->info->HasSequences()) call->arrays.resize(3);  // q_offsets, q_lens, kv_lens, if there are any
  const Rows rows = DecodeRagged(in, call);
  TensorDecoder tensors(in, call);
  tensors.DecodePlain();
  if (call->info->HasSequences()) DecodeSequences(in, rows, call);

  const int32_t max_workers = in->OneIn(2) ? static_cast<int32_t>(in->Below(10)) : 0;
  if (call->info->has_desc) {
    DecodeDesc(in, call, max_workers);
  } else {
    call->args->Put(call->info->target, DecodeTarget(in, call));
    if (call->info->has_workspace) call->args->Put(call->info->max_workers, max_workers);
    if (call->info->states != kNowhere) call->args->Put(call->info->states, call->states->data());
  }
  DecodeParallel(in, call, max_workers);
  DecodeHost(in, call);
  DecodeOptions(in, rows, &tensors, call);
}

size_t Call::SlotOf(const char* name, int source) const {
  for (size_t i = 0; i < slots.size(); ++i) {
    if (slots[i].source == source && std::strcmp(slots[i].name, name) == 0) return i;
  }
  Stop(std::string(info->name) + " has no " + name);
}

Block* PointerBlock(const Call& call, const Slot& slot) {
  return slot.holder == Holder::kStates ? call.states : call.HolderOf(slot.source);
}

const etalon_tensor* TensorOf(const Call& call, size_t slot) {
  const Slot& s = call.slots[slot];
  return PointerBlock(call, s)->Get<const etalon_tensor*>(s.offset);
}

std::string Describe(const Call& call) {
  std::string text = call.info->name;
  for (int i = 0; i < kNumSizes; ++i) {
    text += std::string(i == 0 ? ": " : ", ") + kSizeNames[i] + " " + std::to_string(call.sizes[static_cast<Size>(i)]);
  }
  if (!call.sources.empty()) text += "; " + std::to_string(call.sources.size()) + " more sources";
  for (size_t i = call.info->plain.size(); i < call.slots.size(); ++i) {
    if (call.tensors[i] != nullptr) text += "; " + call.slots[i].FullName();
  }
  for (const ArrayBlock& array : call.arrays) {
    if (array.block != nullptr) text += "; " + array.block->name();
  }
  if (!call.masks.empty()) text += "; " + std::to_string(call.masks.size()) + " prepared masks";
  return text + (call.mutations.empty() ? "; not mutated" : "; mutated:" + call.mutations);
}

}  // namespace etalon::fuzz
