// Runs a fuzz target without a fuzzing engine, in any build:
//   etalon_{api,npz}_replay [--generated COUNT] [--first SEED] [FILE or FOLDER]...
// Inputs are the files, in the order of their names, then COUNT made from numbers. The first that fails is named.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "tests/fuzz/memory.h"
#include "tests/support/generate.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace {

// From a buffer of exactly its size.
void RunInput(const std::string& label, const std::vector<uint8_t>& bytes) {
  etalon::fuzz::SetLabel(label.c_str());
  LLVMFuzzerTestOneInput(bytes.data(), bytes.size());
  etalon::fuzz::SetLabel(nullptr);
}

bool RunFiles(const std::string& path, int64_t* count) {
  std::vector<std::string> files;
  if (std::filesystem::is_directory(path)) {
    for (const auto& entry : std::filesystem::directory_iterator(path)) files.push_back(entry.path().string());
    std::sort(files.begin(), files.end());
  } else {
    files.push_back(path);
  }
  for (const std::string& file : files) {
    std::ifstream stream(file, std::ios::binary);
    if (!stream) {
      std::fprintf(stderr, "%s cannot be read\n", file.c_str());
      return false;
    }
    RunInput(file, {std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()});
    ++*count;
  }
  return true;
}

void RunGenerated(int64_t seed) {
  etalon::test::Random random(static_cast<uint64_t>(seed));
  std::vector<uint8_t> bytes(static_cast<size_t>(20 + random.Below(480)));
  for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(random.Next());
  RunInput("--first " + std::to_string(seed) + " --generated 1", bytes);
}

}  // namespace

int main(int argc, char** argv) {
  int64_t generated = 0, first = 0, files = 0;
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "--generated") == 0 && i + 1 < argc) {
      generated = std::atoll(argv[++i]);
    } else if (std::strcmp(argv[i], "--first") == 0 && i + 1 < argc) {
      first = std::atoll(argv[++i]);
    } else if (!RunFiles(argv[i], &files)) {
      return 2;
    }
  }
  for (int64_t n = 0; n < generated; ++n) RunGenerated(first + n);
  std::printf("%lld files and %lld generated inputs\n", static_cast<long long>(files),
              static_cast<long long>(generated));
  return files + generated > 0 ? 0 : 2;
}
