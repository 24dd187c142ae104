// `etalon attend`: attention over arrays from files, into files.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <memory>
#include <tuple>

#include "cli/attend_options.h"
#include "cli/attend_report.h"
#include "cli/command.h"
#include "cli/exit_code.h"
#include "cli/fnv.h"
#include "cli/npy_writer.h"
#include "cli/option_arrays.h"
#include "cli/output_file.h"
#include "cli/reference.h"
#include "cli/report.h"
#include "cli/tensors.h"
#include "cli/text.h"

namespace etalon::cli {
namespace {

constexpr double kReferenceSeconds = 0.5;
constexpr double kSayEverySeconds = 1.0;

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

// The input that this file is, as an error calls it; empty if it is none.
std::string InputThatIs(const OutputFile& file, const AttendOptions& options) {
  for (const std::string& path : options.files) {
    if (file.IsFile(path)) return PrintablePath(path);
  }
  for (const OptionFile& input : OptionFiles(options)) {
    if (file.IsFile(input.path)) return input.option + " " + PrintablePath(input.path);
  }
  return "";
}

// The files must not be each other's, an input's, or where the report goes. An exit code; kExitOk if all is well.
int PrepareOutputs(const AttendOptions& options, OutputFile* out, OutputFile* lse, std::string* error) {
  for (const auto& [option, path, file] :
       {std::tuple<const char*, const std::string&, OutputFile*>{"--out", options.out, out},
        {"--lse", options.lse, lse}}) {
    if (path.empty()) continue;
    const auto input_that_is = [&](const OutputFile& prepared) { return InputThatIs(prepared, options); };
    const int code = PrepareOutput(option, path, input_that_is, file, error);
    if (code != kExitOk) return code;
  }
  if (out->prepared() && lse->prepared() && out->SameAs(*lse) && !out->character_device()) {
    *error = "--lse " + PrintablePath(options.lse) + " is the same file as --out " + Printable(options.out);
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
  constexpr double kQuickFlop = 1e8;  // is over before anybody could read of it
  r->visible_pairs = VisiblePairs(problem, {0, problem.q.len});
  const double flop = Flop(problem, r->visible_pairs);
  const auto start = std::chrono::steady_clock::now();
  if (flop < kQuickFlop) {
    attention->Run();
    r->seconds = SecondsSince(start);
  } else {
    Progress progress(1.0);
    const std::string doing = "attention: " + r->table;
    progress.Say(doing);
    double before = 0.0;
    double shown = 0.0;
    attention->RunInPieces([&](double share) {
      progress.Finish(share - before);
      before = share;
      const double now = SecondsSince(start);
      if (now - shown < kSayEverySeconds || share >= 1.0) return;
      shown = now;
      progress.Say(doing);
    });
    r->seconds = SecondsSince(start);
    progress.Say("exact values in f64");
    r->accuracy = CompareInTime(problem, attention->out());
  }
  r->gflops = flop / std::max(r->seconds, 1e-9) * 1e-9;
  if (flop < kQuickFlop) r->accuracy = CompareInTime(problem, attention->out());
  r->out_shape = ShapeOf(attention->out(), r->tensors->rank);
  r->lse_shape = r->out_shape;
  r->lse_shape.pop_back();
  r->out_hash = Fnv1aBytes(attention->out().bytes.data(), attention->out().bytes.size());
  r->lse_hash = Fnv1aBytes(attention->lse().data(), attention->lse().size() * sizeof(float));
}

int Attend(const AttendOptions& options) {
  LetWritesFail();

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
  report.table = ChosenOf(tables);
  report.threads = options.threads > 0 ? options.threads : UsableCpus();
  report.mask = MaskOf(options, tensors.q.len, tensors.k.len);
  report.scale = DefaultScaleOf(tensors.q.dim);
  if (!options.scale.empty()) ParseScale(options.scale, &report.scale, &error);
  Problem problem = {tensors.q, tensors.k, tensors.v, report.mask, report.scale};
  if (!ReadScoreOptions(options, tensors, &problem.options, &report.arrays, &error)) {
    return Fail(kExitBadInput, error);
  }
  report.softcap = problem.options.softcap;
  PlannedAttention attention(report.table, problem, {0, tensors.q.len}, report.threads,
                             options.out_type == "f16" ? ElementKind::kF16 : ElementKind::kF32);
  Compute(problem, &attention, &report);

  // The report comes before the files are put in place, for it may fail too.
  if (!WriteBoth(attention, report, &out, &lse, &error)) return Fail(kExitBadInput, error);
  if (options.as_json) {
    PrintAttendJson(report);
  } else {
    PrintAttendText(report);
  }
  if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) return kExitBadInput;  // main says so
  if (!CommitBoth(&out, &lse, &error)) return Fail(kExitBadInput, error);
  return report.accuracy.ok ? kExitOk : kExitCheckFailed;
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
