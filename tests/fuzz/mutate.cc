// Changes to a call that was right: wrong ones mostly, and some that are as right as before. Whatever is changed,
// memory outside of the call's blocks is named only where nobody may look before refusing.
#include "tests/fuzz/mutate.h"

#include <cmath>
#include <initializer_list>

namespace etalon::fuzz {
namespace {

class Mutator {
 public:
  Mutator(const Mutation& mutation, Call* call) : m_(mutation), call_(call), info_(*call->info) {}

  void Apply() {
    const int kind = m_.kind % kNumKinds;
    if (kind >= kNumPlainKinds) return MutateOptions(m_, kind - kNumPlainKinds, call_);
    switch (kind) {
      case 0:
        return Member("shape", offsetof(etalon_tensor, shape) + 8 * Place(), sizeof(int64_t));
      case 1:
      case 2:
        return Member("stride_bytes", offsetof(etalon_tensor, stride_bytes) + 8 * Place(), sizeof(int64_t));
      case 3:
        return Member("dtype", offsetof(etalon_tensor, dtype), sizeof(int32_t));
      case 4:
        return Member("rank", offsetof(etalon_tensor, rank), sizeof(int32_t));
      case 5:
        return Reserved();
      case 6:
        return Data();
      case 7:
        return DataOfOther();
      case 8:
        return Pointer();
      case 9:
        if (call_->states != nullptr) return Spacing();
        [[fallthrough]];
      case 10:
      case 11:
        return Word(call_->desc == nullptr ? call_->args : call_->desc, call_->desc == nullptr);
      case 12:
        return Word(call_->args, true);
      case 13:
        return Tail();
      case 14:
        return Null();
      case 15:
        return SetAbsent();
      case 16:
        return Target();
      case 17:
      case 18:
        return ArrayElement();
      case 19:
        return ArrayPointer();
      case 20:
      case 21:
        call_->workspace_fault = static_cast<WorkspaceFault>(m_.how % static_cast<int>(WorkspaceFault::kNumFaults));
        return Note("workspace", m_.how % static_cast<int>(WorkspaceFault::kNumFaults));
      case 22:
        return Parallel();
      default:
        call_->plan_fault = static_cast<PlanFault>(m_.how % static_cast<int>(PlanFault::kNumFaults));
        return Note("plan", m_.how % static_cast<int>(PlanFault::kNumFaults));
    }
  }

 private:
  size_t Place() const { return m_.place % ETALON_MAX_RANK; }
  // The plain slots, and of all others those that are there.
  size_t SlotIndex() const { return SlotNumber(m_.slot); }
  size_t SlotNumber(uint8_t number) const {
    std::vector<size_t> choices;
    for (size_t i = 0; i < call_->slots.size(); ++i) {
      if (i < info_.plain.size() || call_->tensors[i] != nullptr) choices.push_back(i);
    }
    return choices.empty() ? 0 : choices[number % choices.size()];
  }
  const Slot& SlotAt(size_t index) const { return call_->slots[index]; }

  void Note(const std::string& what, int64_t value) { NoteMutation(what, value, call_); }

  void Put(Block* block, const std::string& what, size_t offset, size_t bytes) {
    PutInteresting(block, what, offset, bytes, m_.how, call_);
  }

  void Member(const char* member, size_t offset, size_t bytes) {
    Block* tensor = call_->tensors[SlotIndex()];
    Put(tensor, SlotAt(SlotIndex()).FullName() + "." + member + (bytes == 8 ? std::to_string(Place()) : ""), offset,
        bytes);
  }

  // Rows of m, l and o must be spaced alike.
  void Spacing() {
    const size_t slot = call_->SlotOf("m") + m_.slot % 3u;
    const size_t place = 1 + m_.place % 2u;
    Put(call_->tensors[slot], SlotAt(slot).FullName() + ".stride_bytes" + std::to_string(place),
        offsetof(etalon_tensor, stride_bytes) + 8 * place, sizeof(int64_t));
  }

  void Reserved() {
    Block* tensor = call_->tensors[SlotIndex()];
    if (tensor == nullptr) return;
    const size_t offset = offsetof(etalon_tensor, reserved) + m_.place % sizeof(etalon_tensor::reserved);
    tensor->data()[offset] = static_cast<unsigned char>(1 + m_.how % 255);
    Note(SlotAt(SlotIndex()).FullName() + ".reserved", 1 + m_.how % 255);
  }

