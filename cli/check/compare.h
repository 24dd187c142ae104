// compare.h: two machines by what `etalon check --json` said on each.
#ifndef ETALON_CLI_CHECK_COMPARE_H_
#define ETALON_CLI_CHECK_COMPARE_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace etalon::cli {

// A table as a report has it.
struct SavedTable {
  std::string name;
  bool available = false;
  std::string reason;  // why not
  std::string digest;
  bool bits_equal = false;
  double max_abs = 0.0;
  double rms_error = 0.0;
  double max_ulp = 0.0;
  std::map<std::string, std::string> hashes;  // by case
};

struct SavedReport {
  std::string path;
  std::string version;
  int64_t arithmetic = 0;
  std::string digest;  // the golden one
  std::string cpu;
  std::vector<SavedTable> tables;
};

// False: *error names the file, and the member that is missing or of another type.
bool ReadSavedReport(const std::string& path, SavedReport* report, std::string* error);

struct Comparison {
  // What is to be the same and is not, one line each, the most general first.
  std::vector<std::string> differences;
  // Cases that some table lacks, as they cannot be compared: one line for each table.
  std::vector<std::string> only_in_one;
  size_t common_cases = 0;  // that at least one table of each file has
};

// Every table of one file against every table of both, case by case: all of them are to give the same bits, whatever
// the machine.
Comparison CompareReports(const SavedReport& a, const SavedReport& b);

// `etalon check --compare`: an exit code.
int RunCompare(const std::string& a, const std::string& b, bool as_json);

}  // namespace etalon::cli

#endif  // ETALON_CLI_CHECK_COMPARE_H_
