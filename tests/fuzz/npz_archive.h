// npz_archive.h: an archive of .npy files out of the bytes of a fuzzed input. Its CRCs and sizes are right unless it is
// to lie, so that mutations reach what lies behind them.
#ifndef ETALON_TESTS_FUZZ_NPZ_ARCHIVE_H_
#define ETALON_TESTS_FUZZ_NPZ_ARCHIVE_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "tests/support/zip_writer.h"

namespace etalon::fuzz {

struct WrittenArchive {
  std::string bytes;
  std::vector<test::ZipEntry> entries;
  bool lies = false;            // something about it is wrong, and it may be refused
  bool names_disagree = false;  // nothing but this is wrong, and it must be refused
  bool crcs_are_true = false;   // then nothing may be read but what was put in
};

WrittenArchive WriteArchive(const uint8_t* data, size_t size);

}  // namespace etalon::fuzz

#endif  // ETALON_TESTS_FUZZ_NPZ_ARCHIVE_H_
