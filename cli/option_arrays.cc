#include "cli/option_arrays.h"

#include <cstring>
#include <new>

#include "cli/array_file.h"
#include "cli/npz.h"
#include "cli/text.h"

namespace etalon::cli {
namespace {

struct NamedArray {
  const char* option;  // without the dashes
  std::string from;    // empty: not given
};

// In the order in which the report names them.
std::vector<NamedArray> NamedArrays(const AttendOptions& o) {
  const std::string alibi = o.alibi.value_or("");
  return {{"alibi", alibi == "standard" ? "" : alibi},
          {"bias", o.bias},
          {"mask", o.mask},
          {"sinks", o.sinks},
          {"segments", o.segments},
          {"kv-segments", o.kv_segments}};
}

// Only what is written like a name can be one, whatever files there are.
bool IsMember(const AttendOptions& options, const std::string& from) {
  constexpr std::string_view kEnd = ".npy";
  const bool ends = from.size() >= kEnd.size() && from.compare(from.size() - kEnd.size(), kEnd.size(), kEnd) == 0;
  return options.files.size() == 1 && !ends && from.find('/') == std::string::npos;
}

struct Sizes {
  const char* names;  // "[heads] or [batch, heads]"
  std::vector<int64_t> sizes;
  size_t least_rank;
  size_t fixed;  // so many sizes at the end may not be 1 instead
};

// *full gets one size for each of the place's, with 1 for those that the shape lacks.
bool Fits(const std::vector<int64_t>& shape, const Sizes& place, std::vector<int64_t>* full, std::string* error) {
  const size_t rank = place.sizes.size();
  bool fits = shape.size() >= place.least_rank && shape.size() <= rank;
  full->assign(rank, 1);
  for (size_t i = 0; fits && i < shape.size(); ++i) {
    const size_t at = rank - shape.size() + i;
    (*full)[at] = shape[i];
    fits = shape[i] == place.sizes[at] || (shape[i] == 1 && at + place.fixed < rank);
  }
  if (fits) return true;
  *error = "has shape " + ShapeText(shape) + "; it must be " + place.names + ", here " + ShapeText(place.sizes) +
           (place.fixed == rank ? ""
            : place.fixed == 0  ? ", sizes of 1 counting for all"
                                : ", a batch of 1 counting for all");
  return false;
}

void ToArray(const std::vector<int64_t>& full, Array* array) {
  array->batch = full[0];
  array->heads = full[1];
  array->len = full.size() > 2 ? full[2] : 1;
  array->dim = full.size() > 2 ? full[3] : 1;
}

int64_t IdAt(const NpyView& view, int64_t index) {
  const unsigned char* data = view.data + index * static_cast<int64_t>(NpyElementSize(view.type));
  if (view.type == NpyType::kU8) return *data;
  if (view.type == NpyType::kI32) {
    int32_t id;
    std::memcpy(&id, data, sizeof id);
    return id;
  }
  int64_t id;
  std::memcpy(&id, data, sizeof id);
  return id;
}

class Reader {
 public:
  Reader(const AttendOptions& options, const Tensors& tensors, ScoreOptions* score_options,
         std::vector<OptionArray>* arrays)
      : options_(options), tensors_(tensors), score_(*score_options), arrays_(*arrays) {}

  bool Read(std::string* error) {
    std::string ignored;  // checked when it was parsed
    if (!options_.softcap.empty()) ParseSoftcap(options_.softcap, &score_.softcap, &ignored);
    score_.alibi = options_.alibi.has_value();
    for (const NamedArray& named : NamedArrays(options_)) {
      where_ = std::string("--") + named.option;
      if (named.from.empty() || ReadOne(named, error)) continue;
      *error = where_ + *error;
      return false;
    }
    where_ = "--segments";
    if (CompleteSegments(error)) return true;
    *error = where_ + *error;
    return false;
  }

  const std::string& where() const { return where_; }

 private:
  bool ReadOne(const NamedArray& named, std::string* error) {
    const std::string option = named.option;
    const bool numbers = option == "alibi" || option == "bias" || option == "sinks";
    const NpyPlace place = numbers ? NpyPlace::kNumbers : option == "mask" ? NpyPlace::kFlags : NpyPlace::kIds;
    std::vector<unsigned char> bytes;
    NpyView view;
    std::vector<int64_t> full;
    const bool ok = ReadBytes(named.from, &bytes, error) && ParseNpy(bytes.data(), bytes.size(), place, &view, error) &&
                    Fits(view.shape, SizesOf(option), &full, error) && Take(option, view, full, error);
    if (!ok) {
      *error = ": " + *error;
      return false;
    }
    arrays_.push_back({option, named.from, view.shape, view.type});
    return true;
  }

