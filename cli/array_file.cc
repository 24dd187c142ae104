#include "cli/array_file.h"

#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <memory>

#include "cli/text.h"

namespace etalon::cli {
namespace {

constexpr uint64_t kMaxArrayBytes = uint64_t{1} << 31;
constexpr size_t kPieceBytes = size_t{1} << 20;

struct CloseFile {
  void operator()(std::FILE* file) const { std::fclose(file); }
};

std::string IndexText(size_t flat, const std::vector<int64_t>& shape) {
  std::vector<int64_t> index(shape.size());
  for (size_t i = shape.size(); i-- > 0;) {
    const size_t dim = static_cast<size_t>(shape[i]);
    index[i] = static_cast<int64_t>(flat % dim);
    flat /= dim;
  }
  return ShapeText(index);
}

bool Narrow(const NpyView& view, std::vector<unsigned char>* bytes, std::string* error) {
  const size_t count = view.data_bytes / sizeof(double);
  bytes->resize(count * sizeof(float));
  for (size_t i = 0; i < count; ++i) {
    double wide;
    std::memcpy(&wide, view.data + i * sizeof wide, sizeof wide);
    const float narrow = static_cast<float>(wide);
    if (std::isinf(narrow) && std::isfinite(wide)) {
      *error =
          "element " + IndexText(i, view.shape) + " is " + General(wide, 10) + ", which is beyond the range of f32";
      return false;
    }
    std::memcpy(bytes->data() + i * sizeof narrow, &narrow, sizeof narrow);
  }
  return true;
}

}  // namespace

bool ReadNpyFile(const std::string& path, std::vector<unsigned char>* bytes, std::string* error) {
  const std::unique_ptr<std::FILE, CloseFile> file(std::fopen(path.c_str(), "rb"));
  if (file == nullptr) {
    *error = std::string("cannot be opened: ") + std::strerror(errno);
    return false;
  }
  // Piece by piece, because a pipe has no size to ask for.
  for (;;) {
    const size_t have = bytes->size();
    bytes->resize(have + kPieceBytes);
    const size_t got = std::fread(bytes->data() + have, 1, kPieceBytes, file.get());
    const int reason = errno;
    bytes->resize(have + got);
    if (std::ferror(file.get()) != 0) {
      *error = std::string("cannot be read: ") + std::strerror(reason);
      return false;
    }
    if (bytes->size() > kMaxArrayBytes) {
      *error = "has more than " + std::to_string(kMaxArrayBytes) + " bytes, the most that are accepted";
      return false;
    }
    if (got < kPieceBytes) return true;
  }
}

bool IsNpyFile(const std::string& path) {
  const std::unique_ptr<std::FILE, CloseFile> file(std::fopen(path.c_str(), "rb"));
  char magic[6];
  return file != nullptr && std::fread(magic, 1, sizeof magic, file.get()) == sizeof magic &&
         std::memcmp(magic, "\x93NUMPY", sizeof magic) == 0;
}

bool ReadNpzMember(NpzFile* npz, const std::string& name, std::vector<unsigned char>* bytes, std::string* error) {
  return npz->Read(name + ".npy", kMaxArrayBytes, bytes, error);
}

std::string NamesText(const NpzFile& npz) {
  constexpr size_t kMost = 8;
  std::vector<std::string> names;
  for (const std::string& name : npz.names()) {
    if (names.size() == kMost) return Join(names, ", ") + " ...";
    names.push_back(Printable(name, 40));
  }
  return Join(names, ", ");
}

bool TakeElements(const NpyView& view, ElementKind* type, std::vector<unsigned char>* bytes, std::string* error) {
  *type = view.type == NpyType::kF16 ? ElementKind::kF16 : ElementKind::kF32;
  if (view.type == NpyType::kF64) return Narrow(view, bytes, error);
  bytes->assign(view.data, view.data + view.data_bytes);  // a copy, because the view need not be aligned
  return true;
}

}  // namespace etalon::cli
