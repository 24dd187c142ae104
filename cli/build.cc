#include "cli/build.h"

namespace etalon::cli {

// The macros are CMake's (CMakeLists.txt).
Build ThisBuild() { return {ETALON_CLI_COMPILER, ETALON_CLI_BUILD_TYPE, ETALON_CLI_FLAGS, ETALON_CLI_SYSTEM}; }

}  // namespace etalon::cli
