// etalon.hpp: the C interface (etalon.h, which has the documentation) for C++17: descriptors that initialise
// themselves, tensors in one expression, a Status that cannot be dropped, plans as values. Header-only; can do nothing
// that the C interface cannot. No exceptions, no RTTI; allocates only in WorkspaceMemory and MaskMemory.
//
//   etalon::AttentionDesc desc;
//   desc.right = 0;  // causal
//   const etalon::Tensor q(q_data, {1, heads, q_len, head_dim}), k(...), v(...), out(...);
//   etalon::AttentionArgs args;
//   args.q = &q; args.k = &k; args.v = &v; args.out = &out;
//   etalon::WorkspaceMemory memory;
//   etalon::Status status = etalon::Attention(desc, args, &memory);
//   if (!status.ok()) std::puts(status.text());
#ifndef ETALON_ETALON_HPP_
#define ETALON_ETALON_HPP_

#include <etalon/etalon.h>

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <new>

namespace etalon {

class [[nodiscard]] Status {
 public:
  bool ok() const { return error_.status == ETALON_OK; }
  etalon_status code() const { return error_.status; }
  const char* field() const { return error_.field; }  // "args.k.shape[3]"; empty if ok
  const char* text() const { return error_.text; }    // a sentence; empty if ok
  etalon_error* error() { return &error_; }           // what C functions write to
  void Set(etalon_status code) { error_.status = code; }

 private:
  etalon_error error_ = {};
};

enum class ElementType : int32_t {
  kF32 = ETALON_F32,
  kF16 = ETALON_F16,
  kBF16 = ETALON_BF16,
  kBool = ETALON_BOOL,  // masks: a byte a key
  kBits = ETALON_BITS   // masks: a bit a key; sizes are bytes
};

// A view of memory that somebody else owns. f16 and bf16 elements are named, whatever type the program stores them in;
// inputs may be const.
class Tensor : public etalon_tensor {
 public:
  // Packed, the last dimension innermost. Sizes that cannot be are found by the call that gets the tensor.
  Tensor(const float* first, std::initializer_list<int64_t> sizes) : Tensor(first, ElementType::kF32, sizes) {}
  Tensor(const void* first, ElementType type, std::initializer_list<int64_t> sizes) : etalon_tensor() {
    const etalon_status status = etalon_tensor_init(
        this, const_cast<void*>(first), static_cast<int32_t>(type),
        static_cast<int32_t>(sizes.size() <= ETALON_MAX_RANK ? sizes.size() : 0), sizes.begin(), nullptr);
    if (status == ETALON_OK) return;
    data = const_cast<void*>(first);
    dtype = static_cast<int32_t>(type);  // and rank = 0, which no function takes
  }

