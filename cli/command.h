// command.h: a subcommand of the tool. Each stands in a file of its own, with its options, its help and what it does.
#ifndef ETALON_CLI_COMMAND_H_
#define ETALON_CLI_COMMAND_H_

#include <functional>

namespace CLI {
class App;
}

namespace etalon::cli {

struct Command {
  CLI::App* options;         // parsed() says whether it was asked for
  std::function<int()> run;  // after parsing; returns an exit code
};

Command AddInfo(CLI::App* tool);
Command AddDemo(CLI::App* tool);
Command AddCheck(CLI::App* tool);
Command AddBench(CLI::App* tool);
Command AddAttend(CLI::App* tool);

}  // namespace etalon::cli

#endif  // ETALON_CLI_COMMAND_H_
