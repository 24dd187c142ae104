// attend_report.h: how `etalon attend` says what it has computed.
#ifndef ETALON_CLI_ATTEND_REPORT_H_
#define ETALON_CLI_ATTEND_REPORT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "cli/attend_options.h"
#include "cli/mask.h"
#include "cli/option_arrays.h"
#include "cli/reference.h"
#include "cli/tensors.h"

namespace etalon::cli {

struct AttendReport {
  const AttendOptions* options;
  const Tensors* tensors;
  std::string table;
  int threads;
  Mask mask;
  float scale;
  float softcap = 0.0f;
  std::vector<OptionArray> arrays;
  int64_t visible_pairs = 0;  // of all heads
  double seconds = 0.0;       // of one run
  double gflops = 0.0;
  Accuracy accuracy;
  std::vector<int64_t> out_shape;
  std::vector<int64_t> lse_shape;
  uint64_t out_hash = 0;
  uint64_t lse_hash = 0;
};

void PrintAttendJson(const AttendReport& report);
void PrintAttendText(const AttendReport& report);

}  // namespace etalon::cli

#endif  // ETALON_CLI_ATTEND_REPORT_H_
