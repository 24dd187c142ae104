#include "cli/npy.h"

#include <cstring>
#include <string_view>

#include "cli/text.h"

namespace etalon::cli {
namespace {

constexpr size_t kMagicBytes = 6;
constexpr size_t kMaxHeaderBytes = 65536;  // numpy's own limit is 10000
constexpr size_t kMaxRank = 32;            // numpy's own limit until 2.0
constexpr int64_t kMaxInt64 = INT64_MAX;

// In the order of NpyType.
constexpr struct {
  const char* name;
  const char* descr;
  size_t bytes;
} kTypes[] = {{"f16", "<f2", 2}, {"f32", "<f4", 4}, {"f64", "<f8", 8}, {"bool", "|b1", 1},
              {"u8", "|u1", 1},  {"i32", "<i4", 4}, {"i64", "<i8", 8}};

std::vector<NpyType> TypesOf(NpyPlace place) {
  switch (place) {
    case NpyPlace::kFlags:
      return {NpyType::kBool, NpyType::kU8};
    case NpyPlace::kIds:
      return {NpyType::kU8, NpyType::kI32, NpyType::kI64};
    default:
      return {NpyType::kF16, NpyType::kF32, NpyType::kF64};
  }
}

// "'<f2', '<f4' and '<f8' are"
std::string TypesText(NpyPlace place) {
  const std::vector<NpyType> types = TypesOf(place);
  std::string text;
  for (size_t i = 0; i < types.size(); ++i) {
    text += i == 0 ? "'" : i + 1 < types.size() ? ", '" : " and '";
    text += NpyTypeDescr(types[i]);
    text += "'";
  }
  return text + " are";
}

struct Header {
  std::string descr;
  bool fortran_order = false;
  std::vector<int64_t> shape;
};

// Reads {'descr': '<f2', 'fortran_order': False, 'shape': (6, 103, 64), } and nothing else. Each function returns false
// after it has set the error.
class HeaderReader {
 public:
  HeaderReader(std::string_view text, NpyPlace place, std::string* error) : text_(text), place_(place), error_(error) {}

  bool Read(Header* header) {
    bool has_descr = false;
    bool has_order = false;
    bool has_shape = false;
    if (!Expect('{')) return false;
    while (!Take('}')) {
      std::string key;
      if (!ReadString("a key", &key) || !Expect(':')) return false;
      bool* has = key == "descr"           ? &has_descr
                  : key == "fortran_order" ? &has_order
                  : key == "shape"         ? &has_shape
                                           : nullptr;
      if (has == nullptr) return Fail("unknown key '" + Printable(key, 40) + "' in the header");
      if (*has) return Fail("key '" + key + "' appears twice in the header");
      *has = true;
      if (has == &has_descr && !ReadDescr(&header->descr)) return false;
      if (has == &has_order && !ReadBool(&header->fortran_order)) return false;
      if (has == &has_shape && !ReadShape(&header->shape)) return false;
      if (!Take(',') && Peek() != '}') return Unexpected("',' or '}'");
    }
    for (; at_ < text_.size(); ++at_) {
      const bool last = at_ + 1 == text_.size();
      if (text_[at_] == '\n' && last) break;
      if (text_[at_] != ' ') return Unexpected("only spaces and a newline after the header's '}'");
    }
    if (at_ == text_.size()) return Fail("the header does not end with a newline");
    if (!has_descr) return Fail("key 'descr' is missing from the header");
    if (!has_order) return Fail("key 'fortran_order' is missing from the header");
    if (!has_shape) return Fail("key 'shape' is missing from the header");
    return true;
  }

 private:
  // The next character that is not a space; '\0' at the end.
  char Peek() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
    return at_ < text_.size() ? text_[at_] : '\0';
  }

  bool Take(char c) {
    if (Peek() != c || at_ == text_.size()) return false;
    ++at_;
    return true;
  }

  bool Expect(char c) { return Take(c) || Unexpected(std::string("'") + c + "'"); }

  bool ReadString(const char* what, std::string* value) {
    const char quote = Peek();
    if (quote != '\'' && quote != '"') return Unexpected(std::string(what) + " in quotes");
    const size_t end = text_.find(quote, at_ + 1);
    if (end == std::string_view::npos) return Fail("a string of the header has no end");
    *value = text_.substr(at_ + 1, end - at_ - 1);
    if (value->find('\\') != std::string::npos) return Fail("a string of the header holds a backslash");
    at_ = end + 1;
    return true;
  }

  bool ReadDescr(std::string* descr) {
    if (Peek() == '[') return Fail("structured types are not supported; " + TypesText(place_));
    return ReadString("a type", descr);
  }

  bool ReadBool(bool* value) {
    Peek();
    for (const bool candidate : {false, true}) {
      const std::string_view word = candidate ? "True" : "False";
      if (text_.substr(at_, word.size()) != word) continue;
      at_ += word.size();
      *value = candidate;
      return true;
    }
    return Unexpected("True or False");
  }

  // (), (3,), (3, 4), (3, 4,). As in Python (3) is a number, not a shape.
  bool ReadShape(std::vector<int64_t>* shape) {
    if (!Expect('(')) return false;
    bool comma = true;
    while (!Take(')')) {
      if (!comma) return Unexpected("',' or ')'");
      if (shape->size() == kMaxRank) return Fail("the shape has more than " + std::to_string(kMaxRank) + " dimensions");
      int64_t dim;
      if (!ReadDim(shape->size(), &dim)) return false;
      shape->push_back(dim);
      comma = Take(',');
    }
    if (shape->size() == 1 && !comma) return Fail("a shape of one dimension must be written (n,)");
    return true;
  }