  void SetData(uintptr_t data) {
    call_->tensors[SlotIndex()]->Put(offsetof(etalon_tensor, data), data);
    Note(SlotAt(SlotIndex()).FullName() + ".data", static_cast<int64_t>(data));
  }

  void Data() {
    if (call_->tensors[SlotIndex()] == nullptr) return;
    const uintptr_t data = call_->tensors[SlotIndex()]->Get<uintptr_t>(offsetof(etalon_tensor, data));
    const uintptr_t choices[] = {0,        data + 1, data + 2, data - 2,        data + 4,
                                 data - 4, data + 8, data - 1, UINTPTR_MAX - 3, 4};
    SetData(choices[m_.how % 10]);
  }

  // Overlap, mostly.
  void DataOfOther() {
    const Block* other = call_->tensors[SlotNumber(m_.place)];
    if (call_->tensors[SlotIndex()] == nullptr || other == nullptr) return;
    const uintptr_t moves[] = {0, 4, 8, 0 - uintptr_t{4}, 16, 32};
    SetData(other->Get<uintptr_t>(offsetof(etalon_tensor, data)) + moves[m_.how % 6]);
  }

  // The pointer to a tensor: none, or another one.
  void Pointer() {
    const Slot& slot = SlotAt(SlotIndex());
    const Block* other = m_.how % 2 == 0 ? nullptr : call_->tensors[SlotNumber(m_.place)];
    PointerBlock(*call_, slot)->Put(slot.offset, other == nullptr ? nullptr : other->data());
    Note(slot.FullName() + (other == nullptr ? " is NULL" : " is tensor"), static_cast<int64_t>(m_.place));
  }

  bool IsPointer(bool of_args, size_t offset) const {
    if (!of_args) return offset == offsetof(etalon_attention_desc, target);
    for (const ArrayBlock& array : call_->arrays) {
      if (array.holder == call_->args && array.offset == offset) return true;
    }
    if (offset == info_.q_offsets || offset == info_.q_lens || offset == info_.kv_lens) return true;
    if (offset == info_.target || offset == info_.states) return true;
    if (info_.has_desc && offset >= offsetof(etalon_attention_args, kv_firsts)) {
      return offset != offsetof(etalon_attention_args, num_sequences);
    }
    if (call_->function == kMaskPrepare && offset >= offsetof(etalon_mask_args, mask)) {
      return offset != offsetof(etalon_mask_args, q_block) && offset != offsetof(etalon_mask_args, kv_block);
    }
    for (const Slot& slot : call_->slots) {
      if (slot.holder == Holder::kArgs && offset == slot.offset) return true;
    }
    for (const Absent& absent : info_.absent) {
      if (offset == absent.offset) return true;
    }
    return false;
  }

  void Word(Block* block, bool of_args) {
    const size_t size = of_args ? info_.args_bytes : sizeof(etalon_attention_desc);
    const size_t offset = 8 * (m_.place % (size / 8));
    const std::string name = std::string(of_args ? "args" : "desc") + " at " + std::to_string(offset);
    if (IsPointer(of_args, offset) || offset >= block->size()) return;
    // Two numbers of 32 bits, or one of 64: slot has an unused bit to tell.
    const bool halves = of_args ? offset == info_.max_workers : offset >= offsetof(etalon_attention_desc, q_dtype);
    const bool limits = !of_args && (offset == offsetof(etalon_attention_desc, left) ||
                                     offset == offsetof(etalon_attention_desc, right));
    if (halves && !limits) {
      Put(block, name, offset + 4 * (m_.slot % 2u), sizeof(int32_t));
    } else {
      Put(block, name, offset, sizeof(int64_t));
    }
  }

  // What a newer caller may have set.
  void Tail() {
    Block* block = m_.slot % 2 == 0 && call_->desc != nullptr ? call_->desc : call_->args;
    const size_t known = block == call_->desc ? sizeof(etalon_attention_desc) : info_.args_bytes;
    if (block->size() <= known) return;
    block->data()[known + m_.place % (block->size() - known)] = m_.how;
    if (m_.how != 0) Note(block->name() + " behind its end", m_.how);
  }

