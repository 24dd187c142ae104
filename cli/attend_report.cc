#include "cli/attend_report.h"

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

void Line(const char* name, const std::string& text) { std::printf("%-5s  %s\n", name, text.c_str()); }

std::string ArrayText(const Array& array, NpyType stored, int rank) {
  return ShapeText(ShapeOf(array, rank)) + " " + NpyTypeName(stored) +
         (stored == NpyType::kF64 ? ", narrowed to f32" : "");
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
  j["narrowed"] = Narrowed(t);
  j["mask"] = {{"left", r.mask.left}, {"right", r.mask.right}, {"q_offset", r.mask.q_offset}};
  j["scale"] = r.scale;
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
  Line("q", ArrayText(t.q, t.q_stored, t.rank));
  Line("k", ArrayText(t.k, t.k_stored, t.rank));
  Line("v", ArrayText(t.v, t.v_stored, t.rank));
  Line("mask", MaskText(r.mask) + "; " + std::to_string(r.visible_pairs) + " visible pairs of row and key");
  Line("scale", General(static_cast<double>(r.scale), 9) + (r.options->scale.empty() ? ", 1/sqrt(head_dim)" : ""));
  Line("time", Fixed(r.seconds * 1e3, 3) + " ms, " + Fixed(r.gflops, 2) + " GFLOP/s, one run");
  Line("error", "max abs " + Scientific(a.max_abs, 1) + ", rel. RMS " + Scientific(a.relative_rms, 1) + " (expected " +
                    Scientific(a.predicted_relative_rms, 1) + ") against f64, " + std::to_string(a.rows) +
                    (a.rows == 1 ? " row" : " rows") + " of " + std::to_string(a.heads) +
                    (a.heads == 1 ? " head" : " heads"));
  if (a.beyond_f16 > 0) {
    Line("",
         std::to_string(a.beyond_f16) + " elements are beyond f16, whose largest number is 65504, and infinite there");
  }
  if (a.not_finite > 0) {
    Line("", std::to_string(a.not_finite) + " elements are finite here and not in f64, or the reverse");
  } else if (!a.ok) {
    Line("", "the error is far above what rounding explains");
  }
  Line("out", ResultText(r.out_shape, r.options->out_type, r.out_hash, r.options->out));
  Line("lse", ResultText(r.lse_shape, "f32", r.lse_hash, r.options->lse));
}

}  // namespace etalon::cli
