// rendezvous.h: tasks that need a thread each.
#ifndef ETALON_TESTS_THREAD_POOL_RENDEZVOUS_H_
#define ETALON_TESTS_THREAD_POOL_RENDEZVOUS_H_

#include <etalon/thread_pool.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <thread>

namespace etalon::test {

// Whether so many tasks are all begun before one ends. If not, it takes a few seconds.
static inline bool TasksMeet(const etalon_parallel& parallel, int64_t num_tasks) {
  struct Rendezvous {
    int64_t num_tasks;
    std::atomic<int64_t> begun;
    std::atomic<int64_t> given_up;
  } rendezvous{num_tasks, {0}, {0}};
  const etalon_task_fn meet = [](void* arg, int64_t first, int64_t last, int32_t) {
    Rendezvous* all = static_cast<Rendezvous*>(arg);
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(4);
    for (int64_t i = first; i < last; ++i) {
      ++all->begun;
      while (all->begun < all->num_tasks && all->given_up == 0) {
        if (std::chrono::steady_clock::now() > end) ++all->given_up;
        std::this_thread::yield();
      }
    }
  };
  parallel.parallel_for(parallel.ctx, num_tasks, meet, &rendezvous);
  return rendezvous.given_up == 0;
}

}  // namespace etalon::test

#endif  // ETALON_TESTS_THREAD_POOL_RENDEZVOUS_H_