  void Null() {
    const int what = m_.how % 4;
    if (what == 0) call_->null_args = true;
    if (what == 1 && call_->desc != nullptr) call_->null_desc = true;
    if (what == 2 && call_->states != nullptr) {
      call_->null_states = true;
      if (info_.states != kNowhere) call_->args->Put<const void*>(info_.states, nullptr);
    }
    if (what == 3) call_->null_result = true;
    Note("NULL", what);
  }

  // Nobody may look where it points.
  void SetAbsent() {
    if (info_.absent.empty()) return;
    const Absent& absent = info_.absent[m_.place % info_.absent.size()];
    if (absent.offset >= call_->args->size()) return;
    call_->args->Put(absent.offset, uintptr_t{8} + m_.how % 2 * UINTPTR_MAX / 2);
    Note("an absent pointer", static_cast<int64_t>(absent.offset));
  }

  void Target() {
    const char* names[] = {"scalar", "", "Scalar", "scalar-", "no such table", "scalar-fma-and-a-name-that-is-long"};
    const char* name = names[m_.how % 6];
    const size_t size = std::strlen(name) + 1;
    Block* block = call_->arena.Add("target", size);
    std::memcpy(block->data(), name, size);
    if (call_->desc != nullptr) call_->desc->Put(offsetof(etalon_attention_desc, target), block->data());
    if (info_.target != kNowhere) call_->args->Put(info_.target, block->data());
    Note(std::string("target ") + name, m_.how % 6);
  }

  // Of the first three, those that are there; of all others any.
  const ArrayBlock* ChosenArray() const {
    const size_t count = call_->arrays.size();
    for (size_t i = 0; i < count; ++i) {
      const ArrayBlock& array = call_->arrays[(m_.slot + i) % count];
      if (array.block != nullptr) return &array;
    }
    return nullptr;
  }

  void ArrayElement() {
    const ArrayBlock* array = ChosenArray();
    if (array == nullptr || array->block->size() == 0) return;
    Block* block = array->block;
    const size_t at = m_.place % (block->size() / 8) * 8;
    if (m_.slot < 128) {
      Put(block, block->name(), at, sizeof(int64_t));
    } else {  // one too many
      block->Put(at, static_cast<int64_t>(static_cast<uint64_t>(array->most) + 1));
      Note(block->name() + " are one more than there are", static_cast<int64_t>(at));
    }
  }

  void ArrayPointer() {
    const ArrayBlock* array = ChosenArray();
    if (array == nullptr) return;
    uintptr_t pointer = reinterpret_cast<uintptr_t>(array->block->data()) + 4;
    if (m_.how % 4 == 1) pointer = UINTPTR_MAX - 7;
    if (m_.how % 4 == 2) pointer = 0;
    const Block* tensor = call_->tensors[SlotNumber(m_.place)];
    if (m_.how % 4 == 3 && tensor != nullptr) pointer = tensor->Get<uintptr_t>(offsetof(etalon_tensor, data));
    array->holder->Put(array->offset, pointer);
    Note(array->block->name() + " are at", m_.how % 4);
  }

  void Parallel() {
    call_->has_parallel = true;
    const int what = m_.how % 16;
    const int32_t workers[] = {0, -1, INT32_MIN, INT32_MAX, static_cast<int32_t>(call_->parallel.workers + int64_t{1})};
    if (what < 5) call_->parallel.workers = workers[what];
    if (what == 5) call_->parallel.parallel_for = nullptr;
    if (what == 6) call_->parallel.reserved = 1 + m_.place;
    if (what > 6) call_->loop.broken = 1 + (what - 7) % (Loop::kNumBreaks - 1);
    Note("parallel", what);
  }

  const Mutation& m_;
  Call* call_;
  const FunctionInfo& info_;
};

// What claims to be longer than its memory is made to claim too much.
void KeepInside(Block* descriptor) {
  if (descriptor == nullptr) return;
  const size_t size = descriptor->Get<size_t>();
  if (size > descriptor->size() && size <= 4096) descriptor->Put(0, size_t{4097});
}

}  // namespace

void Mutate(Call* call) {
  for (const Mutation& mutation : call->planned) Mutator(mutation, call).Apply();
  KeepInside(call->desc);
  KeepInside(call->args);
  for (Block* source : call->sources) KeepInside(source);
}

}  // namespace etalon::fuzz
