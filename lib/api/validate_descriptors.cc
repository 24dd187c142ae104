// Checks of descriptors and their numbers, and the choice of kernels.
#include <cstring>

#include "arch/dispatch.h"
#include "lib/api/validate.h"

namespace etalon {
namespace {

constexpr int32_t kMostWorkers = 1 << 20;  // keeps products of workers and tasks far from overflow
constexpr uint32_t kKnownOptions = ETALON_OPTION_ALIBI | ETALON_OPTION_BIAS | ETALON_OPTION_MASK | ETALON_OPTION_SINKS;
constexpr size_t kLargestDim = SIZE_MAX / 4096;  // likewise, of scratch

// No floating-point comparison: see HostBits.
bool IsFinite(float x) { return (HostBits(x) & 0x7F800000u) != 0x7F800000u; }
bool IsNegative(float x) { return (HostBits(x) & 0x80000000u) != 0 && !IsZero(x); }

etalon_status CheckDim(int64_t dim, const Field& field, etalon_error* error) {
  if (dim < 1) return Fail(error, ETALON_BAD_HEAD_DIM, field, {"is ", dim, ", must be at least 1"});
  if (static_cast<uint64_t>(dim) > kLargestDim) {
    return Fail(error, ETALON_OVERFLOW, field, {"is ", dim, ": the scratch of a worker would not fit an address"});
  }
  return ETALON_OK;
}

etalon_status CheckDtype(int32_t dtype, const Field& field, etalon_error* error) {
  if (IsNumber(dtype)) return ETALON_OK;
  return Fail(error, ETALON_BAD_DTYPE, field, {"is ", dtype, ", must be ETALON_F32, ETALON_F16 or ETALON_BF16"});
}

// Sizes and types of a descriptor that leaves them 0 are not looked at here. The others must make sense before they are
// compared with a tensor's: else the tensor would be blamed.
etalon_status CheckGivenHeads(const etalon_attention_desc& d, etalon_error* error) {
  const bool q = d.num_q_heads < 0;
  if (q || d.num_kv_heads < 0) {
    return Fail(error, ETALON_BAD_SHAPE, {"desc", q ? "num_q_heads" : "num_kv_heads"},
                {"is ", q ? d.num_q_heads : d.num_kv_heads, ", must be at least 1"});
  }
  if (d.num_kv_heads == 0 || d.num_q_heads % d.num_kv_heads == 0) return ETALON_OK;
  return Fail(error, ETALON_BAD_HEADS, {"desc", "num_q_heads"},
              {"is ", d.num_q_heads, ", no multiple of the ", d.num_kv_heads, " key/value heads"});
}

etalon_status CheckGivenDim(int64_t dim, const char* member, etalon_error* error) {
  return dim == 0 ? ETALON_OK : CheckDim(dim, {"desc", member}, error);
}

etalon_status CheckGivenDtype(int32_t dtype, const char* member, etalon_error* error) {
  return dtype == 0 ? ETALON_OK : CheckDtype(dtype, {"desc", member}, error);
}

etalon_status CheckMaximum(int64_t size, const char* member, etalon_error* error) {
  if (size >= 0 && size <= kLargestSize) return ETALON_OK;
  return Fail(error, size < 0 ? ETALON_BAD_SHAPE : ETALON_OVERFLOW, {"desc", member},
              {"is ", size, ", must be 0 ... ", kLargestSize});
}

}  // namespace

etalon_status CopyDescriptor(const void* caller, const char* name, void* ours, size_t size, size_t first_size,
                             etalon_error* error) {
  if (caller == nullptr) return Fail(error, ETALON_NULL_POINTER, {name}, {"is NULL"});
  size_t struct_size;
  std::memcpy(&struct_size, caller, sizeof struct_size);
  if (struct_size < first_size || struct_size > kLargestStructSize) {
    return Fail(error, ETALON_BAD_STRUCT_SIZE, {name, "struct_size"},
                {"is ", struct_size, ": prepare the descriptor with its _init function"});
  }
  const unsigned char* bytes = static_cast<const unsigned char*>(caller);
  for (size_t i = size; i < struct_size; ++i) {
    if (bytes[i] != 0) {
      return Fail(error, ETALON_UNSUPPORTED, {name, "struct_size"},
                  {"is ", struct_size, ": the field at byte ", i, " is set, and this older library does not know it"});
    }
  }
  std::memset(ours, 0, size);
  std::memcpy(ours, caller, struct_size < size ? struct_size : size);
  return ETALON_OK;
}

etalon_status CheckDesc(const etalon_attention_desc& d, const Uses& uses, etalon_error* error) {
  ETALON_CHECK(CheckGivenHeads(d, error));
  ETALON_CHECK(CheckGivenDim(d.head_dim, "head_dim", error));
  ETALON_CHECK(CheckGivenDtype(d.q_dtype, "q_dtype", error));
  ETALON_CHECK(CheckGivenDtype(d.k_dtype, "k_dtype", error));
  if (uses.values) ETALON_CHECK(CheckGivenDim(d.value_dim, "value_dim", error));
  if (uses.values) ETALON_CHECK(CheckGivenDtype(d.v_dtype, "v_dtype", error));
  if (uses.out) ETALON_CHECK(CheckGivenDtype(d.out_dtype, "out_dtype", error));
  ETALON_CHECK(CheckMaximum(d.max_batch, "max_batch", error));
  ETALON_CHECK(CheckMaximum(d.max_q_len, "max_q_len", error));
  ETALON_CHECK(CheckMaximum(d.max_kv_len, "max_kv_len", error));
  if (!IsFinite(d.scale)) return Fail(error, ETALON_BAD_VALUE, {"desc", "scale"}, {"is not a finite number"});
  if (!IsFinite(d.softcap) || IsNegative(d.softcap)) {
    return Fail(error, ETALON_BAD_VALUE, {"desc", "softcap"}, {"is not a finite number of at least 0"});
  }
  if (d.math == ETALON_MATH_FAST) {
    return Fail(error, ETALON_UNSUPPORTED, {"desc", "math"}, {"is ETALON_MATH_FAST: not offered yet"});
  }
  if (d.math != ETALON_MATH_EXACT) {
    return Fail(error, ETALON_BAD_VALUE, {"desc", "math"}, {"is ", d.math, ": no such mode"});
  }
  if ((d.options & ~kKnownOptions) != 0) {
    return Fail(error, ETALON_UNSUPPORTED, {"desc", "options"}, {"has a bit that this version does not know"});
  }
  if (d.num_sources < 0 || d.num_sources > ETALON_MAX_SOURCES) {
    return Fail(error, ETALON_BAD_VALUE, {"desc", "num_sources"},
                {"is ", d.num_sources, ", must be 0 ... ", ETALON_MAX_SOURCES});
  }
  return CheckWorkers(d.max_workers, {"desc", "max_workers"}, error);
}

etalon_status CheckSizes(const etalon_attention_desc& d, etalon_error* error) {
  for (bool q : {true, false}) {
    if ((q ? d.num_q_heads : d.num_kv_heads) != 0) continue;
    return Fail(error, ETALON_NO_HEADS, {"desc", q ? "num_q_heads" : "num_kv_heads"}, {"is 0, must be at least 1"});
  }
  ETALON_CHECK(CheckDim(d.head_dim, {"desc", "head_dim"}, error));
  ETALON_CHECK(CheckDtype(d.q_dtype, {"desc", "q_dtype"}, error));
  ETALON_CHECK(CheckDtype(d.k_dtype, {"desc", "k_dtype"}, error));
  ETALON_CHECK(CheckDim(d.value_dim, {"desc", "value_dim"}, error));
  ETALON_CHECK(CheckDtype(d.v_dtype, {"desc", "v_dtype"}, error));
  return CheckDtype(d.out_dtype, {"desc", "out_dtype"}, error);
}

etalon_status CheckWorkers(int32_t max_workers, const Field& field, etalon_error* error) {
  if (max_workers >= 0 && max_workers <= kMostWorkers) return ETALON_OK;
  return Fail(error, ETALON_BAD_VALUE, field, {"is ", max_workers, ", must be 0 ... ", kMostWorkers});
}

etalon_status CheckReserved(int32_t reserved, const Field& field, etalon_error* error) {
  if (reserved == 0) return ETALON_OK;
  return Fail(error, ETALON_UNSUPPORTED, field, {"is not 0: this version does not know what that means"});
}

etalon_status CheckUnused(const void* pointer, const Field& field, etalon_error* error) {
  if (pointer == nullptr) return ETALON_OK;
  return Fail(error, ETALON_BAD_VALUE, field, {"must be NULL: this function does not use it"});
}

etalon_status CheckHeadDim(const CheckedTensor& tensor, int place, etalon_error* error) {
  return CheckDim(tensor.shape[place], tensor.Shape(place), error);
}

etalon_status CheckTarget(const char* name, const char* object, KernelTable* table, etalon_error* error) {
  const bool asked = name != nullptr;
  const TableChoice choice = asked ? ChooseTable(name, table) : ChooseDefaultTable(table);
  if (choice == TableChoice::kOk) return ETALON_OK;
  const Field field = asked ? Field{object, "target"} : Field{"ETALON_TARGET"};
  if (choice == TableChoice::kUnknownName) {
    return Fail(
        error, ETALON_UNKNOWN_TARGET, field,
        {"names no kernel table of this build (etalon_get_target lists them)", asked ? ": " : "", asked ? name : ""});
  }
  return Fail(error, ETALON_TARGET_UNAVAILABLE, field, {"names a kernel table that this CPU or system cannot run"});
}

bool IsNumber(int32_t dtype) { return dtype == ETALON_F32 || dtype == ETALON_F16 || dtype == ETALON_BF16; }

DType TypeOf(int32_t dtype) {
  return dtype == ETALON_F16 ? DType::kF16 : dtype == ETALON_BF16 ? DType::kBF16 : DType::kF32;
}

}  // namespace etalon
