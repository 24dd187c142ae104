// The standard slopes of ALiBi.
#include "lib/attention/slopes.h"

#include "lib/api/error.h"

extern "C" etalon_status etalon_alibi_slopes(int64_t num_heads, float* slopes, etalon_error* error) {
  if (slopes == nullptr) return etalon::Fail(error, ETALON_NULL_POINTER, {"slopes"}, {"is NULL"});
  if (num_heads < 1) {
    return etalon::Fail(error, ETALON_NO_HEADS, {"num_heads"}, {"is ", num_heads, ", must be at least 1"});
  }
  etalon::StandardSlopes(num_heads, slopes);
  return etalon::Succeed(error);
}
