#include "cli/npz_writer.h"

#include <zip.h>

#include <memory>
#include <stdexcept>

#include "cli/npy_writer.h"

namespace etalon::cli {
namespace {

constexpr zip_uint16_t kFirstDosDate = (1 << 5) | 1;  // 1980-01-01, as numpy.savez writes it

struct FreeSource {
  void operator()(zip_source_t* source) const { zip_source_free(source); }
};
struct DiscardArchive {
  void operator()(zip_t* archive) const { zip_discard(archive); }
};

[[noreturn]] void Fail(const char* what) { throw std::runtime_error(std::string("libzip cannot ") + what); }

}  // namespace

std::string NpzBytes(const std::vector<NamedArray>& arrays) {
  // libzip reads them when the archive is closed.
  std::vector<std::string> files;
  for (const NamedArray& array : arrays) {
    files.push_back(NpyHeader(array.type, array.shape));
    files.back().append(array.bytes.begin(), array.bytes.end());
  }
  const std::unique_ptr<zip_source_t, FreeSource> buffer(zip_source_buffer_create(nullptr, 0, 0, nullptr));
  if (buffer == nullptr) Fail("make an archive");
  std::unique_ptr<zip_t, DiscardArchive> archive(zip_open_from_source(buffer.get(), ZIP_TRUNCATE, nullptr));
  if (archive == nullptr) Fail("open an archive");
  zip_source_keep(buffer.get());  // beyond the archive, which owns one reference
  for (size_t i = 0; i < arrays.size(); ++i) {
    zip_source_t* file = zip_source_buffer(archive.get(), files[i].data(), files[i].size(), 0);
    if (file == nullptr) Fail("take an array");
    const zip_int64_t index = zip_file_add(archive.get(), (arrays[i].name + ".npy").c_str(), file, 0);
    if (index < 0) {
      zip_source_free(file);
      Fail("add an array");
    }
    const zip_uint64_t entry = static_cast<zip_uint64_t>(index);
    if (zip_set_file_compression(archive.get(), entry, ZIP_CM_STORE, 0) != 0 ||
        zip_file_set_dostime(archive.get(), entry, 0, kFirstDosDate, 0) != 0) {
      Fail("describe an array");
    }
  }
  if (zip_close(archive.get()) != 0) Fail("write the archive");
  archive.release();  // closing has freed it
  zip_stat_t stat;
  if (zip_source_stat(buffer.get(), &stat) != 0 || zip_source_open(buffer.get()) != 0) Fail("read the archive");
  std::string bytes(static_cast<size_t>(stat.size), '\0');
  const zip_int64_t read = zip_source_read(buffer.get(), bytes.data(), stat.size);
  zip_source_close(buffer.get());
  if (read != static_cast<zip_int64_t>(stat.size)) Fail("read the archive");
  return bytes;
}

}  // namespace etalon::cli
