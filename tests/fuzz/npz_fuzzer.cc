// Any bytes as a .npz or a .npy file, judged beyond crashes:
//   "PK..."            an archive as it is: all entries are read and parsed
//   first byte < 32    decisions of which an archive is written, CRCs and all, true or with lies (npz_archive.cc)
//   anything else      a .npy file
// What is accepted must be whole, inside its buffer and the same each time; what is refused must leave the result
// untouched and say why in a line that may be printed.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "cli/npy.h"
#include "cli/npz.h"
#include "tests/fuzz/memory.h"
#include "tests/fuzz/npz_archive.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace etalon::fuzz {
namespace {

__extension__ typedef unsigned __int128 Wide;

constexpr uint64_t kMaxBytes = 200000;  // of an entry
constexpr size_t kMaxRead = 40;         // entries of an archive; thousands would only be slow

void Require(bool ok, const std::string& what) {
  if (!ok) Stop(what);
}

void JudgeError(const std::string& error) {
  Require(!error.empty() && error.size() < 500, "an error of " + std::to_string(error.size()) + " characters");
  for (const char c : error) Require(c >= 0x20 && c <= 0x7E, "an error that is not printable: " + error);
}

bool Same(const cli::NpyView& a, const cli::NpyView& b) {
  return a.type == b.type && a.shape == b.shape && a.data == b.data && a.data_bytes == b.data_bytes;
}

// The same array as numpy would write it.
std::string Rewritten(const cli::NpyView& view) {
  std::string header =
      "{'descr': '<f" + std::to_string(cli::NpyElementSize(view.type)) + "', 'fortran_order': False, 'shape': (";
  for (const int64_t dim : view.shape) header += std::to_string(dim) + ",";
  header += "), }\n";
  std::string file("\x93NUMPY\x01\0", 8);
  file += static_cast<char>(header.size() & 0xFF);
  file += static_cast<char>(header.size() >> 8);
  file += header;
  return file.append(reinterpret_cast<const char*>(view.data), view.data_bytes);
}

// `bytes` is a buffer of exactly its size.
void JudgeNpy(const unsigned char* bytes, size_t size) {
  const unsigned char mark = 0;
  cli::NpyView before;
  before.shape = {77, 78};
  before.data = &mark;
  before.data_bytes = 79;
  cli::NpyView view = before, again = before;
  std::string error = "unset", error_again;
  const bool ok = cli::ParseNpy(bytes, size, &view, &error);
  Require(cli::ParseNpy(bytes, size, &again, &error_again) == ok, ".npy: another answer the second time");
  Require(Same(view, again), ".npy: another view the second time");
  if (!ok) {
    JudgeError(error);
    Require(error == error_again, ".npy: another error the second time");
    Require(Same(view, before), ".npy: refused, but the view has changed");
    return;
  }
  Require(error == "unset" && error_again.empty(), ".npy: accepted with an error: " + error);
  Require(view.data >= bytes && view.data <= bytes + size && view.data_bytes <= size - (view.data - bytes),
          ".npy: the data leaves the buffer");
  Require(view.data + view.data_bytes == bytes + size, ".npy: bytes follow the data");
  Wide needed = cli::NpyElementSize(view.type);
  for (const int64_t dim : view.shape) {
    Require(dim >= 0, ".npy: a negative dimension");
    needed *= static_cast<Wide>(dim);  // at most 2^64 * 2^63, then cut
    if (needed > size) needed = std::find(view.shape.begin(), view.shape.end(), 0) != view.shape.end() ? 0 : size + 1;
  }
  Require(needed == view.data_bytes, ".npy: the data is not as long as its shape says");
  Require(view.shape.size() <= 32, ".npy: too many dimensions");

  const std::string rewritten = Rewritten(view);
  cli::NpyView copy;
  Require(cli::ParseNpy(reinterpret_cast<const unsigned char*>(rewritten.data()), rewritten.size(), &copy, &error),
          ".npy: written anew it is refused: " + error);
  Require(copy.type == view.type && copy.shape == view.shape && copy.data_bytes == view.data_bytes &&
              std::equal(view.data, view.data + view.data_bytes, copy.data),
          ".npy: written anew it is another array");
}

void JudgeNpyCopy(const void* bytes, size_t size) {
  const std::unique_ptr<unsigned char[]> copy(new unsigned char[size]);
  if (size > 0) std::memcpy(copy.get(), bytes, size);
  JudgeNpy(copy.get(), size);
}

// `truth` may be null: then nothing is known about the archive.
void JudgeNpz(const void* bytes, size_t size, const WrittenArchive* truth) {
  cli::NpzFile file, other;
  std::string error = "unset", error_again = "unset";
  const bool ok = file.OpenBytes(bytes, size, &error);
  Require(other.OpenBytes(bytes, size, &error_again) == ok && error == error_again,
          ".npz: another answer the second time");
  Require(file.names() == other.names(), ".npz: other names the second time");
  const bool honest = truth != nullptr && !truth->lies;
  if (!ok) {
    JudgeError(error);
    Require(file.names().empty(), ".npz: refused, but there are names");
    Require(!honest, ".npz: an honest archive is refused: " + error);
    return;
  }
  Require(truth == nullptr || !truth->names_disagree, ".npz: two headers of an entry have different names");
  Require(error == "unset", ".npz: opened with an error: " + error);
  const std::vector<std::string>& names = file.names();
  Require(!names.empty() && names.size() <= size / 46, ".npz: more names than the archive has room for");
  if (honest) Require(names.size() == truth->entries.size(), ".npz: entries are missing");
  for (size_t i = 0; i < std::min(names.size(), kMaxRead); ++i) {
    Require(file.Has(names[i]), ".npz: a name without an entry");
    Require(std::count(names.begin(), names.end(), names[i]) == 1, ".npz: a name twice");
    std::vector<unsigned char> content, content_again = {1, 2, 3};
    error = error_again = "unset";
    const bool read = file.Read(names[i], kMaxBytes, &content, &error);
    // In another archive, where no entry has been read before it, and from the last one back.
    Require(other.Read(names[i], kMaxBytes, &content_again, &error_again) == read && error == error_again,
            ".npz: an entry reads otherwise the second time");
    Require(content.capacity() <= kMaxBytes + 1, ".npz: an entry has taken more memory than is allowed");
    if (!read) {
      JudgeError(error);
      Require(error.find("entry '") != std::string::npos, ".npz: an error that names no entry: " + error);
      Require(!honest || truth->entries[i].content.size() > kMaxBytes, ".npz: an honest entry is refused: " + error);
      continue;
    }
    Require(error == "unset", ".npz: read with an error: " + error);
    Require(content == content_again, ".npz: other bytes the second time");
    Require(content.size() <= kMaxBytes, ".npz: more bytes than are allowed");
    if (truth != nullptr && truth->crcs_are_true) {
      const std::string text(content.begin(), content.end());
      Require(std::any_of(truth->entries.begin(), truth->entries.end(),
                          [&](const test::ZipEntry& e) { return e.content == text; }),
              ".npz: bytes that were not put in");
      if (honest) Require(text == truth->entries[i].content, ".npz: the bytes of another entry");
    }
    JudgeNpyCopy(content.data(), content.size());
  }
  Require(!file.Has("no such entry"), ".npz: has what it has not");
}

}  // namespace
}  // namespace etalon::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace etalon::fuzz;  // NOLINT: one function
  if (size >= 2 && data[0] == 'P' && data[1] == 'K') {
    JudgeNpz(data, size, nullptr);
  } else if (size >= 1 && data[0] < 32) {
    const WrittenArchive archive = WriteArchive(data, size);
    JudgeNpz(archive.bytes.data(), archive.bytes.size(), &archive);
  } else {
    JudgeNpyCopy(data, size);
  }
  return 0;
}
