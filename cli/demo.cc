// `etalon demo`: exact attention on real layers.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>

#include "cli/command.h"
#include "cli/demo_layer.h"
#include "cli/demo_report.h"
#include "cli/exit_code.h"
#include "cli/layer.h"
#include "cli/report.h"
#include "cli/shipped_layers.h"

namespace etalon::cli {
namespace {

struct DemoOptions {
  std::vector<std::string> files;  // empty: the layers that come with the tool
  bool as_json = false;
  int threads = 0;  // 0: as many as the process may use
};

int Fail(const std::string& error) {
  std::fprintf(stderr, "etalon demo: %s\n", error.c_str());
  return kExitBadInput;
}

int Demo(const DemoOptions& options) {
  std::string error;
  const std::vector<TableState> tables = Tables(&error);
  if (!error.empty()) return Fail(error);
  const std::string chosen = ChosenOf(tables);
  const int threads = options.threads > 0 ? options.threads : UsableCpus();

  // All files are read before the first one is run: a bad one should not be found after a minute of work.
  std::vector<std::string> files = options.files;
  if (files.empty() && !ShippedLayers(&files, &error)) return Fail(error + ", or name .npz files");
  std::vector<Layer> layers(files.size());
  for (size_t i = 0; i < files.size(); ++i) {
    if (!LoadLayer(files[i], &layers[i], &error)) return Fail(error);
  }

  std::vector<LayerReport> reports;
  bool ok = true;
  {
    Progress progress(LayerWork(tables) * static_cast<double>(layers.size()));
    for (const Layer& layer : layers) {
      reports.push_back(RunLayer(layer, tables, threads, &progress));
      ok = ok && reports.back().ok;
    }
  }
  if (options.as_json) {
    PrintDemoJson(reports, chosen, threads, ok);
  } else {
    PrintDemoText(reports, tables, chosen, threads, ok);
  }
  return ok ? kExitOk : kExitCheckFailed;
}

}  // namespace

Command AddDemo(CLI::App* tool) {
  const auto values = std::make_shared<DemoOptions>();
  CLI::App* options =
      tool->add_subcommand("demo", "Exact attention on real layers: time, error against f64, bits of every table");
  options->add_option(
      "FILE", values->files,
      "Files .npz with arrays q [heads, q_len, d], k and v [kv_heads, kv_len, d] of f16, f32 or f64; an index.json "
      "beside them may give "
      "mask and scale. Default: the layers that come with the tool (or those in the folder ETALON_DEMO_DATA)");
  options->add_flag("--json", values->as_json, "Print JSON");
  options->add_option("--threads", values->threads, "Threads to use. Default: the CPUs that this process may run on")
      ->type_name("N")
      ->check(CLI::Range(1, 1024));
  options->footer("Example:\n  etalon demo layer.npz --threads 2 --json\n  ETALON_TARGET=scalar etalon demo layer.npz");
  return {options, [values] { return Demo(*values); }};
}

}  // namespace etalon::cli