  // With strides, in bytes, one a dimension.
  Tensor(const void* first, ElementType type, std::initializer_list<int64_t> sizes,
         std::initializer_list<int64_t> strides_in_bytes)
      : Tensor(first, type, sizes) {
    if (strides_in_bytes.size() != static_cast<size_t>(rank)) {
      rank = 0;
      return;
    }
    for (int32_t i = 0; i < rank; ++i) stride_bytes[i] = strides_in_bytes.begin()[i];
  }
};

// A C descriptor that its _init function prepares. Fields are set as in C; pointers to tensors are kept, not the
// tensors.
template <typename C, etalon_status (*kInit)(C*, size_t)>
struct Descriptor : C {
  Descriptor() : C() {
    if (kInit(this, sizeof(C)) != ETALON_OK) C::struct_size = 0;  // a library that does not know us: calls will say so
  }
};
using AttentionDesc = Descriptor<etalon_attention_desc, etalon_attention_desc_init>;
using AttentionArgs = Descriptor<etalon_attention_args, etalon_attention_args_init>;
using KeySourceDesc = Descriptor<etalon_key_source, etalon_key_source_init>;
using KvPlaces = Descriptor<etalon_kv_places, etalon_kv_places_init>;
using KvAppendDesc = Descriptor<etalon_kv_append_args, etalon_kv_append_args_init>;
using MaskDesc = Descriptor<etalon_mask_args, etalon_mask_args_init>;
using SoftmaxDesc = Descriptor<etalon_softmax_args, etalon_softmax_args_init>;
using WeightedSumDesc = Descriptor<etalon_weighted_sum_args, etalon_weighted_sum_args_init>;
using MergeDesc = Descriptor<etalon_merge_args, etalon_merge_args_init>;
using MergeStatesDesc = Descriptor<etalon_merge_states_args, etalon_merge_states_args_init>;
using PlanInfo = Descriptor<etalon_plan_info, etalon_plan_info_init>;

// Memory for workspaces, aligned, kept and grown from call to call. Not to be used by two calls at once.
class WorkspaceMemory {
 public:
  WorkspaceMemory() = default;
  ~WorkspaceMemory() { Free(); }
  WorkspaceMemory(const WorkspaceMemory&) = delete;
  WorkspaceMemory& operator=(const WorkspaceMemory&) = delete;
  WorkspaceMemory(WorkspaceMemory&& other) noexcept : workspace_(other.workspace_) { other.workspace_ = {}; }
  WorkspaceMemory& operator=(WorkspaceMemory&& other) noexcept {
    if (this != &other) {
      Free();
      workspace_ = other.workspace_;
      other.workspace_ = {};
    }
    return *this;
  }

  // At least `bytes`. What was begun in it before is gone if it grows. Without memory it stays as it was, and the call
  // that gets it says that it is too small.
  const etalon_workspace* Reserve(size_t bytes) {
    if (bytes > workspace_.bytes) {
      void* memory = ::operator new(bytes, kAlignment, std::nothrow);
      if (memory != nullptr) {
        Free();
        workspace_ = {memory, bytes};
      }
    }
    return &workspace_;
  }
  const etalon_workspace* get() const { return &workspace_; }

 private:
  static constexpr std::align_val_t kAlignment{64};
  void Free() {
    if (workspace_.data != nullptr) ::operator delete(workspace_.data, kAlignment);
  }
  etalon_workspace workspace_ = {};
};

// A prepared mask with its memory: args.prepared_mask = mask.get(). Any number of calls may use it at once; preparing
// another one in it is for when none does.
class MaskMemory {
 public:
  Status Prepare(const etalon_mask_args& args) {
    Status status;
    size_t bytes;
    if (etalon_mask_bytes(&args, &bytes, status.error()) != ETALON_OK) return status;
    const etalon_mask* mask = nullptr;
    prepared_ = false;
    status.Set(etalon_mask_prepare(&args, memory_.Reserve(bytes), &mask, status.error()));
    prepared_ = status.ok();
    return status;
  }

  // nullptr if there is none.
  const etalon_mask* get() const { return prepared_ ? static_cast<const etalon_mask*>(memory_.get()->data) : nullptr; }

