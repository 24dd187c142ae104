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
#include "lib/attention/columns.h"
#include "lib/attention/sequences.h"
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
constexpr size_t kFirstSizeOfKeySource = ETALON_END_OF(etalon_key_source, prepared_mask);
constexpr size_t kFirstSizeOfPlaces = ETALON_END_OF(etalon_kv_places, ring_len);
constexpr size_t kFirstSizeOfAppendArgs = ETALON_END_OF(etalon_kv_append_args, target);
constexpr size_t kFirstSizeOfMaskArgs = ETALON_END_OF(etalon_mask_args, blocks);
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
// A pointer to something that the function does not use.
etalon_status CheckUnused(const void* pointer, const Field& field, etalon_error* error);

// ---------------------------------------------------------------------------------------------------------- tensors

// Bytes first ... last - 1 of memory; none if they are equal.
struct Hull {
  uintptr_t first;
  uintptr_t last;
};

// A tensor of `places` dimensions: leading ones of size 1 added, strides of sizes 0 and 1 zeroed. Where there is none
// only the name is set: a call has places for dozens of them, and clearing all would be much of what a small one costs.
struct CheckedTensor {
  const char* name;  // "args.k"; null = there is none
  unsigned char* data;
  int32_t dtype;
  DType type;  // of dtypes that are numbers
  int places;
  int added;
  int64_t shape[ETALON_MAX_RANK];
  int64_t stride_bytes[ETALON_MAX_RANK];
  bool empty;  // a size is 0
  Hull hull;

  // The place as the caller counts it, for messages.
  Field Shape(int place) const { return {name, "shape", place - added}; }
  Field Stride(int place) const { return {name, "stride_bytes", place - added}; }
  // Dimensions batch, heads, rows of it.
  TensorView View() const {
    if (name == nullptr) return {};
    return {data, type, stride_bytes[0], stride_bytes[1], stride_bytes[2]};
  }
  MutableTensorView MutableView() const {
    if (name == nullptr) return {};
    return {data, type, stride_bytes[0], stride_bytes[1], stride_bytes[2]};
  }
  // Dimensions batch, heads, rows, columns.
  ColumnsView Columns() const {
    if (name == nullptr) return {};
    return {View(), stride_bytes[3], dtype == ETALON_BITS ? MaskType::kBits : MaskType::kBytes};
  }
};

// kShape: only type, rank and shape count, as in a query of sizes; there may be no memory yet.
enum class Role { kShape, kInput, kOutput };
enum class Types {
  kAny,   // f32, f16, bf16
  kF32,   // alone
  kBias,  // as kAny; the innermost stride may be 0
  kMask,  // ETALON_BOOL, whose innermost stride may be 0, or ETALON_BITS
  kBool   // of these the first alone
};

etalon_status CheckTensor(const etalon_tensor* caller, const char* name, int places, Types types, Role role,
                          CheckedTensor* tensor, etalon_error* error);
// The same where NULL means "not wanted": tensor->name stays null.
etalon_status CheckOptionalTensor(const etalon_tensor* caller, const char* name, int places, Types types, Role role,
                                  CheckedTensor* tensor, etalon_error* error);

// tensor.shape[place] equals other.shape[other_place].
etalon_status CheckSameSize(const CheckedTensor& tensor, int place, const CheckedTensor& other, int other_place,
                            etalon_error* error);
// Whether two tensors of 4 dimensions, whose hulls overlap, still share no byte because the rows of one lie between
// those of the other: keys and values in one pool.
bool AreInterleaved(const CheckedTensor& a, const CheckedTensor& b);
// Bytes from the lowest to the highest of both.
Hull HullOf(const Hull& a, const Hull& b);
// The first `places` sizes of the two are equal.
etalon_status CheckSameShape(const CheckedTensor& tensor, const CheckedTensor& other, int places, etalon_error* error);
// tensor.shape[place] is `size`, or 1 and counts for all. `what` is the size in words: "the number of keys".
etalon_status CheckBroadcast(const CheckedTensor& tensor, int place, int64_t size, const char* what,
                             etalon_error* error);
// A bias or a mask of [batch, num_heads, q_len, kv_len], each size that or 1; of ETALON_BITS bytes of 8 keys.
struct ColumnsShape {
  int64_t batch;
  int64_t num_heads;
  int64_t q_len;
  int64_t kv_len;
};
etalon_status CheckColumns(const CheckedTensor& tensor, const ColumnsShape& shape, etalon_error* error);
// Slopes or sinks of [batch, num_heads], each size that or 1.
etalon_status CheckOfHeads(const CheckedTensor& tensor, int64_t batch, int64_t num_heads, etalon_error* error);
// The same element at every index: what "in place" means.
bool SameLayout(const CheckedTensor& a, const CheckedTensor& b);

// Heads of q and k (in place 1): at least one, and the one number divides the other.
etalon_status CheckHeads(const CheckedTensor& q, const CheckedTensor& k, etalon_error* error);
etalon_status CheckHeadDim(const CheckedTensor& tensor, int place, etalon_error* error);

