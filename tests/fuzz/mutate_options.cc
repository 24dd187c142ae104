// Changes to what a call brings beside its tensors.
#include "tests/fuzz/mutate.h"

namespace etalon::fuzz {
namespace {

using Args = etalon_attention_args;
using Source = etalon_key_source;

// A number near to `now`, or near to where numbers end. Unsigned, since sums may wrap.
uint64_t Interesting(uint64_t now, uint8_t how) {
  const uint64_t top = uint64_t{1} << 63;
  const uint64_t choices[] = {now + 1,
                              now - 1,
                              now + 2,
                              now * 2,
                              0 - now,
                              now / 2,
                              0,
                              1,
                              2,
                              3,
                              4,
                              5,
                              16,
                              now + 4,
                              now - 4,
                              ~uint64_t{0},
                              top,
                              top - 1,
                              top + 1,
                              top / 2,
                              top / 2 + 1,
                              0 - top / 2,
                              top - 8,
                              top / 4,
                              1u << 20,
                              1u << 31,
                              1ull << 32,
                              1ull << 52,
                              4096,
                              0x7FC00000,
                              now + 8,
                              now ^ 2,
                              0x7F80000000u,
                              0x3F800000u,
                              now - 8,
                              0xBF800000u};
  return choices[how % (sizeof choices / sizeof choices[0])];
}

class OptionMutator {
 public:
  OptionMutator(const Mutation& mutation, Call* call) : m_(mutation), call_(call) {}

  void Apply(int kind) {
    switch (kind) {
      case 0:
        return OptionBit();
      case 1:
        return NumSources();
      case 2:
        return WordOfSource();
      case 3:
        return TailOfSource();
      case 4:
        return MoreSources();
      case 5:
        return PointerOfSource();
      case 6:
      case 7:
        return Prepared();
      case 8:
        return NumSequences();
      case 9:
        return OutputOnto();
      case 10:
        return OlderArgs();
      case 11:
        return OtherMask();
      case 12:
        return Columns();
      case 13:
        return BothMasks();
      case 14:
        return NamedOptions();
      case 15:
        return OtherHalf();
      default:
        return Neighbours();
    }
  }

 private:
  bool HasDesc() const { return call_->info->has_desc; }

  // In the arguments, if they are as long as that.
  template <typename T>
  void PutArg(size_t offset, const T& value) {
    if (offset + sizeof value <= call_->args->size()) call_->args->Put(offset, value);
  }

  void OptionBit() {
    if (!HasDesc()) return;
    const uint32_t bit = 1u << (m_.how % 8 < 6 ? m_.how % 8 : m_.place % 32);
    const size_t offset = offsetof(etalon_attention_desc, options);
    call_->desc->Put(offset, call_->desc->Get<uint32_t>(offset) ^ bit);
    NoteMutation("options have changed by", bit, call_);
  }

  void NumSources() {
    if (!HasDesc()) return;
    const int32_t choices[] = {0, 1, 2, 3, ETALON_MAX_SOURCES, ETALON_MAX_SOURCES + 1, -1, INT32_MAX, INT32_MIN, 7};
    const int32_t count = choices[m_.how % 10];
    call_->desc->Put(offsetof(etalon_attention_desc, num_sources), count);
    NoteMutation("num_sources", count, call_);
  }

  Block* AnySource() const {
    return call_->sources.empty() ? nullptr : call_->sources[m_.slot % call_->sources.size()];
  }

  // What is no pointer.
  void WordOfSource() {
    const size_t offsets[] = {offsetof(Source, struct_size), offsetof(Source, left), offsetof(Source, right),
                              offsetof(Source, q_offset)};
    const size_t offset = offsets[m_.place % 4];
    PutInteresting(AnySource(), "a key source at " + std::to_string(offset), offset, sizeof(int64_t), m_.how, call_);
  }

