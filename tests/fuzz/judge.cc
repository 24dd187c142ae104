// Descriptors, tensors, and how they fit each other.
#include "tests/fuzz/judge.h"

#include <cmath>

namespace etalon::fuzz {
namespace {

constexpr int64_t kLargest = int64_t{1} << 62;
// From here on the bytes of a workspace might not fit a size_t. Between these sizes and those that do not etalon.h
// leaves it open.
constexpr int64_t kLargeSize = int64_t{1} << 20;
constexpr int32_t kManyWorkers = 1 << 10;

// Reads a descriptor. False if it cannot be.
template <typename Descriptor>
bool Read(const Block& block, Descriptor* ours, Faults* faults) {
  const size_t size = block.Get<size_t>();
  if (size < sizeof *ours || size > 4096) {
    faults->Must(ETALON_BAD_STRUCT_SIZE);
    return false;
  }
  for (size_t i = sizeof *ours; i < size; ++i) {
    if (block.data()[i] != 0) faults->Must(ETALON_UNSUPPORTED);
  }
  *ours = block.Get<Descriptor>();
  return true;
}

template <typename Args>
bool ReadArgs(const Call& call, Judged* judged) {
  Args ours;
  return Read(*call.args, &ours, &judged->faults);
}

bool ReadAnyArgs(const Call& call, Judged* judged) {
  switch (call.function) {
    case kSoftmax:
      return ReadArgs<etalon_softmax_args>(call, judged);
    case kWeightedSum:
      return ReadArgs<etalon_weighted_sum_args>(call, judged);
    case kMerge:
      return ReadArgs<etalon_merge_args>(call, judged);
    case kMergeStates:
      return ReadArgs<etalon_merge_states_args>(call, judged);
    default:
      return ReadArgs<etalon_attention_args>(call, judged);
  }
}

bool IsType(int32_t dtype) { return dtype == ETALON_F32 || dtype == ETALON_F16 || dtype == ETALON_BF16; }

void JudgeWorkers(int32_t max_workers, Faults* faults) {
  if (max_workers < 0) faults->Must(ETALON_BAD_VALUE);
  if (max_workers > kManyWorkers) {
    faults->May(ETALON_BAD_VALUE);
    faults->May(ETALON_OVERFLOW);
  }
}

void JudgeTarget(const char* target, Faults* faults) {
  if (target == nullptr) return;
  for (int32_t i = 0; i < etalon_num_targets(); ++i) {
    etalon_target known;
    if (etalon_get_target(i, &known) != ETALON_OK || std::strcmp(known.name, target) != 0) continue;
    if (known.missing != 0) faults->Must(ETALON_TARGET_UNAVAILABLE);
    return;
  }
  faults->Must(ETALON_UNKNOWN_TARGET);
}

// ----------------------------------------------------------------------------------------------------------- tensors

// Sorted by stride, each dimension steps over all that the smaller ones span.
bool IsDistinct(const Elements& e) {
  Wide span = e.bytes();
  bool done[ETALON_MAX_RANK] = {};
  while (true) {
    int next = -1;
    Wide smallest = 0;
    for (int i = 0; i < e.places; ++i) {
      const Wide stride = e.stride[i] < 0 ? -Wide{e.stride[i]} : Wide{e.stride[i]};
      if (e.shape[i] <= 1 || done[i] || (next >= 0 && stride >= smallest)) continue;
      next = i;
      smallest = stride;
    }
    if (next < 0) return true;
    if (smallest < span) return false;
    done[next] = true;
    span += smallest * (e.shape[next] - 1);
  }
}

void JudgeStrides(const etalon_tensor& t, int added, bool output, Elements* e, Faults* faults) {
  const int64_t element = static_cast<int64_t>(e->bytes());
  if (t.data == nullptr) faults->Must(ETALON_NULL_POINTER);
  if (e->data % static_cast<uintptr_t>(element) != 0) faults->Must(ETALON_MISALIGNED);
  for (int i = added; i < e->places; ++i) {
    if (e->shape[i] == 1) continue;
    e->stride[i] = t.stride_bytes[i - added];
    if (e->stride[i] % element != 0) faults->Must(ETALON_BAD_STRIDE);
    if (i == e->places - 1 && e->stride[i] != element) faults->Must(ETALON_BAD_STRIDE);
  }
  const Wide low = e->Low(), high = e->High();
  if (e->data + low < 0 || e->data + high > UINTPTR_MAX) faults->Must(ETALON_OVERFLOW);
  if (high > INT64_MAX || low < INT64_MIN || high - low > INT64_MAX) faults->May(ETALON_OVERFLOW);
  if (output && !IsDistinct(*e)) faults->Must(ETALON_OVERLAP);
}

// False if there is no telling what the tensor is.
bool JudgeTensor(const etalon_tensor& t, const Slot& slot, Depth depth, Elements* e, Faults* faults) {
  for (unsigned char byte : t.reserved) {
    if (byte != 0) faults->Must(ETALON_UNSUPPORTED);
  }
  if (!IsType(t.dtype) || (slot.f32 && t.dtype != ETALON_F32)) faults->Must(ETALON_BAD_DTYPE);
  e->dtype = t.dtype;
  e->places = slot.places();
  if (t.rank < 1 || t.rank > e->places) {
    faults->Must(ETALON_BAD_RANK);
    return false;
  }
  if (t.rank < e->places - 2) faults->May(ETALON_BAD_RANK);
  const int added = e->places - t.rank;
  bool readable = IsType(t.dtype);
  for (int i = 0; i < e->places; ++i) {
    e->shape[i] = i < added ? 1 : t.shape[i - added];
    if (e->shape[i] < 0) faults->Must(ETALON_BAD_SHAPE);
    if (e->shape[i] > kLargest) faults->Must(ETALON_OVERFLOW);
    readable = readable && e->shape[i] >= 0 && e->shape[i] <= kLargest;
    e->empty = e->empty || e->shape[i] == 0;
  }
  e->data = reinterpret_cast<uintptr_t>(t.data);
  if (readable && !e->empty && depth == Depth::kMemory) JudgeStrides(t, added, slot.output, e, faults);
  return readable;
}

void JudgeTensors(const Call& call, Depth depth, Judged* judged) {
  const std::vector<Slot>& slots = call.info->slots;
  Faults* faults = &judged->faults;
  bool known[kNumSizes] = {};
  for (size_t i = 0; i < slots.size(); ++i) {
    const bool query_of_block_states = call.function == kBlockStates && depth == Depth::kShapes;
    if (slots[i].in_states && (call.null_states || query_of_block_states)) continue;
    const etalon_tensor* tensor = TensorOf(call, i);
    if (tensor == nullptr) {
      if (!slots[i].optional) faults->Must(ETALON_NULL_POINTER);
      continue;
    }
    Elements* e = &judged->tensors[i];
    judged->wanted[i] = JudgeTensor(*tensor, slots[i], depth, e, faults);
    if (!judged->wanted[i]) continue;
    for (int place = 0; place < e->places; ++place) {
      const Size size = slots[i].shape[static_cast<size_t>(place)];
      if (!known[size]) judged->sizes[size] = e->shape[place];
      known[size] = true;
      if (judged->sizes[size] != e->shape[place]) faults->Must(ETALON_BAD_SHAPE);
      if (e->shape[place] != 0) continue;
      if (size == kQHeads || size == kKvHeads) faults->Must(ETALON_NO_HEADS);
      if (size == kHeadDim || size == kValueDim) faults->Must(ETALON_BAD_HEAD_DIM);
    }
  }
  const int64_t* sizes = judged->sizes;
  if (sizes[kKvHeads] > 0 && sizes[kQHeads] % sizes[kKvHeads] != 0) faults->Must(ETALON_BAD_HEADS);
  for (Size size : {kHeadDim, kValueDim}) {
    if (sizes[size] > kLargeSize) faults->May(ETALON_OVERFLOW);
  }
  if (call.function == kMerge) {
    for (size_t i : {2u, 4u}) {
      if (judged->tensors[i].dtype != judged->tensors[0].dtype) faults->Must(ETALON_BAD_DTYPE);
    }
  }
}

// m, l and o of the states: rows evenly spaced, with one spacing.
void JudgeSpacing(const Call& call, Judged* judged) {
  const size_t first = call.function == kBlockStates ? 3 : 0;
  const Elements& m = judged->tensors[first];
  for (size_t i = first; i < first + 3; ++i) {
    const Elements& e = judged->tensors[i];
    if (!judged->wanted[i] || !judged->wanted[first] || e.empty) continue;
    const bool is_o = i == first + 2;
    const Wide state = is_o ? 4 * Wide{e.shape[4]} : 4;
    // In states; where there is one row it may be anything.
    const Wide row = m.shape[2] > 1 ? m.stride[2] / 4 : m.shape[1] > 1 ? m.stride[1] / 4 : m.shape[3];
    const Wide wanted[4] = {0, state * row * m.shape[2], state * row, state};
    for (int place = 1; place < (is_o ? 4 : 3); ++place) {
      if (e.shape[place] > 1 && e.stride[place] != wanted[place]) judged->faults.Must(ETALON_BAD_STRIDE);
    }
    if (wanted[1] > INT64_MAX || wanted[1] < INT64_MIN || wanted[2] > INT64_MAX || wanted[2] < INT64_MIN) {
      judged->faults.May(ETALON_OVERFLOW);
    }
  }
}

// ------------------------------------------------------------------------------------ descriptors against tensors

void JudgeAgainstDesc(const Call& call, bool planned, Judged* judged) {
  const etalon_attention_desc& d = judged->desc;
  const auto settle = [&](int64_t of_desc, Size size) {
    if (of_desc < 0) return;  // which is a fault of the descriptor, not of a tensor
    if ((planned || of_desc != 0) && of_desc != judged->sizes[size]) judged->faults.Must(ETALON_BAD_SHAPE);
  };
  const auto settle_most = [&](int64_t most, Size size) {
    if ((planned || most != 0) && judged->sizes[size] > most) judged->faults.Must(ETALON_BAD_SHAPE);
    if (judged->sizes[size] > kLargeSize) judged->faults.May(ETALON_OVERFLOW);
  };
  const auto settle_type = [&](int32_t of_desc, size_t slot) {
    if (!judged->wanted[slot] || (of_desc != 0 && !IsType(of_desc))) return;
    if ((planned || of_desc != 0) && of_desc != judged->tensors[slot].dtype) judged->faults.Must(ETALON_BAD_DTYPE);
  };
  if (!judged->wanted[0] || !judged->wanted[1]) return;
  settle(d.num_q_heads, kQHeads);
  settle(d.num_kv_heads, kKvHeads);
  settle(d.head_dim, kHeadDim);
  settle_type(d.q_dtype, 0);
  settle_type(d.k_dtype, 1);
  settle_most(d.max_batch, kBatch);
  settle_most(d.max_q_len, kQLen);
  settle_most(d.max_kv_len, kKvLen);
  if (call.function == kScores || !judged->wanted[2]) return;
  settle(d.value_dim, kValueDim);
  settle_type(d.v_dtype, 2);
  if (call.function != kBlockStates) settle_type(d.out_dtype, 3);
}

// ----------------------------------------------------------------------------------------------------------- lengths

// False if the array cannot be read.
bool JudgeArray(const Call& call, const int64_t* array, Judged* judged) {
  if (array == nullptr) return true;
  const uintptr_t first = reinterpret_cast<uintptr_t>(array);
  const Wide last = first + Wide{judged->sizes[kBatch]} * 8;
  if (first % 8 != 0) judged->faults.Must(ETALON_MISALIGNED);
  if (last > UINTPTR_MAX) judged->faults.Must(ETALON_OVERFLOW);
  if (first % 8 != 0 || last > UINTPTR_MAX) return false;
  if (call.arena.Find(first, static_cast<uintptr_t>(last)) == nullptr) judged->arrays_exist = false;
  return judged->arrays_exist;
}

void JudgeSequences(const Call& call, Judged* judged) {
  const FunctionInfo& info = *call.info;
  Sequences* s = &judged->sequences;
  s->left = info.has_desc ? judged->desc.left : call.args->Get<int64_t>(info.left);
  s->right = info.has_desc ? judged->desc.right : call.args->Get<int64_t>(info.right);
  s->q_offset = call.args->Get<int64_t>(info.q_offset);
  s->q_offsets = call.args->Get<const int64_t*>(info.q_offsets);
  s->q_lens = call.args->Get<const int64_t*>(info.q_lens);
  s->kv_lens = call.args->Get<const int64_t*>(info.kv_lens);
  if (s->q_offset > kLargest || s->q_offset < -kLargest) judged->faults.Must(ETALON_BAD_VALUE);
  const bool offsets = JudgeArray(call, s->q_offsets, judged);
  const bool q_lens = JudgeArray(call, s->q_lens, judged);
  const bool kv_lens = JudgeArray(call, s->kv_lens, judged);
  if (!offsets || !q_lens || !kv_lens) return;
  const bool any = s->q_offsets != nullptr || s->q_lens != nullptr || s->kv_lens != nullptr;
  for (int64_t b = 0; any && b < judged->sizes[kBatch]; ++b) {
    const Wide offset = Wide{s->q_offset} + (s->q_offsets == nullptr ? 0 : s->q_offsets[b]);
    const int64_t q_len = s->QLen(b, judged->sizes[kQLen]), kv_len = s->KvLen(b, judged->sizes[kKvLen]);
    if (offset > kLargest || offset < -kLargest) judged->faults.Must(ETALON_BAD_VALUE);
    if (q_len < 0 || q_len > judged->sizes[kQLen]) judged->faults.Must(ETALON_BAD_VALUE);
    if (kv_len < 0 || kv_len > judged->sizes[kKvLen]) judged->faults.Must(ETALON_BAD_VALUE);
  }
}

}  // namespace

std::string Faults::Disagrees(etalon_status status) const {
  if (status == ETALON_OK && must == 0) return "";
  if (status != ETALON_OK && status > 0 && status < 32 && ((must | may) >> status & 1) != 0) return "";
  std::string text = std::string("the answer is ") + etalon_status_name(status) + ", but";
  text += must == 0 ? " nothing is wrong" : " these are wrong:";
  for (int i = 1; i < 32; ++i) {
    if ((must >> i & 1) != 0) text += std::string(" ") + etalon_status_name(i);
  }
  return text;
}

Faults JudgeDesc(const Call& call, bool planned) {
  Faults faults;
  etalon_attention_desc d;
  if (call.null_desc) {
    faults.Must(ETALON_NULL_POINTER);
    return faults;
  }
  if (!Read(*call.desc, &d, &faults)) return faults;
  for (int64_t size : {d.max_batch, d.max_q_len, d.max_kv_len}) {
    if (size < 0) faults.Must(ETALON_BAD_SHAPE);
    if (size > kLargest) faults.Must(ETALON_OVERFLOW);
    if (size > kLargeSize) faults.May(ETALON_OVERFLOW);
  }
  if (!std::isfinite(d.scale)) faults.Must(ETALON_BAD_VALUE);
  if (!std::isfinite(d.softcap) || d.softcap < 0) faults.Must(ETALON_BAD_VALUE);
  if (d.softcap != 0) faults.Must(ETALON_UNSUPPORTED);
  if (d.math != ETALON_MATH_EXACT) faults.Must(d.math == ETALON_MATH_FAST ? ETALON_UNSUPPORTED : ETALON_BAD_VALUE);
  if (d.options != 0) faults.Must(ETALON_UNSUPPORTED);
  if (d.num_sources < 0) faults.Must(ETALON_BAD_VALUE);
  if (d.num_sources > 1) faults.Must(ETALON_UNSUPPORTED);
  JudgeWorkers(d.max_workers, &faults);
  JudgeTarget(d.target, &faults);
  // Without a plan, 0 is "as args".
  for (int64_t heads : {d.num_q_heads, d.num_kv_heads}) {
    if (heads < 0) faults.Must(ETALON_BAD_SHAPE);
    if (heads == 0 && planned) faults.Must(ETALON_NO_HEADS);
    if (heads > kLargeSize) faults.May(ETALON_OVERFLOW);
  }
  if (d.num_q_heads > 0 && d.num_kv_heads > 0 && d.num_q_heads % d.num_kv_heads != 0) faults.Must(ETALON_BAD_HEADS);
  const auto judge_dim = [&](int64_t dim) {
    if (dim < 0 || (dim == 0 && planned)) faults.Must(ETALON_BAD_HEAD_DIM);
    if (dim > kLargeSize) faults.May(ETALON_OVERFLOW);
  };
  const auto judge_type = [&](int32_t dtype) {
    if (!IsType(dtype) && (dtype != 0 || planned)) faults.Must(ETALON_BAD_DTYPE);
  };
  judge_dim(d.head_dim);
  judge_type(d.q_dtype);
  judge_type(d.k_dtype);
  if (call.function == kScores) return faults;
  judge_dim(d.value_dim);
  judge_type(d.v_dtype);
  if (call.function != kBlockStates) judge_type(d.out_dtype);
  return faults;
}

Judged JudgeCall(const Call& call, Depth depth, const etalon_attention_desc* plan_desc) {
  Judged judged;
  const FunctionInfo& info = *call.info;
  if (plan_desc != nullptr) {
    judged.desc = *plan_desc;
  } else if (info.has_desc) {
    judged.faults.Add(JudgeDesc(call, false));
    Faults again;
    if (call.null_desc || !Read(*call.desc, &judged.desc, &again)) return judged;
  }
  if (call.null_args) judged.faults.Must(ETALON_NULL_POINTER);
  if (call.null_args || !ReadAnyArgs(call, &judged)) return judged;
  const bool reads_states = !(call.function == kBlockStates && depth == Depth::kShapes);
  if (call.null_states && reads_states) judged.faults.Must(ETALON_NULL_POINTER);
  for (const Absent& absent : info.absent) {
    if (call.args->Get<const void*>(absent.offset) != nullptr) judged.faults.Must(absent.status);
  }
  if (info.reserved != kNowhere && call.args->Get<int32_t>(info.reserved) != 0) judged.faults.Must(ETALON_UNSUPPORTED);
  if (info.max_workers != kNowhere) JudgeWorkers(call.args->Get<int32_t>(info.max_workers), &judged.faults);
  if (info.target != kNowhere) JudgeTarget(call.args->Get<const char*>(info.target), &judged.faults);
  JudgeTensors(call, depth, &judged);
  if (info.has_desc) JudgeAgainstDesc(call, plan_desc != nullptr, &judged);
  if (call.function == kBlockStates && judged.wanted[1] && judged.wanted[3] &&
      judged.sizes[kBlocks] != (judged.sizes[kKvLen] + Wide{511}) / 512) {
    judged.faults.Must(ETALON_BAD_SHAPE);
  }
  // Rows must be countable, though a query may come before they have memory.
  const Wide rows = Wide{judged.sizes[kBatch]} * judged.sizes[kQHeads];
  if (info.has_desc && judged.wanted[0] && !judged.tensors[0].empty &&
      (rows > INT64_MAX || rows * judged.sizes[kQLen] > INT64_MAX)) {
    judged.faults.Must(ETALON_OVERFLOW);
  }
  const bool strides = depth == Depth::kMemory && (judged.faults.must & 1u << ETALON_BAD_SHAPE) == 0;
  if (info.slots[0].in_states || call.function == kBlockStates) {
    if (strides) JudgeSpacing(call, &judged);
  }
  if (info.HasSequences()) JudgeSequences(call, &judged);
  const int64_t* s = judged.sizes;
  const int64_t keys = info.slots[0].in_states ? s[kBlocks] : s[kKvLen];
  // Sizes are below 2^63 and may not be multiplied all at once.
  judged.work = 1;
  for (Wide factor :
       {Wide{s[kBatch]}, Wide{s[kQHeads]}, Wide{s[kQLen]}, keys + Wide{1}, Wide{s[kHeadDim]} + s[kValueDim]}) {
    if (judged.work < (Wide{1} << 60)) judged.work *= factor;
  }
  return judged;
}

int32_t MaxWorkersOf(const Call& call, const Judged& judged) {
  if (!call.info->has_workspace) return 0;
  const int32_t most = call.info->has_desc ? judged.desc.max_workers : call.args->Get<int32_t>(call.info->max_workers);
  return most == 0 ? 1 : most;
}

}  // namespace etalon::fuzz
