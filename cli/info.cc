// `etalon info`: what this build can do on this machine.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/build.h"
#include "cli/command.h"
#include "cli/engine.h"
#include "cli/exit_code.h"
#include "cli/report.h"
#include "cli/text.h"

namespace etalon::cli {
namespace {

void PrintJson(const std::vector<TableState>& tables) {
  nlohmann::ordered_json report;
  report["version"] = LibraryVersion();
  report["arithmetic"] = ArithmeticVersion();
  report["cpu"]["name"] = CpuName();
  report["cpu"]["features"] = CpuFeatureNames();
  report["tables"] = nlohmann::ordered_json::array();
  for (const TableState& t : tables) {
    report["tables"].push_back({{"name", t.name},
                                {"backend", t.backend},
                                {"available", t.available},
                                {"chosen", t.chosen},
                                {"reason", t.reason}});
  }
  const Build build = ThisBuild();
  report["build"] = {
      {"compiler", build.compiler}, {"type", build.type}, {"flags", build.flags}, {"system", build.system}};
  std::printf("%s\n", report.dump(2).c_str());
}

void PrintText(const std::vector<TableState>& tables) {
  std::printf("etalon %s, arithmetic %d\n", LibraryVersion().c_str(), ArithmeticVersion());
  std::printf("cpu       %s\n", CpuName().c_str());
  std::printf("features  %s\n", Join(CpuFeatureNames(), " ").c_str());
  const Build build = ThisBuild();
  std::printf("build     %s for %s, %s%s%s\n\n", build.compiler.c_str(), build.system.c_str(),
              build.type.empty() ? "no build type" : build.type.c_str(), build.flags.empty() ? "" : ": ",
              build.flags.c_str());
  TextTable text;
  for (const char* name : {"table", "backend", "available", "chosen", "reason"})
    text.Column(name, "", TextTable::Align::kLeft);
  for (const TableState& t : tables) {
    text.Row({{t.name},
              {t.backend},
              {t.available ? "yes" : "no"},
              {t.chosen ? "yes" : "no", t.chosen ? Tone::kGood : Tone::kPlain},
              {t.reason}});
  }
  std::fputs(text.Text(WantsColour(stdout)).c_str(), stdout);
}

int Info(bool as_json) {
  std::string error;
  const std::vector<TableState> tables = Tables(&error);
  if (as_json) {
    PrintJson(tables);
  } else {
    PrintText(tables);
  }
  if (error.empty()) return kExitOk;
  std::fprintf(stderr, "etalon info: %s\n", error.c_str());
  return kExitBadInput;
}

}  // namespace

Command AddInfo(CLI::App* tool) {
  const auto as_json = std::make_shared<bool>(false);
  CLI::App* options =
      tool->add_subcommand("info", "What this build can do on this machine: CPU, features, kernel tables");
  options->add_flag("--json", *as_json, "Print JSON");
  options->footer("Example:\n  etalon info --json");
  return {options, [as_json] { return Info(*as_json); }};
}

}  // namespace etalon::cli
