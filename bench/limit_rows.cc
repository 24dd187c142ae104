// The limits by themselves: what this machine gives at this minute. The other rows time them anew, in turn.
#include <cstdio>

#include "bench/rows.h"
#include "bench/subjects/subjects.h"
#include "bench/support/caches.h"
#include "bench/support/cycles.h"

namespace etalon::bench {
namespace {

Subject Fma(const Loops* loops) {
  Subject subject = FmaSubject(loops);
  constexpr int64_t kSteps = 1000;
  const Cycles cycles = CountCycles({[=] { loops->fma(kSteps); }}, 0.1);
  char note[120];
  if (cycles.unknown.empty()) {
    std::snprintf(note, sizeof note, "%.2f fused operations a cycle at %.2f GHz (%s)",
                  static_cast<double>(loops->fma_per_step * kSteps) / cycles.of_one[0], cycles.ghz, cycles.how.c_str());
    subject.note = note;
  } else {
    subject.note = cycles.unknown;
  }
  return subject;
}

void AddMemoryRows(const Loops* loops, const Place& place, std::vector<Row>* rows) {
  const std::string level = place.name;
  const size_t bytes = place.bytes;
  rows->push_back({"limit/read/" + level, true, [=] { return ReadSubject(loops, bytes); }});
  rows->push_back({"limit/store/" + level, true, [=] { return StoreSubject(loops, bytes); }});
  rows->push_back({"limit/memcpy/" + level, true, [=] { return CopySubject(bytes); }});
}

}  // namespace

void AddLimitRows(const std::string& target, const Sizes& sizes, std::vector<Row>* rows) {
  for (const Loops* loops : AvailableLoops()) {
    rows->push_back({std::string("limit/fma/") + loops->name, true, [=] { return Fma(loops); }});
  }
  rows->push_back({"limit/exp/" + target, true, [=] { return ExpSubject(target); }});
  const Loops* loops = LoopsForTable(target);
  if (loops == nullptr) return;
  for (Place place : Places()) {
    if (!place.in_cache) place.bytes = place.bytes / static_cast<size_t>(sizes.shrink) / 4096 * 4096;
    AddMemoryRows(loops, place, rows);
  }
}

}  // namespace etalon::bench
