// Checks of tensors by themselves and against each other.
#include <cstring>

#include "lib/api/validate.h"
#include "lib/base/parallel.h"

namespace etalon {
namespace {

int64_t Magnitude(int64_t stride) { return stride < 0 ? -stride : stride; }

etalon_status CheckType(const etalon_tensor& t, const char* name, Types types, etalon_error* error) {
  if (types == Types::kMask || types == Types::kBool) {
    if (types == Types::kBool && t.dtype == ETALON_BITS) {
      return Fail(error, ETALON_UNSUPPORTED, {name, "dtype"},
                  {"is ETALON_BITS: this function takes ETALON_BOOL alone"});
    }
    if (t.dtype == ETALON_BOOL || t.dtype == ETALON_BITS) return ETALON_OK;
    return Fail(
        error, ETALON_BAD_DTYPE, {name, "dtype"},
        {"is ", t.dtype, types == Types::kBool ? ", must be ETALON_BOOL" : ", must be ETALON_BOOL or ETALON_BITS"});
  }
  if (!IsNumber(t.dtype)) {
    return Fail(error, ETALON_BAD_DTYPE, {name, "dtype"},
                {"is ", t.dtype, ", must be ETALON_F32, ETALON_F16 or ETALON_BF16"});
  }
  if (types == Types::kF32 && t.dtype != ETALON_F32) {
    return Fail(error, ETALON_BAD_DTYPE, {name, "dtype"}, {"is ", t.dtype, ", must be ETALON_F32 here"});
  }
  return ETALON_OK;
}

// Rank and shape into *tensor, leading dimensions added.
etalon_status ReadShape(const etalon_tensor& t, CheckedTensor* tensor, etalon_error* error) {
  const int smallest = tensor->places > 2 ? tensor->places - 2 : 1;
  if (t.rank < smallest || t.rank > tensor->places) {
    return Fail(error, ETALON_BAD_RANK, {tensor->name, "rank"},
                {"is ", t.rank, ", must be ", smallest, " ... ", tensor->places});
  }
  tensor->added = tensor->places - t.rank;
  for (int place = 0; place < tensor->added; ++place) tensor->shape[place] = 1;
  for (int place = tensor->added; place < tensor->places; ++place) {
    const int64_t size = t.shape[place - tensor->added];
    if (size < 0) return Fail(error, ETALON_BAD_SHAPE, tensor->Shape(place), {"is ", size, ", must not be negative"});
    if (size > kLargestSize) {
      return Fail(error, ETALON_OVERFLOW, tensor->Shape(place), {"is ", size, ", above the limit of ", kLargestSize});
    }
    tensor->shape[place] = size;
    if (size == 0) tensor->empty = true;
  }
  return ETALON_OK;
}

// Whether one innermost element may stand for all.
bool MayRepeatInnermost(Types types, int32_t dtype) {
  return types == Types::kBias || dtype == ETALON_BOOL;  // bits have no stride of their own
}

// Strides into *tensor, those that move nothing as 0.
etalon_status ReadStrides(const etalon_tensor& t, Types types, int64_t element, CheckedTensor* tensor,
                          etalon_error* error) {
  for (int place = tensor->added; place < tensor->places; ++place) {
    if (tensor->shape[place] <= 1) continue;
    const int64_t stride = t.stride_bytes[place - tensor->added];
    if ((stride & (element - 1)) !=
        0) {  // elements have 1, 2 or 4 bytes; a division would be much of what a call costs
      return Fail(error, ETALON_BAD_STRIDE, tensor->Stride(place),
                  {"is ", stride, ", no multiple of the element size ", element});
    }
    const bool innermost = place == tensor->places - 1;
    if (innermost && stride != element && (stride != 0 || !MayRepeatInnermost(types, t.dtype))) {
      return Fail(error, ETALON_BAD_STRIDE, tensor->Stride(place),
                  {"is ", stride, ", but innermost it must be the element size ", element});
    }
    tensor->stride_bytes[place] = stride;
  }
  return ETALON_OK;
}

// The bytes from the lowest to the highest that the tensor reaches.
etalon_status MeasureHull(int64_t element, CheckedTensor* tensor, etalon_error* error) {
  int64_t low = 0, high = element;
  for (int place = 0; place < tensor->places; ++place) {
    int64_t reach;
    int64_t* end = tensor->stride_bytes[place] < 0 ? &low : &high;
    if (__builtin_mul_overflow(tensor->stride_bytes[place], tensor->shape[place] - 1, &reach) ||
        __builtin_add_overflow(*end, reach, end)) {
      return Fail(error, ETALON_OVERFLOW, tensor->Stride(place), {"times the size does not fit 64 bits"});
    }
  }
  const uintptr_t data = reinterpret_cast<uintptr_t>(tensor->data);
  int64_t extent;
  if (__builtin_sub_overflow(high, low, &extent) || __builtin_add_overflow(data, low, &tensor->hull.first) ||
      __builtin_add_overflow(data, high, &tensor->hull.last)) {
    return Fail(error, ETALON_OVERFLOW, {tensor->name}, {"reaches beyond the end of all addresses"});
  }
  return ETALON_OK;
}

// An output reaches each byte once: sorted by stride, every dimension steps over what the smaller ones span.
etalon_status CheckDistinct(int64_t element, const CheckedTensor& tensor, etalon_error* error) {
  int order[ETALON_MAX_RANK];
  int count = 0;
  for (int place = 0; place < tensor.places; ++place) {
    if (tensor.shape[place] <= 1) continue;
    int at = count++;
    for (; at > 0 && Magnitude(tensor.stride_bytes[order[at - 1]]) > Magnitude(tensor.stride_bytes[place]); --at) {
      order[at] = order[at - 1];
    }
    order[at] = place;
  }
  int64_t span = element;
  for (int i = 0; i < count; ++i) {
    const int64_t stride = Magnitude(tensor.stride_bytes[order[i]]);
    if (stride < span) {
      return Fail(error, ETALON_OVERLAP, tensor.Stride(order[i]),
                  {"is ", tensor.stride_bytes[order[i]], ", less than the ", span,
                   " bytes that the dimensions inside it span: elements of an output would share memory"});
    }
    span += stride * (tensor.shape[order[i]] - 1);  // fits: the hull did
  }
  return ETALON_OK;
}

}  // namespace

etalon_status CheckTensor(const etalon_tensor* caller, const char* name, int places, Types types, Role role,
                          CheckedTensor* tensor, etalon_error* error) {
  *tensor = {};
  tensor->name = name;
  tensor->places = places;
  if (caller == nullptr) return Fail(error, ETALON_NULL_POINTER, {name}, {"is NULL"});
  constexpr unsigned char kZeros[sizeof caller->reserved] = {};
  if (std::memcmp(caller->reserved, kZeros, sizeof kZeros) != 0) {
    return Fail(error, ETALON_UNSUPPORTED, {name, "reserved"}, {"is not all 0"});
  }
  ETALON_CHECK(CheckType(*caller, name, types, error));
  tensor->dtype = caller->dtype;
  tensor->type = TypeOf(caller->dtype);
  tensor->data = static_cast<unsigned char*>(caller->data);
  ETALON_CHECK(ReadShape(*caller, tensor, error));
  if (tensor->empty || role == Role::kShape) return ETALON_OK;  // no element is looked at

  const int64_t element = static_cast<int64_t>(etalon_dtype_bytes(tensor->dtype));
  if (tensor->data == nullptr) return Fail(error, ETALON_NULL_POINTER, {name, "data"}, {"is NULL"});
  if (reinterpret_cast<uintptr_t>(tensor->data) % static_cast<uintptr_t>(element) != 0) {
    return Fail(error, ETALON_MISALIGNED, {name, "data"}, {"is not aligned to its elements of ", element, " bytes"});
  }
  ETALON_CHECK(ReadStrides(*caller, types, element, tensor, error));
  ETALON_CHECK(MeasureHull(element, tensor, error));
  return role == Role::kOutput ? CheckDistinct(element, *tensor, error) : ETALON_OK;
}

etalon_status CheckOptionalTensor(const etalon_tensor* caller, const char* name, int places, Types types, Role role,
                                  CheckedTensor* tensor, etalon_error* error) {
  tensor->name = nullptr;
  return caller == nullptr ? ETALON_OK : CheckTensor(caller, name, places, types, role, tensor, error);
}

Hull HullOf(const Hull& a, const Hull& b) {
  return {a.first < b.first ? a.first : b.first, a.last > b.last ? a.last : b.last};
}

bool AreInterleaved(const CheckedTensor& a, const CheckedTensor& b) {
  if (a.hull.first >= b.hull.last || b.hull.first >= a.hull.last) return false;  // nothing to tell apart
  // One tensor of bytes with a dimension more, from a row of the one to that of the other.
  CheckedTensor both = {};
  both.places = 5;
  both.shape[0] = 2;
  both.stride_bytes[0] = b.data - a.data;
  for (int place = 0; place < 3; ++place) {
    if (a.shape[place] != b.shape[place] || a.stride_bytes[place] != b.stride_bytes[place]) return false;
    both.shape[place + 1] = a.shape[place];
    both.stride_bytes[place + 1] = a.stride_bytes[place];
  }
  const int64_t a_bytes = a.shape[3] * static_cast<int64_t>(etalon_dtype_bytes(a.dtype));
  const int64_t b_bytes = b.shape[3] * static_cast<int64_t>(etalon_dtype_bytes(b.dtype));
  both.shape[4] = Larger(a_bytes, b_bytes);
  both.stride_bytes[4] = 1;
  return CheckDistinct(1, both, nullptr) == ETALON_OK;
}

etalon_status CheckSameSize(const CheckedTensor& tensor, int place, const CheckedTensor& other, int other_place,
                            etalon_error* error) {
  if (tensor.shape[place] == other.shape[other_place]) return ETALON_OK;
  return Fail(error, ETALON_BAD_SHAPE, tensor.Shape(place),
              {"is ", tensor.shape[place], ", but ", other.Shape(other_place), " is ", other.shape[other_place]});
}

etalon_status CheckSameShape(const CheckedTensor& tensor, const CheckedTensor& other, int places, etalon_error* error) {
  for (int place = 0; place < places; ++place) ETALON_CHECK(CheckSameSize(tensor, place, other, place, error));
  return ETALON_OK;
}

etalon_status CheckBroadcast(const CheckedTensor& tensor, int place, int64_t size, const char* what,
                             etalon_error* error) {
  if (tensor.shape[place] == size || tensor.shape[place] == 1) return ETALON_OK;
  return Fail(error, ETALON_BAD_SHAPE, tensor.Shape(place),
              {"is ", tensor.shape[place], ", must be 1 or ", size, ", ", what});
}

etalon_status CheckColumns(const CheckedTensor& tensor, const ColumnsShape& shape, etalon_error* error) {
  ETALON_CHECK(CheckBroadcast(tensor, 0, shape.batch, "the batch", error));
  ETALON_CHECK(CheckBroadcast(tensor, 1, shape.num_heads, "the number of query heads", error));
  ETALON_CHECK(CheckBroadcast(tensor, 2, shape.q_len, "the number of queries", error));
  if (tensor.dtype != ETALON_BITS) return CheckBroadcast(tensor, 3, shape.kv_len, "the number of keys", error);
  const int64_t bytes = DivideUp(shape.kv_len, 8);
  if (tensor.shape[3] == bytes) return ETALON_OK;
  return Fail(error, ETALON_BAD_SHAPE, tensor.Shape(3),
              {"is ", tensor.shape[3], ", must be ", bytes, ": a byte for 8 of the ", shape.kv_len, " keys"});
}

etalon_status CheckOfHeads(const CheckedTensor& tensor, int64_t batch, int64_t num_heads, etalon_error* error) {
  ETALON_CHECK(CheckBroadcast(tensor, 0, batch, "the batch", error));
  return CheckBroadcast(tensor, 1, num_heads, "the number of query heads", error);
}

bool SameLayout(const CheckedTensor& a, const CheckedTensor& b) {
  if (a.data != b.data || a.dtype != b.dtype || a.places != b.places) return false;
  for (int place = 0; place < a.places; ++place) {
    if (a.shape[place] != b.shape[place] || a.stride_bytes[place] != b.stride_bytes[place]) return false;
  }
  return true;
}

etalon_status CheckHeads(const CheckedTensor& q, const CheckedTensor& k, etalon_error* error) {
  for (const CheckedTensor* tensor : {&q, &k}) {
    if (tensor->shape[1] == 0) return Fail(error, ETALON_NO_HEADS, tensor->Shape(1), {"is 0: there are no heads"});
  }
  if (q.shape[1] % k.shape[1] == 0) return ETALON_OK;
  return Fail(error, ETALON_BAD_HEADS, q.Shape(1),
              {"is ", q.shape[1], ", no multiple of the ", k.shape[1], " heads of ", k.Shape(1)});
}

}  // namespace etalon
