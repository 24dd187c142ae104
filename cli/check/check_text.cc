// What `etalon check` prints for people.
#include <algorithm>
#include <cstdio>

#include "cli/check/check_report.h"
#include "cli/report.h"
#include "cli/text.h"

namespace etalon::cli {
namespace {

constexpr size_t kShownFailures = 5;  // of a table; JSON has all

void PrintTables(const std::vector<TableReport>& reports, bool colour) {
  TextTable text;
  text.Column("table", "", TextTable::Align::kLeft);
  text.Column("digest", "", TextTable::Align::kLeft);
  text.Column("same bits", "", TextTable::Align::kLeft);
  text.Column("cases", "passed", TextTable::Align::kRight);
  text.Column("cases", "failed", TextTable::Align::kRight);
  text.Column("accuracy", "", TextTable::Align::kLeft);
  for (const TableReport& r : reports) {
    if (!r.table.available) continue;
    const Tone bits = r.bits_equal() ? Tone::kGood : Tone::kBad;
    text.Row({{r.table.name},
              {DigestText(r.digest.back().hash), bits},
              {r.bits_equal() ? "yes" : "NO", bits},
              {std::to_string(r.passed())},
              {std::to_string(r.failed()), bits},
              {r.accurate() ? "as promised" : "TOO FAR OFF", r.accurate() ? Tone::kGood : Tone::kBad}});
  }
  std::fputs(text.Text(colour).c_str(), stdout);
  for (const TableReport& r : reports) {
    if (!r.table.available) std::printf("table %s did not run: %s\n", r.table.name.c_str(), r.table.reason.c_str());
  }
}

void AddErrorColumns(TextTable* text) {
  text->Column("error", "max abs", TextTable::Align::kRight);
  text->Column("error", "rel. RMS", TextTable::Align::kRight);
  text->Column("error", "max ulp", TextTable::Align::kRight);
}

// The worst of all tables: where their bits are equal, the errors are too.
void PrintErrors(const std::vector<TableReport>& reports, bool colour) {
  std::vector<KernelError> worst;
  for (const TableReport& r : reports) {
    if (worst.empty()) worst = r.errors;
    for (size_t i = 0; i < r.errors.size(); ++i) {
      worst[i].max_abs = std::max(worst[i].max_abs, r.errors[i].max_abs);
      worst[i].rms_error = std::max(worst[i].rms_error, r.errors[i].rms_error);
      worst[i].max_ulp = std::max(worst[i].max_ulp, r.errors[i].max_ulp);
      worst[i].ok = worst[i].ok && r.errors[i].ok;
    }
  }
  TextTable text;
  text.Column("kernel", "", TextTable::Align::kLeft);
  AddErrorColumns(&text);
  text.Column("limit", "", TextTable::Align::kLeft);
  for (const KernelError& e : worst) {
    const Tone tone = e.ok ? Tone::kGood : Tone::kBad;
    const bool ulp = e.limited == "ulp";
    text.Row({{e.kernel},
              {Scientific(e.max_abs, 1)},
              {Scientific(e.rms_error, 1), ulp ? Tone::kPlain : tone},
              {Fixed(e.max_ulp, 3), ulp ? tone : Tone::kPlain},
              {ulp ? General(e.limit, 3) + " ulp" : General(e.limit, 3) + " rel. RMS"}});
  }
  std::fputs(text.Text(colour).c_str(), stdout);
}

// Percent in as few characters as tell "none" from "few".
std::string ShareText(const UlpHistogram& histogram, size_t bucket) {
  const double percent = 100.0 * histogram.Share(bucket);
  if (histogram.counts()[bucket] == 0) return ".";
  return percent < 0.1 ? "<.1" : Fixed(percent, percent < 10.0 ? 1 : 0);
}

void PrintFull(const FullResult& full, bool colour) {
  size_t buckets = 0;
  for (const FamilyError& e : full.errors) buckets = std::max(buckets, e.histogram.used());
  TextTable text;
  text.Column("kernel", "", TextTable::Align::kLeft);
  text.Column("input", "", TextTable::Align::kLeft);
  AddErrorColumns(&text);
  text.Column("of the", "bound", TextTable::Align::kRight);
  for (size_t i = 0; i < buckets; ++i) {
    text.Column(i == 0 ? "ulp: %" : "", UlpHistogram::Name(i), TextTable::Align::kRight);
  }
  std::string kernel;
  for (const FamilyError& e : full.errors) {
    std::vector<Cell> row = {{e.kernel == kernel ? "" : e.kernel},
                             {e.family},
                             {Scientific(e.max_abs, 1)},
                             {Scientific(e.rms_error, 1)},
                             {Fixed(e.max_ulp, 2)},
                             {General(e.of_bound, 2), e.ok() ? Tone::kGood : Tone::kBad}};
    for (size_t i = 0; i < buckets; ++i) row.push_back({ShareText(e.histogram, i)});
    text.Row(row);
    kernel = e.kernel;
  }
  std::fputs(text.Text(colour).c_str(), stdout);
}

void PrintAllFull(const CheckReport& report, bool colour) {
  const std::vector<SameTables> groups = GroupBySameBits(report);
  std::printf("\nError against double-double, with a histogram of all elements: percent up to so many ulp\n");
  for (const SameTables& group : groups) {
    std::printf("\n%s:\n", Join(group.names, ", ").c_str());
    PrintFull(*group.full, colour);
  }
  if (groups.size() > 1) std::printf("\nTHE TABLES DIFFER: all of them must give the same bits\n");
}

void PrintFailures(const std::vector<TableReport>& reports) {
  for (const TableReport& r : reports) {
    size_t shown = 0;
    ForEachCase(r, [&](const std::string& name, const CaseResult& c) {
      if (c.difference.empty() || ++shown > kShownFailures) return;
      std::printf("%s, %s: %s\n", r.table.name.c_str(), name.c_str(), c.difference.c_str());
    });
    if (shown > kShownFailures) {
      std::printf("%s: and %zu more; --json has them all\n", r.table.name.c_str(), shown - kShownFailures);
    }
  }
}

}  // namespace

void PrintCheckText(const CheckReport& report) {
  const bool colour = WantsColour(stdout);
  std::printf("etalon %s, arithmetic %d, digest %s, %zu cases\n\n", LibraryVersion().c_str(), ArithmeticVersion(),
              DigestText(GoldenDigest()).c_str(), report.num_cases);
  PrintTables(report.tables, colour);
  std::printf("\nError against f64, the worst of the tables that ran:\n");
  PrintErrors(report.tables, colour);
  if (report.full) PrintAllFull(report, colour);
  std::printf("\n");
  PrintFailures(report.tables);
  std::printf("%s\n", report.ok()
                          ? "ok: every table that can run here gives the demanded bits and is as accurate as promised"
                          : "FAILED: see above");
}

}  // namespace etalon::cli
