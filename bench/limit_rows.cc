// The limits by themselves: what this machine gives at this minute. The other rows time them anew, in turn.
#include <algorithm>
#include <cstdio>
#include <memory>

#include "bench/rows.h"
#include "bench/support/buffer.h"
#include "bench/support/cycles.h"
#include "bench/support/limits.h"

namespace etalon::bench {
namespace {

Subject Alone(const Limit& limit, const char* unit) {
  Subject subject;
  subject.run = limit.run;
  subject.work = limit.work;
  subject.unit = unit;
  return subject;
}

Subject Fma(const Loops* loops) {
  Subject subject = Alone(FmaLimit(loops), "flop");
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

size_t DramBytes(const Sizes& sizes) {
  const size_t bytes = std::max(4 * ThisCaches().l3, size_t{128} << 20) / static_cast<size_t>(sizes.shrink);
  return bytes - bytes % 4096;
}

void AddMemoryRows(const Loops* loops, const char* level, size_t bytes, std::vector<Row>* rows) {
  rows->push_back({std::string("limit/read/") + level, true, [=] {
                     const auto buffer = std::make_shared<Buffer>(bytes);
                     Subject subject = Alone(ReadLimit(loops, {{buffer->data(), bytes}}), "B");
                     subject.run = [buffer, run = subject.run] { run(); };
                     return subject;
                   }});
  rows->push_back({std::string("limit/store/") + level, true, [=] {
                     const auto buffer = std::make_shared<Buffer>(bytes);
                     Subject subject = Alone(StoreLimit(loops, {buffer->data(), bytes}), "B");
                     subject.run = [buffer, run = subject.run] { run(); };
                     return subject;
                   }});
  rows->push_back({std::string("limit/memcpy/") + level, true, [=] { return Alone(CopyLimit(bytes / 2), "B"); }});
}

}  // namespace

void AddLimitRows(const std::string& target, const Sizes& sizes, std::vector<Row>* rows) {
  for (const Loops* loops : AvailableLoops()) {
    rows->push_back({std::string("limit/fma/") + loops->name, true, [=] { return Fma(loops); }});
  }
  rows->push_back({"limit/exp/" + target, true, [=] { return Alone(ExpLimit(target), "elements"); }});
  const Loops* loops = LoopsForTable(target);
  if (loops == nullptr) return;
  const Caches caches = ThisCaches();
  AddMemoryRows(loops, "L1", caches.l1 / 2, rows);
  AddMemoryRows(loops, "L2", caches.l2 / 2, rows);
  if (caches.l3 != 0) AddMemoryRows(loops, "L3", caches.l3 / 4, rows);
  AddMemoryRows(loops, "DRAM", DramBytes(sizes), rows);
}

}  // namespace etalon::bench
