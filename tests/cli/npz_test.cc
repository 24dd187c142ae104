// The .npz reader, on archives written here byte by byte so that each field can lie.
#include "cli/npz.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "tests/support/zip_writer.h"

namespace etalon::cli {
namespace {

using test::WriteZip;
using test::ZipEnd;
using test::ZipEntry;
using test::ZipField;
using test::ZipLie;
using test::ZipPacking;

std::string Text(const std::vector<unsigned char>& bytes) { return std::string(bytes.begin(), bytes.end()); }

constexpr uint64_t kPlenty = 1 << 20;

// Every error is one line that may be shown as it is.
void CheckText(const std::string& error, const std::string& reason) {
  CAPTURE(error);
  CHECK(error.find(reason) != std::string::npos);
  CHECK(error.size() < 500);
  CHECK(std::count_if(error.begin(), error.end(), [](char c) { return c < 0x20 || c > 0x7E; }) == 0);
}

void CheckReadFails(const ZipEntry& entry, const std::string& reason, uint64_t max_bytes = kPlenty) {
  CAPTURE(reason);
  const std::string zip = WriteZip({entry});
  NpzFile file;
  std::string error;
  const bool opened = file.OpenBytes(zip.data(), zip.size(), &error);
  CAPTURE(error);
  REQUIRE(opened);
  std::vector<unsigned char> bytes;
  CHECK_FALSE(file.Read(entry.name, max_bytes, &bytes, &error));
  CheckText(error, reason);
  CHECK(error.find("'" + entry.name + "'") != std::string::npos);
  CHECK(bytes.capacity() <= (size_t{2} << 20));  // whatever sizes were declared
}

void CheckReads(const std::string& zip, const std::string& name, const std::string& content) {
  NpzFile file;
  std::string error;
  std::vector<unsigned char> bytes;
  const bool opened = file.OpenBytes(zip.data(), zip.size(), &error);
  CAPTURE(error);
  REQUIRE(opened);
  const bool ok = file.Read(name, kPlenty, &bytes, &error);
  REQUIRE(ok);
  CHECK(Text(bytes) == content);
}

void CheckOpenFails(const std::string& zip, const std::string& reason) {
  CAPTURE(reason);
  NpzFile file;
  std::string error;
  CHECK_FALSE(file.OpenBytes(zip.data(), zip.size(), &error));
  CheckText(error, reason);
  CHECK(file.names().empty());
  CHECK_FALSE(file.Has("q.npy"));
}

TEST_CASE("stored and deflated entries come out whole") {
  const std::string zip =
      WriteZip({{"q.npy", "some bytes"}, {"k.npy", "other bytes", ZipPacking::kDeflated}, {"v.npy", ""}});
  NpzFile file;
  std::string error;
  REQUIRE(file.OpenBytes(zip.data(), zip.size(), &error));
  CHECK(file.names() == std::vector<std::string>{"q.npy", "k.npy", "v.npy"});
  CHECK(file.Has("k.npy"));
  CHECK_FALSE(file.Has("k"));
  std::vector<unsigned char> bytes;
  REQUIRE(file.Read("q.npy", kPlenty, &bytes, &error));
  CHECK(Text(bytes) == "some bytes");
  REQUIRE(file.Read("k.npy", kPlenty, &bytes, &error));
  CHECK(Text(bytes) == "other bytes");
  REQUIRE(file.Read("v.npy", kPlenty, &bytes, &error));
  CHECK(bytes.empty());
  REQUIRE(file.Read("q.npy", 10, &bytes, &error));  // exactly the limit, and a second time
  CHECK(Text(bytes) == "some bytes");
}

TEST_CASE("an entry of several pieces") {
  std::string content;
  for (int i = 0; i < 700000; ++i) content += std::to_string(i % 977);
  const std::string zip = WriteZip({{"q.npy", content}});
  NpzFile file;
  std::string error;
  REQUIRE(file.OpenBytes(zip.data(), zip.size(), &error));
  std::vector<unsigned char> bytes;
  REQUIRE(file.Read("q.npy", content.size(), &bytes, &error));
  CHECK((Text(bytes) == content));
}

TEST_CASE("entries that are refused") {
  NpzFile file;
  std::string error;
  const std::string zip = WriteZip({{"q.npy", "x"}});
  REQUIRE(file.OpenBytes(zip.data(), zip.size(), &error));
  std::vector<unsigned char> bytes;
  CHECK_FALSE(file.Read("w.npy", kPlenty, &bytes, &error));
  CHECK(error == "the archive has no entry 'w.npy'");

  ZipEntry entry = {"q.npy", "twelve bytes"};
  CheckReadFails(entry, "has 12 bytes; at most 11 are accepted", 11);
  for (const ZipPacking packing : {ZipPacking::kStored, ZipPacking::kDeflated}) {
    entry = {"q.npy", "twelve bytes", packing, {{ZipField::kCrc, 1}}};
    CheckReadFails(entry, "is damaged");
  }
  entry = {"q.npy", "twelve bytes"};
  for (const int method : {1, 6, 9, 12, 14, 93, 95, 99}) {
    CAPTURE(method);
    entry.lies = {{ZipField::kMethod, static_cast<uint64_t>(method)}};
    if (method != 99) CheckReadFails(entry, "packed by method " + std::to_string(method));  // 99 is WinZip's encryption
  }
  for (const uint64_t flags : {0x01, 0x41, 0x09}) {  // a password, strong encryption, a password and streamed
    CAPTURE(flags);
    entry.lies = {{ZipField::kFlags, flags}};
    CheckReadFails(entry, "is encrypted");
  }
}

TEST_CASE("every way in which Python's zipfile writes") {
  // numpy.savez: stored, 64-bit sizes in the local header whatever they are; savez_compressed: deflated. A writer that
  // cannot seek (a pipe, a socket) leaves CRC and sizes to a record behind the data.
  for (const ZipPacking packing : {ZipPacking::kStored, ZipPacking::kDeflated}) {
    for (int variant = 0; variant < 8; ++variant) {
      CAPTURE(variant);
      ZipEntry q = {"q.npy", "some bytes", packing};
      q.streamed = (variant & 1) != 0;
      q.zip64 = (variant & 2) != 0;
      ZipEntry k = q;
      k.name = "k.npy";
      k.content = "";
      ZipEnd end;
      end.zip64 = (variant & 4) != 0;
      end.comment = variant == 0 ? "" : "a comment of the archive";
      CheckReads(WriteZip({q, k}, end), "q.npy", "some bytes");
      CheckReads(WriteZip({q, k}, end), "k.npy", "");
    }
  }
}

TEST_CASE("a file that numpy.savez has written") {
  // numpy.savez(f, q=numpy.float16(1)), to the byte.
  const std::string header = "{'descr': '<f2', 'fortran_order': False, 'shape': (), }";
  const std::string npy = std::string("\x93NUMPY\x01\0\x76\0", 10) + header + std::string(117 - header.size(), ' ') +
                          "\n" + std::string("\0\x3c", 2);
  REQUIRE(npy.size() == 128 + 2);
  std::string zip("PK\x03\x04\x2d\0\0\0\0\0\0\0!\0", 14);
  const uint32_t crc = test::ZipCrc(npy);
  const std::string crc_bytes(reinterpret_cast<const char*>(&crc), 4);
  const std::string sizes("\x82\0\0\0\0\0\0\0\x82\0\0\0\0\0\0\0", 16);
  zip +=
      crc_bytes + "\xff\xff\xff\xff\xff\xff\xff\xff" + std::string("\x05\0\x14\0q.npy\x01\0\x10\0", 13) + sizes + npy;
  const size_t directory = zip.size();
  zip += std::string("PK\x01\x02\x2d\x03\x2d\0\0\0\0\0\0\0!\0", 16) + crc_bytes +
         std::string("\x82\0\0\0\x82\0\0\0\x05\0\0\0\0\0\0\0\0\0\0\0\x80\x01\0\0\0\0q.npy", 31);
  zip += std::string("PK\x05\x06\0\0\0\0\x01\0\x01\0\x33\0\0\0", 16) + static_cast<char>(directory) +
         std::string("\0\0\0\0\0", 5);
  CheckReads(zip, "q.npy", npy);
}

TEST_CASE("declared sizes that lie") {
  ZipEntry entry = {"q.npy", "twelve bytes", ZipPacking::kDeflated};
  const auto declare = [&](uint64_t size) { entry.lies = {{ZipField::kSize, size}}; };
  declare(5);  // a bomb says it is small
  CheckReadFails(entry, "'q.npy' is longer than the archive says");
  declare(0);
  CheckReadFails(entry, "'q.npy' is longer than the archive says");
  declare(13);
  CheckReadFails(entry, "'q.npy' is");
  declare(0x7FFFFFFF);  // must not be believed when memory is asked for
  CheckReadFails(entry, "'q.npy' is", uint64_t{1} << 40);
  CheckReadFails(entry, "at most 1048576 are accepted");
  entry.zip64 = true;
  for (const uint64_t size : {uint64_t{1} << 62, (uint64_t{1} << 63) - 1, uint64_t{1} << 63, UINT64_MAX}) {
    CAPTURE(size);
    declare(size);
    CheckReadFails(entry, "at most 1048576 are accepted");
    CheckReadFails(entry, size >> 62 == 1 && size % 2 == 0 ? "is shorter" : "at most 9223372036854775806 are",
                   UINT64_MAX);
  }
}

TEST_CASE("stored entries whose two sizes differ") {
  ZipEntry entry = {"q.npy", "twelve bytes"};
  for (const uint64_t size : {0, 5, 11, 13, 0x7FFFFFFF}) {
    CAPTURE(size);
    entry.lies = {{ZipField::kSize, size}};
    CheckReadFails(entry, "is stored as 12 bytes but declares " + std::to_string(size), UINT64_MAX);
    entry.lies = {{ZipField::kSize, size}, {ZipField::kPackedSize, size}};
    if (size < 12) CheckReadFails(entry, "'q.npy' is damaged");
  }
  entry.lies = {{ZipField::kSize, 20}, {ZipField::kPackedSize, 20}};  // on into the directory
  CheckOpenFails(WriteZip({entry}), "contradicts itself");
}

TEST_CASE("packed data that ends too early or too late") {
  ZipEntry entry = {"q.npy", "twelve bytes", ZipPacking::kDeflated};
  for (const uint64_t packed : {0, 1, 5, 16}) {
    CAPTURE(packed);
    entry.lies = {{ZipField::kPackedSize, packed}};
    CheckReadFails(entry, "'q.npy' is");
  }
  // What the stream does not use is nobody's: the content is whole, and the same for every reader.
  entry.lies = {};
  entry.packed_tail = "tail";
  entry.gap = "gap";
  CheckReads(WriteZip({entry}), "q.npy", "twelve bytes");
}

TEST_CASE("a bomb") {
  const std::string content(size_t{16} << 20, 'x');
  const std::string zip = WriteZip({{"q.npy", content, ZipPacking::kRepeated}});
  REQUIRE(zip.size() < content.size() / 150);
  NpzFile file;
  std::string error;
  std::vector<unsigned char> bytes;
  REQUIRE(file.OpenBytes(zip.data(), zip.size(), &error));
  CHECK_FALSE(file.Read("q.npy", content.size() - 1, &bytes, &error));  // before anything is unpacked
  CheckText(error, "'q.npy' has 16777216 bytes; at most 16777215 are accepted");
  CHECK(bytes.capacity() == 0);
  // One that declares less is stopped where that is reached.
  const std::string liar = WriteZip({{"q.npy", content, ZipPacking::kRepeated, {{ZipField::kSize, 5000000}}}});
  REQUIRE(file.OpenBytes(liar.data(), liar.size(), &error));
  CHECK_FALSE(file.Read("q.npy", content.size(), &bytes, &error));
  CheckText(error, "'q.npy' is longer than the archive says");
  CHECK(bytes.capacity() <= 5000001);
}

TEST_CASE("headers that disagree with the directory") {
  const auto check = [](ZipField field, uint64_t value) {
    CAPTURE(static_cast<int>(field));
    for (const ZipLie::Where where : {ZipLie::kLocal, ZipLie::kDirectory}) {
      CAPTURE(static_cast<int>(where));
      CheckOpenFails(WriteZip({{"q.npy", "some bytes", ZipPacking::kDeflated, {{field, value, where}}}}), "");
    }
  };
  check(ZipField::kCrc, 1);
  check(ZipField::kSize, 9);
  check(ZipField::kSize, 11);
  check(ZipField::kPackedSize, 9);
  check(ZipField::kMethod, 0);
  check(ZipField::kNameLength, 4);
  ZipEntry entry = {"q.npy", "some bytes"};
  entry.local_name = "k.npy";
  CheckOpenFails(WriteZip({entry}), "contradicts itself");
  entry.local_name = "q.npyx";
  CheckOpenFails(WriteZip({entry}), "contradicts itself");
  // The password of the local header alone is nobody's: no reader asks for it.
  CheckReads(WriteZip({{"q.npy", "some bytes", ZipPacking::kStored, {{ZipField::kFlags, 1, ZipLie::kLocal}}}}), "q.npy",
             "some bytes");
}

TEST_CASE("entries that share bytes") {
  ZipEntry q = {"q.npy", "some bytes"};
  ZipEntry k = {"k.npy", "some bytes"};
  k.lies = {{ZipField::kOffset, 0}};
  CheckOpenFails(WriteZip({q, k}), "contradicts itself");
  // One inside the other, each with a header of its own: k, with its headers, is q's content.
  const std::string inner = WriteZip({{"k.npy", std::string(1000, 'x')}});
  q.content = inner.substr(0, 30 + 5 + 1000);
  k = {"k.npy", "", ZipPacking::kStored};
  k.lies = {{ZipField::kOffset, 35},
            {ZipField::kCrc, test::ZipCrc(std::string(1000, 'x'))},
            {ZipField::kPackedSize, 1000},
            {ZipField::kSize, 1000}};
  CheckOpenFails(WriteZip({q, k}), "'k.npy' overlaps another");
  q.content = "some bytes";
  q.lies = {{ZipField::kPackedSize, 1000000}};
  CheckOpenFails(WriteZip({q}), "'q.npy' claims 1000000 bytes of the archive, which has");
  q.zip64 = true;
  q.lies = {{ZipField::kPackedSize, UINT64_MAX}};
  CheckOpenFails(WriteZip({q}), "");
  q.lies = {{ZipField::kOffset, UINT64_MAX}};
  CheckOpenFails(WriteZip({q}), "");
  q.lies = {{ZipField::kOffset, INT64_MAX}};
  CheckOpenFails(WriteZip({q}), "");
}

TEST_CASE("ends of archives") {
  const std::vector<ZipEntry> entries = {{"q.npy", "some bytes"}};
  ZipEnd end;
  const auto check = [&] {
    for (const bool zip64 : {false, true}) {
      CAPTURE(zip64);
      end.zip64 = zip64;
      CheckOpenFails(WriteZip(entries, end), "");
    }
    end = {};
  };
  for (const char* after : {"x", "PK\x05\x06", "trailing garbage of a few more than twenty-two bytes"}) {
    end.after = after;
    check();
  }
  for (const int64_t count : {int64_t{0}, int64_t{2}, int64_t{65534}, INT64_MAX}) {
    CAPTURE(count);
    end.count = count;
    check();
  }
  for (const int64_t bytes : {int64_t{0}, int64_t{1}, int64_t{50}, int64_t{52}, INT64_MAX}) {
    CAPTURE(bytes);
    end.directory_bytes = bytes;
    check();
  }
  for (const int64_t offset : {int64_t{0}, int64_t{44}, int64_t{46}, INT64_MAX}) {
    CAPTURE(offset);
    end.directory_offset = offset;
    check();
  }
  end.disk = 1;
  CheckOpenFails(WriteZip(entries, end), "cannot be opened");
  end = {};
  end.comment = "comment";
  end.comment_bytes = 6;
  check();
  end.comment_bytes = 8;
  check();
  const std::string zip = WriteZip(entries);
  CheckOpenFails("in front" + zip, "cannot be opened");
}

TEST_CASE("names are only names") {
  for (const char* name :
       {"/q.npy", "../q.npy", "C:\\q.npy", "q.npy/", ".", "q\x1b[31m.npy", "\xc3\xa9.npy", "\xff\xfe"}) {
    const std::string shown = name;
    CAPTURE(shown);
    CheckReads(WriteZip({{name, "some bytes"}}), name, "some bytes");
    const std::string zip = WriteZip({{name, "some bytes", ZipPacking::kStored, {{ZipField::kCrc, 1}}}});
    NpzFile file;
    std::string error;
    std::vector<unsigned char> bytes;
    REQUIRE(file.OpenBytes(zip.data(), zip.size(), &error));
    CHECK_FALSE(file.Read(name, kPlenty, &bytes, &error));
    CheckText(error, "is damaged");
  }
  const std::string long_name(60000, '\n');
  const std::string zip = WriteZip({{long_name, "some bytes", ZipPacking::kStored, {{ZipField::kCrc, 1}}}});
  NpzFile file;
  std::string error;
  std::vector<unsigned char> bytes;
  REQUIRE(file.OpenBytes(zip.data(), zip.size(), &error));
  CHECK_FALSE(file.Read(long_name, kPlenty, &bytes, &error));
  CheckText(error, "is damaged");
  CheckOpenFails(WriteZip({{long_name, ""}, {long_name, ""}}), "two entries called");
}

TEST_CASE("files that are no archives") {
  CheckOpenFails("", "no entries");
  CheckOpenFails(WriteZip({}), "no entries");
  CheckOpenFails("\x93NUMPY\x01", "cannot be opened");
  const std::string zip = WriteZip({{"q.npy", "some bytes"}});
  CheckOpenFails(zip.substr(0, zip.size() / 2), "cannot be opened");
  CheckOpenFails(WriteZip({{"q.npy", "a"}, {"q.npy", "b"}}), "two entries called 'q.npy'");
  std::vector<ZipEntry> many;
  for (int i = 0; i < 4097; ++i) many.push_back({std::to_string(i), ""});
  CheckOpenFails(WriteZip(many), "4097 entries");
  NpzFile file;
  std::string error;
  CHECK_FALSE(file.Open("no/such/file.npz", &error));
  CHECK(error.find("No such file") != std::string::npos);
}

TEST_CASE("an archive cut anywhere or with any byte changed neither crashes nor returns other bytes") {
  const std::string zip = WriteZip({{"q.npy", "some bytes", ZipPacking::kDeflated}});
  for (size_t i = 0; i < zip.size(); ++i) {
    for (const bool cut : {true, false}) {
      std::string bad = cut ? zip.substr(0, i) : zip;
      if (!cut) bad[i] = static_cast<char>(bad[i] ^ 0x41);
      NpzFile file;
      std::string error;
      std::vector<unsigned char> bytes;
      if (!file.OpenBytes(bad.data(), bad.size(), &error) || !file.Read("q.npy", kPlenty, &bytes, &error)) {
        CHECK_FALSE(error.empty());
      } else {
        CAPTURE(i);
        CHECK(Text(bytes) == "some bytes");
      }
    }
  }
}

}  // namespace
}  // namespace etalon::cli
