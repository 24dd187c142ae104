// info.h: `etalon info`: what this build can do on this machine.
#ifndef ETALON_CLI_INFO_H_
#define ETALON_CLI_INFO_H_

namespace etalon::cli {

// Returns an exit code.
int Info(bool as_json);

}  // namespace etalon::cli

#endif  // ETALON_CLI_INFO_H_
