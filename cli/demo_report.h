// demo_report.h: how `etalon demo` says what it has found.
#ifndef ETALON_CLI_DEMO_REPORT_H_
#define ETALON_CLI_DEMO_REPORT_H_

#include <string>
#include <vector>

#include "cli/demo_layer.h"
#include "cli/engine.h"

namespace etalon::cli {

// `chosen` is the name of the table that was timed; `ok`: every layer is.
void PrintDemoJson(const std::vector<LayerReport>& reports, const std::string& chosen, int threads, bool ok);
void PrintDemoText(const std::vector<LayerReport>& reports, const std::vector<TableState>& tables,
                   const std::string& chosen, int threads, bool ok);

}  // namespace etalon::cli

#endif  // ETALON_CLI_DEMO_REPORT_H_
