// option_arrays.h: the arrays that options of `etalon attend` name, read and checked against q, k and v.
#ifndef ETALON_CLI_OPTION_ARRAYS_H_
#define ETALON_CLI_OPTION_ARRAYS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "cli/attend_options.h"
#include "cli/npy.h"
#include "cli/problem.h"
#include "cli/tensors.h"

namespace etalon::cli {

// One of them as it was found.
struct OptionArray {
  std::string option;  // "bias"
  std::string from;    // as the command line names it
  std::vector<int64_t> shape;
  NpyType stored;
};

// The files among them, with their options ("--bias"): inputs like those of q, k and v.
struct OptionFile {
  std::string option;
  std::string path;
};
std::vector<OptionFile> OptionFiles(const AttendOptions& options);

// Fills what arrays say of the score options, and the softcap and alibi, too. False: *error names the option, the file,
// the member and what is wrong.
bool ReadScoreOptions(const AttendOptions& options, const Tensors& tensors, ScoreOptions* score_options,
                      std::vector<OptionArray>* arrays, std::string* error);

}  // namespace etalon::cli

#endif  // ETALON_CLI_OPTION_ARRAYS_H_
