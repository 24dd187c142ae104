#include "tests/fuzz/tensors.h"

#include <algorithm>

#include "lib/base/arithmetic.h"
#include "tests/fuzz/elements.h"
#include "tests/support/generate.h"

namespace etalon::fuzz {
namespace {

constexpr int64_t kLargestToWalk = 4096;  // inputs with larger dimensions repeat one element along them

// ----------------------------------------------------------------------------------------------------------- values

struct Style {
  int exponent;
  int special_one_in;  // 0 = none
  uint8_t specials;    // which, one bit a kind
};

Style DecodeStyle(Bytes* in) {
  Style style;
  style.exponent = in->Pick({0, 0, 0, 1, 3, -6, 8, -20});
  style.special_one_in = in->Pick({0, 0, 0, 200, 40, 10, 2, 1});
  style.specials = in->Next();
  return style;
}

uint32_t Special(test::Random* random, int kind) {
  const uint32_t sign = random->Below(2) == 0 ? 0 : 0x80000000u;
  switch (kind) {
    case 0:
      return sign;
    case 1:
      return sign | static_cast<uint32_t>(1 + random->Below(0x7FFFFF));  // subnormal
    case 2:
      return sign | 0x7F7FFFFFu;
    case 3:
      return 0x7F800000u;
    case 4:
      return 0xFF800000u;
    case 5:
      return 0x7FC00000u;
    case 6:
      return sign | 0x7F800000u | static_cast<uint32_t>(1 + random->Below(0x7FFFFF));  // any NaN, signalling ones too
    default:
      return static_cast<uint32_t>(random->Next());
  }
}

uint32_t ValueWord(const Style& style, test::Random* random) {
  if (style.special_one_in > 0 && style.specials != 0 && random->Below(style.special_one_in) == 0) {
    int kind = static_cast<int>(random->Below(8));
    while ((style.specials >> kind & 1) == 0) kind = (kind + 1) % 8;
    return Special(random, kind);
  }
  return Bits(random->Normal()) + static_cast<uint32_t>(style.exponent) * 0x800000u;
}

// Sums of states: 0 is no state, others are positive and normal, or NaN.
uint32_t SumWord(const Style& style, test::Random* random) {
  if (style.special_one_in > 0 && random->Below(style.special_one_in) == 0) return 0x7FC00000u;
  if (random->Below(5) == 0) return random->Below(4) == 0 ? 0x80000000u : 0;
  return Bits(1.0f + static_cast<float>(random->Below(1 << 20)) * 0x1p-13f);
}

void Fill(const Elements& elements, bool sums, const Style& style, uint64_t seed) {
  test::Random random(seed);
  elements.ForEach([&](uintptr_t address) {
    const uint32_t word = sums ? SumWord(style, &random) : ValueWord(style, &random);
    void* at = reinterpret_cast<void*>(address);
    if (elements.dtype == ETALON_F32) {
      std::memcpy(at, &word, sizeof word);
    } else if ((word & 0x7FFFFFFFu) > 0x7F800000u) {
      const uint16_t half = static_cast<uint16_t>(word >> 16 | 0x7C01u);  // a NaN of either type, with a payload
      std::memcpy(at, &half, sizeof half);
    } else {
      const float value = FromBits(word);
      const uint16_t half = elements.dtype == ETALON_F16 ? NarrowF16(value) : NarrowBF16(value);
      std::memcpy(at, &half, sizeof half);
    }
  });
}

// ----------------------------------------------------------------------------------------------------------- layouts

struct Draft {
  Elements elements;
  bool wanted = true;
  bool distinct = false;  // laid out as an output must be
  int same_as = -1;       // in place of that slot
  Block* block = nullptr;
  size_t spare = 0;  // bytes behind it in its block
};

// Strides of an array that is packed but for gaps, its outer dimensions in any order in memory, some of them walked
// backwards; those of inputs may also repeat or overlap.
void LayOut(Bytes* in, Draft* draft) {
  Elements* e = &draft->elements;
  const int64_t element = static_cast<int64_t>(e->bytes());
  const int innermost = e->places - 1;
  int order[ETALON_MAX_RANK] = {0, 1, 2, 3, 4};
  if (in->OneIn(3)) {
    for (int i = innermost - 1; i > 0; --i) std::swap(order[i], order[in->Below(i + 1)]);
  }
  e->stride[innermost] = element;
  int64_t span = element * e->shape[innermost];
  for (int i = innermost; i-- > 0;) {
    const int place = order[i];
    const int64_t size = e->shape[place];
    int64_t stride = span;
    if (in->OneIn(4)) stride += element * in->Below(6);
    const int trick = static_cast<int>(in->Below(16));
    if (!draft->distinct && trick == 13) stride = 0;
    if (!draft->distinct && trick == 14) stride = element * in->Below(4);
    if (!draft->distinct && size > kLargestToWalk) stride = 0;
    if (size > 1) span = std::max(span, span - stride + stride * size);
    e->stride[place] = trick == 15 || trick == 12 ? -stride : stride;
  }
}

// The rows of all states have one spacing, `row_states` states; `width` floats a state.
void LayOutStates(Bytes* in, int64_t row_states, int64_t width, Draft* draft) {
  Elements* e = &draft->elements;
  const int64_t state = width * static_cast<int64_t>(sizeof(float));
  if (e->places == 5) e->stride[4] = sizeof(float);
  e->stride[3] = state;
  e->stride[2] = row_states * state;
  e->stride[1] = e->shape[2] * row_states * state;
  const int64_t rows = e->shape[1] * e->shape[2];
  const int64_t packed = e->shape[3] * state;
  const int64_t between = row_states < 0 ? -row_states : row_states;
  int64_t stride = (rows - 1) * between * state + packed;  // behind all rows
  if (in->OneIn(3)) stride += state * in->Below(5);
  if (in->OneIn(4) && between >= e->shape[0] * e->shape[3]) stride = packed;  // inside the space between rows
  if (!draft->distinct && in->OneIn(6)) stride = 0;
  e->stride[0] = in->OneIn(6) ? -stride : stride;
}

int64_t DecodeRowStates(Bytes* in, const int64_t* sizes, bool distinct) {
  int64_t row = sizes[kBlocks];
  if (in->OneIn(3)) row += in->Below(5);
  if (in->OneIn(4)) row = sizes[kBlocks] * sizes[kBatch] + in->Below(2);
  if (!distinct && in->OneIn(8)) row = in->Below(2);
  return in->OneIn(6) ? -row : row;
}

bool Shares(const Draft& draft) { return draft.wanted && draft.block != nullptr && !draft.distinct; }

// Right behind another one: what touches does not overlap.
bool PlaceBehind(Draft* other, Draft* draft) {
  Elements* e = &draft->elements;
  const size_t bytes = static_cast<size_t>(e->High() - e->Low());
  if (other->spare < bytes || other->elements.Last() % static_cast<uintptr_t>(e->bytes()) != 0) return false;
  draft->block = other->block;
  draft->spare = other->spare - bytes;
  other->spare = 0;
  e->data = other->elements.Last() - static_cast<uintptr_t>(e->Low());
  return true;
}

// Inputs may lie in each other's memory, however they like.
bool PlaceInOther(Bytes* in, const Draft& other, Draft* draft) {
  if (draft->distinct || !Shares(other)) return false;
  const int64_t element = static_cast<int64_t>(draft->elements.bytes());
  const int64_t bytes = static_cast<int64_t>(draft->elements.High() - draft->elements.Low());
  const uintptr_t start = other.elements.First();
  const int64_t skew = (element - static_cast<int64_t>(start) % element) % element;
  const int64_t spare = static_cast<int64_t>(other.elements.Last() - start) - skew - bytes;
  if (spare < 0) return false;
  draft->block = other.block;
  draft->elements.data = start + static_cast<uintptr_t>(skew + in->Below(spare / element % 60000 + 1) * element) -
                         static_cast<uintptr_t>(draft->elements.Low());
  return true;
}

void Place(Bytes* in, const Slot& slot, std::vector<Draft>* drafts, Draft* draft, Call* call) {
  Elements* e = &draft->elements;
  if (e->empty) {
    if (in->OneIn(2)) e->data = reinterpret_cast<uintptr_t>(call->arena.Add(slot.name, 0)->data());
    return;
  }
  const bool sums = std::strcmp(slot.name, "l") == 0;  // may not hold just any bits
  const int64_t where = in->Below(6);
  Draft* other = &(*drafts)[static_cast<size_t>(in->Below(static_cast<int64_t>(drafts->size())))];
  if (!sums && where == 5 && PlaceInOther(in, *other, draft)) return;
  if (where != 4 || !PlaceBehind(other, draft)) {
    const size_t skew = in->OneIn(2) ? static_cast<size_t>(e->bytes()) * static_cast<size_t>(in->Below(16)) : 0;
    const size_t bytes = static_cast<size_t>(e->High() - e->Low());
    draft->spare = where == 3 ? 3 * bytes : 0;
    draft->block = call->arena.Add(slot.name, bytes + draft->spare, skew);
    e->data = reinterpret_cast<uintptr_t>(draft->block->data()) - static_cast<uintptr_t>(e->Low());
  }
  const Style style = DecodeStyle(in);
  Fill(*e, sums, style, in->Seed());
}

// As a caller writes it: leading dimensions of size 1 may be left out; what does not count may be anything.
void Write(Bytes* in, const Draft& draft, Block* block) {
  const Elements& e = draft.elements;
  const int64_t element = static_cast<int64_t>(e.bytes());
  etalon_tensor tensor = {};
  tensor.data = reinterpret_cast<void*>(e.data);
  tensor.dtype = e.dtype;
  const int smallest = e.places > 2 ? e.places - 2 : 1;
  int dropped = 0;
  while (e.places - dropped > smallest && e.shape[dropped] == 1 && in->OneIn(2)) ++dropped;
  tensor.rank = e.places - dropped;
  for (int i = 0; i < ETALON_MAX_RANK; ++i) {
    const int place = i + dropped;
    const bool counts = place < e.places && e.shape[place] > 1 && !e.empty;
    tensor.shape[i] = place < e.places ? e.shape[place] : -7;
    tensor.stride_bytes[i] =
        counts ? e.stride[place] : in->Pick<int64_t>({0, element, -element, element * 1000003, INT64_MIN, 1});
  }
  block->Put(0, tensor);
}

void DecodeSames(Bytes* in, const FunctionInfo& info, std::vector<Draft>* drafts) {
  if (info.has_workspace || !in->OneIn(3)) return;
  for (size_t i = 0; i < drafts->size(); ++i) {
    if (!info.slots[i].output || !(*drafts)[i].wanted || in->OneIn(3)) continue;
    const size_t first = drafts->size() == 3 ? 0 : i - 4;  // merge: out1, lse1, out2, lse2, out, lse
    if (drafts->size() == 3 && i == 2) continue;           // softmax: lse has no partner
    const size_t of = drafts->size() == 3 || in->OneIn(2) ? first : first + 2;
    (*drafts)[i].same_as = static_cast<int>(of);
    (*drafts)[of].distinct = true;
  }
}

}  // namespace

void DecodeTensors(Bytes* in, Call* call) {
  const std::vector<Slot>& slots = call->info->slots;
  std::vector<Draft> drafts(slots.size());
  const int32_t of_merge = 1 + static_cast<int32_t>(in->Below(3));
  for (size_t i = 0; i < slots.size(); ++i) {
    const int32_t own = 1 + static_cast<int32_t>(in->Below(3));
    Draft* draft = &drafts[i];
    draft->elements.dtype = slots[i].f32 ? ETALON_F32 : call->function == kMerge ? of_merge : own;
    draft->elements.places = slots[i].places();
    for (int place = 0; place < slots[i].places(); ++place) {
      draft->elements.shape[place] = call->sizes[slots[i].shape[static_cast<size_t>(place)]];
      draft->elements.empty |= draft->elements.shape[place] == 0;
    }
    draft->distinct = slots[i].output;
    draft->wanted = !(slots[i].optional && in->OneIn(3));
  }
  DecodeSames(in, *call->info, &drafts);
  const int64_t row_states = DecodeRowStates(in, call->sizes, call->function == kBlockStates);
  for (size_t i = 0; i < slots.size(); ++i) {
    Draft* draft = &drafts[i];
    Elements* e = &draft->elements;
    if (!draft->wanted) continue;
    call->tensors[i] = call->arena.Add(std::string("the tensor ") + slots[i].name, sizeof(etalon_tensor));
    PointerBlock(*call, slots[i])->Put(slots[i].offset, call->tensors[i]->data());
    if (draft->same_as >= 0) {
      *e = drafts[static_cast<size_t>(draft->same_as)].elements;
    } else {
      if (!e->empty && slots[i].in_states) LayOutStates(in, row_states, e->places == 5 ? e->shape[4] : 1, draft);
      if (!e->empty && !slots[i].in_states) LayOut(in, draft);
      for (int place = 0; place < e->places; ++place) {
        if (e->shape[place] <= 1) e->stride[place] = 0;
      }
      Place(in, slots[i], &drafts, draft, call);
    }
    Write(in, *draft, call->tensors[i]);
  }
}

}  // namespace etalon::fuzz
