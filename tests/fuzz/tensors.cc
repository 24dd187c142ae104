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

void FillNumbers(const Elements& elements, bool sums, const Style& style, uint64_t seed) {
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

// Noise, or stretches of keys: of these, a prepared mask makes runs.
struct MaskStyle {
  int64_t stretch;  // keys, about
  int64_t shown;    // 0 = none, n = all but one of n + 1
};

void FillMask(const Elements& elements, const MaskStyle& style, uint64_t seed) {
  test::Random random(seed);
  bool on = style.shown > 0;
  const auto next = [&] {
    if (random.Below(style.stretch) == 0) on = random.Below(style.shown + 1) != 0;
    return on;
  };
  elements.ForEach([&](uintptr_t address) {
    uint8_t byte = 0;
    if (elements.dtype == ETALON_BITS) {
      for (int bit = 0; bit < 8; ++bit) byte = static_cast<uint8_t>(byte | (next() ? 1 : 0) << bit);
    } else if (next()) {
      byte = static_cast<uint8_t>(random.Below(4) == 0 ? 1 + random.Below(255) : 1);
    }
    std::memcpy(reinterpret_cast<void*>(address), &byte, sizeof byte);
  });
}

// ----------------------------------------------------------------------------------------------------------- layouts

int64_t DecodeRowStates(Bytes* in, const Sizes& sizes, bool distinct) {
  int64_t row = sizes[kBlocks];
  if (in->OneIn(3)) row += in->Below(5);
  if (in->OneIn(4)) row = sizes[kBlocks] * sizes[kBatch] + in->Below(2);
  if (!distinct && in->OneIn(8)) row = in->Below(2);
  return in->OneIn(6) ? -row : row;
}

}  // namespace

TensorDecoder::TensorDecoder(Bytes* in, Call* call) : in_(in), call_(call), drafts_(call->slots.size()) {}

// Strides of an array that is packed but for gaps, its outer dimensions in any order in memory, some of them walked
// backwards; those of inputs may also repeat or overlap.
void TensorDecoder::LayOut(bool may_repeat, Draft* draft) {
  Elements* e = &draft->elements;
  const int64_t element = static_cast<int64_t>(e->bytes());
  const int innermost = e->places - 1;
  int order[ETALON_MAX_RANK] = {0, 1, 2, 3, 4};
  if (in_->OneIn(3)) {
    for (int i = innermost - 1; i > 0; --i) std::swap(order[i], order[in_->Below(i + 1)]);
  }
  const bool repeats = may_repeat && (e->shape[innermost] > kLargestToWalk || in_->OneIn(6));
  e->stride[innermost] = repeats ? 0 : element;
  int64_t span = repeats ? element : element * e->shape[innermost];
  for (int i = innermost; i-- > 0;) {
    const int place = order[i];
    const int64_t size = e->shape[place];
    int64_t stride = span;
    if (in_->OneIn(4)) stride += element * in_->Below(6);
    const int trick = static_cast<int>(in_->Below(16));
    if (!draft->distinct && trick == 13) stride = 0;
    if (!draft->distinct && trick == 14) stride = element * in_->Below(4);
    if (!draft->distinct && size > kLargestToWalk) stride = 0;
    if (size > 1) span = std::max(span, span - stride + stride * size);
    e->stride[place] = trick == 15 || trick == 12 ? -stride : stride;
  }
}

// The rows of all states have one spacing, `row_states` states; `width` floats a state.
void TensorDecoder::LayOutStates(int64_t row_states, int64_t width, Draft* draft) {
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
  if (in_->OneIn(3)) stride += state * in_->Below(5);
  if (in_->OneIn(4) && between >= e->shape[0] * e->shape[3]) stride = packed;  // inside the space between rows
  if (!draft->distinct && in_->OneIn(6)) stride = 0;
  e->stride[0] = in_->OneIn(6) ? -stride : stride;
}

