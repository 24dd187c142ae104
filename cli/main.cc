// main.cc: the command line of `etalon`, and nothing else.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>
#include <string>

#include "cli/command.h"
#include "cli/engine.h"
#include "cli/exit_code.h"

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

  // CLI11 takes `--alibi=` for `--alibi`: a script whose variable is empty would get the default without a word.
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word.rfind("--", 0) != 0 || word.back() != '=') continue;
    std::fprintf(stderr, "etalon: %s has an empty value\n", word.c_str());
    return kExitUsage;
  }
  const Command commands[] = {AddInfo(&app), AddDemo(&app), AddAttend(&app), AddCheck(&app), AddBench(&app)};
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? kExitOk : kExitUsage;  // help and version arrive here too
  }
  for (const Command& command : commands) {
    if (command.options->parsed()) return command.run();
  }
  return kExitUsage;  // not reached: a subcommand is required
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
