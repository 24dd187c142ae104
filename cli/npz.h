// npz.h: a .npz file is a zip archive of .npy entries. Entries come out whole and checked (CRC), or not at all. An
// archive is refused whose headers disagree, whose entries share bytes so that it would grow, that has two entries of
// one name, or bytes after its end.
#ifndef ETALON_CLI_NPZ_H_
#define ETALON_CLI_NPZ_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

struct zip;

namespace etalon::cli {

class NpzFile {
 public:
  // False: *error says why (without the path), and the file counts as closed.
  bool Open(const std::string& path, std::string* error);
  // The same for an archive in memory, which must outlive this object.
  bool OpenBytes(const void* bytes, size_t size, std::string* error);

  // Names as they stand in the archive ("q.npy"), each once.
  const std::vector<std::string>& names() const { return names_; }
  bool Has(const std::string& name) const;

  // Stored or deflated, not encrypted, at most max_bytes when unpacked. Memory follows what is read, not what is
  // declared: at most three times that and a megabyte, and less than twice max_bytes. False: *error says why, *bytes is
  // unspecified.
  bool Read(const std::string& name, uint64_t max_bytes, std::vector<unsigned char>* bytes, std::string* error);

 private:
  struct Discard {
    void operator()(zip* archive) const;
  };

  // Opens what make_source(zip_error_t*) returns.
  template <typename MakeSource>
  bool OpenSource(const MakeSource& make_source, std::string* error);
  bool List(uint64_t archive_bytes, std::string* error);

  std::unique_ptr<zip, Discard> archive_;
  std::vector<std::string> names_;
};

}  // namespace etalon::cli

#endif  // ETALON_CLI_NPZ_H_
