// etalon_digest: prints, writes or checks the golden digest, on every table that this CPU can run.
//   etalon_digest [--check FILE | --write FILE] [--host default|flush|down|up|zero]
// --host puts the process into a floating-point state that a host program might be in; results must not change, and the
// state must be the same after every call. Exit code 1: some hash differs, a call changed the host's state, or this CPU
// can run no table.
#include <cstdio>
#include <cstring>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "arch/dispatch.h"
#include "tests/golden/digest.h"
#include "tests/support/host_environment.h"
#include "tests/support/targets.h"

namespace etalon::test {
namespace {

struct Options {
  std::string check, write, host = "default";
};

bool Parse(int argc, char** argv, Options* options) {
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string flag = argv[i];
    if (flag == "--check") {
      options->check = argv[i + 1];
    } else if (flag == "--write") {
      options->write = argv[i + 1];
    } else if (flag == "--host") {
      options->host = argv[i + 1];
    } else {
      return false;
    }
  }
  return argc % 2 == 1;
}

std::string ReadFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

// Prints the first line that differs.
void PrintDifference(const char* table, const std::string& got, const std::string& want) {
  std::istringstream got_lines(got), want_lines(want);
  std::string g, w;
  while (std::getline(got_lines, g) && std::getline(want_lines, w) && g == w) {
  }
  std::printf("%s: got \"%s\", want \"%s\"\n", table, g.c_str(), w.c_str());
}

int Main(const Options& options) {
  std::string want = options.check.empty() ? "" : ReadFile(options.check);
  if (!options.check.empty() && want.empty()) {
    std::printf("%s: cannot be read\n", options.check.c_str());
    return 2;
  }
  const std::vector<KernelTable> tables = Tables();
  if (tables.empty()) {
    bool complete;
    std::fputs(TargetReport(&complete).c_str(), stdout);
    return 1;
  }
  int result = 0;
  for (const KernelTable& table : tables) {
    if (!SetHostEnvironment(options.host)) {
      std::printf("no floating-point state \"%s\" on this architecture\n", options.host.c_str());
      return 77;
    }
    const uint64_t before = HostControl();
    const std::string got = FormatDigest(ComputeDigest(table));
    if (HostControl() != before) {  // not the flags, which the harness itself raises: environment_test looks at those
      std::printf("%s: the floating-point state was changed\n", table.name);
      result = 1;
    }
    SetHostEnvironment("default");
    if (want.empty()) {
      want = got;
      std::fputs(got.c_str(), stdout);
    }
    if (got != want) {
      PrintDifference(table.name, got, want);
      result = 1;
    } else {
      std::printf("%s: equal (host state %s)\n", table.name, options.host.c_str());
    }
  }
  if (result == 0 && !options.write.empty()) std::ofstream(options.write, std::ios::binary) << want;
  return result;
}

}  // namespace
}  // namespace etalon::test

int main(int argc, char** argv) {
  etalon::test::Options options;
  if (!etalon::test::Parse(argc, argv, &options)) {
    std::puts("usage: etalon_digest [--check FILE | --write FILE] [--host default|flush|down|up|zero]");
    return 2;
  }
  return etalon::test::Main(options);
}
