// Tensors by themselves, and how they fit each other.
#include "tests/fuzz/judge_parts.h"

namespace etalon::fuzz {
namespace {

bool IsType(int32_t dtype) { return IsNumber(dtype) || dtype == ETALON_BOOL || dtype == ETALON_BITS; }

void JudgeType(int32_t dtype, Types types, Faults* faults) {
  switch (types) {
    case Types::kF32:
      if (dtype != ETALON_F32) faults->Must(ETALON_BAD_DTYPE);
      return;
    case Types::kMask:
      if (dtype != ETALON_BOOL && dtype != ETALON_BITS) faults->Must(ETALON_BAD_DTYPE);
      return;
    case Types::kBool:  // bits are a type of masks, but not here
      if (dtype != ETALON_BOOL) faults->Must(dtype == ETALON_BITS ? ETALON_UNSUPPORTED : ETALON_BAD_DTYPE);
      return;
    default:
      if (!IsNumber(dtype)) faults->Must(ETALON_BAD_DTYPE);
  }
}

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

void JudgeStrides(const etalon_tensor& t, int added, const Slot& slot, Elements* e, Faults* faults) {
  const int64_t element = static_cast<int64_t>(e->bytes());
  const bool may_repeat = slot.types == Types::kBias || e->dtype == ETALON_BOOL;
  if (t.data == nullptr) faults->Must(ETALON_NULL_POINTER);
  if (e->data % static_cast<uintptr_t>(element) != 0) faults->Must(ETALON_MISALIGNED);
  for (int i = added; i < e->places; ++i) {
    if (e->shape[i] == 1) continue;
    e->stride[i] = t.stride_bytes[i - added];
    if (e->stride[i] % element != 0) faults->Must(ETALON_BAD_STRIDE);
    const bool repeats = may_repeat && e->stride[i] == 0;
    if (i == e->places - 1 && e->stride[i] != element && !repeats) faults->Must(ETALON_BAD_STRIDE);
  }
  const Wide low = e->Low(), high = e->High();
  if (e->data + low < 0 || e->data + high > UINTPTR_MAX) faults->Must(ETALON_OVERFLOW);
  if (high > INT64_MAX || low < INT64_MIN || high - low > INT64_MAX) faults->May(ETALON_OVERFLOW);
  if (slot.output && !IsDistinct(*e)) faults->Must(ETALON_OVERLAP);
}

// The tensor that a slot names. Null if there is none, or nobody to name it.
const etalon_tensor* TensorOfSlot(const Call& call, const Judged& judged, const Slot& slot) {
  const etalon_tensor* tensor;
  if (slot.holder == Holder::kStates) {
    return call.states->Get<const etalon_tensor*>(slot.offset);
  }
  if (slot.holder == Holder::kArgs) return judged.Arg<const etalon_tensor*>(slot.offset);
  const etalon_key_source& source = judged.sources[slot.source].args;
  std::memcpy(&tensor, reinterpret_cast<const unsigned char*>(&source) + slot.offset, sizeof tensor);
  return tensor;
}

// A size of a tensor that is not the first to have it.
void JudgeSizes(const Slot& slot, const Elements& e, bool (*known)[kNumSizes], Judged* judged) {
  Faults* faults = &judged->faults;
  for (int place = 0; place < e.places; ++place) {
    const Size size = slot.shape[static_cast<size_t>(place)];
    bool* told = &known[IsOfSource(size) ? slot.source : 0][size];
    int64_t* value = &judged->sizes.Of(slot.source, size);
    if (!*told) *value = e.shape[place];
    *told = true;
    if (*value != e.shape[place]) faults->Must(ETALON_BAD_SHAPE);
    const bool is_dim = size == kHeadDim || size == kValueDim;
    if (is_dim && e.shape[place] > kLargeSize) faults->May(ETALON_OVERFLOW);
    if (e.shape[place] != 0) continue;
    if (size == kQHeads || size == kKvHeads) faults->Must(ETALON_NO_HEADS);
    if (is_dim) faults->Must(ETALON_BAD_HEAD_DIM);
  }
}

// Every source has the types of the first, and heads that divide those of the queries.
void JudgeSources(const Call& call, Judged* judged) {
  const Sizes& sizes = judged->sizes;
  if (sizes[kKvHeads] > 0 && sizes[kQHeads] % sizes[kKvHeads] != 0) judged->faults.Must(ETALON_BAD_HEADS);
  for (int source = 1; source < judged->num_sources; ++source) {
    if (!judged->sources[source].readable) continue;
    for (const char* name : {"k", "v"}) {
      const size_t first = call.SlotOf(name), own = call.SlotOf(name, source);
      if (!judged->wanted[first] || !judged->wanted[own]) continue;
      const Elements& e = judged->tensors[own];
      if (e.dtype != judged->tensors[first].dtype) judged->faults.Must(ETALON_BAD_DTYPE);
      if (*name == 'k' && e.shape[1] > 0 && sizes[kQHeads] % e.shape[1] != 0) judged->faults.Must(ETALON_BAD_HEADS);
    }
  }
}

}  // namespace

bool IsNumber(int32_t dtype) { return dtype == ETALON_F32 || dtype == ETALON_F16 || dtype == ETALON_BF16; }

bool JudgeTensor(const etalon_tensor& t, const Slot& slot, Depth depth, Elements* e, Faults* faults) {
  for (unsigned char byte : t.reserved) {
    if (byte != 0) faults->Must(ETALON_UNSUPPORTED);
  }
  JudgeType(t.dtype, slot.types, faults);
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
  if (readable && !e->empty && depth == Depth::kMemory) JudgeStrides(t, added, slot, e, faults);
  return readable;
}

void JudgeTensors(const Call& call, Depth depth, Judged* judged) {
  bool known[ETALON_MAX_SOURCES][kNumSizes] = {};
  for (size_t i = 0; i < call.slots.size(); ++i) {
    const Slot& slot = call.slots[i];
    const bool query_of_block_states = call.function == kBlockStates && depth == Depth::kShapes;
    if (slot.holder == Holder::kStates && (call.null_states || query_of_block_states)) continue;
    if (slot.holder == Holder::kSource && !judged->sources[slot.source].readable) continue;
    const etalon_tensor* tensor = TensorOfSlot(call, *judged, slot);
    if (tensor == nullptr) {
      if (!slot.optional) judged->faults.Must(ETALON_NULL_POINTER);
      continue;
    }
    judged->wanted[i] = JudgeTensor(*tensor, slot, depth, &judged->tensors[i], &judged->faults);
    if (judged->wanted[i] && !slot.broadcast) JudgeSizes(slot, judged->tensors[i], known, judged);
  }
  JudgeSources(call, judged);
  if (call.function == kMerge) {
    for (size_t i : {2u, 4u}) {
      if (judged->tensors[i].dtype != judged->tensors[0].dtype) judged->faults.Must(ETALON_BAD_DTYPE);
    }
  }
}

void JudgeBroadcast(const Call& call, size_t index, Judged* judged) {
  const Slot& slot = call.slots[index];
  const Elements& e = judged->tensors[index];
  if (!judged->wanted[index]) return;
  for (int place = 0; place < e.places; ++place) {
    const int64_t size = judged->sizes.Of(slot.source, slot.shape[static_cast<size_t>(place)]);
    const bool bits = place == 3 && e.dtype == ETALON_BITS;
    const bool fits = bits ? e.shape[place] == static_cast<int64_t>((Wide{size} + 7) / 8)
                           : e.shape[place] == size || e.shape[place] == 1;
    if (!fits) judged->faults.Must(ETALON_BAD_SHAPE);
  }
}

void JudgeSpacing(const Call& call, Judged* judged) {
  const size_t first = call.SlotOf("m");
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

}  // namespace etalon::fuzz