  bool ReadDim(size_t index, int64_t* dim) {
    const std::string name = "dimension " + std::to_string(index) + " of the shape";
    if (Peek() == '-') return Fail(name + " is negative");
    const size_t first = at_;
    int64_t value = 0;
    for (; at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9'; ++at_) {
      const int digit = text_[at_] - '0';
      if (value > (kMaxInt64 - digit) / 10) return Fail(name + " does not fit in 63 bits");
      value = value * 10 + digit;
    }
    if (at_ == first) return Unexpected("a number for " + name);
    if (text_[first] == '0' && at_ - first > 1) return Fail(name + " has a leading zero");
    *dim = value;
    return true;
  }

  bool Unexpected(const std::string& wanted) {
    const std::string found = at_ < text_.size() ? "'" + Printable(text_.substr(at_, 1)) + "'" : "its end";
    return Fail("the header needs " + wanted + " at byte " + std::to_string(at_) + " but has " + found);
  }

  bool Fail(const std::string& message) {
    *error_ = message;
    return false;
  }

  std::string_view text_;
  NpyPlace place_;
  size_t at_ = 0;
  std::string* error_;
};

bool ReadType(const std::string& descr, NpyPlace place, NpyType* type, std::string* error) {
  for (const NpyType candidate : TypesOf(place)) {
    if (descr != NpyTypeDescr(candidate)) continue;
    *type = candidate;
    return true;
  }
  *error = "type '" + Printable(descr, 40) + "' is not supported";
  if (!descr.empty() && descr[0] == '>') *error += " (big-endian)";
  if (descr.find('O') != std::string::npos) *error += " (Python objects are never loaded)";
  *error += "; " + TypesText(place);
  return false;
}

// A shape of many long dimensions, cut: an error is a line.
std::string ShownShape(const std::vector<int64_t>& shape) { return Printable(ShapeText(shape), 120); }

// Zeros count as one here, so that what is refused does not depend on where a zero stands.
bool CountBytes(const std::vector<int64_t>& shape, size_t element_bytes, uint64_t* bytes, std::string* error) {
  uint64_t product = element_bytes;
  bool empty = false;
  for (const int64_t dim : shape) {
    if (dim == 0) {
      empty = true;
      continue;
    }
    if (product > static_cast<uint64_t>(kMaxInt64) / static_cast<uint64_t>(dim)) {
      *error = "an array of shape " + ShownShape(shape) + " has too many bytes for 63 bits";
      return false;
    }
    product *= static_cast<uint64_t>(dim);
  }
  *bytes = empty ? 0 : product;
  return true;
}

}  // namespace

size_t NpyElementSize(NpyType type) { return kTypes[static_cast<size_t>(type)].bytes; }
const char* NpyTypeName(NpyType type) { return kTypes[static_cast<size_t>(type)].name; }
const char* NpyTypeDescr(NpyType type) { return kTypes[static_cast<size_t>(type)].descr; }

bool ParseNpy(const unsigned char* bytes, size_t size, NpyPlace place, NpyView* view, std::string* error) {
  if (size < kMagicBytes || std::memcmp(bytes, "\x93NUMPY", kMagicBytes) != 0) {
    *error = "not a .npy file: it does not begin with the bytes 93 'NUMPY'";
    return false;
  }
  if (size < kMagicBytes + 2) {
    *error = "truncated before the version";
    return false;
  }
  const unsigned major = bytes[kMagicBytes];
  const unsigned minor = bytes[kMagicBytes + 1];
  if (major < 1 || major > 3 || minor != 0) {
    *error =
        "version " + std::to_string(major) + "." + std::to_string(minor) + " is not supported; 1.0, 2.0 and 3.0 are";
    return false;
  }
  // 1.0 has a header length of two bytes; 2.0 of four; 3.0 differs from 2.0 only in allowing UTF-8 in field names.
  const size_t length_bytes = major == 1 ? 2 : 4;
  const size_t header_at = kMagicBytes + 2 + length_bytes;
  if (size < header_at) {
    *error = "truncated inside the header length";
    return false;
  }
  size_t header_bytes = 0;
  for (size_t i = length_bytes; i-- > 0;) header_bytes = header_bytes << 8 | bytes[kMagicBytes + 2 + i];
  if (header_bytes > kMaxHeaderBytes) {
    *error = "the header claims " + std::to_string(header_bytes) + " bytes; at most " +
             std::to_string(kMaxHeaderBytes) + " are accepted";
    return false;
  }
  if (header_bytes > size - header_at) {
    *error = "the header claims " + std::to_string(header_bytes) + " bytes but only " +
             std::to_string(size - header_at) + " follow";
    return false;
  }

  const std::string_view text(reinterpret_cast<const char*>(bytes) + header_at, header_bytes);
  Header header;
  if (!HeaderReader(text, place, error).Read(&header)) return false;
  NpyType type;
  if (!ReadType(header.descr, place, &type, error)) return false;
  if (header.fortran_order) {
    *error = "the array is in Fortran order; save it with numpy.ascontiguousarray";
    return false;
  }
  uint64_t needed;
  if (!CountBytes(header.shape, NpyElementSize(type), &needed, error)) return false;
  const size_t present = size - header_at - header_bytes;
  if (present < needed) {
    *error = "truncated: shape " + ShownShape(header.shape) + " of " + NpyTypeName(type) + " needs " +
             std::to_string(needed) + " bytes of data but " + std::to_string(present) + " follow";
    return false;
  }
  if (present > needed) {
    *error =
        std::to_string(present - needed) + " bytes are left over after the data of shape " + ShownShape(header.shape);
    return false;
  }
  *view = {type, header.shape, bytes + header_at + header_bytes, present};
  return true;
}

}  // namespace etalon::cli
