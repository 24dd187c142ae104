// npz_writer.h: the bytes of a .npz file.
#ifndef ETALON_CLI_NPZ_WRITER_H_
#define ETALON_CLI_NPZ_WRITER_H_

#include <string>
#include <vector>

#include "cli/named_array.h"

namespace etalon::cli {

// Stored, not deflated, with a fixed date: equal arrays give equal bytes. Throws std::runtime_error if libzip cannot.
std::string NpzBytes(const std::vector<NamedArray>& arrays);

}  // namespace etalon::cli

#endif  // ETALON_CLI_NPZ_WRITER_H_