  void TailOfSource() {
    Block* source = AnySource();
    if (source == nullptr || source->size() <= sizeof(Source)) return;
    source->data()[sizeof(Source) + m_.place % (source->size() - sizeof(Source))] = m_.how;
    if (m_.how != 0) NoteMutation("a key source behind its end", m_.how, call_);
  }

  // The pointers to the sources.
  void MoreSources() {
    if (!HasDesc()) return;
    const size_t offset = offsetof(Args, more_sources);
    Block* more = call_->more_sources;
    const int what = m_.how % 6;
    const uintptr_t here = more == nullptr ? 8 : reinterpret_cast<uintptr_t>(more->data());
    if (what == 0) PutArg(offset, uintptr_t{0});
    if (what == 1) PutArg(offset, here + 4);
    if (what == 2) PutArg(offset, here);
    const size_t count = call_->sources.size();
    if (what > 2 && count == 0) return;
    if (what == 3) more->Put(m_.place % count * sizeof(void*), uintptr_t{0});
    if (what == 4) more->Put(m_.place % count * sizeof(void*), call_->sources[m_.slot % count]->data());
    if (what == 5) PutArg(offset, here + sizeof(void*));  // one less than it should be
    NoteMutation("more_sources", what, call_);
  }

  // A tensor of a source: none, or that of another one.
  void PointerOfSource() {
    std::vector<const Slot*> slots;
    for (const Slot& slot : call_->slots) {
      if (slot.holder == Holder::kSource) slots.push_back(&slot);
    }
    if (slots.empty()) return;
    const Slot& slot = *slots[m_.slot % slots.size()];
    const Block* other = m_.how % 2 == 0 ? nullptr : call_->tensors[m_.place % call_->tensors.size()];
    PointerBlock(*call_, slot)->Put(slot.offset, other == nullptr ? nullptr : other->data());
    NoteMutation(slot.FullName() + (other == nullptr ? " is NULL" : " is tensor"), m_.place, call_);
  }

  // Where a pointer to a prepared mask stands: that of any source.
  void PutPrepared(uintptr_t pointer) {
    const size_t source = m_.slot % (call_->sources.size() + 1);
    if (source == 0) return PutArg(offsetof(Args, prepared_mask), pointer);
    call_->sources[source - 1]->Put(offsetof(Source, prepared_mask), pointer);
  }

  // Something that was not prepared, but can be read.
  void Prepared() {
    if (!HasDesc()) return;
    PreparedMask* mask = call_->masks.empty() ? nullptr : &call_->masks[m_.place % call_->masks.size()];
    uintptr_t pointer = 0;
    const int what = m_.how % 8;
    if (what == 1) {  // garbage
      Block* garbage = call_->arena.Add("no mask", 64);
      if (m_.place % 2 == 0) std::memset(garbage->data(), 0, 64);
      pointer = reinterpret_cast<uintptr_t>(garbage->data());
    }
    if (what == 2) {  // of a tensor
      const Block* tensor = call_->tensors[m_.place % call_->tensors.size()];
      if (tensor == nullptr) return;
      pointer = reinterpret_cast<uintptr_t>(tensor->data());
    }
    if (what > 2 && mask == nullptr) return;
    if (what > 2) pointer = reinterpret_cast<uintptr_t>(mask->block->data());
    if (what == 3) pointer += 1 + m_.place % 7u;
    if (what == 4) pointer += 8;
    if (what == 5) {  // of another version
      mask->block->data()[m_.place % 8] ^= static_cast<unsigned char>(1 + m_.place / 8);
      mask->intact = false;
    }
    PutPrepared(pointer);
    NoteMutation("a prepared mask", what, call_);
  }

  void NumSequences() {
    if (!HasDesc() || call_->args->size() < offsetof(Args, num_sequences) + sizeof(int64_t)) return;
    PutInteresting(call_->args, "num_sequences", offsetof(Args, num_sequences), sizeof(int64_t), m_.how, call_);
  }

