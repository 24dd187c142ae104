// validate.h: every check of an argument. Each function looks at one kind of argument, leaves what it found in a form
// that the rest of the library takes, and complains through lib/api/error.h. Nothing here writes to a caller's memory
// but the error.
#ifndef ETALON_LIB_API_VALIDATE_H_
#define ETALON_LIB_API_VALIDATE_H_

#include <etalon/etalon.h>

#include <cstddef>
#include <cstdint>

#include "arch/kernel_table.h"
#include "lib/api/error.h"
#include "lib/attention/tiles.h"
#include "lib/base/types.h"
#include "lib/base/view.h"

namespace etalon {

// Stops the function that uses it at the first complaint.
#define ETALON_CHECK(call)                                            \
  do {                                                                \
    const etalon_status etalon_check_status = (call);                 \
    if (etalon_check_status != ETALON_OK) return etalon_check_status; \
  } while (false)

// ------------------------------------------------------------------------------------------------------ descriptors

// Sizes of the descriptors in the first version that had them: up to the end of what then was the last field, so that
// they stay when one is appended. A caller's may be larger, never smaller.
#define ETALON_END_OF(type, field) (offsetof(type, field) + sizeof(type::field))
constexpr size_t kFirstSizeOfDesc = ETALON_END_OF(etalon_attention_desc, target);
constexpr size_t kFirstSizeOfArgs = ETALON_END_OF(etalon_attention_args, sinks);
constexpr size_t kFirstSizeOfInfo = ETALON_END_OF(etalon_plan_info, bytes_read);
constexpr size_t kFirstSizeOfSoftmaxArgs = ETALON_END_OF(etalon_softmax_args, target);
constexpr size_t kFirstSizeOfWeightedSumArgs = ETALON_END_OF(etalon_weighted_sum_args, reserved);
constexpr size_t kFirstSizeOfMergeArgs = ETALON_END_OF(etalon_merge_args, target);
constexpr size_t kFirstSizeOfMergeStatesArgs = ETALON_END_OF(etalon_merge_states_args, reserved);
#undef ETALON_END_OF

constexpr size_t kLargestStructSize = 4096;  // more is rubbish, not a newer version

// Of every dimension, and of the distance of a query position from 0: then no sum of two of them overflows.
constexpr int64_t kLargestSize = int64_t{1} << 62;

// Copies a caller's descriptor, of whatever version, into ours of `size` bytes.
etalon_status CopyDescriptor(const void* caller, const char* name, void* ours, size_t size, size_t first_size,
                             etalon_error* error);

// Which tensors a function computes on, and so which sizes and types of a descriptor count.
struct Uses {
  bool values;  // v and value_dim
  bool out;     // out and out_dtype
};

// What must hold of a descriptor by itself. Sizes and types may be 0, left to the tensors.
etalon_status CheckDesc(const etalon_attention_desc& desc, const Uses& uses, etalon_error* error);

// Of a descriptor that has passed CheckDesc: all sizes and types that attention needs are set.
etalon_status CheckSizes(const etalon_attention_desc& desc, etalon_error* error);

etalon_status CheckWorkers(int32_t max_workers, const Field& field, etalon_error* error);
etalon_status CheckReserved(int32_t reserved, const Field& field, etalon_error* error);
// A pointer to something that a later version will offer.
etalon_status CheckAbsent(const void* pointer, const Field& field, etalon_error* error);

// ---------------------------------------------------------------------------------------------------------- tensors

// Bytes first ... last - 1 of memory; none if they are equal.
struct Hull {
  uintptr_t first = 0;
  uintptr_t last = 0;
};

// A tensor of `places` dimensions: leading ones of size 1 added, strides of sizes 0 and 1 zeroed.
struct CheckedTensor {
  const char* name = nullptr;  // "args.k"
  unsigned char* data = nullptr;
  DType type = DType::kF32;
  int places = 0;
  int added = 0;
  int64_t shape[ETALON_MAX_RANK] = {};
  int64_t stride_bytes[ETALON_MAX_RANK] = {};
  bool empty = false;  // a size is 0
  Hull hull;

