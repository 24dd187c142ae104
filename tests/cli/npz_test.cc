// The .npz reader, on archives written here byte by byte so that each field can lie.
#include "cli/npz.h"

#include <doctest/doctest.h>

#include <cstdint>
#include <string>
#include <vector>

namespace etalon::cli {
namespace {

struct Entry {
  std::string name;
  std::string content;
  bool deflate = false;
  // Lies; negative = the truth.
  long method = -1;
  long flags = -1;
  long crc = -1;
  long size = -1;
};

void Append(std::string* bytes, uint32_t value, int width) {
  for (int i = 0; i < width; ++i) *bytes += static_cast<char>(value >> 8 * i & 0xFF);
}

uint32_t Crc32(const std::string& text) {
  uint32_t crc = 0xFFFFFFFFu;
  for (const char c : text) {
    crc ^= static_cast<unsigned char>(c);
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1u) != 0 ? 0xEDB88320u : 0u);
  }
  return ~crc;
}

// A deflate stream may hold blocks that are not compressed; one of them is enough for these contents.
std::string Deflated(const std::string& text) {
  std::string stream = "\x01";
  Append(&stream, static_cast<uint32_t>(text.size()), 2);
  Append(&stream, ~static_cast<uint32_t>(text.size()), 2);
  return stream + text;
}

std::string Zip(const std::vector<Entry>& entries) {
  std::string file;
  std::string directory;
  for (const Entry& e : entries) {
    const std::string packed = e.deflate ? Deflated(e.content) : e.content;
    std::string fields;  // those that a local header and a directory entry share
    Append(&fields, 20, 2);
    Append(&fields, e.flags < 0 ? 0 : static_cast<uint32_t>(e.flags), 2);
    Append(&fields, e.method < 0 ? (e.deflate ? 8 : 0) : static_cast<uint32_t>(e.method), 2);
    Append(&fields, 0x21 << 16, 4);  // 1 January 1980
    Append(&fields, e.crc < 0 ? Crc32(e.content) : static_cast<uint32_t>(e.crc), 4);
    Append(&fields, static_cast<uint32_t>(packed.size()), 4);
    Append(&fields, e.size < 0 ? static_cast<uint32_t>(e.content.size()) : static_cast<uint32_t>(e.size), 4);
    Append(&fields, static_cast<uint32_t>(e.name.size()), 2);
    Append(&fields, 0, 2);
    directory += "PK\x01\x02";
    Append(&directory, 20, 2);
    directory += fields;
    Append(&directory, 0, 2 + 2);  // comment, disk
    Append(&directory, 0, 2);
    Append(&directory, 0, 4);
    Append(&directory, static_cast<uint32_t>(file.size()), 4);
    directory += e.name;
    file += "PK\x03\x04" + fields + e.name + packed;
  }
  const uint32_t at = static_cast<uint32_t>(file.size());
  file += directory + "PK\x05\x06";
  Append(&file, 0, 4);
  Append(&file, static_cast<uint32_t>(entries.size()), 2);
  Append(&file, static_cast<uint32_t>(entries.size()), 2);
  Append(&file, static_cast<uint32_t>(directory.size()), 4);
  Append(&file, at, 4);
  Append(&file, 0, 2);
  return file;
}

std::string Text(const std::vector<unsigned char>& bytes) { return std::string(bytes.begin(), bytes.end()); }

constexpr uint64_t kPlenty = 1 << 20;

void CheckReadFails(const Entry& entry, const std::string& reason, uint64_t max_bytes = kPlenty) {
  CAPTURE(reason);
  const std::string zip = Zip({entry});
  NpzFile file;
  std::string error;
  REQUIRE(file.OpenBytes(zip.data(), zip.size(), &error));
  std::vector<unsigned char> bytes;
  CHECK_FALSE(file.Read(entry.name, max_bytes, &bytes, &error));
  CAPTURE(error);
  CHECK(error.find(reason) != std::string::npos);
}

void CheckOpenFails(const std::string& zip, const std::string& reason) {
  CAPTURE(reason);
  NpzFile file;
  std::string error;
  CHECK_FALSE(file.OpenBytes(zip.data(), zip.size(), &error));
  CAPTURE(error);
  CHECK(error.find(reason) != std::string::npos);
  CHECK(file.names().empty());
}

TEST_CASE("stored and deflated entries come out whole") {
  const std::string zip = Zip({{"q.npy", "some bytes"}, {"k.npy", "other bytes", true}, {"v.npy", ""}});
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
  const std::string zip = Zip({{"q.npy", content}});
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
  const std::string zip = Zip({{"q.npy", "x"}});
  REQUIRE(file.OpenBytes(zip.data(), zip.size(), &error));
  std::vector<unsigned char> bytes;
  CHECK_FALSE(file.Read("w.npy", kPlenty, &bytes, &error));
  CHECK(error == "the archive has no entry 'w.npy'");

  Entry entry = {"q.npy", "twelve bytes"};
  CheckReadFails(entry, "has 12 bytes; at most 11 are accepted", 11);
  entry.crc = 1;
  CheckReadFails(entry, "is damaged");
  entry = {"q.npy", "twelve bytes", true};
  entry.crc = 1;
  CheckReadFails(entry, "is damaged");
  entry = {"q.npy", "twelve bytes"};
  entry.method = 12;
  CheckReadFails(entry, "packed by method 12");
  entry = {"q.npy", "twelve bytes"};
  entry.flags = 1;
  CheckReadFails(entry, "is encrypted");
}

TEST_CASE("declared sizes that lie") {
  Entry entry = {"q.npy", "twelve bytes", true};
  entry.size = 5;  // a bomb says it is small
  CheckReadFails(entry, "'q.npy' is longer than the archive says");
  entry.size = 13;
  CheckReadFails(entry, "'q.npy' is");
  entry.size = 0x7FFFFFFF;  // must not be believed when memory is asked for
  CheckReadFails(entry, "'q.npy' is", uint64_t{1} << 40);
  entry.size = 0x7FFFFFFF;
  CheckReadFails(entry, "at most 1048576 are accepted");
}

TEST_CASE("files that are no archives") {
  CheckOpenFails("", "no entries");
  CheckOpenFails(Zip({}), "no entries");
  CheckOpenFails("\x93NUMPY\x01", "cannot be opened");
  const std::string zip = Zip({{"q.npy", "some bytes"}});
  CheckOpenFails(zip.substr(0, zip.size() / 2), "cannot be opened");
  CheckOpenFails(Zip({{"q.npy", "a"}, {"q.npy", "b"}}), "two entries called 'q.npy'");
  std::vector<Entry> many;
  for (int i = 0; i < 4097; ++i) many.push_back({std::to_string(i), ""});
  CheckOpenFails(Zip(many), "4097 entries");
  NpzFile file;
  std::string error;
  CHECK_FALSE(file.Open("no/such/file.npz", &error));
  CHECK(error.find("No such file") != std::string::npos);
}

TEST_CASE("an archive cut anywhere or with any byte changed neither crashes nor returns other bytes") {
  const std::string zip = Zip({{"q.npy", "some bytes", true}});
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
