// attend_options.h: the options of `etalon attend`, and what can be said about them before a file is read.
#ifndef ETALON_CLI_ATTEND_OPTIONS_H_
#define ETALON_CLI_ATTEND_OPTIONS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/mask.h"

namespace CLI {
class App;
}

namespace etalon::cli {

struct AttendOptions {
  std::vector<std::string> files;  // one .npz, or .npy files of q, k, v
  std::string scale;               // empty: the default
  std::string causal = "none";
  std::string window;  // "LEFT,RIGHT"; empty: no limit on either side
  std::optional<int64_t> q_offset;
  std::optional<int64_t> prefix;
  std::string softcap;  // empty: none
  // Arrays: a .npy file, or a member of the only file. Empty: not given.
  std::optional<std::string> alibi;  // empty or "standard": the standard slopes
  std::string bias;
  std::string mask;
  std::string sinks;
  std::string segments;
  std::string kv_segments;
  std::string out;  // empty: not written
  std::string lse;
  std::string out_type = "f32";
  std::string target;
  int threads = 0;  // 0: as many as the process may use
  bool as_json = false;
};

// Adds them to a subcommand; `options` must outlive it. After parsing each has a value that makes sense, and so do all
// together.
void AddAttendOptions(CLI::App* command, AttendOptions* options);

// False: *error says what is wrong with the text.
bool ParseScale(const std::string& text, float* scale, std::string* error);
bool ParseSoftcap(const std::string& text, float* cap, std::string* error);
bool ParseWindow(const std::string& text, Mask* mask, std::string* error);

Mask MaskOf(const AttendOptions& options, int64_t q_len, int64_t kv_len);

}  // namespace etalon::cli

#endif  // ETALON_CLI_ATTEND_OPTIONS_H_
