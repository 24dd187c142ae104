#include "cli/check/full_files.h"

#include <unistd.h>

#include <filesystem>
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

// "attention_f16.npz" of the first table, "attention_f16.NAME.npz" of one that has bits of its own.
std::string WorstFileName(const std::string& kernel, const std::string& table, bool is_first) {
  std::string name = kernel;
  for (char& c : name) c = c == ' ' ? '_' : c;
  return name + (is_first ? "" : "." + table) + ".npz";
}

// The layer, or what is known of layers, that this file is; empty if it is none.
std::string InputThatIs(const OutputFile& file) {
  std::vector<std::string> inputs;
  std::string no_matter;
  if (!ShippedLayers(&inputs, &no_matter)) return "";
  inputs.push_back((std::filesystem::path(inputs[0]).parent_path() / "index.json").string());
  for (const std::string& input : inputs) {
    if (file.IsFile(input)) return PrintablePath(input);
  }
  return "";
}

}  // namespace

int FullFiles::Add(const std::string& option, const std::string& path, OutputFile* file, std::string* error) {
  const int code = PrepareOutput(option, path, InputThatIs, file, error);
  if (code != kExitOk) return code;
  const std::string named = option + " " + PrintablePath(path);
  for (const Named& other : all_) {
    if (!file->SameAs(*other.file) || file->character_device()) continue;
    *error = named + " is the same file as " + other.text;
    return kExitUsage;
  }
  all_.push_back({named, file});
  return kExitOk;
}

int FullFiles::Prepare(const std::string& report_path, const std::string& worst_folder,
                       const std::vector<std::string>& kernels, const std::vector<std::string>& tables,
                       std::string* error) {
  if (!worst_folder.empty()) {
    if (!IsFolder(worst_folder)) {
      *error = "--worst " + PrintablePath(worst_folder) + ": no such folder";
      return kExitBadInput;
    }
    if (access(worst_folder.c_str(), W_OK | X_OK) != 0) {
      *error = "--worst " + PrintablePath(worst_folder) + ": cannot write there";
      return kExitBadInput;
    }
    for (const std::string& table : tables) {
      for (const std::string& kernel : kernels) {
        const std::string name = WorstFileName(kernel, table, table == tables[0]);
        if (worst_.count(name) > 0) continue;  // a kernel was named twice
        const std::string path = (std::filesystem::path(worst_folder) / name).string();
        const int added = Add("--worst", path, &worst_[name], error);
        if (added != kExitOk) return added;
      }
    }
  }
  return report_path.empty() ? kExitOk : Add("--report", report_path, &report_, error);
}

bool FullFiles::Write(const CheckReport& report, std::string* error) {
  std::vector<OutputFile*> written;
  const auto write = [&](OutputFile* file, const std::string& content) {
    written.push_back(file);
    return file->Write(content, nullptr, 0, error);
  };
  bool is_first = true;
  for (const TableReport& r : report.tables) {
    if (!r.table.available) continue;
    for (const WorstInput& worst : r.full.worst) {
      if (!write(&worst_.at(WorstFileName(worst.kernel, r.table.name, is_first)), NpzBytes(worst.arrays))) return false;
    }
    is_first = false;
  }
  if (report_.prepared() && !write(&report_, CheckMarkdown(report))) return false;
  for (size_t i = 0; i < written.size(); ++i) {
    if (written[i]->Commit(error)) continue;
    for (size_t before = 0; before < i; ++before) written[before]->Withdraw();
    return false;
  }
  return true;
}

}  // namespace etalon::cli