  // The place as the caller counts it, for messages.
  Field Shape(int place) const { return {name, "shape", place - added}; }
  Field Stride(int place) const { return {name, "stride_bytes", place - added}; }
  // Dimensions batch, heads, rows of it.
  TensorView View() const { return {data, type, stride_bytes[0], stride_bytes[1], stride_bytes[2]}; }
  MutableTensorView MutableView() const { return {data, type, stride_bytes[0], stride_bytes[1], stride_bytes[2]}; }
};

// kShape: only type, rank and shape count, as in a query of sizes; there may be no memory yet.
enum class Role { kShape, kInput, kOutput };
enum class Types { kAny, kF32 };

etalon_status CheckTensor(const etalon_tensor* caller, const char* name, int places, Types types, Role role,
                          CheckedTensor* tensor, etalon_error* error);
// The same where NULL means "not wanted": tensor->name stays null.
etalon_status CheckOptionalTensor(const etalon_tensor* caller, const char* name, int places, Types types, Role role,
                                  CheckedTensor* tensor, etalon_error* error);

// tensor.shape[place] equals other.shape[other_place].
etalon_status CheckSameSize(const CheckedTensor& tensor, int place, const CheckedTensor& other, int other_place,
                            etalon_error* error);
// The first `places` sizes of the two are equal.
etalon_status CheckSameShape(const CheckedTensor& tensor, const CheckedTensor& other, int places, etalon_error* error);
// The same element at every index: what "in place" means.
bool SameLayout(const CheckedTensor& a, const CheckedTensor& b);

// Heads of q and k (in place 1): at least one, and the one number divides the other.
etalon_status CheckHeads(const CheckedTensor& q, const CheckedTensor& k, etalon_error* error);
etalon_status CheckHeadDim(const CheckedTensor& tensor, int place, etalon_error* error);

// Lengths and offsets of the sequences. Fills *sequences; `batch`, q_len and kv_len are those of tensors, and left and
// right are the caller's.
struct CallerSequences {
  int64_t q_offset;
  const int64_t* q_offsets;
  const int64_t* q_lens;
  const int64_t* kv_lens;
};
struct SequenceHulls {
  Hull q_offsets, q_lens, kv_lens;
};
etalon_status CheckSequences(const CallerSequences& caller, int64_t batch, int64_t q_len, int64_t kv_len, int64_t left,
                             int64_t right, Sequences* sequences, SequenceHulls* hulls, etalon_error* error);

// ----------------------------------------------------------------------------------------------------------- memory

// What a call reads and writes, to see that no output shares a byte with anything else.
class Memory {
 public:
  void Reads(const CheckedTensor& tensor);
  void Reads(const SequenceHulls& sequences);
  // An output may lie exactly on one of the inputs that are named: computed in place.
  void Writes(const CheckedTensor& tensor, const CheckedTensor* in_place = nullptr,
              const CheckedTensor* or_in_place = nullptr);
  void Writes(const etalon_workspace& workspace);
  etalon_status Check(etalon_error* error) const;

 private:
  struct Entry {
    const char* name;
    Hull hull;
    bool written;
    const CheckedTensor* tensor;  // or null
    const CheckedTensor* in_place[2];
  };
  static constexpr int kMost = 12;
  void Add(const Entry& entry);
  Entry entries_[kMost];
  int count_ = 0;
  bool full_ = false;  // more than kMost were added
};

// The workspace is there, aligned, and has `bytes` bytes. *workspace = what to use.
etalon_status CheckWorkspace(const etalon_workspace* caller, size_t bytes, etalon_workspace* workspace,
                             etalon_error* error);

// parallel may be null. max_workers 0: any number of workers will do.
etalon_status CheckParallel(const etalon_parallel* parallel, int32_t max_workers, etalon_error* error);

// ----------------------------------------------------------------------------------------------------------- kernels

// The kernel table called `name`, or the default if it is null. `object` names the descriptor.
etalon_status CheckTarget(const char* name, const char* object, KernelTable* table, etalon_error* error);

DType TypeOf(int32_t dtype);  // of a dtype that exists

// Bits of a number that is looked at in the host's floating-point environment. Opaque: clang makes a comparison of
// floats of a test of bits that it can see, and then a host that flushes subnormals takes a tiny scale for zero.
static inline uint32_t HostBits(float x) {
  volatile uint32_t bits = Bits(x);
  return bits;
}

}  // namespace etalon

#endif  // ETALON_LIB_API_VALIDATE_H_