  // An output lies where something else is read.
  void OutputOnto() {
    std::vector<uintptr_t> places;
    for (const ArrayBlock& array : call_->arrays) {
      if (array.block != nullptr) places.push_back(reinterpret_cast<uintptr_t>(array.block->data()));
    }
    for (const PreparedMask& mask : call_->masks) {
      places.push_back(reinterpret_cast<uintptr_t>(mask.block->data() + mask.block->size() / 16 * 8));
    }
    for (size_t i = call_->info->plain.size(); i < call_->tensors.size(); ++i) {
      if (call_->tensors[i] != nullptr) {
        places.push_back(call_->tensors[i]->Get<uintptr_t>(offsetof(etalon_tensor, data)) / 4 * 4);
      }
    }
    std::vector<size_t> outputs;
    for (size_t i = 0; i < call_->tensors.size(); ++i) {
      if (call_->slots[i].output && call_->tensors[i] != nullptr) outputs.push_back(i);
    }
    if (places.empty() || outputs.empty()) return;
    const size_t slot = outputs[m_.slot % outputs.size()];
    call_->tensors[slot]->Put(offsetof(etalon_tensor, data), places[m_.place % places.size()]);
    NoteMutation(call_->slots[slot].FullName() + " lies on what is read", m_.place, call_);
  }

  // A caller of another version: what it does not know, or not all of, counts as 0.
  void OlderArgs() {
    const size_t first = call_->info->first_args_bytes;
    const size_t choices[] = {first,      first + 8,  first + 16, first + 24, first + 32,
                              first + 40, first + 48, first - 1,  0};
    const size_t size = choices[m_.how % 9];
    if (size > call_->args->size()) return;
    call_->args->Put(0, size);
    NoteMutation("args.struct_size", static_cast<int64_t>(size), call_);
  }

  // The mask of another source, or of another shape.
  void OtherMask() {
    if (!HasDesc() || call_->masks.empty()) return;
    const PreparedMask& mask = call_->masks[m_.place % call_->masks.size()];
    PutPrepared(reinterpret_cast<uintptr_t>(mask.block->data()));
    NoteMutation("the prepared mask of", m_.place, call_);
  }

  // A slot beyond the plain ones whose tensor is there; SIZE_MAX if there is none.
  size_t AnyOption() const {
    std::vector<size_t> slots;
    for (size_t i = call_->info->plain.size(); i < call_->tensors.size(); ++i) {
      if (call_->tensors[i] != nullptr) slots.push_back(i);
    }
    return slots.empty() ? SIZE_MAX : slots[m_.slot % slots.size()];
  }

  // The innermost dimension of a bias or a mask, or its type: a size or a stride that some of them may have.
  void Columns() {
    const size_t slot = AnyOption();
    if (slot == SIZE_MAX) return;
    etalon_tensor* tensor = reinterpret_cast<etalon_tensor*>(call_->tensors[slot]->data());
    if (tensor->rank < 1 || tensor->rank > ETALON_MAX_RANK) return;
    const int last = tensor->rank - 1;
    const int what = m_.how % 6;
    if (what == 0) tensor->shape[last] = 1;
    if (what == 1) tensor->stride_bytes[last] = 0;
    if (what == 2) tensor->dtype = tensor->dtype == ETALON_BOOL ? ETALON_BITS : ETALON_BOOL;
    if (what == 3) tensor->shape[last] = call_->sizes.Of(call_->slots[slot].source, kKvLen);
    if (what == 4) tensor->shape[last] = static_cast<int64_t>(static_cast<uint64_t>(tensor->shape[last]) + 1);
    if (what == 5) tensor->shape[m_.place % tensor->rank] = 1;
    NoteMutation("columns of " + call_->slots[slot].FullName(), what, call_);
  }