  bool ReadBytes(const std::string& from, std::vector<unsigned char>* bytes, std::string* error) {
    if (!IsMember(options_, from)) {
      where_ += " " + PrintablePath(from);
      return ReadNpyFile(from, bytes, error);
    }
    where_ += " " + PrintablePath(options_.files[0]) + ", array " + Printable(from, 40);
    if (!open_ && !npz_.Open(options_.files[0], error)) return false;
    open_ = true;
    if (ReadNpzMember(&npz_, from, bytes, error)) return true;
    if (!npz_.Has(from + ".npy")) *error += "; this file has " + NamesText(npz_);
    return false;
  }

  Sizes SizesOf(const std::string& option) const {
    const Array &q = tensors_.q, &k = tensors_.k;
    if (option == "bias" || option == "mask") {
      return {"[q_len, kv_len], [heads, q_len, kv_len] or [batch, heads, q_len, kv_len]",
              {q.batch, q.heads, q.len, k.len},
              2,
              0};
    }
    if (option == "segments") return {"[q_len] or [batch, q_len]", {q.batch, q.len}, 1, 1};
    if (option == "kv-segments") return {"[kv_len] or [batch, kv_len]", {q.batch, k.len}, 1, 1};
    return {"[heads] or [batch, heads]", {q.batch, q.heads}, 1, 0};
  }

  bool Take(const std::string& option, const NpyView& view, const std::vector<int64_t>& full, std::string* error) {
    if (option == "mask") {
      ToArray(full, &score_.mask);
      score_.mask.type = ElementKind::kFlag;
      score_.mask.bytes.assign(view.data, view.data + view.data_bytes);
    } else if (option == "segments" || option == "kv-segments") {
      std::vector<int64_t>& ids = option == "segments" ? score_.q_segments : score_.kv_segments;
      for (int64_t i = 0; i < full[0] * full[1]; ++i) ids.push_back(IdAt(view, i));
    } else {
      Array& array = option == "alibi" ? score_.slopes : option == "bias" ? score_.bias : score_.sinks;
      ToArray(full, &array);
      return TakeElements(view, &array.type, &array.bytes, error);
    }
    return true;
  }

  // Keys that have no numbers of their own have those of the rows; and if one of the two differs from sequence to
  // sequence, so does the other.
  bool CompleteSegments(std::string* error) {
    std::vector<int64_t>&q = score_.q_segments, &kv = score_.kv_segments;
    if (q.empty()) return true;
    if (kv.empty() && tensors_.q.len != tensors_.k.len) {
      *error = ": q and k differ in length (" + std::to_string(tensors_.q.len) + " and " +
               std::to_string(tensors_.k.len) + "), so the keys need --kv-segments";
      return false;
    }
    if (kv.empty()) kv = q;
    Repeat(static_cast<int64_t>(kv.size()) / tensors_.k.len, tensors_.q.len, &q);
    Repeat(static_cast<int64_t>(q.size()) / tensors_.q.len, tensors_.k.len, &kv);
    return true;
  }

  static void Repeat(int64_t times, int64_t len, std::vector<int64_t>* ids) {
    if (static_cast<int64_t>(ids->size()) != len) return;
    for (int64_t i = len; i < times * len; ++i) ids->push_back((*ids)[static_cast<size_t>(i - len)]);
  }

  const AttendOptions& options_;
  const Tensors& tensors_;
  ScoreOptions& score_;
  std::vector<OptionArray>& arrays_;
  NpzFile npz_;
  bool open_ = false;
  std::string where_;  // "--bias layer.npz, array bias"
};

}  // namespace

std::vector<OptionFile> OptionFiles(const AttendOptions& options) {
  std::vector<OptionFile> files;
  for (const NamedArray& named : NamedArrays(options)) {
    if (named.from.empty() || IsMember(options, named.from)) continue;
    files.push_back({std::string("--") + named.option, named.from});
  }
  return files;
}

bool ReadScoreOptions(const AttendOptions& options, const Tensors& tensors, ScoreOptions* score_options,
                      std::vector<OptionArray>* arrays, std::string* error) {
  Reader reader(options, tensors, score_options, arrays);
  try {
    return reader.Read(error);
  } catch (const std::bad_alloc&) {
    *error = reader.where() + ": no memory for its array";
    return false;
  }
}

}  // namespace etalon::cli
