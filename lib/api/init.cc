// Descriptors and tensors with their defaults.
#include <cstring>

#include "lib/api/validate.h"

namespace etalon {
namespace {

etalon_status Clear(void* descriptor, size_t struct_size, size_t first_size) {
  if (descriptor == nullptr) return ETALON_NULL_POINTER;
  if (struct_size < first_size || struct_size > kLargestStructSize) return ETALON_BAD_STRUCT_SIZE;
  std::memset(descriptor, 0, struct_size);
  std::memcpy(descriptor, &struct_size, sizeof struct_size);
  return ETALON_OK;
}

// Clear, then no limit to what is seen.
template <typename Descriptor>
etalon_status ClearUnlimited(Descriptor* descriptor, size_t struct_size, size_t first_size) {
  ETALON_CHECK(Clear(descriptor, struct_size, first_size));
  descriptor->left = -1;
  descriptor->right = -1;
  return ETALON_OK;
}

}  // namespace
}  // namespace etalon

extern "C" {

etalon_status etalon_attention_desc_init(etalon_attention_desc* desc, size_t struct_size) {
  return etalon::ClearUnlimited(desc, struct_size, etalon::kFirstSizeOfDesc);
}

etalon_status etalon_attention_args_init(etalon_attention_args* args, size_t struct_size) {
  return etalon::Clear(args, struct_size, etalon::kFirstSizeOfArgs);
}

etalon_status etalon_key_source_init(etalon_key_source* source, size_t struct_size) {
  return etalon::ClearUnlimited(source, struct_size, etalon::kFirstSizeOfKeySource);
}

etalon_status etalon_kv_places_init(etalon_kv_places* places, size_t struct_size) {
  return etalon::Clear(places, struct_size, etalon::kFirstSizeOfPlaces);
}

etalon_status etalon_kv_append_args_init(etalon_kv_append_args* args, size_t struct_size) {
  return etalon::Clear(args, struct_size, etalon::kFirstSizeOfAppendArgs);
}

etalon_status etalon_mask_args_init(etalon_mask_args* args, size_t struct_size) {
  return etalon::Clear(args, struct_size, etalon::kFirstSizeOfMaskArgs);
}

etalon_status etalon_plan_info_init(etalon_plan_info* info, size_t struct_size) {
  return etalon::Clear(info, struct_size, etalon::kFirstSizeOfInfo);
}

etalon_status etalon_softmax_args_init(etalon_softmax_args* args, size_t struct_size) {
  return etalon::ClearUnlimited(args, struct_size, etalon::kFirstSizeOfSoftmaxArgs);
}

etalon_status etalon_weighted_sum_args_init(etalon_weighted_sum_args* args, size_t struct_size) {
  return etalon::ClearUnlimited(args, struct_size, etalon::kFirstSizeOfWeightedSumArgs);
}

etalon_status etalon_merge_args_init(etalon_merge_args* args, size_t struct_size) {
  return etalon::Clear(args, struct_size, etalon::kFirstSizeOfMergeArgs);
}

etalon_status etalon_merge_states_args_init(etalon_merge_states_args* args, size_t struct_size) {
  return etalon::Clear(args, struct_size, etalon::kFirstSizeOfMergeStatesArgs);
}

size_t etalon_dtype_bytes(int32_t dtype) {
  switch (dtype) {
    case ETALON_F32:
      return 4;
    case ETALON_F16:
    case ETALON_BF16:
      return 2;
    case ETALON_BOOL:
    case ETALON_BITS:
      return 1;
    default:
      return 0;
  }
}

etalon_status etalon_tensor_init(etalon_tensor* tensor, void* data, int32_t dtype, int32_t rank, const int64_t* shape,
                                 etalon_error* error) {
  using etalon::Fail;
  if (tensor == nullptr) return Fail(error, ETALON_NULL_POINTER, {"tensor"}, {"is NULL"});
  if (etalon_dtype_bytes(dtype) == 0) {
    return Fail(error, ETALON_BAD_DTYPE, {"dtype"}, {"is ", dtype, ": no such element type"});
  }
  if (rank < 1 || rank > ETALON_MAX_RANK) {
    return Fail(error, ETALON_BAD_RANK, {"rank"}, {"is ", rank, ", must be 1 ... ", ETALON_MAX_RANK});
  }
  if (shape == nullptr) return Fail(error, ETALON_NULL_POINTER, {"shape"}, {"is NULL"});
  etalon_tensor packed = {};
  packed.data = data;
  packed.dtype = dtype;
  packed.rank = rank;
  int64_t stride = static_cast<int64_t>(etalon_dtype_bytes(dtype));
  bool empty = false;
  for (int32_t i = 0; i < rank; ++i) empty |= shape[i] == 0;
  for (int32_t i = rank; i-- > 0;) {
    if (shape[i] < 0) {
      return Fail(error, ETALON_BAD_SHAPE, {"shape", nullptr, i}, {"is ", shape[i], ", must not be negative"});
    }
    packed.shape[i] = shape[i];
    packed.stride_bytes[i] = stride;
    if (!empty && __builtin_mul_overflow(stride, shape[i], &stride)) {
      return Fail(error, ETALON_OVERFLOW, {"shape", nullptr, i}, {"is ", shape[i], ": the bytes do not fit 64 bits"});
    }
  }
  *tensor = packed;
  return etalon::Succeed(error);
}

}  // extern "C"
