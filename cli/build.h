// build.h: how this program was compiled. Nothing of it changes a result.
#ifndef ETALON_CLI_BUILD_H_
#define ETALON_CLI_BUILD_H_

#include <string>

namespace etalon::cli {

struct Build {
  std::string compiler;  // "GNU 12.2.0"
  std::string type;      // "Release"
  std::string flags;     // the user's and the build type's; the project adds its own (cmake/EtalonFlags.cmake)
  std::string system;    // "Linux x86_64"
};

Build ThisBuild();

}  // namespace etalon::cli

#endif  // ETALON_CLI_BUILD_H_
