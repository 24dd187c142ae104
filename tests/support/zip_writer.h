// zip_writer.h: writes zip archives whose every field can lie, for the reader of .npz files to find.
#ifndef ETALON_TESTS_SUPPORT_ZIP_WRITER_H_
#define ETALON_TESTS_SUPPORT_ZIP_WRITER_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace etalon::test {

enum class ZipPacking {
  kStored,
  kDeflated,  // in blocks that are not compressed, which deflate allows
  kRepeated,  // deflated: the content's first byte as often as the content is long, in a thousandth of that
};

enum class ZipField { kVersion, kFlags, kMethod, kTime, kCrc, kPackedSize, kSize, kNameLength, kExtraLength, kOffset };
constexpr int kNumZipFields = 10;

struct ZipLie {
  enum Where { kLocal = 1, kDirectory = 2, kBoth = 3 };
  ZipField field;
  uint64_t value;  // kOffset stands in the directory alone
  Where where = kBoth;
};

struct ZipEntry {
  std::string name;
  std::string content;
  ZipPacking packing = ZipPacking::kStored;
  std::vector<ZipLie> lies = {};
  bool streamed = false;         // by a writer that cannot go back: CRC and sizes follow the data
  bool zip64 = false;            // sizes of 64 bits, as numpy writes them whatever they are
  std::string packed_tail = {};  // more bytes that count as packed
  std::string gap = {};          // bytes behind it that belong to nothing
  std::string local_name = {};   // another one in the local header, if not empty
};

struct ZipEnd {
  std::string comment = {};
  std::string after = {};
  bool zip64 = false;
  // Lies; negative = the truth.
  int64_t count = -1;
  int64_t directory_bytes = -1;
  int64_t directory_offset = -1;
  int64_t comment_bytes = -1;
  int64_t disk = -1;
};

std::string WriteZip(const std::vector<ZipEntry>& entries, const ZipEnd& end = {});

uint32_t ZipCrc(const std::string& bytes);

}  // namespace etalon::test

#endif  // ETALON_TESTS_SUPPORT_ZIP_WRITER_H_