// Right behind another one: what touches does not overlap.
bool TensorDecoder::PlaceBehind(Draft* other, Draft* draft) {
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
bool TensorDecoder::PlaceInOther(const Draft& other, Draft* draft) {
  if (draft->distinct || !other.wanted || other.block == nullptr || other.distinct) return false;
  const int64_t element = static_cast<int64_t>(draft->elements.bytes());
  const int64_t bytes = static_cast<int64_t>(draft->elements.High() - draft->elements.Low());
  const uintptr_t start = other.elements.First();
  const int64_t skew = (element - static_cast<int64_t>(start) % element) % element;
  const int64_t spare = static_cast<int64_t>(other.elements.Last() - start) - skew - bytes;
  if (spare < 0) return false;
  draft->block = other.block;
  draft->elements.data = start + static_cast<uintptr_t>(skew + in_->Below(spare / element % 60000 + 1) * element) -
                         static_cast<uintptr_t>(draft->elements.Low());
  return true;
}

void TensorDecoder::Fill(const Slot& slot, const Elements& elements) {
  if (slot.types == Types::kMask || slot.types == Types::kBool) {
    MaskStyle style;
    style.stretch = in_->Pick<int64_t>({1, 1, 2, 9, 40, 150, 600});
    style.shown = in_->Pick<int64_t>({3, 1, 1, 9, 40, 0});
    FillMask(elements, style, in_->Seed());
  } else {
    const Style style = DecodeStyle(in_);
    FillNumbers(elements, std::strcmp(slot.name, "l") == 0, style, in_->Seed());
  }
}

void TensorDecoder::Place(const Slot& slot, Draft* draft) {
  Elements* e = &draft->elements;
  if (e->empty) {
    if (in_->OneIn(2)) e->data = reinterpret_cast<uintptr_t>(call_->arena.Add(slot.FullName(), 0)->data());
    return;
  }
  const bool sums = std::strcmp(slot.name, "l") == 0;  // may not hold just any bits
  const int64_t where = in_->Below(6);
  // Of the plain slots all, those that come later too.
  const size_t choices = std::max(made_.size(), call_->info->plain.size());
  const size_t choice = choices == 0 ? 0 : static_cast<size_t>(in_->Below(static_cast<int64_t>(choices)));
  Draft* other = &drafts_[choice < made_.size() ? made_[choice] : choice];
  if (!sums && where == 5 && PlaceInOther(*other, draft)) return;
  if (where != 4 || !PlaceBehind(other, draft)) {
    const size_t skew = in_->OneIn(2) ? static_cast<size_t>(e->bytes()) * static_cast<size_t>(in_->Below(16)) : 0;
    const size_t bytes = static_cast<size_t>(e->High() - e->Low());
    draft->spare = where == 3 ? 3 * bytes : 0;
    draft->block = call_->arena.Add(slot.FullName(), bytes + draft->spare, skew);
    e->data = reinterpret_cast<uintptr_t>(draft->block->data()) - static_cast<uintptr_t>(e->Low());
  }
  Fill(slot, *e);
}

// As a caller writes it: leading dimensions of size 1 may be left out; what does not count may be anything.
void TensorDecoder::Write(const Draft& draft, Block* block) {
  const Elements& e = draft.elements;
  const int64_t element = static_cast<int64_t>(e.bytes());
  etalon_tensor tensor = {};
  tensor.data = reinterpret_cast<void*>(e.data);
  tensor.dtype = e.dtype;
  const int smallest = e.places > 2 ? e.places - 2 : 1;
  int dropped = 0;
  while (e.places - dropped > smallest && e.shape[dropped] == 1 && in_->OneIn(2)) ++dropped;
  tensor.rank = e.places - dropped;
  for (int i = 0; i < ETALON_MAX_RANK; ++i) {
    const int place = i + dropped;
    const bool counts = place < e.places && e.shape[place] > 1 && !e.empty;
    tensor.shape[i] = place < e.places ? e.shape[place] : -7;
    tensor.stride_bytes[i] =
        counts ? e.stride[place] : in_->Pick<int64_t>({0, element, -element, element * 1000003, INT64_MIN, 1});
  }
  block->Put(0, tensor);
}

void TensorDecoder::DecodeSames() {
  if (call_->info->has_workspace || !in_->OneIn(3)) return;
  const size_t count = call_->info->plain.size();
  for (size_t i = 0; i < count; ++i) {
    if (!call_->slots[i].output || !drafts_[i].wanted || in_->OneIn(3)) continue;
    const size_t first = count == 3 ? 0 : i - 4;  // merge: out1, lse1, out2, lse2, out, lse
    if (count == 3 && i == 2) continue;           // softmax: lse has no partner
    const size_t of = count == 3 || in_->OneIn(2) ? first : first + 2;
    drafts_[i].same_as = static_cast<int>(of);
    drafts_[of].distinct = true;
  }
}

// From its sizes and type to a tensor in the arguments.
void TensorDecoder::Finish(size_t index) {
  const Slot& slot = call_->slots[index];
  Draft* draft = &drafts_[index];
  Elements* e = &draft->elements;
  call_->tensors[index] = call_->arena.Add("the tensor " + slot.FullName(), sizeof(etalon_tensor));
  PointerBlock(*call_, slot)->Put(slot.offset, call_->tensors[index]->data());
  if (draft->same_as >= 0) {
    *e = drafts_[static_cast<size_t>(draft->same_as)].elements;
  } else {
    const bool may_repeat = slot.types == Types::kBias || e->dtype == ETALON_BOOL;
    if (!e->empty && slot.holder == Holder::kStates) LayOutStates(row_states_, e->places == 5 ? e->shape[4] : 1, draft);
    if (!e->empty && slot.holder != Holder::kStates) LayOut(may_repeat, draft);
    for (int place = 0; place < e->places; ++place) {
      if (e->shape[place] <= 1) e->stride[place] = 0;
    }
    Place(slot, draft);
  }
  Write(*draft, call_->tensors[index]);
  made_.push_back(index);
}

void TensorDecoder::DecodePlain() {
  const size_t count = call_->info->plain.size();
  const int32_t of_merge = 1 + static_cast<int32_t>(in_->Below(3));
  for (size_t i = 0; i < count; ++i) {
    const Slot& slot = call_->slots[i];
    const int32_t own = 1 + static_cast<int32_t>(in_->Below(3));
    Draft* draft = &drafts_[i];
    draft->elements.dtype = slot.types == Types::kF32 ? ETALON_F32 : call_->function == kMerge ? of_merge : own;
    draft->elements.places = slot.places();
    for (int place = 0; place < slot.places(); ++place) {
      draft->elements.shape[place] = call_->sizes[slot.shape[static_cast<size_t>(place)]];
      draft->elements.empty |= draft->elements.shape[place] == 0;
    }
    draft->distinct = slot.output;
    draft->wanted = !(slot.optional && in_->OneIn(3));
  }
  DecodeSames();
  row_states_ = DecodeRowStates(in_, call_->sizes, call_->function == kBlockStates);
  for (size_t i = 0; i < count; ++i) {
    if (drafts_[i].wanted) Finish(i);
  }
}

void TensorDecoder::Add(size_t index, int32_t dtype, const std::vector<int64_t>& shape) {
  drafts_.resize(call_->slots.size());
  Draft* draft = &drafts_[index];
  draft->elements.dtype = dtype;
  draft->elements.places = static_cast<int>(shape.size());
  for (size_t place = 0; place < shape.size(); ++place) {
    draft->elements.shape[place] = shape[place];
    draft->elements.empty |= shape[place] == 0;
  }
  Finish(index);
}

}  // namespace etalon::fuzz
