#include "cli/npz.h"

#include <zip.h>

#include <algorithm>
#include <cstdint>

#include "cli/text.h"

namespace etalon::cli {
namespace {

constexpr zip_int64_t kMaxEntries = 4096;
constexpr size_t kPieceBytes = size_t{1} << 20;
constexpr uint64_t kMostBytes = PTRDIFF_MAX - 1;  // whatever the caller allows: a vector cannot hold more

struct CloseEntry {
  void operator()(zip_file_t* entry) const { zip_fclose(entry); }
};

}  // namespace

void NpzFile::Discard::operator()(zip* archive) const { zip_discard(archive); }

bool NpzFile::Open(const std::string& path, std::string* error) {
  return OpenSource([&](zip_error_t* details) { return zip_source_file_create(path.c_str(), 0, -1, details); }, error);
}

bool NpzFile::OpenBytes(const void* bytes, size_t size, std::string* error) {
  return OpenSource([&](zip_error_t* details) { return zip_source_buffer_create(bytes, size, 0, details); }, error);
}

template <typename MakeSource>
bool NpzFile::OpenSource(const MakeSource& make_source, std::string* error) {
  archive_.reset();
  zip_error_t details;
  zip_error_init(&details);
  uint64_t archive_bytes = 0;
  const auto open = [&](int flags) {
    archive_.reset();
    zip_source_t* source = make_source(&details);
    if (source == nullptr) return false;
    archive_.reset(zip_open_from_source(source, ZIP_RDONLY | flags, &details));
    zip_stat_t stat;
    zip_stat_init(&stat);
    if (zip_source_stat(source, &stat) == 0 && (stat.valid & ZIP_STAT_SIZE) != 0) archive_bytes = stat.size;
    if (archive_ == nullptr) zip_source_free(source);
    return archive_ != nullptr;
  };
  // Twice, since what only the second, strict look finds has no message of its own in older versions of libzip.
  bool ok = open(0);
  if (!ok) {
    *error = std::string("cannot be opened as a .npz file: ") + zip_error_strerror(&details);
  } else if (!List(archive_bytes, error)) {
    ok = false;
  } else if (!open(ZIP_CHECKCONS)) {
    *error = "the archive contradicts itself (local headers unlike its directory, or bytes after its end): ";
    *error += zip_error_strerror(&details);
    ok = false;
  } else {
    ok = List(archive_bytes, error);  // again: a file may have changed in between
  }
  zip_error_fini(&details);
  if (!ok) {
    names_.clear();
    archive_.reset();
  }
  return ok;
}

bool NpzFile::List(uint64_t archive_bytes, std::string* error) {
  const auto fail = [&](const std::string& message) {
    *error = message;
    return false;
  };
  names_.clear();
  const zip_int64_t count = zip_get_num_entries(archive_.get(), 0);
  if (count <= 0) return fail("the archive has no entries");  // libzip takes a file of no bytes for an empty archive
  if (count > kMaxEntries) {
    return fail("the archive has " + std::to_string(count) + " entries; at most " + std::to_string(kMaxEntries) +
                " are accepted");
  }
  // Entries that share bytes would multiply what the archive unpacks to. Where they lie libzip does not tell, but those
  // that share nothing cannot be longer together than the archive.
  uint64_t bytes_left = archive_bytes;
  for (zip_uint64_t i = 0; i < static_cast<zip_uint64_t>(count); ++i) {
    zip_stat_t stat;
    zip_stat_init(&stat);
    const char* name = zip_get_name(archive_.get(), i, ZIP_FL_ENC_RAW);
    if (name == nullptr) return fail("entry " + std::to_string(i) + " of the archive has no name");
    names_.push_back(name);
    const std::string quoted = "'" + Printable(name, 40) + "'";
    if (zip_stat_index(archive_.get(), i, 0, &stat) != 0 || (stat.valid & ZIP_STAT_COMP_SIZE) == 0) {
      return fail("entry " + quoted + " has no size");
    }
    if (stat.comp_size > archive_bytes) {
      return fail("entry " + quoted + " claims " + std::to_string(stat.comp_size) +
                  " bytes of the archive, which has " + std::to_string(archive_bytes));
    }
    if (stat.comp_size > bytes_left) {
      return fail("entry " + quoted + " overlaps another: together they claim more bytes than the archive has");
    }
    bytes_left -= stat.comp_size;
  }
  std::vector<std::string> sorted = names_;
  std::sort(sorted.begin(), sorted.end());
  const auto twice = std::adjacent_find(sorted.begin(), sorted.end());
  // Which one is meant would depend on the reader.
  if (twice != sorted.end()) return fail("the archive has two entries called '" + Printable(*twice, 40) + "'");
  return true;
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
  constexpr zip_uint64_t kNeeded =
      ZIP_STAT_SIZE | ZIP_STAT_COMP_SIZE | ZIP_STAT_CRC | ZIP_STAT_COMP_METHOD | ZIP_STAT_ENCRYPTION_METHOD;
  if (zip_stat_index(archive_.get(), index, 0, &stat) != 0 || (stat.valid & kNeeded) != kNeeded) {
    return fail("entry " + quoted + " has no size, CRC or method");
  }
  if (stat.encryption_method != ZIP_EM_NONE) return fail("entry " + quoted + " is encrypted");
  if (stat.comp_method != ZIP_CM_STORE && stat.comp_method != ZIP_CM_DEFLATE) {
    return fail("entry " + quoted + " is packed by method " + std::to_string(stat.comp_method) +
                "; stored (0) and deflated (8) are supported");
  }
  if (stat.comp_method == ZIP_CM_STORE && stat.comp_size != stat.size) {
    return fail("entry " + quoted + " is stored as " + std::to_string(stat.comp_size) + " bytes but declares " +
                std::to_string(stat.size));
  }
  if (stat.size > std::min(max_bytes, kMostBytes)) {
    return fail("entry " + quoted + " has " + std::to_string(stat.size) + " bytes; at most " +
                std::to_string(std::min(max_bytes, kMostBytes)) + " are accepted");
  }

  const std::unique_ptr<zip_file_t, CloseEntry> entry(zip_fopen_index(archive_.get(), index, 0));
  if (entry == nullptr) return fail("entry " + quoted + " cannot be read: " + zip_strerror(archive_.get()));
  // Memory grows with what arrives, not with the size that the archive declares, and never beyond that; and reading
  // goes on to the end, where libzip compares the CRC.
  const size_t most = static_cast<size_t>(stat.size) + 1;  // a byte more than declared shows that there is more
  bytes->clear();
  for (;;) {
    const size_t have = bytes->size();
    const size_t piece = std::min(kPieceBytes, most - have);
    if (have + piece > bytes->capacity()) bytes->reserve(std::min(most, std::max(2 * have, have + piece)));
    bytes->resize(have + piece);
    const zip_int64_t got = zip_fread(entry.get(), bytes->data() + have, piece);
    bytes->resize(have + (got > 0 ? static_cast<size_t>(got) : 0));
    if (got < 0) return fail("entry " + quoted + " is damaged: " + zip_file_strerror(entry.get()));
    if (bytes->size() > stat.size) return fail("entry " + quoted + " is longer than the archive says");
    if (got == 0) break;
  }
  if (bytes->size() != stat.size) return fail("entry " + quoted + " is shorter than the archive says");
  // Where nothing is packed libzip reads nothing and compares nothing.
  if (bytes->empty() && stat.crc != 0) return fail("entry " + quoted + " is damaged: empty, with a CRC of something");
  return true;
}

}  // namespace etalon::cli
