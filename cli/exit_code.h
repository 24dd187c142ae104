// exit_code.h: what the tool's exit codes mean; scripts rely on them.
#ifndef ETALON_CLI_EXIT_CODE_H_
#define ETALON_CLI_EXIT_CODE_H_

namespace etalon::cli {

enum ExitCode {
  kExitOk = 0,
  kExitCheckFailed = 1,  // the tool ran, and what it checked does not hold
  kExitUsage = 2,        // the command line makes no sense
  kExitBadInput = 3,     // a file, a variable or this machine does not offer what was asked for
};

}  // namespace etalon::cli

#endif  // ETALON_CLI_EXIT_CODE_H_
