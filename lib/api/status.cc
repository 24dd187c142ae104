// Status codes and versions as text.
#include <etalon/etalon.h>

#include "lib/base/arithmetic.h"

namespace etalon {
namespace {

struct StatusText {
  etalon_status status;
  const char* name;
  const char* text;
};

constexpr StatusText kTexts[] = {
    {ETALON_OK, "ETALON_OK", "success"},
    {ETALON_NULL_POINTER, "ETALON_NULL_POINTER", "a pointer that is needed is NULL"},
    {ETALON_BAD_RANK, "ETALON_BAD_RANK", "a tensor has too many or too few dimensions"},
    {ETALON_BAD_SHAPE, "ETALON_BAD_SHAPE", "a size is negative, too large, or unlike that of another tensor"},
    {ETALON_BAD_STRIDE, "ETALON_BAD_STRIDE", "a stride does not fit the element size"},
    {ETALON_BAD_DTYPE, "ETALON_BAD_DTYPE", "no such element type, or not the one needed here"},
    {ETALON_BAD_VALUE, "ETALON_BAD_VALUE", "a number is out of its range"},
    {ETALON_NO_HEADS, "ETALON_NO_HEADS", "zero heads"},
    {ETALON_BAD_HEADS, "ETALON_BAD_HEADS", "the key/value heads do not divide the query heads"},
    {ETALON_BAD_HEAD_DIM, "ETALON_BAD_HEAD_DIM", "head_dim or value_dim is below 1"},
    {ETALON_MISALIGNED, "ETALON_MISALIGNED", "a pointer is not aligned as it must be"},
    {ETALON_OVERLAP, "ETALON_OVERLAP", "an output shares memory with another argument or with itself"},
    {ETALON_OVERFLOW, "ETALON_OVERFLOW", "sizes that no address or byte count can hold"},
    {ETALON_SMALL_WORKSPACE, "ETALON_SMALL_WORKSPACE", "the workspace is too small"},
    {ETALON_BAD_STRUCT_SIZE, "ETALON_BAD_STRUCT_SIZE", "struct_size is not that of a descriptor"},
    {ETALON_UNSUPPORTED, "ETALON_UNSUPPORTED", "not offered by this version"},
    {ETALON_UNKNOWN_TARGET, "ETALON_UNKNOWN_TARGET", "this build has no such kernel table"},
    {ETALON_TARGET_UNAVAILABLE, "ETALON_TARGET_UNAVAILABLE", "this CPU or system cannot run the kernel table"},
    {ETALON_BAD_PLAN, "ETALON_BAD_PLAN", "not an initialised plan"},
    {ETALON_NOT_BEGUN, "ETALON_NOT_BEGUN", "nothing was begun in this workspace"},
    {ETALON_BAD_TASKS, "ETALON_BAD_TASKS", "tasks out of range, or not run once each"},
    {ETALON_OUT_OF_MEMORY, "ETALON_OUT_OF_MEMORY", "out of memory"},
    {ETALON_CACHE_FULL, "ETALON_CACHE_FULL", "a sequence has no room for its new tokens"},
};

#define ETALON_STRING_(x) #x
#define ETALON_STRING(x) ETALON_STRING_(x)

}  // namespace
}  // namespace etalon

extern "C" {

const char* etalon_status_name(etalon_status status) {
  for (const etalon::StatusText& entry : etalon::kTexts) {
    if (entry.status == status) return entry.name;
  }
  return "unknown status";
}

const char* etalon_status_text(etalon_status status) {
  for (const etalon::StatusText& entry : etalon::kTexts) {
    if (entry.status == status) return entry.text;
  }
  return "unknown status";
}

const char* etalon_version(void) {
  return ETALON_STRING(ETALON_VERSION_MAJOR) "." ETALON_STRING(ETALON_VERSION_MINOR) "." ETALON_STRING(
      ETALON_VERSION_PATCH);
}

int32_t etalon_arithmetic_version(void) { return static_cast<int32_t>(etalon::kArithmeticVersion); }

}  // extern "C"
