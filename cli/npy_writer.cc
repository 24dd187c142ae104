#include "cli/npy_writer.h"

namespace etalon::cli {
namespace {

constexpr size_t kAlignment = 64;
constexpr size_t kGrowthDigits = 21;  // numpy leaves room for the first dimension to grow in place

}  // namespace

std::string NpyHeader(NpyType type, const std::vector<int64_t>& shape) {
  std::string header = std::string("{'descr': '") + NpyTypeDescr(type) + "', 'fortran_order': False, 'shape': (";
  for (size_t i = 0; i < shape.size(); ++i) header += (i == 0 ? "" : ", ") + std::to_string(shape[i]);
  header += shape.size() == 1 ? ",), }" : "), }";
  if (!shape.empty()) header.append(kGrowthDigits - std::to_string(shape[0]).size(), ' ');
  std::string file("\x93NUMPY\x01\x00\x00\x00", 10);  // the last two are the header's length
  header.append(kAlignment - (file.size() + header.size() + 1) % kAlignment, ' ');
  header += '\n';
  file[8] = static_cast<char>(header.size() & 0xFF);
  file[9] = static_cast<char>(header.size() >> 8);
  return file + header;
}

}  // namespace etalon::cli
