// doctest's main, with --target=NAME to test one table, --rounds, --draws and --seed for tests that draw calls at
// random (draws.h), and a report of which tables ran.
#define DOCTEST_CONFIG_IMPLEMENT
#include <doctest/doctest.h>

#include <cstdio>
#include <cstring>

#include "tests/support/draws.h"
#include "tests/support/targets.h"

int main(int argc, char** argv) {
  doctest::Context context(argc, argv);
  for (int i = 1; i < argc; ++i) {
    if (i + 1 < argc && etalon::test::TakeDrawFlag(argv[i], argv[i + 1], &etalon::test::RequestedDraws())) ++i;
    constexpr char kFlag[] = "--target=";
    if (std::strncmp(argv[i], kFlag, sizeof(kFlag) - 1) != 0) continue;
    const char* name = argv[i] + sizeof(kFlag) - 1;
    if (!etalon::test::SelectTarget(name)) {
      std::fprintf(stderr, "--target=%s: no such table here\n", name);
      return 2;
    }
  }
  const int result = context.run();
  if (context.shouldExit()) return result;
  bool complete;
  std::fputs(etalon::test::TargetReport(&complete).c_str(), stdout);
  return complete ? result : 1;
}
