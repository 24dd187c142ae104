#include "cli/npz.h"

#include <zip.h>

#include <algorithm>

#include "cli/text.h"

namespace etalon::cli {
namespace {

constexpr zip_int64_t kMaxEntries = 4096;
constexpr size_t kPieceBytes = size_t{1} << 20;

struct CloseEntry {
  void operator()(zip_file_t* entry) const { zip_fclose(entry); }
};

}  // namespace

void NpzFile::Discard::operator()(zip* archive) const { zip_discard(archive); }

bool NpzFile::Open(const std::string& path, std::string* error) {
  names_.clear();
  int code = 0;
  archive_.reset(zip_open(path.c_str(), ZIP_RDONLY, &code));
  if (archive_ == nullptr) {
    zip_error_t details;
    zip_error_init_with_code(&details, code);
    *error = std::string("cannot be opened as a .npz file: ") + zip_error_strerror(&details);
    zip_error_fini(&details);
    return false;
  }
  return List(error);
}

bool NpzFile::OpenBytes(const void* bytes, size_t size, std::string* error) {
  names_.clear();
  archive_.reset();
  zip_error_t details;
  zip_error_init(&details);
  zip_source_t* source = zip_source_buffer_create(bytes, size, 0, &details);
  if (source != nullptr) {
    archive_.reset(zip_open_from_source(source, ZIP_RDONLY, &details));
    if (archive_ == nullptr) zip_source_free(source);
  }
  if (archive_ == nullptr) *error = std::string("cannot be opened as a .npz file: ") + zip_error_strerror(&details);
  zip_error_fini(&details);
  return archive_ != nullptr && List(error);
}

bool NpzFile::List(std::string* error) {
  const zip_int64_t count = zip_get_num_entries(archive_.get(), 0);
  bool ok = true;
  if (count <= 0) {  // libzip takes a file of no bytes for an empty archive
    *error = "the archive has no entries";
    ok = false;
  } else if (count > kMaxEntries) {
    *error = "the archive has " + std::to_string(count) + " entries; at most " + std::to_string(kMaxEntries) +
             " are accepted";
    ok = false;
  }
  for (zip_int64_t i = 0; ok && i < count; ++i) {
    const char* name = zip_get_name(archive_.get(), static_cast<zip_uint64_t>(i), ZIP_FL_ENC_RAW);
    if (name == nullptr) {
      *error = "entry " + std::to_string(i) + " of the archive has no name";
      ok = false;
    } else {
      names_.push_back(name);
    }
  }
  std::vector<std::string> sorted = names_;
  std::sort(sorted.begin(), sorted.end());
  const auto twice = std::adjacent_find(sorted.begin(), sorted.end());
  if (ok && twice != sorted.end()) {  // which one is meant would depend on the reader
    *error = "the archive has two entries called '" + Printable(*twice, 40) + "'";
    ok = false;
  }
  if (!ok) {
    names_.clear();
    archive_.reset();
  }
  return ok;
}

bool NpzFile::Has(const std::string& name) const {
  return std::find(names_.begin(), names_.end(), name) != names_.end();
}

bool NpzFile::Read(const std::string& name, uint64_t max_bytes, std::vector<unsigned char>* bytes, std::string* error) {
  const std::string quoted = "'" + Printable(name, 40) + "'";
  const auto fail = [&](const std::string& message) {
    *error = message;
    return false;
  };
  const auto found = std::find(names_.begin(), names_.end(), name);
  if (found == names_.end()) return fail("the archive has no entry " + quoted);
  const zip_uint64_t index = static_cast<zip_uint64_t>(found - names_.begin());

  zip_stat_t stat;
  zip_stat_init(&stat);
  constexpr zip_uint64_t kNeeded = ZIP_STAT_SIZE | ZIP_STAT_COMP_METHOD | ZIP_STAT_ENCRYPTION_METHOD;
  if (zip_stat_index(archive_.get(), index, 0, &stat) != 0 || (stat.valid & kNeeded) != kNeeded) {
    return fail("entry " + quoted + " has no size or method");
  }
  if (stat.encryption_method != ZIP_EM_NONE) return fail("entry " + quoted + " is encrypted");
  if (stat.comp_method != ZIP_CM_STORE && stat.comp_method != ZIP_CM_DEFLATE) {
    return fail("entry " + quoted + " is packed by method " + std::to_string(stat.comp_method) +
                "; stored (0) and deflated (8) are supported");
  }
  if (stat.size > max_bytes) {
    return fail("entry " + quoted + " has " + std::to_string(stat.size) + " bytes; at most " +
                std::to_string(max_bytes) + " are accepted");
  }

  const std::unique_ptr<zip_file_t, CloseEntry> entry(zip_fopen_index(archive_.get(), index, 0));
  if (entry == nullptr) return fail("entry " + quoted + " cannot be read: " + zip_strerror(archive_.get()));
  // Memory grows with what arrives, not with the size that the archive declares; and reading goes on to the end, where
  // libzip compares the CRC.
  bytes->clear();
  for (;;) {
    const size_t have = bytes->size();
    const size_t piece = static_cast<size_t>(std::min<uint64_t>(kPieceBytes, stat.size - have + 1));
    bytes->resize(have + piece);
    const zip_int64_t got = zip_fread(entry.get(), bytes->data() + have, piece);
    bytes->resize(have + (got > 0 ? static_cast<size_t>(got) : 0));
    if (got < 0) return fail("entry " + quoted + " is damaged: " + zip_file_strerror(entry.get()));
    if (bytes->size() > stat.size) return fail("entry " + quoted + " is longer than the archive says");
    if (got == 0) break;
  }
  if (bytes->size() != stat.size) return fail("entry " + quoted + " is shorter than the archive says");
  return true;
}

}  // namespace etalon::cli
