// check_report.h: what `etalon check` has found, and the forms in which it says so.
#ifndef ETALON_CLI_CHECK_CHECK_REPORT_H_
#define ETALON_CLI_CHECK_CHECK_REPORT_H_

#include <string>
#include <vector>

#include "cli/check/accuracy.h"
#include "cli/check/conformance.h"
#include "cli/check/full.h"
#include "cli/engine.h"

namespace etalon::cli {

struct TableReport {
  TableState table;
  // All empty where the table is not available.
  std::vector<CaseResult> digest;  // the last one is the digest itself
  std::vector<CaseResult> model;
  std::vector<KernelError> errors;
  FullResult full;  // empty without --full

  bool bits_equal() const { return failed() == 0; }
  size_t passed() const { return digest.size() + model.size() - failed(); }
  size_t failed() const;
  bool accurate() const;  // both as promised and within the bounds
  bool ok() const { return !table.available || (bits_equal() && accurate()); }
};

struct CheckReport {
  std::vector<TableReport> tables;
  size_t num_cases = 0;  // of each table that ran
  bool full = false;

  bool ok() const;
};

// As tests/golden/digest.txt has it.
std::string DigestText(uint64_t hash);

// Each case by its own name, with what it is a case of.
template <typename Visit>
void ForEachCase(const TableReport& report, Visit visit) {
  for (const CaseResult& c : report.digest) visit("digest/" + c.name, c);
  for (const CaseResult& c : report.model) visit("model/" + c.name, c);
}

// Tables whose full results are the same in every number and hash, in the order in which they ran.
struct SameTables {
  std::vector<std::string> names;
  const FullResult* full;
};
std::vector<SameTables> GroupBySameBits(const CheckReport& report);

void PrintCheckJson(const CheckReport& report);
void PrintCheckText(const CheckReport& report);

// What --full found, as Markdown: one section a kernel, with a row a family and a histogram.
std::string CheckMarkdown(const CheckReport& report);

}  // namespace etalon::cli

#endif  // ETALON_CLI_CHECK_CHECK_REPORT_H_
