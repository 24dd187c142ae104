#include "cli/demo_report.h"

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "cli/accuracy_json.h"
#include "cli/text.h"

namespace etalon::cli {
namespace {

using nlohmann::ordered_json;

int64_t CountRows(const std::vector<Rows>& runs) {
  int64_t count = 0;
  for (const Rows& run : runs) count += run.last - run.first;
  return count;
}

ordered_json ToJson(const Array& a) { return ordered_json::array({a.heads, a.len, a.dim}); }

ordered_json ToJson(const SideBySide& s) {
  ordered_json j = {
      {"rounds", s.rounds}, {"seconds", s.seconds}, {"gflops", s.gflops}, {"times_plain_loop", s.times_plain}};
  const bool known = !s.fma.empty();
  j["limit"] = known ? ordered_json(s.fma) : ordered_json();
  j["percent_of_limit"] = known ? ordered_json(s.percent_of_fma) : ordered_json();
  j["percent_min"] = known ? ordered_json(s.percent_of_fma_min) : ordered_json();
  j["percent_max"] = known ? ordered_json(s.percent_of_fma_max) : ordered_json();
  return j;
}

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
  j["one_thread"] = ToJson(r.one_thread);
  j["plain_loop"] = {{"rows", {r.one_thread.plain_rows.first, r.one_thread.plain_rows.last}},
                     {"gflops", r.one_thread.plain_gflops},
                     {"error", ToJson(r.plain_accuracy)}};
  j["error"] = ToJson(r.accuracy);
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

void PrintLayers(const std::vector<LayerReport>& reports, bool colour) {
  TextTable text;
  text.Column("layer", "", TextTable::Align::kLeft);
  text.Column("heads", "q/kv", TextTable::Align::kRight);
  text.Column("queries", "", TextTable::Align::kRight);
  text.Column("keys", "", TextTable::Align::kRight);
  text.Column("channels", "", TextTable::Align::kRight);
  text.Column("mask", "", TextTable::Align::kLeft);
  text.Column("scale", "", TextTable::Align::kRight);
  text.Column("from", "", TextTable::Align::kLeft);
  for (const LayerReport& r : reports) {
    const Layer& layer = *r.layer;
    text.Row({{layer.name},
              {std::to_string(layer.q.heads) + "/" + std::to_string(layer.k.heads)},
              {std::to_string(layer.q.len)},
              {std::to_string(layer.k.len)},
              {std::to_string(layer.q.dim) + (layer.v.dim == layer.q.dim ? "" : "/" + std::to_string(layer.v.dim))},
              {MaskText(layer.mask)},
              {General(static_cast<double>(layer.scale), 4)},
              {layer.indexed
                   ? layer.model
                   : "not in an index.json beside it: no mask, scale 1/sqrt(" + std::to_string(layer.q.dim) + ")"}});
  }
  std::fputs(text.Text(colour).c_str(), stdout);
}

void PrintSpeedAndError(const std::vector<LayerReport>& reports, int threads, bool colour) {
  const std::string all = std::to_string(threads) + (threads == 1 ? " thread" : " threads");
  TextTable text;
  text.Column("layer", "", TextTable::Align::kLeft);
  text.Column("1 thread", "ms", TextTable::Align::kRight);
  text.Column("", "GFLOP/s", TextTable::Align::kRight);
  text.Column("of FMA", "%", TextTable::Align::kRight);
  text.Column("plain loop", "GFLOP/s", TextTable::Align::kRight);
  text.Column("faster", "times", TextTable::Align::kRight);
  text.Column(all, "ms", TextTable::Align::kRight);
  text.Column("", "GFLOP/s", TextTable::Align::kRight);
  text.Column("error", "rel. RMS", TextTable::Align::kRight);
  text.Column("expected", "rel. RMS", TextTable::Align::kRight);
  text.Column("plain loop", "rel. RMS", TextTable::Align::kRight);
  for (const LayerReport& r : reports) {
    const SideBySide& one = r.one_thread;
    const Tone tone = r.accuracy.ok ? Tone::kGood : Tone::kBad;
    text.Row({{r.layer->name},
              {Fixed(one.seconds * 1e3, 1)},
              {Fixed(one.gflops, 1)},
              {one.fma.empty() ? "?" : Fixed(one.percent_of_fma, 0)},
              {Fixed(one.plain_gflops, 2)},
              {Fixed(one.times_plain, 0)},
              {Fixed(r.seconds * 1e3, 1)},
              {Fixed(r.gflops, 1)},
              {Scientific(r.accuracy.relative_rms, 1), tone},
              {Scientific(r.accuracy.predicted_relative_rms, 1)},
              {Scientific(r.plain_accuracy.relative_rms, 1)}});
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

// "61" or "61 to 75"; values that are equal as text are one.
std::string Range(std::vector<double> values, std::string (*text)(double, int), int digits) {
  std::sort(values.begin(), values.end());
  const std::string low = text(values.front(), digits);
  const std::string high = text(values.back(), digits);
  return low == high ? low : low + " to " + high;
}

// What to take away: the bits, the speed, the error.
void PrintLessons(const std::vector<LayerReport>& reports, const std::vector<TableState>& tables) {
  int64_t equal = 0;
  int64_t compared = 0;
  std::vector<double> percent, times, errors;
  for (const LayerReport& r : reports) {
    for (const OtherTable& other : r.others) {
      ++compared;
      equal += other.same_bits ? 1 : 0;
    }
    if (!r.one_thread.fma.empty()) percent.push_back(r.one_thread.percent_of_fma);
    times.push_back(r.one_thread.times_plain);
    errors.push_back(r.accuracy.relative_rms);
  }
  const auto runs = [](const TableState& table) { return table.available; };
  std::printf(
      "Same bits:  %lld of %lld outputs of other kernel tables equal in every byte (%lld tables can run here).\n",
      static_cast<long long>(equal), static_cast<long long>(compared),
      static_cast<long long>(std::count_if(tables.begin(), tables.end(), runs)));
  const std::string limit =
      percent.empty() ? "" : Range(percent, Fixed, 0) + " % of what one core's multiply-adds allow, ";
  std::printf("Speed:      %s%s times a plain loop at -O3.\n", limit.c_str(), Range(times, Fixed, 0).c_str());
  const bool as_expected =
      std::all_of(reports.begin(), reports.end(), [](const LayerReport& r) { return r.accuracy.ok; });
  std::printf(
      "Error:      %s relative RMS against f64, %s.\n", Range(errors, Scientific, 1).c_str(),
      as_expected ? "of the size that rounding to f32 predicts" : "NOT of the size that rounding to f32 predicts");
}

}  // namespace

void PrintDemoJson(const std::vector<LayerReport>& reports, const std::string& chosen, int threads, bool ok) {
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

void PrintDemoText(const std::vector<LayerReport>& reports, const std::vector<TableState>& tables,
                   const std::string& chosen, int threads, bool ok) {
  const bool colour = WantsColour(stdout);
  std::printf("etalon %s, arithmetic %d, table %s: exact attention, f32 output\n\n", LibraryVersion().c_str(),
              ArithmeticVersion(), chosen.c_str());
  PrintLayers(reports, colour);
  std::printf(
      "\nTime of one thread in turn with a loop of fused multiply-adds, which is this core's limit, and with "
      "three plain\nloops in C++ at -O3; error against f64 on up to %d rows of each head.\n\n",
      static_cast<int>(kReferenceRows));
  PrintSpeedAndError(reports, threads, colour);
  for (const LayerReport& r : reports) {
    if (!r.layer->narrowed.empty()) {
      std::printf("%s: f64 narrowed to f32 in %s\n", r.layer->name.c_str(), Join(r.layer->narrowed, ", ").c_str());
    }
    if (r.accuracy.not_finite > 0) {
      std::printf("%s: %lld elements are finite here and not in f64, or the reverse\n", r.layer->name.c_str(),
                  static_cast<long long>(r.accuracy.not_finite));
    }
  }
  std::printf("\n");
  PrintBits(reports, chosen, colour);
  for (const TableState& table : tables) {
    if (!table.available) std::printf("table %s did not run: %s\n", table.name.c_str(), table.reason.c_str());
  }
  std::printf("\n");
  if (!ok) std::printf("FAILED: the bits or the errors above are not what they must be\n");
  PrintLessons(reports, tables);
}

}  // namespace etalon::cli
