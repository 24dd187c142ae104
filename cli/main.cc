// main.cc: the command line of `etalon`, and nothing else.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>

#include "cli/demo.h"
#include "cli/engine.h"
#include "cli/exit_code.h"
#include "cli/info.h"

namespace etalon::cli {
namespace {

int Run(int argc, char** argv) {
  CLI::App app("Exact attention on CPUs: the same bits from every kernel table.", "etalon");
  app.require_subcommand(1);
  app.set_version_flag("--version",
                       "etalon " + LibraryVersion() + ", arithmetic " + std::to_string(ArithmeticVersion()));
  app.footer(
      "Exit codes: 0 ok, 1 a check failed, 2 wrong usage, 3 bad input.\n"
      "ETALON_TARGET=NAME forces a kernel table; `etalon info` lists them.");

  bool info_json = false;
  CLI::App* info = app.add_subcommand("info", "What this build can do on this machine: CPU, features, kernel tables");
  info->add_flag("--json", info_json, "Print JSON");
  info->footer("Example:\n  etalon info --json");

  DemoOptions demo_options;
  CLI::App* demo =
      app.add_subcommand("demo", "Exact attention on real layers: time, error against f64, bits of every table");
  demo->add_option(
      "FILE", demo_options.files,
      "Files .npz with arrays q [heads, q_len, d], k and v [kv_heads, kv_len, d]; an index.json beside them may give "
      "mask and scale. Default: the layers in tests/data (or in the folder ETALON_DEMO_DATA)");
  demo->add_flag("--json", demo_options.as_json, "Print JSON");
  demo->add_option("--threads", demo_options.threads, "Threads to use. Default: the CPUs that this process may run on")
      ->type_name("N")
      ->check(CLI::Range(1, 1024));
  demo->footer("Example:\n  etalon demo layer.npz --threads 2 --json\n  ETALON_TARGET=scalar etalon demo layer.npz");

  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? kExitOk : kExitUsage;  // help and version arrive here too
  }
  if (info->parsed()) return Info(info_json);
  return Demo(demo_options);
}

}  // namespace
}  // namespace etalon::cli

int main(int argc, char** argv) {
  int code = etalon::cli::kExitBadInput;
  try {
    code = etalon::cli::Run(argc, argv);
  } catch (const std::exception& error) {  // no memory, for one
    std::fprintf(stderr, "etalon: %s\n", error.what());
    return code;
  }
  if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) {
    std::fprintf(stderr, "etalon: the report could not be written\n");
    return etalon::cli::kExitBadInput;
  }
  return code;
}
