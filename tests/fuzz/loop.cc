// A caller's parallel_for.
#include "tests/fuzz/call.h"
#include "tests/support/generate.h"

namespace etalon::fuzz {

std::vector<std::pair<int64_t, int64_t>> CutTasks(uint64_t seed, int64_t num_tasks) {
  test::Random random(seed);
  const int64_t sizes[] = {1, 1, 2, 3, 7, num_tasks};
  const int64_t largest = sizes[random.Below(6)];
  std::vector<std::pair<int64_t, int64_t>> parts;
  for (int64_t at = 0; at < num_tasks;) {
    int64_t size = 1 + random.Below(largest);
    if (random.Below(16) == 0) size = 0;  // nothing to do is a part too
    if (size > num_tasks - at) size = num_tasks - at;
    parts.push_back({at, at + size});
    at += size;
  }
  for (int64_t i = static_cast<int64_t>(parts.size()) - 1; i > 0; --i) {
    std::swap(parts[static_cast<size_t>(i)], parts[static_cast<size_t>(random.Below(i + 1))]);
  }
  return parts;
}

void RunParts(void* ctx, int64_t num_tasks, etalon_task_fn fn, void* arg) {
  Loop* loop = static_cast<Loop*>(ctx);
  loop->num_tasks = num_tasks;
  test::Random random(loop->seed + 1);
  std::vector<std::pair<int64_t, int64_t>> parts = CutTasks(loop->seed, num_tasks);
  while (!parts.empty() && loop->broken != Loop::kNone && parts.back().first == parts.back().second) parts.pop_back();
  switch (loop->broken) {
    case Loop::kNothing:
      return;
    case Loop::kLastPart:
      parts.pop_back();
      break;
    case Loop::kTwice:
      parts.push_back(parts.back());
      break;
    case Loop::kOtherTask:  // as many as there are, but one twice and one never
      parts.clear();
      for (int64_t t = 0; t < num_tasks; ++t) parts.push_back({t, t + 1});
      parts.back() = parts.front();
      if (num_tasks == 1) parts.clear();
      break;
    case Loop::kTooFar:
      parts.push_back({0, num_tasks + 1});
      break;
    case Loop::kTooEarly:
      parts.push_back({-1, 0});
      break;
    case Loop::kBackwards:
      parts.push_back({num_tasks, num_tasks - 1});
      break;
    default:
      break;
  }
  for (const auto& part : parts) {
    int32_t worker = static_cast<int32_t>(random.Below(loop->workers));
    if (loop->broken == Loop::kWorker) worker = loop->workers;
    if (loop->broken == Loop::kNoWorker) worker = -1;
    fn(arg, part.first, part.second, worker);
  }
}

}  // namespace etalon::fuzz
