#include "bench/support/measure.h"

#include <cstdio>
#include <optional>

namespace etalon::bench {
namespace {

struct Unit {
  double scale;
  const char* name;
};

Unit UnitOf(const std::string& work) {
  if (work == "flop") return {1e-9, "GFLOP/s"};
  if (work == "B") return {1e-9, "GB/s"};
  if (work == "elements") return {1e-9, "Gelem/s"};
  return {1e-6, "Mcalls/s"};
}

std::string Text(const char* format, double a, double b, double c) {
  char text[120];
  std::snprintf(text, sizeof text, format, a, b, c);
  return text;
}

// "pct_fma_avx2"
std::string CounterName(const std::string& prefix, std::string name) {
  for (char& c : name) {
    if (c == ' ' || c == '-') c = '_';
  }
  return prefix + name;
}

// How the kernel does against a rival, from the ratio of the rival's time to its own.
void Compare(const Rival& rival, const Spread& ratio, double rival_seconds, Measured* m) {
  const double same_work = rival.kernel_work / rival.limit.work;
  const double low = ratio.min * same_work, middle = ratio.median * same_work, high = ratio.max * same_work;
  std::string text, prefix;
  switch (rival.shown) {
    case Rival::Shown::kPercent:
      text = Text("%.1f [%.1f .. %.1f] %% of ", 100 * middle, 100 * low, 100 * high) + rival.limit.name;
      prefix = CounterName("pct_", rival.limit.name);
      m->counters[prefix] = 100 * middle;
      m->counters[prefix + "_min"] = 100 * low;
      m->counters[prefix + "_max"] = 100 * high;
      m->shares.push_back({rival.limit.name, {100 * middle, 100 * low, 100 * high}});
      break;
    case Rival::Shown::kTimeRatio:
      text = Text("%.3f [%.3f .. %.3f] x the time of ", 1 / middle, 1 / high, 1 / low) + rival.limit.name;
      text += Text(" (%.4g ms)", rival_seconds * 1e3, 0, 0);
      prefix = CounterName("time_over_", rival.limit.name);
      m->counters[prefix] = 1 / middle;
      m->counters[prefix + "_min"] = 1 / high;
      m->counters[prefix + "_max"] = 1 / low;
      m->counters[CounterName("ms_", rival.limit.name)] = rival_seconds * 1e3;
      break;
    case Rival::Shown::kSpeedup:
      text = Text("%.2f [%.2f .. %.2f] x as fast as ", middle, low, high) + rival.limit.name;
      prefix = CounterName("speedup_over_", rival.limit.name);
      m->counters[prefix] = middle;
      m->counters[prefix + "_min"] = low;
      m->counters[prefix + "_max"] = high;
      break;
  }
  if (!rival.wanted.empty()) text += ", wanted " + rival.wanted;
  m->versus += (m->versus.empty() ? "" : "; ") + text;
}

}  // namespace

const Share* Measured::Binding() const {
  const Share* binding = nullptr;
  for (const Share& share : shares) {
    if (binding == nullptr || share.percent.median > binding->percent.median) binding = &share;
  }
  return binding;
}

Measured Measure(const Subject& subject, const TimingOptions& options) {
  Measured m;
  std::optional<PinnedThread> pin;
  if (subject.pinned) pin.emplace();
  if (subject.check) {
    const Check check = subject.check();
    m.failure = check.failure;
    m.rms = check.rms;
    if (!m.failure.empty()) return m;
  }
  std::vector<std::function<void()>> works = {subject.run};
  std::vector<const Rival*> rivals;
  for (const Rival& rival : subject.rivals) {
    if (!rival.limit.run) continue;
    rivals.push_back(&rival);
    works.push_back(rival.limit.run);
  }
  m.versus = subject.note;
  const InTurn times = TimeInTurn(works, subject.clock, options);
  const Unit unit = UnitOf(subject.unit);
  m.rounds = times.rounds;
  m.seconds = times.seconds[0].median;
  m.rate = subject.work / m.seconds * unit.scale;
  m.unit = unit.name;
  for (size_t i = 0; i < rivals.size(); ++i) Compare(*rivals[i], times.ratios[i + 1], times.seconds[i + 1].median, &m);
  m.counters[m.unit] = m.rate;
  m.counters["rounds"] = m.rounds;
  if (m.rms >= 0) m.counters["rms"] = m.rms;
  return m;
}

}  // namespace etalon::bench
