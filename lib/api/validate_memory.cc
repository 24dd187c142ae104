// Checks of lengths, of the memory that a call may touch, and of the caller's threads.
#include "lib/api/validate.h"
#include "lib/base/workspace.h"

namespace etalon {
namespace {

etalon_status CheckArray(const int64_t* array, int64_t batch, const char* member, Hull* hull, etalon_error* error) {
  *hull = {};
  if (array == nullptr) return ETALON_OK;
  hull->first = reinterpret_cast<uintptr_t>(array);
  if (hull->first % alignof(int64_t) != 0) {
    return Fail(error, ETALON_MISALIGNED, {"args", member}, {"is not aligned to its elements of 8 bytes"});
  }
  int64_t bytes;
  if (__builtin_mul_overflow(batch, static_cast<int64_t>(sizeof *array), &bytes) ||
      __builtin_add_overflow(hull->first, bytes, &hull->last)) {
    return Fail(error, ETALON_OVERFLOW, {"args", member}, {"reaches beyond the end of all addresses"});
  }
  return ETALON_OK;
}

etalon_status CheckLengths(const int64_t* lengths, int64_t batch, int64_t most, const char* member,
                           etalon_error* error) {
  if (lengths == nullptr) return ETALON_OK;
  for (int64_t b = 0; b < batch; ++b) {
    if (lengths[b] < 0 || lengths[b] > most) {
      return Fail(error, ETALON_BAD_VALUE, {"args", member, b}, {"is ", lengths[b], ", must be 0 ... ", most});
    }
  }
  return ETALON_OK;
}

}  // namespace

etalon_status CheckSequences(const CallerSequences& caller, int64_t batch, int64_t q_len, int64_t kv_len, int64_t left,
                             int64_t right, Sequences* sequences, SequenceHulls* hulls, etalon_error* error) {
  ETALON_CHECK(CheckArray(caller.q_offsets, batch, "q_offsets", &hulls->q_offsets, error));
  ETALON_CHECK(CheckArray(caller.q_lens, batch, "q_lens", &hulls->q_lens, error));
  ETALON_CHECK(CheckArray(caller.kv_lens, batch, "kv_lens", &hulls->kv_lens, error));
  ETALON_CHECK(CheckLengths(caller.q_lens, batch, q_len, "q_lens", error));
  ETALON_CHECK(CheckLengths(caller.kv_lens, batch, kv_len, "kv_lens", error));
  if (caller.q_offset < -kLargestSize || caller.q_offset > kLargestSize) {
    return Fail(error, ETALON_BAD_VALUE, {"args", "q_offset"},
                {"is ", caller.q_offset, ", must be within ", kLargestSize, " of 0"});
  }
  for (int64_t b = 0; caller.q_offsets != nullptr && b < batch; ++b) {
    const int64_t sum = AddSaturated(caller.q_offset, caller.q_offsets[b]);
    if (sum < -kLargestSize || sum > kLargestSize) {
      return Fail(error, ETALON_BAD_VALUE, {"args", "q_offsets", b},
                  {"is ", caller.q_offsets[b], ", with args.q_offset it must be within ", kLargestSize, " of 0"});
    }
  }
  *sequences = {kv_len, caller.q_offset, caller.q_lens, caller.kv_lens, caller.q_offsets, left, right};
  return ETALON_OK;
}

void Memory::Add(const Entry& entry) {
  if (entry.name == nullptr || entry.hull.first == entry.hull.last) return;  // not wanted, or nothing there
  if (count_ == kMost) {
    full_ = true;
    return;
  }
  entries_[count_++] = entry;
}

void Memory::Reads(const CheckedTensor& tensor) { Add({tensor.name, tensor.hull, false, &tensor, {}}); }

void Memory::Reads(const SequenceHulls& sequences) {
  Add({"args.q_offsets", sequences.q_offsets, false, nullptr, {}});
  Add({"args.q_lens", sequences.q_lens, false, nullptr, {}});
  Add({"args.kv_lens", sequences.kv_lens, false, nullptr, {}});
}

void Memory::Writes(const CheckedTensor& tensor, const CheckedTensor* in_place, const CheckedTensor* or_in_place) {
  Add({tensor.name, tensor.hull, true, &tensor, {in_place, or_in_place}});
}

void Memory::Writes(const etalon_workspace& workspace) {
  const uintptr_t first = reinterpret_cast<uintptr_t>(workspace.data);
  Add({"workspace.data", {first, first + workspace.bytes}, true, nullptr, {}});
}

etalon_status Memory::Check(etalon_error* error) const {
  // No function has so many. If one ever does, it is refused: what was not looked at must not be written to.
  if (full_) return Fail(error, ETALON_UNSUPPORTED, {"args"}, {"has more tensors than the library can compare"});
  for (int i = 0; i < count_; ++i) {
    const Entry& written = entries_[i];
    if (!written.written) continue;
    for (int j = 0; j < count_; ++j) {
      const Entry& other = entries_[j];
      if (i == j || written.hull.first >= other.hull.last || other.hull.first >= written.hull.last) continue;
      bool allowed = false;
      for (const CheckedTensor* in_place : written.in_place) {
        allowed |= in_place != nullptr && in_place == other.tensor && SameLayout(*in_place, *written.tensor);
      }
      if (!allowed) return Fail(error, ETALON_OVERLAP, {written.name}, {"shares memory with ", other.name});
    }
  }
  return ETALON_OK;
}

etalon_status CheckWorkspace(const etalon_workspace* caller, size_t bytes, etalon_workspace* workspace,
                             etalon_error* error) {
  *workspace = {nullptr, 0};
  if (bytes == 0) return ETALON_OK;
  if (caller == nullptr) return Fail(error, ETALON_NULL_POINTER, {"workspace"}, {"is NULL"});
  if (caller->bytes < bytes) {
    return Fail(error, ETALON_SMALL_WORKSPACE, {"workspace", "bytes"},
                {"is ", caller->bytes, ", must be at least ", bytes});
  }
  if (caller->data == nullptr) return Fail(error, ETALON_NULL_POINTER, {"workspace", "data"}, {"is NULL"});
  const uintptr_t first = reinterpret_cast<uintptr_t>(caller->data);
  if (first % kWorkspaceAlignment != 0) {
    return Fail(error, ETALON_MISALIGNED, {"workspace", "data"}, {"is not aligned to ", kWorkspaceAlignment, " bytes"});
  }
  if (first + bytes < first) {
    return Fail(error, ETALON_OVERFLOW, {"workspace", "bytes"}, {"reaches beyond the end of all addresses"});
  }
  *workspace = {caller->data, bytes};  // what is beyond is not touched
  return ETALON_OK;
}

etalon_status CheckParallel(const etalon_parallel* parallel, int32_t max_workers, etalon_error* error) {
  if (parallel == nullptr) return ETALON_OK;
  if (parallel->parallel_for == nullptr) {
    return Fail(error, ETALON_NULL_POINTER, {"parallel", "parallel_for"}, {"is NULL"});
  }
  if (parallel->workers < 1) {
    return Fail(error, ETALON_BAD_VALUE, {"parallel", "workers"}, {"is ", parallel->workers, ", must be at least 1"});
  }
  if (max_workers > 0 && parallel->workers > max_workers) {
    return Fail(error, ETALON_BAD_VALUE, {"parallel", "workers"},
                {"is ", parallel->workers, ", but max_workers is ", max_workers});
  }
  return CheckReserved(parallel->reserved, {"parallel", "reserved"}, error);
}

}  // namespace etalon
