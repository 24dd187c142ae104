#include "cli/shipped_layers.h"

#include <cstdlib>
#include <filesystem>
#include <system_error>

#include "cli/text.h"

namespace etalon::cli {
namespace {

constexpr const char* kNames[] = {"whisper_cross2.npz", "whisper_enc1_n1500.npz", "minilm_L0_n512.npz"};

// The folder of an installed tool's layers, seen from its own; empty if the system does not say where that is.
std::filesystem::path InstalledFolder() {
  std::error_code error;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", error);
  return error ? std::filesystem::path() : self.parent_path() / ETALON_CLI_DATA_FROM_BIN;
}

bool IsFile(const std::filesystem::path& path) {
  std::error_code ignored;
  return std::filesystem::is_regular_file(path, ignored);
}

std::filesystem::path Folder() {
  const char* variable = std::getenv("ETALON_DEMO_DATA");
  if (variable != nullptr && variable[0] != '\0') return variable;
  const std::filesystem::path installed = InstalledFolder();
  return !installed.empty() && IsFile(installed / kNames[0]) ? installed : std::filesystem::path(ETALON_CLI_DATA);
}

}  // namespace

bool ShippedLayers(std::vector<std::string>* files, std::string* error) {
  const std::filesystem::path folder = Folder();
  for (const char* name : kNames) {
    const std::filesystem::path file = folder / name;
    if (!IsFile(file)) {
      *error = "no example data: " + PrintablePath(file.string()) +
               " is missing; set ETALON_DEMO_DATA to the folder tests/data of the source";
      return false;
    }
    files->push_back(file.string());
  }
  return true;
}

}  // namespace etalon::cli