// -------------------------------------------------------------------------------------------------------- sequences

// `count` numbers, if the array is not null: aligned, and no longer than addresses reach.
etalon_status CheckArray(const int64_t* array, int64_t count, const Field& field, Hull* hull, etalon_error* error);
// A length is 0 ... most.
etalon_status CheckLength(int64_t length, int64_t most, const Field& field, etalon_error* error);
// The `count` + 1 numbers of `starts` ascend within 0 ... most. *longest = the largest step.
etalon_status CheckStarts(const int64_t* starts, int64_t count, int64_t most, const Field& field, int64_t* longest,
                          etalon_error* error);

// The queries of the sequences of a call.
struct Queries {
  int64_t batch;
  int64_t q_len;            // of the longest sequence
  const int64_t* q_starts;  // null unless ragged
  const int64_t* q_lens;    // or null
  Hull starts_hull, lens_hull;

  int64_t QLen(int64_t b) const { return q_starts == nullptr ? q_len : q_starts[b + 1] - q_starts[b]; }
};
// `rows` are those of the tensor.
etalon_status CheckQueries(const int64_t* q_starts, const int64_t* q_lens, int64_t batch, int64_t rows,
                           Queries* queries, etalon_error* error);

// The keys of one source: what a caller says of them, in the words of etalon_key_source.
struct CallerSequences {
  const char* object;  // that has these members
  int64_t left;
  int64_t right;
  int64_t q_offset;
  const int64_t* q_offsets;
  const int64_t* kv_lens;
  const int64_t* kv_firsts;
  const int64_t* kv_starts;
  const int64_t* prefix_lens;
};
struct SequenceHulls {
  const char* object;
  Hull q_offsets, kv_lens, kv_firsts, kv_starts, prefix_lens;
};
// Fills *sequences, but for the mask. `rows` are those of the tensor.
etalon_status CheckSequences(const CallerSequences& caller, const Queries& queries, int64_t rows, Sequences* sequences,
                             SequenceHulls* hulls, etalon_error* error);

// A prepared mask for a call of that shape. *hull = its memory.
etalon_status CheckPreparedMask(const etalon_mask* caller, const Field& field, const ColumnsShape& shape,
                                const PreparedMask** mask, Hull* hull, etalon_error* error);

// ----------------------------------------------------------------------------------------------------------- memory

// What a call reads and writes, to see that no output shares a byte with anything else.
class Memory {
 public:
  void Reads(const CheckedTensor& tensor);
  void Reads(const Queries& queries);
  void Reads(const SequenceHulls& sequences);
  void Reads(const Field& field, const Hull& hull);
  // An output may lie exactly on one of the inputs that are named: computed in place.
  void Writes(const CheckedTensor& tensor, const CheckedTensor* in_place = nullptr,
              const CheckedTensor* or_in_place = nullptr);
  void Writes(const Field& field, const etalon_workspace& workspace);
  void Writes(const Field& field, const Hull& hull);
  etalon_status Check(etalon_error* error) const;

 private:
  struct Entry {
    const char* object;  // a Field would clear itself, all of them in every call
    const char* member;
    Hull hull;
    bool written;
    const CheckedTensor* tensor;  // or null
    const CheckedTensor* in_place[2];
  };
  static constexpr int kMost = 8 + 11 * ETALON_MAX_SOURCES;  // tensors and arrays of the largest call
  void Add(const Entry& entry);
  Entry entries_[kMost];
  int count_ = 0;
  bool full_ = false;  // more than kMost were added
};

// The workspace is there, aligned, and has `bytes` bytes. *workspace = what to use. `name` is the caller's.
etalon_status CheckWorkspace(const etalon_workspace* caller, const char* name, size_t bytes,
                             etalon_workspace* workspace, etalon_error* error);

// parallel may be null. max_workers 0: any number of workers will do.
etalon_status CheckParallel(const etalon_parallel* parallel, int32_t max_workers, etalon_error* error);

// ----------------------------------------------------------------------------------------------------------- kernels

// The kernel table called `name`, or the default if it is null. `object` names the descriptor.
etalon_status CheckTarget(const char* name, const char* object, KernelTable* table, etalon_error* error);

DType TypeOf(int32_t dtype);  // kF32 if the dtype is no number
bool IsNumber(int32_t dtype);

// Bits of a number that is looked at in the host's floating-point environment. Opaque: clang makes a comparison of
// floats of a test of bits that it can see, and then a host that flushes subnormals takes a tiny scale for zero.
static inline uint32_t HostBits(float x) {
  volatile uint32_t bits = Bits(x);
  return bits;
}
static inline bool IsZero(float x) { return (HostBits(x) & 0x7FFFFFFFu) == 0; }

}  // namespace etalon

#endif  // ETALON_LIB_API_VALIDATE_H_
