// tally.h: tasks that record how a pool ran them.
#ifndef ETALON_TESTS_THREAD_POOL_TALLY_H_
#define ETALON_TESTS_THREAD_POOL_TALLY_H_

#include <etalon/thread_pool.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <thread>
#include <vector>

namespace etalon::test {

struct Tally {
  Tally(int64_t num_tasks, int32_t workers)
      : runs(static_cast<size_t>(num_tasks)), busy(static_cast<size_t>(workers)) {}

  std::vector<std::atomic<int32_t>> runs;  // of each task
  std::vector<std::atomic<bool>> busy;     // of each worker: it is in a task
  std::atomic<int64_t> faults{0};
};

// The task of a Tally.
static inline void Count(void* arg, int64_t first, int64_t last, int32_t worker) {
  Tally* tally = static_cast<Tally*>(arg);
  const bool worker_exists = worker >= 0 && static_cast<size_t>(worker) < tally->busy.size();
  const bool tasks_exist = first >= 0 && first < last && static_cast<size_t>(last) <= tally->runs.size();
  if (!worker_exists || !tasks_exist) {
    ++tally->faults;
    return;
  }
  if (tally->busy[static_cast<size_t>(worker)].exchange(true)) ++tally->faults;
  for (int64_t i = first; i < last; ++i) ++tally->runs[static_cast<size_t>(i)];
  std::this_thread::yield();  // gives others the time to take the same worker's number, or the same task
  tally->busy[static_cast<size_t>(worker)] = false;
}

// Whether each of num_tasks ran once, with workers' numbers in range and never two at once.
static inline bool RunsEachOnce(const etalon_parallel& parallel, int64_t num_tasks) {
  Tally tally(num_tasks, parallel.workers);
  parallel.parallel_for(parallel.ctx, num_tasks, Count, &tally);
  for (const std::atomic<int32_t>& runs : tally.runs) {
    if (runs != 1) return false;
  }
  return tally.faults == 0;
}

}  // namespace etalon::test

#endif  // ETALON_TESTS_THREAD_POOL_TALLY_H_
