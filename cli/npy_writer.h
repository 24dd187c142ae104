// npy_writer.h: the bytes of a .npy file before its data.
#ifndef ETALON_CLI_NPY_WRITER_H_
#define ETALON_CLI_NPY_WRITER_H_

#include <cstdint>
#include <string>
#include <vector>

#include "cli/npy.h"

namespace etalon::cli {

// Version 1.0, C order, a multiple of 64 bytes, in the bytes that numpy.save writes. At most 32 dimensions, all >= 0.
std::string NpyHeader(NpyType type, const std::vector<int64_t>& shape);

}  // namespace etalon::cli

#endif  // ETALON_CLI_NPY_WRITER_H_
