// full_files.h: the files that `etalon check --full` writes: a report, and the worst input of each kernel.
#ifndef ETALON_CLI_CHECK_FULL_FILES_H_
#define ETALON_CLI_CHECK_FULL_FILES_H_

#include <string>
#include <vector>

#include "cli/check/check_report.h"
#include "cli/output_file.h"

namespace etalon::cli {

class FullFiles {
 public:
  // Before anything is measured. Empty = not asked for; the folder must exist. An exit code: the report must not be the
  // standard output nor a layer that is measured on, and all must be writable.
  int Prepare(const std::string& report_path, const std::string& worst_folder, std::string* error);

  // All files or, where one cannot be written, none that was not there before.
  bool Write(const CheckReport& report, std::string* error);

 private:
  std::string folder_;
  OutputFile report_;
};

// "attention_f16.npz" in all tables, "attention_f16.NAME.npz" where a table has bits of its own.
std::string WorstFileName(const std::string& kernel, const std::string& table);

}  // namespace etalon::cli

#endif  // ETALON_CLI_CHECK_FULL_FILES_H_
