#include "cli/check/full_files.h"

#include <unistd.h>

#include <filesystem>
#include <memory>
#include <system_error>

#include "cli/exit_code.h"
#include "cli/npz_writer.h"
#include "cli/shipped_layers.h"
#include "cli/text.h"

namespace etalon::cli {
namespace {

bool IsFolder(const std::string& path) {
  std::error_code ignored;
  return std::filesystem::is_directory(path, ignored);
}

// The layer that this file is; empty if it is none.
std::string LayerThatIs(const OutputFile& file) {
  std::vector<std::string> layers;
  std::string no_matter;
  if (!ShippedLayers(&layers, &no_matter)) return "";
  for (const std::string& layer : layers) {
    if (file.IsFile(layer)) return PrintablePath(layer);
  }
  return "";
}

}  // namespace

std::string WorstFileName(const std::string& kernel, const std::string& table) {
  std::string name = kernel;
  for (char& c : name) c = c == ' ' ? '_' : c;
  return name + (table.empty() ? "" : "." + table) + ".npz";
}

int FullFiles::Prepare(const std::string& report_path, const std::string& worst_folder, std::string* error) {
  if (!worst_folder.empty()) {
    if (!IsFolder(worst_folder)) {
      *error = "--worst " + PrintablePath(worst_folder) + ": no such folder";
      return kExitBadInput;
    }
    if (access(worst_folder.c_str(), W_OK | X_OK) != 0) {
      *error = "--worst " + PrintablePath(worst_folder) + ": cannot write there";
      return kExitBadInput;
    }
    folder_ = worst_folder;
  }
  if (report_path.empty()) return kExitOk;
  if (!report_.Prepare(report_path, error)) {
    *error = "--report " + *error;
    return kExitBadInput;
  }
  const std::string named = "--report " + PrintablePath(report_path);
  const std::string layer = LayerThatIs(report_);
  if (!layer.empty()) {
    *error = named + " is the same file as the input " + layer;
    return kExitUsage;
  }
  if (report_.IsStandardOutput()) {
    *error = named + " is the standard output, where the other report goes";
    return kExitUsage;
  }
  return kExitOk;
}

bool FullFiles::Write(const CheckReport& report, std::string* error) {
  std::vector<std::unique_ptr<OutputFile>> files;
  if (!folder_.empty()) {
    bool first = true;
    for (const TableReport& r : report.tables) {
      if (!r.table.available) continue;
      for (const WorstInput& worst : r.full.worst) {
        const std::filesystem::path path =
            std::filesystem::path(folder_) / WorstFileName(worst.kernel, first ? "" : r.table.name);
        files.push_back(std::make_unique<OutputFile>());
        if (!files.back()->Prepare(path.string(), error) ||
            !files.back()->Write(NpzBytes(worst.arrays), nullptr, 0, error)) {
          return false;
        }
      }
      first = false;
    }
  }
  if (report_.prepared() && !report_.Write(CheckMarkdown(report), nullptr, 0, error)) return false;
  for (size_t i = 0; i < files.size(); ++i) {
    if (files[i]->Commit(error)) continue;
    for (size_t before = 0; before < i; ++before) files[before]->Withdraw();
    return false;
  }
  if (!report_.prepared() || report_.Commit(error)) return true;
  for (const auto& file : files) file->Withdraw();
  return false;
}

}  // namespace etalon::cli
