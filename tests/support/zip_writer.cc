#include "tests/support/zip_writer.h"

#include <algorithm>

namespace etalon::test {
namespace {

constexpr uint64_t kSeeZip64 = 0xFFFFFFFFu;

void Append(std::string* bytes, uint64_t value, int width) {
  for (int i = 0; i < width; ++i) *bytes += static_cast<char>(value >> 8 * i & 0xFF);
}

std::string StoredBlocks(const std::string& content) {
  constexpr size_t kMost = 65535;
  std::string stream;
  size_t at = 0;
  do {
    const size_t size = std::min(kMost, content.size() - at);
    Append(&stream, at + size == content.size() ? 1 : 0, 1);
    Append(&stream, size, 2);
    Append(&stream, ~size, 2);
    stream.append(content, at, size);
    at += size;
  } while (at < content.size());
  return stream;
}

// One block with the fixed codes of deflate (RFC 1951, 3.2.6).
class FixedBlock {
 public:
  FixedBlock() {
    Put(1, 1);  // the last block
    Put(1, 2);
  }

  void Literal(unsigned char c) {
    if (c < 144) {
      PutCode(0x30u + c, 8);
    } else {
      PutCode(0x190u + (c - 144u), 9);
    }
  }
  void Repeat258() {
    PutCode(0xC5, 8);  // length code 285
    PutCode(0, 5);     // distance 1
  }
  std::string End() {
    PutCode(0, 7);
    if (used_ > 0) stream_ += static_cast<char>(bits_);
    return stream_;
  }

 private:
  void Put(uint32_t bits, int count) {
    for (int i = 0; i < count; ++i) {
      bits_ |= (bits >> i & 1u) << used_;
      if (++used_ < 8) continue;
      stream_ += static_cast<char>(bits_);
      bits_ = 0;
      used_ = 0;
    }
  }
  void PutCode(uint32_t code, int count) {  // codes come with their first bit first
    for (int i = count; i-- > 0;) Put(code >> i, 1);
  }

  std::string stream_;
  uint32_t bits_ = 0;
  int used_ = 0;
};

std::string Repeated(const std::string& content) {
  FixedBlock block;
  size_t left = content.size();
  if (left > 0) {
    block.Literal(static_cast<unsigned char>(content[0]));
    --left;
  }
  for (; left >= 258; left -= 258) block.Repeat258();
  for (; left > 0; --left) block.Literal(static_cast<unsigned char>(content[0]));
  return block.End();
}

std::string Packed(const ZipEntry& e) {
  const std::string packed = e.packing == ZipPacking::kStored     ? e.content
                             : e.packing == ZipPacking::kDeflated ? StoredBlocks(e.content)
                                                                  : Repeated(e.content);
  return packed + e.packed_tail;
}

// What an entry's two headers say, lies included.
struct Fields {
  Fields(const ZipEntry& e, const std::string& packed, uint64_t offset, ZipLie::Where where) {
    const bool local = where == ZipLie::kLocal;
    const bool later = local && e.streamed;
    name = local && !e.local_name.empty() ? e.local_name : e.name;
    value[static_cast<int>(ZipField::kVersion)] = e.zip64 ? 45 : 20;
    value[static_cast<int>(ZipField::kFlags)] = e.streamed ? 8 : 0;
    value[static_cast<int>(ZipField::kMethod)] = e.packing == ZipPacking::kStored ? 0 : 8;
    value[static_cast<int>(ZipField::kTime)] = 0x21 << 16;  // 1 January 1980
    value[static_cast<int>(ZipField::kCrc)] = later ? 0 : ZipCrc(e.content);
    value[static_cast<int>(ZipField::kPackedSize)] = later ? 0 : packed.size();
    value[static_cast<int>(ZipField::kSize)] = later ? 0 : e.content.size();
    value[static_cast<int>(ZipField::kNameLength)] = name.size();
    value[static_cast<int>(ZipField::kExtraLength)] = !e.zip64 ? 0 : local ? 20 : 28;
    value[static_cast<int>(ZipField::kOffset)] = offset;
    for (const ZipLie& lie : e.lies) {
      if ((lie.where & where) != 0) value[static_cast<int>(lie.field)] = lie.value;
    }
    if (!e.zip64) return;
    Append(&extra, 1, 2);
    Append(&extra, local ? 16 : 24, 2);
    for (const ZipField field : {ZipField::kSize, ZipField::kPackedSize, ZipField::kOffset}) {
      if (local && field == ZipField::kOffset) continue;
      Append(&extra, value[static_cast<int>(field)], 8);
      value[static_cast<int>(field)] = kSeeZip64;
    }
  }

