#include "cli/demo.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/command.h"
#include "cli/exit_code.h"
#include "cli/layer.h"
#include "cli/reference.h"
#include "cli/report.h"
#include "cli/text.h"

namespace etalon::cli {
namespace {

using nlohmann::ordered_json;

constexpr const char* kShipped[] = {"whisper_cross2.npz", "whisper_enc1_n1500.npz", "minilm_L0_n512.npz"};
constexpr int kRuns = 3;
constexpr double kSlowRunSeconds = 4.0;     // a run that takes longer is not repeated
constexpr double kOtherTableSeconds = 2.0;  // what another table may take for the comparison of one layer
constexpr int64_t kRunRows = 32;            // rows of one run of a limited comparison
constexpr int64_t kReferenceRows = 32;      // of each head

struct DemoOptions {
  std::vector<std::string> files;  // empty: the layers that come with the source
  bool as_json = false;
  int threads = 0;  // 0: as many as the process may use
};

struct OtherTable {
  std::string name;
  std::vector<Rows> rows;
  uint64_t hash = kFnvStart;
  uint64_t chosen_hash = kFnvStart;  // of the same rows
  bool same_bits = true;
};

struct LayerReport {
  const Layer* layer;
  int64_t visible_pairs = 0;  // of all heads
  int runs = 0;
  double seconds = 0.0;  // median
  double gflops = 0.0;
  Accuracy accuracy;
  uint64_t hash = 0;
  std::vector<OtherTable> others;
  bool ok = true;
};

// Calls work and returns the seconds that it took.
template <typename Work>
double Timed(const Work& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

Problem ProblemOf(const Layer& layer) { return {layer.q, layer.k, layer.v, layer.mask, layer.scale}; }

// Runs the chosen table on the whole layer, often enough for a median unless that takes too long.
std::vector<float> RunChosen(const std::string& table, const Problem& problem, int threads, LayerReport* report) {
  std::vector<float> out;
  std::vector<double> times;
  while (times.size() < kRuns && (times.empty() || times[0] < kSlowRunSeconds)) {
    times.push_back(Timed([&] { out = Attend(table, problem, {0, problem.q.len}, threads); }));
  }
  std::sort(times.begin(), times.end());
  report->runs = static_cast<int>(times.size());
  report->seconds = times[times.size() / 2];
  return out;
}

// Compares another table with the chosen one's output; on some rows only, if all of them would take too long.
OtherTable RunOther(const std::string& table, const Problem& problem, const std::vector<float>& chosen, int threads) {
  OtherTable other;
  other.name = table;
  const int64_t len = problem.q.len;
  other.rows = {{0, len}};
  if (len > kRunRows) {
    // In the middle, where a causal row is as long as the average one.
    const int64_t first = (len - kRunRows) / 2;
    const double seconds = Timed([&] { Attend(table, problem, {first, first + kRunRows}, threads); });
    const double pieces = kOtherTableSeconds / std::max(seconds, 1e-9);
    const double all = static_cast<double>(len) / static_cast<double>(kRunRows);
    if (pieces < all) other.rows = SpreadRuns(len, kRunRows, std::max<int64_t>(2, static_cast<int64_t>(pieces)));
  }
  for (const Rows& rows : other.rows) {
    const std::vector<float> mine = Attend(table, problem, rows, threads);
    const std::vector<float> theirs = TakeRows(chosen, problem.q.heads, len, problem.v.dim, rows);
    other.hash = Fnv1a(mine.data(), mine.size(), other.hash);
    other.chosen_hash = Fnv1a(theirs.data(), theirs.size(), other.chosen_hash);
    if (std::memcmp(mine.data(), theirs.data(), mine.size() * sizeof(float)) != 0) other.same_bits = false;
  }
  return other;
}

LayerReport RunLayer(const Layer& layer, const std::vector<TableState>& tables, int threads, Progress* progress) {
  LayerReport report;
  report.layer = &layer;
  const Problem problem = ProblemOf(layer);
  report.visible_pairs = layer.q.heads * VisiblePairs(layer.mask, layer.q.len, layer.k.len);
  std::string chosen;
  for (const TableState& table : tables) chosen = table.chosen ? table.name : chosen;

  progress->Say(layer.name + ": " + chosen);
  const std::vector<float> out = RunChosen(chosen, problem, threads, &report);
  // A multiplication and an addition for each channel of the score and of the value.
  const double flop = 2.0 * static_cast<double>(report.visible_pairs) * static_cast<double>(layer.q.dim + layer.v.dim);
  report.gflops = flop / std::max(report.seconds, 1e-9) * 1e-9;
  report.hash = Fnv1a(out.data(), out.size());

  progress->Say(layer.name + ": exact values in f64");
  report.accuracy = Compare(problem, out, SpreadRows(layer.q.len, kReferenceRows));
  report.ok = report.accuracy.ok;

  for (const TableState& table : tables) {
    if (!table.available || table.chosen) continue;
    progress->Say(layer.name + ": the same bits from " + table.name + "?");
    report.others.push_back(RunOther(table.name, problem, out, threads));
    report.ok = report.ok && report.others.back().same_bits;
  }
  return report;
}

int64_t CountRows(const std::vector<Rows>& runs) {
  int64_t count = 0;
  for (const Rows& run : runs) count += run.last - run.first;
  return count;
}

ordered_json ToJson(const Array& a) { return ordered_json::array({a.heads, a.len, a.dim}); }

std::string HashText(uint64_t hash) { return "fnv1a64:" + Hex64(hash); }

ordered_json ToJson(const LayerReport& r, const std::string& chosen) {
  const Layer& layer = *r.layer;
  ordered_json j;
  j["name"] = layer.name;
  j["model"] = layer.model.empty() ? ordered_json() : ordered_json(layer.model);
  j["q"] = ToJson(layer.q);
  j["k"] = ToJson(layer.k);
  j["v"] = ToJson(layer.v);
  j["types"] = {ElementKindName(layer.q.type), ElementKindName(layer.k.type), ElementKindName(layer.v.type)};
  j["narrowed"] = layer.narrowed;
  j["indexed"] = layer.indexed;
  j["mask"] = layer.mask.right < 0 ? "none" : layer.mask.left < 0 ? "causal" : "window";
  j["window"] = layer.mask.left < 0 ? ordered_json() : ordered_json(layer.mask.left + 1);
  j["scale"] = layer.scale;
  j["visible_pairs"] = r.visible_pairs;
  j["runs"] = r.runs;
  j["seconds"] = r.seconds;
  j["gflops"] = r.gflops;
  j["error"] = {
      {"rows_of_each_head", r.accuracy.rows},    {"max_abs", r.accuracy.max_abs},
      {"relative_rms", r.accuracy.relative_rms}, {"predicted_relative_rms", r.accuracy.predicted_relative_rms},
      {"not_finite", r.accuracy.not_finite},     {"ok", r.accuracy.ok}};
  j["hash"] = HashText(r.hash);
  j["tables"] = ordered_json::array();
  j["tables"].push_back(
      {{"name", chosen}, {"rows", {{0, layer.q.len}}}, {"hash", HashText(r.hash)}, {"same_bits", true}});
  for (const OtherTable& other : r.others) {
    ordered_json runs = ordered_json::array();
    for (const Rows& run : other.rows) runs.push_back({run.first, run.last});
    j["tables"].push_back({{"name", other.name},
                           {"rows", runs},
                           {"hash", HashText(other.hash)},
                           {"hash_of_chosen", HashText(other.chosen_hash)},
                           {"same_bits", other.same_bits}});
  }
  j["ok"] = r.ok;
  return j;
}

void PrintJson(const std::vector<LayerReport>& reports, const std::string& chosen, int threads, bool ok) {
  ordered_json report;
  report["version"] = LibraryVersion();
  report["arithmetic"] = ArithmeticVersion();
  report["table"] = chosen;
  report["threads"] = threads;
  report["layers"] = ordered_json::array();
  for (const LayerReport& r : reports) report["layers"].push_back(ToJson(r, chosen));
  report["ok"] = ok;
  std::printf("%s\n", report.dump(2).c_str());
}

void PrintSpeedAndError(const std::vector<LayerReport>& reports, bool colour) {
  TextTable text;
  text.Column("layer", "", TextTable::Align::kLeft);
  text.Column("heads", "q/kv", TextTable::Align::kRight);
  text.Column("queries", "", TextTable::Align::kRight);
  text.Column("keys", "", TextTable::Align::kRight);
  text.Column("channels", "", TextTable::Align::kRight);
  text.Column("mask", "", TextTable::Align::kLeft);
  text.Column("scale", "", TextTable::Align::kRight);
  text.Column("time", "ms", TextTable::Align::kRight);
  text.Column("speed", "GFLOP/s", TextTable::Align::kRight);
  text.Column("error", "max abs", TextTable::Align::kRight);
  text.Column("error", "rel. RMS", TextTable::Align::kRight);
  text.Column("expected", "rel. RMS", TextTable::Align::kRight);
  for (const LayerReport& r : reports) {
    const Layer& layer = *r.layer;
    const Tone tone = r.accuracy.ok ? Tone::kGood : Tone::kBad;
    text.Row({{layer.name},
              {std::to_string(layer.q.heads) + "/" + std::to_string(layer.k.heads)},
              {std::to_string(layer.q.len)},
              {std::to_string(layer.k.len)},
              {std::to_string(layer.q.dim) + (layer.v.dim == layer.q.dim ? "" : "/" + std::to_string(layer.v.dim))},
              {MaskText(layer.mask)},
              {General(static_cast<double>(layer.scale), 4)},
              {Fixed(r.seconds * 1e3, 1)},
              {Fixed(r.gflops, 2)},
              {Scientific(r.accuracy.max_abs, 1), tone},
              {Scientific(r.accuracy.relative_rms, 1), tone},
              {Scientific(r.accuracy.predicted_relative_rms, 1)}});
  }
  std::fputs(text.Text(colour).c_str(), stdout);
}

std::string RowsText(const std::vector<Rows>& runs, int64_t len) {
  const int64_t count = CountRows(runs);
  if (count == len) return "all " + std::to_string(len);
  return std::to_string(count) + " of " + std::to_string(len) + ", in " + std::to_string(runs.size()) + " runs";
}

void PrintBits(const std::vector<LayerReport>& reports, const std::string& chosen, bool colour) {
  TextTable text;
  text.Column("layer", "", TextTable::Align::kLeft);
  text.Column("table", "", TextTable::Align::kLeft);
  text.Column("rows of each head", "", TextTable::Align::kLeft);
  text.Column("hash of the output", "FNV-1a 64", TextTable::Align::kLeft);
  text.Column(chosen, "same rows", TextTable::Align::kLeft);
  text.Column("same bits", "", TextTable::Align::kLeft);
  for (const LayerReport& r : reports) {
    const int64_t len = r.layer->q.len;
    text.Row({{r.layer->name}, {chosen}, {RowsText({{0, len}}, len)}, {Hex64(r.hash)}, {""}, {""}});
    for (const OtherTable& other : r.others) {
      text.Row({{""},
                {other.name},
                {RowsText(other.rows, len)},
                {Hex64(other.hash)},
                {Hex64(other.chosen_hash)},
                {other.same_bits ? "yes" : "NO", other.same_bits ? Tone::kGood : Tone::kBad}});
    }
  }
  std::fputs(text.Text(colour).c_str(), stdout);
}

void PrintText(const std::vector<LayerReport>& reports, const std::vector<TableState>& tables,
               const std::string& chosen, int threads, bool ok) {
  const bool colour = WantsColour(stdout);
  std::printf("etalon %s, arithmetic %d, table %s, %d thread%s\n", LibraryVersion().c_str(), ArithmeticVersion(),
              chosen.c_str(), threads, threads == 1 ? "" : "s");
  std::printf("Exact attention, f32 output; error against f64 on up to %d rows of each head.\n\n",
              static_cast<int>(kReferenceRows));
  PrintSpeedAndError(reports, colour);
  std::printf("\n");
  for (const LayerReport& r : reports) {
    const Layer& layer = *r.layer;
    if (!layer.indexed) {
      std::printf("%s: no entry in an index.json beside it, so no mask and the default scale 1/sqrt(%lld)\n",
                  layer.name.c_str(), static_cast<long long>(layer.q.dim));
    } else if (!layer.model.empty()) {
      std::printf("%s: %s\n", layer.name.c_str(), layer.model.c_str());
    }
    if (!layer.narrowed.empty()) {
      std::printf("%s: f64 narrowed to f32 in %s\n", layer.name.c_str(), Join(layer.narrowed, ", ").c_str());
    }
    if (r.runs < kRuns) std::printf("%s: slow, so the time is that of one run\n", layer.name.c_str());
    if (r.accuracy.not_finite > 0) {
      std::printf("%s: %lld elements are finite here and not in f64, or the reverse\n", layer.name.c_str(),
                  static_cast<long long>(r.accuracy.not_finite));
    }
  }
  std::printf("\n");
  PrintBits(reports, chosen, colour);
  for (const TableState& table : tables) {
    if (!table.available) std::printf("table %s did not run: %s\n", table.name.c_str(), table.reason.c_str());
  }
  std::printf("\n%s\n", ok ? "ok: every table gives the same bits, and the error is of the expected size"
                           : "FAILED: the bits or the errors above are not what they must be");
}

// The layers that come with the source, from the folder that ETALON_DEMO_DATA names or the one known at build time.
bool ShippedFiles(std::vector<std::string>* files, std::string* error) {
  const char* variable = std::getenv("ETALON_DEMO_DATA");
  const bool named = variable != nullptr && variable[0] != '\0';
  const std::filesystem::path folder = named ? variable : ETALON_CLI_DATA;
  for (const char* name : kShipped) {
    const std::filesystem::path file = folder / name;
    std::error_code ignored;
    if (!std::filesystem::is_regular_file(file, ignored)) {
      *error = "no example data: " + Printable(file.string()) +
               " is missing; set ETALON_DEMO_DATA to the folder tests/data of the source, " + "or name .npz files";
      return false;
    }
    files->push_back(file.string());
  }
  return true;
}

int Fail(const std::string& error) {
  std::fprintf(stderr, "etalon demo: %s\n", error.c_str());
  return kExitBadInput;
}

}  // namespace

uint64_t Fnv1a(const float* values, size_t count, uint64_t hash) {
  for (size_t i = 0; i < count; ++i) {
    uint32_t word;
    std::memcpy(&word, &values[i], sizeof word);
    for (int byte = 0; byte < 4; ++byte) {
      hash = (hash ^ (word >> 8 * byte & 0xFF)) * 0x100000001B3u;
    }
  }
  return hash;
}

std::vector<Rows> SpreadRuns(int64_t len, int64_t size, int64_t pieces) {
  if (pieces < 1 || pieces >= len / size) return {{0, len}};
  std::vector<Rows> runs;
  for (int64_t i = 0; i < pieces; ++i) {
    const int64_t first = pieces == 1 ? 0 : i * (len - size) / (pieces - 1);
    runs.push_back({first, first + size});
  }
  return runs;
}

std::vector<float> TakeRows(const std::vector<float>& out, int64_t heads, int64_t len, int64_t dim, Rows rows) {
  std::vector<float> taken;
  for (int64_t head = 0; head < heads; ++head) {
    const auto begin = out.begin() + (head * len + rows.first) * dim;
    taken.insert(taken.end(), begin, begin + (rows.last - rows.first) * dim);
  }
  return taken;
}

namespace {

int Demo(const DemoOptions& options) {
  std::string error;
  const std::vector<TableState> tables = Tables(&error);
  if (!error.empty()) return Fail(error);
  std::string chosen;
  for (const TableState& table : tables) chosen = table.chosen ? table.name : chosen;
  const int threads = options.threads > 0 ? options.threads : UsableCpus();

  // All files are read before the first one is run: a bad one should not be found after a minute of work.
  std::vector<std::string> files = options.files;
  if (files.empty() && !ShippedFiles(&files, &error)) return Fail(error);
  std::vector<Layer> layers(files.size());
  for (size_t i = 0; i < files.size(); ++i) {
    if (!LoadLayer(files[i], &layers[i], &error)) return Fail(error);
  }

  std::vector<LayerReport> reports;
  bool ok = true;
  {
    Progress progress;
    for (const Layer& layer : layers) {
      reports.push_back(RunLayer(layer, tables, threads, &progress));
      ok = ok && reports.back().ok;
    }
  }
  if (options.as_json) {
    PrintJson(reports, chosen, threads, ok);
  } else {
    PrintText(reports, tables, chosen, threads, ok);
  }
  return ok ? kExitOk : kExitCheckFailed;
}

}  // namespace

Command AddDemo(CLI::App* tool) {
  const auto values = std::make_shared<DemoOptions>();
  CLI::App* options =
      tool->add_subcommand("demo", "Exact attention on real layers: time, error against f64, bits of every table");
  options->add_option("FILE", values->files,
                      "Files .npz with arrays q [heads, q_len, d], k and v [kv_heads, kv_len, d] of f16, f32 or f64; "
                      "an index.json beside them may give "
                      "mask and scale. Default: the layers in tests/data (or in the folder ETALON_DEMO_DATA)");
  options->add_flag("--json", values->as_json, "Print JSON");
  options->add_option("--threads", values->threads, "Threads to use. Default: the CPUs that this process may run on")
      ->type_name("N")
      ->check(CLI::Range(1, 1024));
  options->footer("Example:\n  etalon demo layer.npz --threads 2 --json\n  ETALON_TARGET=scalar etalon demo layer.npz");
  return {options, [values] { return Demo(*values); }};
}

}  // namespace etalon::cli
