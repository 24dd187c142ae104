// Checks of the memory that a call may touch, and of the caller's threads.
#include "lib/api/validate.h"
#include "lib/base/workspace.h"

namespace etalon {
void Memory::Add(const Entry& entry) {
  if (entry.hull.first == entry.hull.last) return;  // nothing there
  if (count_ == kMost) {
    full_ = true;
    return;
  }
  entries_[count_++] = entry;
}

void Memory::Reads(const CheckedTensor& tensor) {
  if (tensor.name != nullptr) Add({tensor.name, nullptr, tensor.hull, false, &tensor, {}});
}

void Memory::Reads(const Field& field, const Hull& hull) {
  Add({field.object, field.member, hull, false, nullptr, {}});
}

void Memory::Reads(const Queries& queries) {
  Reads({"args", "q_starts"}, queries.starts_hull);
  Reads({"args", "q_lens"}, queries.lens_hull);
}

void Memory::Reads(const SequenceHulls& sequences) {
  Reads({sequences.object, "q_offsets"}, sequences.q_offsets);
  Reads({sequences.object, "kv_lens"}, sequences.kv_lens);
  Reads({sequences.object, "kv_firsts"}, sequences.kv_firsts);
  Reads({sequences.object, "kv_starts"}, sequences.kv_starts);
  Reads({sequences.object, "prefix_lens"}, sequences.prefix_lens);
}

void Memory::Writes(const CheckedTensor& tensor, const CheckedTensor* in_place, const CheckedTensor* or_in_place) {
  if (tensor.name != nullptr) Add({tensor.name, nullptr, tensor.hull, true, &tensor, {in_place, or_in_place}});
}

void Memory::Writes(const Field& field, const etalon_workspace& workspace) {
  const uintptr_t first = reinterpret_cast<uintptr_t>(workspace.data);
  Add({field.object, field.member, {first, first + workspace.bytes}, true, nullptr, {}});
}

void Memory::Writes(const Field& field, const Hull& hull) {
  Add({field.object, field.member, hull, true, nullptr, {}});
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
      if (allowed) continue;
      const Field other_field = {other.object, other.member};
      return Fail(error, ETALON_OVERLAP, {written.object, written.member}, {"shares memory with ", other_field});
    }
  }
  return ETALON_OK;
}

etalon_status CheckWorkspace(const etalon_workspace* caller, const char* name, size_t bytes,
                             etalon_workspace* workspace, etalon_error* error) {
  *workspace = {nullptr, 0};
  if (bytes == 0) return ETALON_OK;
  if (caller == nullptr) return Fail(error, ETALON_NULL_POINTER, {name}, {"is NULL"});
  if (caller->bytes < bytes) {
    return Fail(error, ETALON_SMALL_WORKSPACE, {name, "bytes"}, {"is ", caller->bytes, ", must be at least ", bytes});
  }
  if (caller->data == nullptr) return Fail(error, ETALON_NULL_POINTER, {name, "data"}, {"is NULL"});
  const uintptr_t first = reinterpret_cast<uintptr_t>(caller->data);
  if (first % kWorkspaceAlignment != 0) {
    return Fail(error, ETALON_MISALIGNED, {name, "data"}, {"is not aligned to ", kWorkspaceAlignment, " bytes"});
  }
  if (first + bytes < first) {
    return Fail(error, ETALON_OVERFLOW, {name, "bytes"}, {"reaches beyond the end of all addresses"});
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
