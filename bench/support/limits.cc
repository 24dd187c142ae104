#include "bench/support/limits.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>

#include "arch/dispatch.h"
#include "bench/support/buffer.h"
#include "bench/support/caches.h"
#include "bench/support/timing.h"

namespace etalon::bench {
namespace {

constexpr size_t kReadStep = 512;  // of Loops::read

// The fastest of some works, by the best of a few calls each.
std::function<void()> Fastest(const std::vector<std::function<void()>>& works) {
  size_t best = 0;
  double best_seconds = 1e30;
  for (int round = 0; round < 4; ++round) {
    for (size_t i = 0; i < works.size(); ++i) {
      const double start = Seconds(Clock::kThread);
      works[i]();
      const double seconds = Seconds(Clock::kThread) - start;
      if (round == 0 || seconds >= best_seconds) continue;  // the first round warms up
      best_seconds = seconds;
      best = i;
    }
  }
  return works[best];
}

// So that a call takes long enough for the clock.
int64_t RepeatsFor(size_t bytes) { return std::max<int64_t>(1, static_cast<int64_t>((size_t{1} << 20) / bytes)); }

}  // namespace

Bytes BytesOf(Buffer* buffer) { return {buffer->data(), buffer->bytes()}; }

Limit FmaLimit(const Loops* loops) {
  if (loops == nullptr) return {};
  constexpr int64_t kSteps = 1000;
  return {std::string("fma ") + loops->name, 2.0 * loops->lanes * loops->fma_per_step * kSteps,
          [loops] { loops->fma(kSteps); }};
}

Limit ReadLimit(const Loops* loops, std::vector<Bytes> parts) {
  if (loops == nullptr) return {};
  size_t bytes = 0;
  for (Bytes& part : parts) bytes += part.bytes -= part.bytes % kReadStep;
  if (bytes == 0) return {};
  const int64_t repeats = RepeatsFor(bytes);
  std::vector<std::function<void()>> ways;
  for (const auto read : loops->read) {
    ways.push_back([read, parts, repeats] {
      for (int64_t i = 0; i < repeats; ++i) {
        for (const Bytes& part : parts) read(part.data, part.bytes);
      }
    });
  }
  return {std::string("read ") + LevelOf(bytes), static_cast<double>(bytes) * static_cast<double>(repeats),
          Fastest(ways)};
}

Limit StoreLimit(const Loops* loops, Bytes part) {
  if (loops == nullptr) return {};
  part.bytes -= part.bytes % kReadStep;
  if (part.bytes == 0) return {};
  const int64_t repeats = RepeatsFor(part.bytes);
  std::vector<std::function<void()>> ways;
  for (const auto store : loops->store) {
    if (store == nullptr) continue;
    ways.push_back([store, part, repeats] {
      for (int64_t i = 0; i < repeats; ++i) store(part.data, part.bytes);
    });
  }
  return {std::string("store ") + LevelOf(part.bytes), static_cast<double>(part.bytes) * static_cast<double>(repeats),
          Fastest(ways)};
}

Limit CopyLimit(size_t bytes) {
  const auto from = std::make_shared<Buffer>(bytes), to = std::make_shared<Buffer>(bytes);
  const int64_t repeats = RepeatsFor(bytes);
  return {std::string("memcpy ") + LevelOf(2 * bytes), 2.0 * static_cast<double>(bytes) * static_cast<double>(repeats),
          [from, to, bytes, repeats] {
            for (int64_t i = 0; i < repeats; ++i) {
              std::memcpy(to->data(), from->data(), bytes);
              __asm__ volatile("" : : "r"(to->data()) : "memory");  // or nobody would need the copy
            }
          }};
}

Limit ExpLimit(const std::string& table) {
  KernelTable kernels;
  if (ChooseTable(table.c_str(), &kernels) != TableChoice::kOk) return {};
  constexpr size_t kElements = 2048;
  const auto x = std::make_shared<Buffer>(kElements * sizeof(float));
  const auto y = std::make_shared<Buffer>(kElements * sizeof(float));
  // All of the range that softmax has.
  for (size_t i = 0; i < kElements; ++i) x->floats()[i] = -20.0f * static_cast<float>(i) / kElements;
  return {"exp", static_cast<double>(kElements),
          [x, y, exp = kernels.exp] { exp(x->floats(), y->floats(), kElements); }};
}

}  // namespace etalon::bench
