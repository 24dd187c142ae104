// slopes.h: the slopes that ALiBi models are trained with.
#ifndef ETALON_LIB_ATTENTION_SLOPES_H_
#define ETALON_LIB_ATTENTION_SLOPES_H_

#include <cstdint>

namespace etalon {

// As etalon_alibi_slopes says. num_heads >= 1. The same numbers whatever the host's floating-point environment is.
void StandardSlopes(int64_t num_heads, float* slopes);

}  // namespace etalon

#endif  // ETALON_LIB_ATTENTION_SLOPES_H_