 private:
  WorkspaceMemory memory_;
  bool prepared_ = false;
};

// slopes[num_heads] of ALiBi.
inline Status AlibiSlopes(int64_t num_heads, float* slopes) {
  Status status;
  status.Set(etalon_alibi_slopes(num_heads, slopes, status.error()));
  return status;
}

// ------------------------------------------------------------------------------------------------------ one call each
// parallel = nullptr: on this thread.

inline Status Attention(const etalon_attention_desc& desc, const etalon_attention_args& args, WorkspaceMemory* memory,
                        const etalon_parallel* parallel = nullptr) {
  Status status;
  size_t bytes;
  if (etalon_attention_workspace_bytes(&desc, &args, &bytes, status.error()) != ETALON_OK) return status;
  status.Set(etalon_attention(&desc, &args, memory->Reserve(bytes), parallel, status.error()));
  return status;
}

inline Status Scores(const etalon_attention_desc& desc, const etalon_attention_args& args, WorkspaceMemory* memory,
                     const etalon_parallel* parallel = nullptr) {
  Status status;
  size_t bytes;
  if (etalon_scores_workspace_bytes(&desc, &args, &bytes, status.error()) != ETALON_OK) return status;
  status.Set(etalon_scores(&desc, &args, memory->Reserve(bytes), parallel, status.error()));
  return status;
}

inline Status Softmax(const etalon_softmax_args& args, const etalon_parallel* parallel = nullptr) {
  Status status;
  status.Set(etalon_softmax(&args, parallel, status.error()));
  return status;
}

inline Status WeightedSum(const etalon_weighted_sum_args& args, WorkspaceMemory* memory,
                          const etalon_parallel* parallel = nullptr) {
  Status status;
  size_t bytes;
  if (etalon_weighted_sum_workspace_bytes(&args, &bytes, status.error()) != ETALON_OK) return status;
  status.Set(etalon_weighted_sum(&args, memory->Reserve(bytes), parallel, status.error()));
  return status;
}

inline Status KvAppend(const etalon_kv_append_args& args, const etalon_parallel* parallel = nullptr) {
  Status status;
  status.Set(etalon_kv_append(&args, parallel, status.error()));
  return status;
}

inline Status Merge(const etalon_merge_args& args, const etalon_parallel* parallel = nullptr) {
  Status status;
  status.Set(etalon_merge(&args, parallel, status.error()));
  return status;
}

inline Status BlockStates(const etalon_attention_desc& desc, const etalon_attention_args& args,
                          const etalon_states& states, WorkspaceMemory* memory,
                          const etalon_parallel* parallel = nullptr) {
  Status status;
  size_t bytes;
  if (etalon_block_states_workspace_bytes(&desc, &args, &bytes, status.error()) != ETALON_OK) return status;
  const etalon_workspace* workspace = memory->Reserve(bytes);
  status.Set(etalon_block_states(&desc, &args, &states, workspace, parallel, status.error()));
  return status;
}

inline Status MergeStates(const etalon_merge_states_args& args, WorkspaceMemory* memory,
                          const etalon_parallel* parallel = nullptr) {
  Status status;
  size_t bytes;
  if (etalon_merge_states_workspace_bytes(&args, &bytes, status.error()) != ETALON_OK) return status;
  status.Set(etalon_merge_states(&args, memory->Reserve(bytes), parallel, status.error()));
  return status;
}

inline Status Supports(const etalon_attention_desc& desc) {
  Status status;
  status.Set(etalon_supports(&desc, status.error()));
  return status;
}

// --------------------------------------------------------------------------------------------------------------- plans

// An etalon_plan: a value, shared freely by threads.
class Plan {
 public:
  Plan() = default;  // of no use until Init

  Status Init(const etalon_attention_desc& desc) {
    Status status;
    status.Set(etalon_plan_init(&plan_, &desc, status.error()));
    return status;
  }

  size_t workspace_bytes() const { return etalon_plan_workspace_bytes(&plan_); }

  Status Begin(const etalon_attention_args& args, const etalon_workspace& workspace, int64_t* num_tasks) const {
    Status status;
    status.Set(etalon_begin(&plan_, &args, &workspace, num_tasks, status.error()));
    return status;
  }

  Status Execute(const etalon_attention_args& args, const etalon_workspace& workspace,
                 const etalon_parallel* parallel = nullptr) const {
    Status status;
    status.Set(etalon_execute(&plan_, &args, &workspace, parallel, status.error()));
    return status;
  }

  // args may be null: then only what the plan itself has decided.
  Status GetInfo(const etalon_attention_args* args, PlanInfo* info) const {
    Status status;
    status.Set(etalon_plan_get_info(&plan_, args, info, status.error()));
    return status;
  }

  const etalon_plan* get() const { return &plan_; }

 private:
  etalon_plan plan_ = {};
};

}  // namespace etalon

#endif  // ETALON_ETALON_HPP_
