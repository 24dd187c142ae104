// Outputs against everything else that a call touches, and the caller's threads.
#include <vector>

#include "tests/fuzz/judge.h"

namespace etalon::fuzz {
namespace {

constexpr size_t kNoSlot = SIZE_MAX;

// Bytes that a call reads or writes, and those between them.
struct Piece {
  Wide first;
  Wide last;
  const Elements* elements;  // null: no tensor
  size_t slot;
  bool written;
};

bool Meet(const Piece& a, const Piece& b) {
  return a.first < a.last && b.first < b.last && a.first < b.last && b.first < a.last;
}

bool SameElements(const Elements& a, const Elements& b) {
  if (a.data != b.data || a.dtype != b.dtype || a.places != b.places) return false;
  for (int i = 0; i < a.places; ++i) {
    if (a.shape[i] != b.shape[i] || a.stride[i] != b.stride[i]) return false;
  }
  return true;
}

// Whether output `written` may be the very same tensor as input `other`.
bool InPlace(Function function, size_t written, size_t other) {
  if (function == kSoftmax) return written == 1 && other == 0;
  return function == kMerge &&
         ((written == 4 && (other == 0 || other == 2)) || (written == 5 && (other == 1 || other == 3)));
}

void JudgeWorkspace(const etalon_workspace* workspace, size_t bytes, Faults* faults) {
  if (bytes == 0) return;
  if (workspace == nullptr) {
    faults->Must(ETALON_NULL_POINTER);
    return;
  }
  const Wide first = reinterpret_cast<uintptr_t>(workspace->data);
  if (workspace->data == nullptr) faults->Must(ETALON_NULL_POINTER);
  if (first % 64 != 0) faults->Must(ETALON_MISALIGNED);
  if (workspace->bytes < bytes) faults->Must(ETALON_SMALL_WORKSPACE);
  if (first + static_cast<Wide>(bytes) > UINTPTR_MAX) faults->Must(ETALON_OVERFLOW);
}

}  // namespace

std::vector<NamedArray> ArraysOf(const Call& call, const Judged& judged) {
  const Wide batch = judged.sizes[kBatch];
  std::vector<NamedArray> arrays;
  const auto add = [&](const int64_t* array, Wide count) {
    if (array != nullptr && count > 0) arrays.push_back({array, count});
  };
  if (!judged.arrays_exist) return arrays;
  if (call.function == kMaskPrepare) {
    if (judged.faults.must != 0) return arrays;  // how many there are is not known
    const etalon_mask_args& a = judged.mask;
    add(a.q_segments, batch * a.q_len);
    add(a.kv_segments, batch * a.kv_len);
    const Wide entries =
        a.block_starts == nullptr ? 0 : batch * a.num_heads * ((a.q_len + Wide{a.q_block} - 1) / a.q_block);
    add(a.block_starts, entries + 1);
    if (a.block_starts != nullptr) add(a.blocks, a.block_starts[static_cast<int64_t>(entries)]);
    return arrays;
  }
  add(judged.queries.q_starts, batch + 1);
  add(judged.queries.q_lens, batch);
  for (const Source& source : judged.sources) {
    add(source.args.kv_starts, batch + 1);
    for (const int64_t* array :
         {source.args.q_offsets, source.args.kv_lens, source.args.kv_firsts, source.args.prefix_lens}) {
      add(array, batch);
    }
  }
  return arrays;
}

void JudgeMemory(const Call& call, const etalon_workspace* workspace, size_t bytes, Judged* judged) {
  const bool fits = !judged->faults.Has(ETALON_OVERFLOW);
  std::vector<Piece> pieces;
  for (size_t i = 0; fits && i < call.slots.size(); ++i) {
    const Elements& e = judged->tensors[i];
    if (!judged->wanted[i] || e.empty) continue;
    pieces.push_back({e.data + e.Low(), e.data + e.High(), &e, i, call.slots[i].output});
  }
  if (fits) {
    for (const NamedArray& array : ArraysOf(call, *judged)) {
      const Wide first = reinterpret_cast<uintptr_t>(array.data);
      pieces.push_back({first, first + array.count * 8, nullptr, kNoSlot, false});
    }
    for (const Source& source : judged->sources) {
      if (source.mask == nullptr) continue;
      const Wide first = reinterpret_cast<uintptr_t>(source.mask->block->data());
      pieces.push_back({first, first + static_cast<Wide>(source.mask->bytes), nullptr, kNoSlot, false});
    }
  }
  if (call.info->has_workspace) JudgeWorkspace(workspace, bytes, &judged->faults);
  if (workspace != nullptr && workspace->data != nullptr && bytes > 0) {
    const Wide first = reinterpret_cast<uintptr_t>(workspace->data);
    pieces.push_back({first, first + static_cast<Wide>(bytes), nullptr, kNoSlot, true});
  }
  for (const Piece& piece : pieces) {
    if (piece.last > UINTPTR_MAX || piece.first >= piece.last) continue;
    const bool walks = piece.elements == nullptr || piece.elements->Addresses() < 1000000;
    if (!walks || call.arena.Find(static_cast<uintptr_t>(piece.first), static_cast<uintptr_t>(piece.last)) == nullptr) {
      judged->memory_exists = false;
    }
  }
  for (const Piece& written : pieces) {
    for (const Piece& other : pieces) {
      if (!written.written || &written == &other || !Meet(written, other)) continue;
      const bool tensors = written.elements != nullptr && other.elements != nullptr;
      if (tensors && InPlace(call.function, written.slot, other.slot) &&
          SameElements(*written.elements, *other.elements)) {
        continue;
      }
      judged->faults.Must(ETALON_OVERLAP);  // also where it only lies among the bytes of the other
    }
  }
}

void JudgeParallel(const Call& call, int32_t max_workers, Judged* judged) {
  if (!call.has_parallel) return;
  if (call.parallel.parallel_for == nullptr) judged->faults.Must(ETALON_NULL_POINTER);
  if (call.parallel.workers < 1) judged->faults.Must(ETALON_BAD_VALUE);
  if (max_workers > 0 && call.parallel.workers > max_workers) judged->faults.Must(ETALON_BAD_VALUE);
  if (call.parallel.reserved != 0) judged->faults.Must(ETALON_UNSUPPORTED);
}

}  // namespace etalon::fuzz
