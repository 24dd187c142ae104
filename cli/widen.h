// widen.h: stored elements as numbers, without the library's help: what is checked must not share code with it.
#ifndef ETALON_CLI_WIDEN_H_
#define ETALON_CLI_WIDEN_H_

#include <cstdint>
#include <vector>

#include "cli/array.h"

namespace etalon::cli {

// Exact, all of them.
float FromHalf(uint16_t half);
std::vector<float> Widened(const Array& array);
std::vector<float> WidenedHead(const Array& array, int64_t head);  // heads of all sequences are counted in one row

}  // namespace etalon::cli

#endif  // ETALON_CLI_WIDEN_H_
