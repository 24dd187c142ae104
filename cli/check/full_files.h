// full_files.h: the files that `etalon check --full` writes: a report, and the worst input of each kernel.
#ifndef ETALON_CLI_CHECK_FULL_FILES_H_
#define ETALON_CLI_CHECK_FULL_FILES_H_

#include <map>
#include <string>
#include <vector>

#include "cli/check/check_report.h"
#include "cli/output_file.h"

namespace etalon::cli {

class FullFiles {
 public:
  // Before anything is measured, for these tables. A path that is empty is not asked for; the folder must exist. An
  // exit code: whatever may be written later must be writable, and neither a layer, the standard output nor another of
  // them.
  int Prepare(const std::string& report_path, const std::string& worst_folder, const std::vector<std::string>& kernels,
              const std::vector<std::string>& tables, std::string* error);

  // All files or, where one cannot be written, none that was not there before.
  bool Write(const CheckReport& report, std::string* error);

 private:
  int Add(const std::string& option, const std::string& path, OutputFile* file, std::string* error);

  struct Named {
    std::string text;  // as errors call it
    OutputFile* file;
  };
  std::vector<Named> all_;
  OutputFile report_;
  std::map<std::string, OutputFile> worst_;  // by name in the folder
};

}  // namespace etalon::cli

#endif  // ETALON_CLI_CHECK_FULL_FILES_H_
