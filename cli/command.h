// command.h: a subcommand of the tool. Each stands in a file of its own, with its options, its help and what it does.
#ifndef ETALON_CLI_COMMAND_H_
#define ETALON_CLI_COMMAND_H_

#include <functional>
#include <string>

namespace CLI {
class App;
}

namespace etalon::cli {

struct Command {
  CLI::App* options;         // parsed() says whether it was asked for
  std::function<int()> run;  // after parsing; returns an exit code
};

// What is wrong with an option's value, as CLI11 asks for it: here, that there is none.
inline std::string EmptyProblem(const std::string& text) { return text.empty() ? "must not be empty" : ""; }

Command AddInfo(CLI::App* tool);
Command AddDemo(CLI::App* tool);
Command AddCheck(CLI::App* tool);
Command AddBench(CLI::App* tool);
Command AddAttend(CLI::App* tool);

}  // namespace etalon::cli

#endif  // ETALON_CLI_COMMAND_H_
