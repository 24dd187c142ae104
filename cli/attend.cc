// `etalon attend`: attention over arrays from files, into files.
#include <sys/stat.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/attend_options.h"
#include "cli/command.h"
#include "cli/exit_code.h"
#include "cli/fnv.h"
#include "cli/npy_writer.h"
#include "cli/output_file.h"
#include "cli/reference.h"
#include "cli/report.h"
#include "cli/tensors.h"
#include "cli/text.h"

namespace etalon::cli {
namespace {

using nlohmann::ordered_json;

constexpr double kReferenceSeconds = 0.5;

struct AttendReport {
  const AttendOptions* options;
  const Tensors* tensors;
  std::string table;
  int threads;
  Mask mask;
  float scale;
  int64_t visible_pairs;  // of all heads
  double seconds = 0.0;   // of one run
  double gflops = 0.0;
  Accuracy accuracy;
  std::vector<int64_t> out_shape;
  std::vector<int64_t> lse_shape;
  uint64_t out_hash = 0;
  uint64_t lse_hash = 0;
};

double SecondsSince(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

int Fail(int code, const std::string& error) {
  std::fprintf(stderr, "etalon attend: %s\n", error.c_str());
  return code;
}

// As much of the output as kReferenceSeconds allow: first more heads, then more rows of each.
Accuracy CompareInTime(const Problem& problem, const Array& out) {
  const auto start = std::chrono::steady_clock::now();
  const int64_t all_heads = problem.q.batch * problem.q.heads;
  const int64_t len = problem.q.len;
  const auto compare = [&](int64_t heads, int64_t rows, double* seconds) {
    const auto step = std::chrono::steady_clock::now();
    const Accuracy accuracy = Compare(problem, out, SpreadRows(len, rows), SpreadRows(all_heads, heads));
    *seconds = SecondsSince(step);
    return accuracy;
  };
  int64_t heads = 1;
  int64_t rows = std::min<int64_t>(2, len);
  double seconds;
  Accuracy accuracy = compare(heads, rows, &seconds);
  const auto time_for_four = [&] { return SecondsSince(start) + 4.0 * seconds < kReferenceSeconds; };
  while (heads < all_heads && time_for_four()) {
    heads = std::min(all_heads, 4 * heads);
    accuracy = compare(heads, rows, &seconds);
  }
  if (heads < all_heads || rows == len || !time_for_four()) return accuracy;
  const double seconds_before = seconds;
  const int64_t few = rows;
  rows = std::min(len, 4 * rows);
  accuracy = compare(heads, rows, &seconds);
  // What a head costs whatever its rows has shown itself by now.
  const double row_seconds = std::max((seconds - seconds_before) / static_cast<double>(rows - few), 1e-9);
  const double left = kReferenceSeconds - SecondsSince(start) - seconds;
  const int64_t more = left > 0.0 ? static_cast<int64_t>(left / row_seconds) : 0;
  if (rows == len || more < rows) return accuracy;
  return compare(heads, std::min(len, rows + more), &seconds);
}

std::string HashText(uint64_t hash) { return "fnv1a64:" + Hex64(hash); }

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

void PrintJson(const AttendReport& r) {
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
  j["error"] = {{"heads", r.accuracy.heads},
                {"rows_of_each_head", r.accuracy.rows},
                {"max_abs", r.accuracy.max_abs},
                {"relative_rms", r.accuracy.relative_rms},
                {"predicted_relative_rms", r.accuracy.predicted_relative_rms},
                {"not_finite", r.accuracy.not_finite},
                {"ok", r.accuracy.ok}};
  j["out"] = ToJson(r.out_shape, r.options->out_type, r.out_hash, r.options->out);
  j["lse"] = ToJson(r.lse_shape, "f32", r.lse_hash, r.options->lse);
  // A file's name may be any bytes, JSON is UTF-8.
  std::printf("%s\n", j.dump(2, ' ', false, ordered_json::error_handler_t::replace).c_str());
}

void Line(const char* name, const std::string& text) { std::printf("%-5s  %s\n", name, text.c_str()); }

std::string ArrayText(const Array& array, NpyType stored, int rank) {
  return ShapeText(ShapeOf(array, rank)) + " " + NpyTypeName(stored) +
         (stored == NpyType::kF64 ? ", narrowed to f32" : "");
}

std::string ResultText(const std::vector<int64_t>& shape, const std::string& type, uint64_t hash,
                       const std::string& file) {
  return ShapeText(shape) + " " + type + ", " + HashText(hash) +
         (file.empty() ? ", not written" : ", written to " + Printable(file));
}

void PrintText(const AttendReport& r) {
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
  if (a.not_finite > 0) {
    Line("", std::to_string(a.not_finite) + " elements are finite here and not in f64, or the reverse");
  } else if (!a.ok) {
    Line("", "the error is far above what rounding explains");
  }
  Line("out", ResultText(r.out_shape, r.options->out_type, r.out_hash, r.options->out));
  Line("lse", ResultText(r.lse_shape, "f32", r.lse_hash, r.options->lse));
}

// The files must not be each other's, an input's, or where the report goes. An exit code; kExitOk if all is well.
int PrepareOutputs(const AttendOptions& options, OutputFile* out, OutputFile* lse, std::string* error) {
  for (const auto& [option, path, file] :
       {std::tuple<const char*, const std::string&, OutputFile*>{"--out", options.out, out},
        {"--lse", options.lse, lse}}) {
    if (path.empty()) continue;
    if (!file->Prepare(path, error)) {
      *error = std::string(option) + " " + *error;
      return kExitBadInput;
    }
    const std::string named = std::string(option) + " " + Printable(path);
    struct stat other;
    for (const std::string& input : options.files) {
      if (stat(input.c_str(), &other) != 0 || !file->SameAs(other)) continue;
      *error = named + " is the same file as the input " + Printable(input);
      return kExitUsage;
    }
    // Of /dev/null nothing is lost.
    if (fstat(STDOUT_FILENO, &other) == 0 && file->SameAs(other) && !S_ISCHR(other.st_mode)) {
      *error = named + " is the standard output, where the report goes";
      return kExitUsage;
    }
  }
  if (out->prepared() && lse->prepared() && out->SameAs(*lse)) {
    *error = "--lse " + Printable(options.lse) + " is the same file as --out " + Printable(options.out);
    return kExitUsage;
  }
  return kExitOk;
}

// Regular files first: what was written into a pipe cannot be taken back.
bool WriteBoth(const PlannedAttention& attention, const AttendReport& r, OutputFile* out, OutputFile* lse,
               std::string* error) {
  const Array& values = attention.out();
  const std::vector<float>& sums = attention.lse();
  const NpyType out_type = values.type == ElementKind::kF16 ? NpyType::kF16 : NpyType::kF32;
  for (const bool direct : {false, true}) {
    if (out->prepared() && out->direct() == direct &&
        !out->Write(NpyHeader(out_type, r.out_shape), values.bytes.data(), values.bytes.size(), error)) {
      return false;
    }
    if (lse->prepared() && lse->direct() == direct &&
        !lse->Write(NpyHeader(NpyType::kF32, r.lse_shape), sums.data(), sums.size() * sizeof(float), error)) {
      return false;
    }
  }
  return true;
}

bool CommitBoth(OutputFile* out, OutputFile* lse, std::string* error) {
  if (out->prepared() && !out->Commit(error)) return false;
  if (!lse->prepared() || lse->Commit(error)) return true;
  out->Withdraw();
  return false;
}

void Compute(const Problem& problem, PlannedAttention* attention, AttendReport* r) {
  Progress progress;
  progress.Say("attention: " + r->table);
  const auto start = std::chrono::steady_clock::now();
  attention->Run();
  r->seconds = SecondsSince(start);
  // A multiplication and an addition for each channel of the score and of the value.
  const double flop = 2.0 * static_cast<double>(r->visible_pairs) * static_cast<double>(problem.q.dim + problem.v.dim);
  r->gflops = flop / std::max(r->seconds, 1e-9) * 1e-9;
  progress.Say("exact values in f64");
  r->accuracy = CompareInTime(problem, attention->out());
  r->out_shape = ShapeOf(attention->out(), r->tensors->rank);
  r->lse_shape = r->out_shape;
  r->lse_shape.pop_back();
  r->out_hash = Fnv1aBytes(attention->out().bytes.data(), attention->out().bytes.size());
  r->lse_hash = Fnv1aBytes(attention->lse().data(), attention->lse().size() * sizeof(float));
}

int Attend(const AttendOptions& options) {
  // Where nobody reads and where a file may not grow, writing must fail, not end the process with files half written.
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);

  std::string error;
  const std::vector<TableState> tables = Tables(&error, options.target);
  if (!error.empty()) return Fail(kExitBadInput, error);
  OutputFile out;
  OutputFile lse;
  const int outputs = PrepareOutputs(options, &out, &lse, &error);
  if (outputs != kExitOk) return Fail(outputs, error);
  Tensors tensors;
  if (!ReadTensors(options.files, true, &tensors, &error)) return Fail(kExitBadInput, error);

  AttendReport report;
  report.options = &options;
  report.tensors = &tensors;
  for (const TableState& table : tables) report.table = table.chosen ? table.name : report.table;
  report.threads = options.threads > 0 ? options.threads : UsableCpus();
  report.mask = MaskOf(options, tensors.q.len, tensors.k.len);
  report.scale = DefaultScaleOf(tensors.q.dim);
  if (!options.scale.empty()) ParseScale(options.scale, &report.scale, &error);
  report.visible_pairs = tensors.q.batch * tensors.q.heads * VisiblePairs(report.mask, tensors.q.len, tensors.k.len);
  const Problem problem = {tensors.q, tensors.k, tensors.v, report.mask, report.scale};
  PlannedAttention attention(report.table, problem, {0, tensors.q.len}, report.threads,
                             options.out_type == "f16" ? ElementKind::kF16 : ElementKind::kF32);
  Compute(problem, &attention, &report);

  // The report comes before the files are put in place, for it may fail too.
  if (!WriteBoth(attention, report, &out, &lse, &error)) return Fail(kExitBadInput, error);
  if (options.as_json) {
    PrintJson(report);
  } else {
    PrintText(report);
  }
  if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) return kExitBadInput;  // main says so
  if (!CommitBoth(&out, &lse, &error)) return Fail(kExitBadInput, error);
  return kExitOk;
}

}  // namespace

Command AddAttend(CLI::App* tool) {
  const auto values = std::make_shared<AttendOptions>();
  CLI::App* options =
      tool->add_subcommand("attend", "Exact attention over arrays from .npy or .npz files, into .npy files");
  AddAttendOptions(options, values.get());
  return {options, [values] { return Attend(*values); }};
}

}  // namespace etalon::cli