  void Put(ZipField field, int width, std::string* bytes) const {
    Append(bytes, value[static_cast<int>(field)], width);
  }

  // The run of fields that both headers have.
  std::string Common() const {
    std::string bytes;
    Put(ZipField::kVersion, 2, &bytes);
    Put(ZipField::kFlags, 2, &bytes);
    Put(ZipField::kMethod, 2, &bytes);
    Put(ZipField::kTime, 4, &bytes);
    Put(ZipField::kCrc, 4, &bytes);
    Put(ZipField::kPackedSize, 4, &bytes);
    Put(ZipField::kSize, 4, &bytes);
    Put(ZipField::kNameLength, 2, &bytes);
    Put(ZipField::kExtraLength, 2, &bytes);
    return bytes;
  }

  std::string name;
  uint64_t value[kNumZipFields];
  std::string extra;
};

}  // namespace

uint32_t ZipCrc(const std::string& bytes) {
  uint32_t of_byte[256];
  for (uint32_t i = 0; i < 256; ++i) {
    of_byte[i] = i;
    for (int bit = 0; bit < 8; ++bit) of_byte[i] = (of_byte[i] >> 1) ^ ((of_byte[i] & 1u) != 0 ? 0xEDB88320u : 0u);
  }
  uint32_t crc = 0xFFFFFFFFu;
  for (const char c : bytes) crc = (crc >> 8) ^ of_byte[(crc ^ static_cast<unsigned char>(c)) & 0xFF];
  return ~crc;
}

std::string WriteZip(const std::vector<ZipEntry>& entries, const ZipEnd& end) {
  std::string file;
  std::string directory;
  for (const ZipEntry& e : entries) {
    const std::string packed = Packed(e);
    const Fields local(e, packed, file.size(), ZipLie::kLocal);
    const Fields central(e, packed, file.size(), ZipLie::kDirectory);
    directory += "PK\x01\x02";
    Append(&directory, e.zip64 ? 45 : 20, 2);
    directory += central.Common();
    Append(&directory, 0, 2 + 2 + 2);  // comment, disk, internal attributes
    Append(&directory, 0, 4);          // external attributes
    central.Put(ZipField::kOffset, 4, &directory);
    directory += central.name + central.extra;
    file += "PK\x03\x04" + local.Common() + local.name + local.extra + packed;
    if (e.streamed) {
      file += "PK\x07\x08";
      Append(&file, ZipCrc(e.content), 4);
      Append(&file, packed.size(), e.zip64 ? 8 : 4);
      Append(&file, e.content.size(), e.zip64 ? 8 : 4);
    }
    file += e.gap;
  }

  const auto value = [](int64_t lie, uint64_t truth) { return lie < 0 ? truth : static_cast<uint64_t>(lie); };
  const uint64_t count = value(end.count, entries.size());
  const uint64_t directory_bytes = value(end.directory_bytes, directory.size());
  const uint64_t directory_offset = value(end.directory_offset, file.size());
  const uint64_t disk = value(end.disk, 0);
  file += directory;
  const uint64_t end_offset = file.size();
  if (end.zip64) {
    file += "PK\x06\x06";
    Append(&file, 44, 8);
    Append(&file, 45, 2);
    Append(&file, 45, 2);
    Append(&file, disk, 4);
    Append(&file, disk, 4);
    Append(&file, count, 8);
    Append(&file, count, 8);
    Append(&file, directory_bytes, 8);
    Append(&file, directory_offset, 8);
    file += "PK\x06\x07";
    Append(&file, 0, 4);
    Append(&file, end_offset, 8);
    Append(&file, 1, 4);
  }
  file += "PK\x05\x06";
  Append(&file, disk, 2);
  Append(&file, disk, 2);
  Append(&file, end.zip64 ? 0xFFFF : count, 2);
  Append(&file, end.zip64 ? 0xFFFF : count, 2);
  Append(&file, end.zip64 ? kSeeZip64 : directory_bytes, 4);
  Append(&file, end.zip64 ? kSeeZip64 : directory_offset, 4);
  Append(&file, value(end.comment_bytes, end.comment.size()), 2);
  return file + end.comment + end.after;
}

}  // namespace etalon::test
