#include "cli/attend_report.h"

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "cli/accuracy_json.h"
#include "cli/text.h"

namespace etalon::cli {
namespace {

using nlohmann::ordered_json;

ordered_json ToJson(const Array& array, NpyType stored, int rank) {
  return {{"shape", ShapeOf(array, rank)}, {"type", NpyTypeName(stored)}};
}

ordered_json ToJson(const std::vector<int64_t>& shape, const std::string& type, uint64_t hash,
                    const std::string& file) {
  return {{"shape", shape},
          {"type", type},
          {"hash", HashText(hash)},
          {"file", file.empty() ? ordered_json() : ordered_json(file)}};
}

// Null for what was not given; with the standard slopes as if they were an array.
ordered_json OptionsToJson(const AttendReport& r) {
  ordered_json j;
  j["softcap"] = r.softcap > 0.0f ? ordered_json(r.softcap) : ordered_json();
  for (const char* name : {"alibi", "bias", "mask", "sinks", "segments", "kv_segments"}) j[name] = ordered_json();
  if (r.options->alibi.has_value()) {
    j["alibi"] = {{"from", "standard"}, {"shape", {r.tensors->q.heads}}, {"type", "f32"}};
  }
  for (const OptionArray& array : r.arrays) {
    const std::string name = array.option == "kv-segments" ? "kv_segments" : array.option;
    j[name] = {{"from", array.from}, {"shape", array.shape}, {"type", NpyTypeName(array.stored)}};
  }
  return j;
}

// All arrays that were.
std::vector<std::string> NarrowedOf(const AttendReport& r) {
  std::vector<std::string> names = Narrowed(*r.tensors);
  for (const OptionArray& array : r.arrays) {
    if (array.stored == NpyType::kF64) names.push_back(array.option);
  }
  return names;
}

// Lines of a name and a text, the texts below each other.
class Lines {
 public:
  void Add(const std::string& name, const std::string& text) {
    lines_.push_back({name, text});
    width_ = std::max(width_, static_cast<int>(name.size()));
  }
  void Print() const {
    for (const Line& line : lines_) std::printf("%-*s  %s\n", width_, line.name.c_str(), line.text.c_str());
  }

 private:
  struct Line {
    std::string name;
    std::string text;
  };
  std::vector<Line> lines_;
  int width_ = 0;
};

std::string TypeText(NpyType stored) {
  return std::string(NpyTypeName(stored)) + (stored == NpyType::kF64 ? ", narrowed to f32" : "");
}

std::string ArrayText(const Array& array, NpyType stored, int rank) {
  return ShapeText(ShapeOf(array, rank)) + " " + TypeText(stored);
}

std::string ResultText(const std::vector<int64_t>& shape, const std::string& type, uint64_t hash,
                       const std::string& file) {
  return ShapeText(shape) + " " + type + ", " + HashText(hash) +
         (file.empty() ? ", not written" : ", written to " + PrintablePath(file));
}

}  // namespace

void PrintAttendJson(const AttendReport& r) {
  const Tensors& t = *r.tensors;
  ordered_json j;
  j["version"] = LibraryVersion();
  j["arithmetic"] = ArithmeticVersion();
  j["table"] = r.table;
  j["threads"] = r.threads;
  j["q"] = ToJson(t.q, t.q_stored, t.rank);
  j["k"] = ToJson(t.k, t.k_stored, t.rank);
  j["v"] = ToJson(t.v, t.v_stored, t.rank);
  j["narrowed"] = NarrowedOf(r);
  j["mask"] = {
      {"left", r.mask.left}, {"right", r.mask.right}, {"q_offset", r.mask.q_offset}, {"prefix", r.mask.prefix}};
  j["scale"] = r.scale;
  j["options"] = OptionsToJson(r);
  j["visible_pairs"] = r.visible_pairs;
  j["seconds"] = r.seconds;
  j["gflops"] = r.gflops;
  j["error"] = ToJson(r.accuracy);
  j["out"] = ToJson(r.out_shape, r.options->out_type, r.out_hash, r.options->out);
  j["lse"] = ToJson(r.lse_shape, "f32", r.lse_hash, r.options->lse);
  // A file's name may be any bytes, JSON is UTF-8.
  std::printf("%s\n", j.dump(2, ' ', false, ordered_json::error_handler_t::replace).c_str());
}

void PrintAttendText(const AttendReport& r) {
  const Tensors& t = *r.tensors;
  const Accuracy& a = r.accuracy;
  std::printf("etalon %s, arithmetic %d, table %s, %d thread%s\n\n", LibraryVersion().c_str(), ArithmeticVersion(),
              r.table.c_str(), r.threads, r.threads == 1 ? "" : "s");
  Lines lines;
  lines.Add("q", ArrayText(t.q, t.q_stored, t.rank));
  lines.Add("k", ArrayText(t.k, t.k_stored, t.rank));
  lines.Add("v", ArrayText(t.v, t.v_stored, t.rank));
  lines.Add("geometry", MaskText(r.mask) + "; " + std::to_string(r.visible_pairs) + " visible pairs of row and key");
  lines.Add("scale", General(static_cast<double>(r.scale), 9) + (r.options->scale.empty() ? ", 1/sqrt(head_dim)" : ""));
  if (!r.options->softcap.empty()) lines.Add("--softcap", General(static_cast<double>(r.softcap), 9));
  if (r.options->alibi.has_value() && (r.arrays.empty() || r.arrays[0].option != "alibi")) {
    lines.Add("--alibi", "the standard slopes of " + std::to_string(t.q.heads) + (t.q.heads == 1 ? " head" : " heads"));
  }
  for (const OptionArray& array : r.arrays) {
    lines.Add("--" + array.option,
              ShapeText(array.shape) + " " + TypeText(array.stored) + " of " + PrintablePath(array.from));
  }
  lines.Add("time", Fixed(r.seconds * 1e3, 3) + " ms, " + Fixed(r.gflops, 2) + " GFLOP/s, one run");
  lines.Add("error", "max abs " + Scientific(a.max_abs, 1) + ", rel. RMS " + Scientific(a.relative_rms, 1) +
                         " (expected " + Scientific(a.predicted_relative_rms, 1) + ") against f64, " +
                         std::to_string(a.rows) + (a.rows == 1 ? " row" : " rows") + " of " + std::to_string(a.heads) +
                         (a.heads == 1 ? " head" : " heads"));
  if (a.beyond_f16 > 0) {
    lines.Add("", std::to_string(a.beyond_f16) +
                      " elements are beyond f16, whose largest number is 65504, and infinite there");
  }
  if (a.not_finite > 0) {
    lines.Add("", std::to_string(a.not_finite) + " elements are finite here and not in f64, or the reverse");
  } else if (!a.ok) {
    lines.Add("", "the error is far above what rounding explains");
  }
  lines.Add("out", ResultText(r.out_shape, r.options->out_type, r.out_hash, r.options->out));
  lines.Add("lse", ResultText(r.lse_shape, "f32", r.lse_hash, r.options->lse));
  lines.Print();
}

}  // namespace etalon::cli
