// The report of `etalon check --full --report FILE.md`.
#include <algorithm>
#include <cmath>

#include "cli/check/check_report.h"
#include "cli/check/families.h"
#include "cli/text.h"

namespace etalon::cli {
namespace {

constexpr double kBarCells = 8.0;

// A share of 1 is kBarCells full blocks; what is there at all shows as an eighth of one.
std::string Bar(double share) {
  static constexpr const char* kEighths[] = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
  const int eighths = share > 0.0 ? std::max(1, static_cast<int>(std::lround(share * kBarCells * 8.0))) : 0;
  std::string bar;
  for (int i = 0; i < eighths / 8; ++i) bar += "█";
  return bar + kEighths[eighths % 8];
}

std::string Row(const std::vector<std::string>& cells) { return "| " + Join(cells, " | ") + " |\n"; }

std::string Rule(size_t columns) {
  std::string line = "|";
  for (size_t i = 0; i < columns; ++i) line += "---|";
  return line + "\n";
}

std::string UpTo(size_t bucket) {
  if (bucket == 0) return "0";
  return bucket == UlpHistogram::kLimits.size() ? "more" : "≤ " + UlpHistogram::Name(bucket);
}

// All families of one kernel: first the numbers, then a histogram in each column.
std::string KernelSection(const std::vector<const FamilyError*>& errors) {
  std::string text = "### " + errors[0]->kernel + "\n\n";
  text += Row({"input", "elements", "max abs", "rel. RMS", "max ulp", "of the bound", ""}) + Rule(7);
  for (const FamilyError* e : errors) {
    text +=
        Row({e->family, std::to_string(e->histogram.total()), Scientific(e->max_abs, 2), Scientific(e->rms_error, 2),
             Fixed(e->max_ulp, 3), General(e->of_bound, 3), e->ok() ? "ok" : "**BEYOND THE BOUND**"});
  }
  size_t buckets = 0;
  std::vector<std::string> head = {"ulp"};
  for (const FamilyError* e : errors) {
    buckets = std::max(buckets, e->histogram.used());
    head.push_back(e->family);
  }
  text += "\n" + Row(head) + Rule(head.size());
  for (size_t i = 0; i < buckets; ++i) {
    std::vector<std::string> cells = {UpTo(i)};
    for (const FamilyError* e : errors) {
      const double share = e->histogram.Share(i);
      cells.push_back(share > 0.0 ? Bar(share) + " " + General(100.0 * share, 3) + " %" : "");
    }
    text += Row(cells);
  }
  return text + "\n";
}

std::string GroupSection(const SameTables& group) {
  std::string text = "## " + Join(group.names, ", ") + "\n\n";
  const std::vector<FamilyError>& errors = group.full->errors;
  for (size_t i = 0; i < errors.size();) {
    std::vector<const FamilyError*> of_kernel;
    for (const std::string& kernel = errors[i].kernel; i < errors.size() && errors[i].kernel == kernel; ++i) {
      of_kernel.push_back(&errors[i]);
    }
    text += KernelSection(of_kernel);
  }
  return text;
}

}  // namespace

std::string CheckMarkdown(const CheckReport& report) {
  std::string text =
      "# Accuracy of etalon " + LibraryVersion() + ", arithmetic " + std::to_string(ArithmeticVersion()) + "\n\n";
  const std::vector<SameTables> groups = GroupBySameBits(report);
  text += std::string(report.ok() ? "All is as promised" : "**FAILED**") + ", on " + CpuName() + ". ";
  text += groups.size() == 1 ? "All tables give the same bits, and so the same errors.\n\n"
                             : "**The tables differ: all of them must give the same bits.**\n\n";
  text += Row({"table", "digest", "cases failed"}) + Rule(3);
  for (const TableReport& r : report.tables) {
    if (r.table.available) {
      text += Row({r.table.name, DigestText(r.digest.back().hash), std::to_string(r.failed())});
    } else {
      text += Row({r.table.name, "did not run: " + r.table.reason, ""});
    }
  }
  text +=
      "\nErrors are against the exact result, computed in double-double. An ulp is the distance between f32 neighbours "
      "at "
      "the largest element of the row, for exp, log and tanh at the exact value. The bound is that of "
      "docs/numerics.md, proved for each element by itself; a share of it above 1 would be a fault.\n\n";
  text += Row({"input", "is"}) + Rule(2);
  for (const Family family : kFamilies) text += Row({FamilyName(family), FamilyDescription(family)});
  text +=
      Row({"range", "of exp, log and tanh: bit patterns spread over the ranges that docs/numerics.md names"}) + "\n";
  for (const SameTables& group : groups) text += GroupSection(group);
  text.pop_back();  // the last blank line
  return text;
}

}  // namespace etalon::cli
