#include "bench/support/loops.h"

#include <etalon/etalon.h>

#include <sstream>

#include "bench/support/loop_sets.h"

namespace etalon::bench {
namespace {

const Loops* const kAllLoops[] = {
#if defined(__x86_64__)
    &kAvx2Loops, &kAvx512Loops,
#elif defined(__aarch64__)
    &kNeonLoops,
#endif
    nullptr};

bool Includes(uint64_t features, const std::string& names) {
  std::istringstream words(names);
  for (std::string word; words >> word;) {
    bool found = false;
    for (int bit = 0; bit < 64 && !found; ++bit) {
      const char* name = etalon_cpu_feature_name(uint64_t{1} << bit);
      found = (features >> bit & 1) != 0 && name != nullptr && word == name;
    }
    if (!found) return false;
  }
  return true;
}

std::vector<const Loops*> LoopsWithin(uint64_t features) {
  std::vector<const Loops*> sets;
  for (const Loops* loops : kAllLoops) {
    if (loops != nullptr && Includes(features, loops->features)) sets.push_back(loops);
  }
  return sets;
}

}  // namespace

std::vector<const Loops*> AvailableLoops() { return LoopsWithin(etalon_cpu_features()); }

const Loops* LoopsForTable(const std::string& table) {
  for (int32_t i = 0; i < etalon_num_targets(); ++i) {
    etalon_target target;
    if (etalon_get_target(i, &target) != ETALON_OK || table != target.name) continue;
    const std::vector<const Loops*> sets = LoopsWithin(target.required & etalon_cpu_features());
    if (!sets.empty()) return sets.back();
  }
  const std::vector<const Loops*> sets = AvailableLoops();
  return sets.empty() ? nullptr : sets.back();
}

}  // namespace etalon::bench
