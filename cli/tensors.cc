#include "cli/tensors.h"

#include <new>

#include "cli/array_file.h"
#include "cli/npz.h"
#include "cli/text.h"

namespace etalon::cli {
namespace {

std::string PathsText(const std::vector<std::string>& files) {
  std::vector<std::string> paths;
  for (const std::string& file : files) paths.push_back(PrintablePath(file));
  return Join(paths, ", ");
}

bool FromBytes(const std::vector<unsigned char>& bytes, const std::string& name, bool batch_allowed, Array* array,
               NpyType* stored, int* rank, std::string* error) {
  NpyView view;
  if (!ParseNpy(bytes.data(), bytes.size(), &view, error)) {
    *error = "array " + name + ": " + *error;
    return false;
  }
  if (!TakeArray(view, batch_allowed, array, error)) {
    *error = "array " + name + (error->rfind("element", 0) == 0 ? ": " : " ") + *error;
    return false;
  }
  *stored = view.type;
  *rank = static_cast<int>(view.shape.size());
  return true;
}

bool CheckShapes(const Tensors& t, const int (&ranks)[3], std::string* error) {
  const Array &q = t.q, &k = t.k, &v = t.v;
  const char* problem = nullptr;
  if (q.dim != k.dim) problem = "q and k differ in channels";
  if (k.heads != v.heads) problem = "k and v differ in heads";
  if (k.len != v.len) problem = "k and v differ in length";
  if (q.heads % k.heads != 0) problem = "the heads of k do not divide those of q";
  if (q.batch != k.batch || q.batch != v.batch) problem = "q, k and v differ in batch";
  if (ranks[0] != ranks[1] || ranks[0] != ranks[2]) problem = "q, k and v differ in the number of dimensions";
  if (problem == nullptr) return true;
  *error = std::string(problem) + ": q " + ShapeText(ShapeOf(q, ranks[0])) + ", k " + ShapeText(ShapeOf(k, ranks[1])) +
           ", v " + ShapeText(ShapeOf(v, ranks[2]));
  return false;
}

}  // namespace

std::vector<int64_t> ShapeOf(const Array& a, int rank) {
  if (rank == 3) return {a.heads, a.len, a.dim};
  return {a.batch, a.heads, a.len, a.dim};
}

std::vector<std::string> Narrowed(const Tensors& tensors) {
  std::vector<std::string> names;
  if (tensors.q_stored == NpyType::kF64) names.push_back("q");
  if (tensors.k_stored == NpyType::kF64) names.push_back("k");
  if (tensors.v_stored == NpyType::kF64) names.push_back("v");
  return names;
}

bool TakeArray(const NpyView& view, bool batch_allowed, Array* array, std::string* error) {
  const std::vector<int64_t>& shape = view.shape;
  if (shape.size() != 3 && !(batch_allowed && shape.size() == 4)) {
    *error = "has shape " + ShapeText(shape) + "; it must be [heads, length, channels]" +
             (batch_allowed ? " or [batch, heads, length, channels]" : "");
    return false;
  }
  for (const int64_t dim : shape) {
    if (dim != 0) continue;
    *error = "has shape " + ShapeText(shape) + ", which is empty";
    return false;
  }
  const size_t first = shape.size() - 3;
  array->batch = first == 0 ? 1 : shape[0];
  array->heads = shape[first];
  array->len = shape[first + 1];
  array->dim = shape[first + 2];
  return TakeElements(view, &array->type, &array->bytes, error);
}

namespace {

bool Read(const std::vector<std::string>& files, bool batch_allowed, Tensors* tensors, std::string* error) {
  const struct {
    const char* name;
    Array* array;
    NpyType* stored;
  } parts[] = {{"q", &tensors->q, &tensors->q_stored},
               {"k", &tensors->k, &tensors->k_stored},
               {"v", &tensors->v, &tensors->v_stored}};
  const auto fail = [&](const std::string& path) {
    *error = path + ": " + *error;
    return false;
  };
  const bool archive = files.size() == 1;
  NpzFile npz;
  if (archive && !npz.Open(files[0], error)) {
    if (IsNpyFile(files[0])) *error = "is one .npy file; give one .npz, or three .npy files for q, k and v";
    return fail(PrintablePath(files[0]));
  }
  int ranks[3];
  for (size_t i = 0; i < 3; ++i) {
    const std::string name = parts[i].name;
    const std::string path = PrintablePath(files[archive ? 0 : i]);
    std::vector<unsigned char> bytes;
    if (!archive) {
      if (!ReadNpyFile(files[i], &bytes, error)) return fail(path);
    } else if (!ReadNpzMember(&npz, name, &bytes, error)) {
      if (!npz.Has(name + ".npy")) *error += "; a layer has arrays q, k and v, this file has " + NamesText(npz);
      return fail(path);
    }
    if (!FromBytes(bytes, name, batch_allowed, parts[i].array, parts[i].stored, &ranks[i], error)) return fail(path);
  }
  tensors->rank = ranks[0];
  if (CheckShapes(*tensors, ranks, error)) return true;
  return fail(PathsText(files));
}

}  // namespace

bool ReadTensors(const std::vector<std::string>& files, bool batch_allowed, Tensors* tensors, std::string* error) {
  *tensors = Tensors();
  try {
    return Read(files, batch_allowed, tensors, error);
  } catch (const std::bad_alloc&) {
    *error = PathsText(files) + ": no memory for its arrays";
    return false;
  }
}

}  // namespace etalon::cli
