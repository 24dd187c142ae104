#include "tests/fuzz/npz_archive.h"

#include <algorithm>
#include <set>

#include "tests/fuzz/bytes.h"

namespace etalon::fuzz {
namespace {

using test::ZipEnd;
using test::ZipEntry;
using test::ZipField;
using test::ZipLie;
using test::ZipPacking;

constexpr int64_t kMaxContent = 300000;  // beyond what the harness lets an entry have

// Numbers at which sizes, counts and offsets turn.
uint64_t Number(Bytes* in) {
  constexpr uint64_t kTurns[] = {0,
                                 1,
                                 2,
                                 3,
                                 16,
                                 127,
                                 128,
                                 255,
                                 256,
                                 65535,
                                 65536,
                                 1u << 20,
                                 0x7FFFFFFF,
                                 0x80000000,
                                 0xFFFFFFFE,
                                 0xFFFFFFFF,
                                 uint64_t{1} << 32,
                                 uint64_t{1} << 62,
                                 (uint64_t{1} << 63) - 1,
                                 uint64_t{1} << 63,
                                 UINT64_MAX - 1,
                                 UINT64_MAX};
  const uint64_t turn = in->Pick(kTurns);
  return in->OneIn(3) ? turn + in->Below(65536) : turn;
}

std::string Dimension(Bytes* in) {
  switch (in->Below(8)) {
    case 5:
      return std::to_string(Number(in));
    case 6:
      return "0";
    case 7: {
      constexpr const char* kOdd[] = {"-1", "01", "1.0", "1L", "", "True", "99999999999999999999", "(1,)", "0x1", " 1"};
      return in->Pick(kOdd);
    }
    default:
      return std::to_string(1 + in->Below(5));
  }
}

// Mostly a file that numpy could have written, with `odd` decisions that it could not.
std::string Npy(Bytes* in) {
  constexpr const char* kTypes[] = {"'<f2'", "'<f4'",          "'<f8'", "\"<f4\"", "'>f4'", "'|O'",
                                    "'<i4'", "[('a', '<f4')]", "'<f4",  "'\\x3c'", "''",    "<f4"};
  constexpr const char* kOrders[] = {"False", "True", "0", "Falsehood", ""};
  constexpr int kPlainTypes = 4;
  const bool odd = in->OneIn(2);
  const auto plain = [&] { return !odd || !in->OneIn(4); };
  int64_t elements = 1;
  std::string shape = "(";
  const int64_t rank = plain() ? in->Below(5) : in->Below(36);
  for (int64_t i = 0; i < rank; ++i) {
    const int64_t dim = in->Below(4) + (in->OneIn(8) ? 60 : 0);
    if (plain()) {
      shape += std::to_string(dim);
      if (elements * dim < kMaxContent) elements *= dim;
    } else {
      shape += Dimension(in);
    }
    if (i == 0 || i + 1 < rank || in->OneIn(3)) shape += plain() ? ", " : in->OneIn(2) ? " " : ",,";
  }
  shape += plain() ? ")" : "";
  const std::string descr = kTypes[in->Below(plain() ? kPlainTypes : 12)];
  const std::string order = plain() ? "False" : in->Pick(kOrders);
  std::string keys[] = {"'descr': " + descr, "'fortran_order': " + order, "'shape': " + shape};
  if (in->OneIn(4)) std::swap(keys[in->Below(3)], keys[in->Below(3)]);
  std::string header = "{";
  for (const std::string& key : keys) {
    if (plain() || !in->OneIn(3)) header += key;
    header += plain() ? ", " : in->OneIn(2) ? "," : " ";
  }
  if (!plain()) header += "'extra': 1, ";
  header += plain() ? "}" : "";
  header += std::string(static_cast<size_t>(in->Below(20)), ' ');
  header += plain() ? "\n" : in->OneIn(2) ? "\n\n" : "";
  const int major = static_cast<int>(plain() ? 1 + in->Below(3) : in->Below(5));
  const size_t claimed = header.size() + (plain() ? 0 : static_cast<size_t>(Number(in)));
  std::string file = plain() ? "\x93NUMPY" : "\x93NUMPX";
  file += static_cast<char>(major);
  file += plain() ? '\0' : '\1';
  for (int i = 0; i < (major == 1 ? 2 : 4); ++i) file += static_cast<char>(claimed >> 8 * i & 0xFF);
  file += header;
  const int64_t element = descr == "'<f2'" ? 2 : descr == "'<f8'" ? 8 : 4;
  const int64_t more = plain() ? 0 : in->Below(5) - 2;
  file.append(static_cast<size_t>(std::clamp<int64_t>(elements * element + more, 0, kMaxContent)), '\x3c');
  return file;
}

std::string Content(Bytes* in) {
  switch (in->Below(8)) {
    case 4:
      return "";
    case 5:
      return std::string(static_cast<size_t>(in->Below(65536)) * 5 % kMaxContent, static_cast<char>(in->Next()));
    case 6: {
      std::string raw(static_cast<size_t>(in->Below(200)), '\0');
      for (char& c : raw) c = static_cast<char>(in->Next());
      return raw;
    }
    case 7: {
      std::string file = Npy(in);
      for (int64_t n = in->Below(4); n >= 0 && !file.empty(); --n) {
        file[static_cast<size_t>(in->Below(256)) % file.size()] = static_cast<char>(in->Next());
      }
      return file;
    }
    default:
      return Npy(in);
  }
}

std::string Name(Bytes* in) {
  constexpr const char* kNames[] = {"q.npy", "k.npy",     "v.npy",        "bias.npy",         "q", "/q.npy", "../q.npy",
                                    "a/",    "C:\\q.npy", "\xc3\xa9.npy", "\xff\xfe\x1b[31m", "."};
  if (in->OneIn(12)) return std::string(static_cast<size_t>(in->Below(65536)), 'n');
  return in->Pick(kNames);
}

ZipEntry Entry(Bytes* in, bool lies) {
  constexpr ZipPacking kPackings[] = {ZipPacking::kStored, ZipPacking::kDeflated, ZipPacking::kRepeated};
  ZipEntry e = {Name(in), Content(in), in->Pick(kPackings)};
  // Repeats one byte.
  if (e.packing == ZipPacking::kRepeated && !e.content.empty()) e.content.assign(e.content.size(), e.content[0]);
  e.streamed = in->OneIn(4);
  e.zip64 = in->OneIn(4);
  if (!lies) return e;
  for (int64_t n = in->Below(4); n > 0; --n) {
    const ZipField field = static_cast<ZipField>(in->Below(test::kNumZipFields));
    constexpr ZipLie::Where kWheres[] = {ZipLie::kBoth, ZipLie::kLocal, ZipLie::kDirectory};
    uint64_t value = Number(in);
    if (in->OneIn(3)) value = e.content.size() + value % 5 - 2;
    e.lies.push_back({field, value, in->Pick(kWheres)});
  }
  if (in->OneIn(5)) {  // sizes that agree with each other and not with the data
    constexpr uint64_t kSizes[] = {0, 1, 5, 200};
    const uint64_t size = in->Pick(kSizes);
    e.lies.push_back({ZipField::kPackedSize, size});
    e.lies.push_back({ZipField::kSize, size});
  }
  if (in->OneIn(4)) e.packed_tail.assign(static_cast<size_t>(in->Below(40)), 't');
  if (in->OneIn(4)) e.gap.assign(static_cast<size_t>(in->Below(40)), 'g');
  if (in->OneIn(4)) e.local_name = Name(in);
  return e;
}

}  // namespace

WrittenArchive WriteArchive(const uint8_t* data, size_t size) {
  Bytes in(data, size);
  WrittenArchive archive;
  const uint8_t first = in.Next();
  archive.lies = first % 2 != 0;
  archive.crcs_are_true = true;
  std::set<std::string> names;
  bool other_lies = false;
  for (int64_t n = 1 + first / 2 % 4; n > 0; --n) {
    ZipEntry e = Entry(&in, archive.lies);
    // Honest archives have each name once, and one.
    if (!archive.lies && (e.name.empty() || !names.insert(e.name).second)) continue;
    archive.names_disagree |= !e.local_name.empty() && e.local_name != e.name;
    other_lies |= !e.lies.empty();
    for (const ZipLie& lie : e.lies) {
      // A directory whose names are as long as they like may say anything about what follows them.
      if (lie.field == ZipField::kCrc || lie.field == ZipField::kNameLength || lie.field == ZipField::kExtraLength) {
        archive.crcs_are_true = false;
      }
    }
    archive.entries.push_back(e);
  }
  ZipEnd end;
  end.zip64 = in.OneIn(4);
  if (in.OneIn(4)) end.comment.assign(static_cast<size_t>(in.Below(300)), 'c');
  if (archive.entries.empty()) archive.lies = true;
  if (archive.lies && in.OneIn(3)) {
    if (in.OneIn(2)) end.after.assign(static_cast<size_t>(in.Below(100)), 'x');
    int64_t* fields[] = {&end.count, &end.directory_bytes, &end.directory_offset, &end.comment_bytes, &end.disk};
    for (int64_t n = in.Below(3); n > 0; --n) *in.Pick(fields) = static_cast<int64_t>(Number(&in) & INT64_MAX);
    archive.crcs_are_true = false;
    other_lies = true;
  }
  archive.names_disagree &= !other_lies;
  archive.bytes = test::WriteZip(archive.entries, end);
  return archive;
}

}  // namespace etalon::fuzz