  // A dense mask and a prepared one beside each other.
  void BothMasks() {
    if (!HasDesc() || call_->masks.empty()) return;
    const size_t source = m_.slot % (call_->sources.size() + 1);
    const size_t own = call_->SlotOf("mask", static_cast<int>(source));
    const Block* mask = call_->tensors[own];
    for (const Block* other : call_->tensors) mask = mask == nullptr ? other : mask;
    if (mask == nullptr) return;
    PointerBlock(*call_, call_->slots[own])->Put(call_->slots[own].offset, mask->data());
    NoteMutation("two masks of source", static_cast<int64_t>(source), call_);
    OtherMask();
  }

  // Just what there is, and a bit more or less.
  void NamedOptions() {
    if (!HasDesc()) return;
    const struct {
      const char* name;
      uint32_t bit;
    } options[] = {{"slopes", ETALON_OPTION_ALIBI},
                   {"bias", ETALON_OPTION_BIAS},
                   {"mask", ETALON_OPTION_MASK},
                   {"sinks", ETALON_OPTION_SINKS}};
    uint32_t given = call_->masks.empty() ? 0 : ETALON_OPTION_MASK;
    for (size_t i = 0; i < call_->slots.size(); ++i) {
      for (const auto& option : options) {
        if (call_->tensors[i] != nullptr && std::strcmp(call_->slots[i].name, option.name) == 0) given |= option.bit;
      }
    }
    const uint32_t named = given ^ 1u << m_.how % 5;
    call_->desc->Put(offsetof(etalon_attention_desc, options), named);
    NoteMutation("options", named, call_);
  }

  // A tensor of the other type of its size: all else about it stays right.
  void OtherHalf() {
    const size_t slot = m_.place % 2 == 0 || AnyOption() == SIZE_MAX ? m_.slot % call_->tensors.size() : AnyOption();
    Block* block = call_->tensors[slot];
    if (block == nullptr) return;
    const size_t offset = offsetof(etalon_tensor, dtype);
    const int32_t now = block->Get<int32_t>(offset);
    if (now != ETALON_F16 && now != ETALON_BF16) return;
    block->Put<int32_t>(offset, now == ETALON_F16 ? ETALON_BF16 : ETALON_F16);
    NoteMutation(block->name() + " has the other type, not", now, call_);
  }

  // An element of an array becomes as its neighbour, or a little more or less.
  void Neighbours() {
    std::vector<Block*> blocks;
    for (const ArrayBlock& array : call_->arrays) {
      if (array.block != nullptr && array.block->size() >= 2 * sizeof(int64_t)) blocks.push_back(array.block);
    }
    if (blocks.empty()) return;
    Block* block = blocks[m_.slot % blocks.size()];
    const size_t count = block->size() / sizeof(int64_t), at = m_.place % count;
    const uint64_t neighbour = block->Get<uint64_t>((at == 0 ? 1 : at - 1) * sizeof(int64_t));
    const uint64_t value = neighbour + static_cast<uint64_t>(m_.how % 3) - 1;
    block->Put(at * sizeof(int64_t), value);
    NoteMutation(block->name() + " at " + std::to_string(at), static_cast<int64_t>(value), call_);
  }

  const Mutation& m_;
  Call* call_;
};

}  // namespace

void MutateOptions(const Mutation& mutation, int kind, Call* call) { OptionMutator(mutation, call).Apply(kind); }

void NoteMutation(const std::string& what, int64_t value, Call* call) {
  call->mutations += " " + what + " = " + std::to_string(value) + ";";
}

void PutInteresting(Block* block, const std::string& what, size_t offset, size_t bytes, uint8_t how, Call* call) {
  if (block == nullptr) return;
  if (bytes == sizeof(int32_t)) {
    const uint32_t now = block->Get<uint32_t>(offset);
    const uint32_t value = static_cast<uint32_t>(Interesting(now, how));
    block->Put(offset, value);
    if (value != now) NoteMutation(what, static_cast<int32_t>(value), call);
  } else {
    const uint64_t now = block->Get<uint64_t>(offset);
    const uint64_t value = Interesting(now, how);
    block->Put(offset, value);
    if (value != now) NoteMutation(what, static_cast<int64_t>(value), call);
  }
}

}  // namespace etalon::fuzz
