#include "cli/check/check_report.h"

#include <algorithm>

#include "cli/text.h"

namespace etalon::cli {
namespace {

bool SameBits(const FullResult& a, const FullResult& b) {
  return std::equal(a.errors.begin(), a.errors.end(), b.errors.begin(), b.errors.end(),
                    [](const FamilyError& x, const FamilyError& y) {
                      return x.kernel == y.kernel && x.family == y.family && x.hash == y.hash;
                    });
}

}  // namespace

size_t TableReport::failed() const {
  const auto differs = [](const CaseResult& c) { return !c.difference.empty(); };
  return static_cast<size_t>(std::count_if(digest.begin(), digest.end(), differs) +
                             std::count_if(model.begin(), model.end(), differs));
}

bool TableReport::accurate() const {
  return std::all_of(errors.begin(), errors.end(), [](const KernelError& e) { return e.ok; }) &&
         std::all_of(full.errors.begin(), full.errors.end(), [](const FamilyError& e) { return e.ok(); });
}

bool CheckReport::ok() const {
  // Where nothing demands other bits than what one table gives, tables are still to agree.
  return std::all_of(tables.begin(), tables.end(), [](const TableReport& r) { return r.ok(); }) &&
         (!full || GroupBySameBits(*this).size() == 1);
}

std::string DigestText(uint64_t hash) {
  std::string text = Hex64(hash);
  for (char& c : text) c = c >= 'a' ? static_cast<char>(c - 'a' + 'A') : c;
  return text;
}

std::vector<SameTables> GroupBySameBits(const CheckReport& report) {
  std::vector<SameTables> groups;
  for (const TableReport& r : report.tables) {
    if (!r.table.available) continue;
    const auto same =
        std::find_if(groups.begin(), groups.end(), [&](const SameTables& g) { return SameBits(*g.full, r.full); });
    if (same == groups.end()) {
      groups.push_back({{r.table.name}, &r.full});
    } else {
      same->names.push_back(r.table.name);
    }
  }
  return groups;
}

}  // namespace etalon::cli
