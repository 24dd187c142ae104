// Systems that this one is not: thousands of CPUs, no affinity, no memory, a thread that stops at the worst moment. The
// pool is compiled into this test, and the linker leads its calls of some functions here (--wrap).
#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include <doctest/doctest.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <unistd.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <etalon/thread_pool.hpp>
#include <thread>

#include "tests/thread_pool/child.h"
#include "tests/thread_pool/rendezvous.h"
#include "tests/thread_pool/tally.h"
#include "tests/thread_pool/tsan_options.h"

namespace {

int g_cpus = 1;  // that the system has, and this thread may use; -1: it knows no affinity
bool g_no_memory = false;
std::atomic<bool> g_slow{false};  // to fall asleep

}  // namespace

extern "C" {

int __wrap_sched_getaffinity(pid_t, size_t bytes, cpu_set_t* mask) {
  if (g_cpus < 0 || bytes * 8 < static_cast<size_t>(g_cpus)) {
    errno = g_cpus < 0 ? ENOSYS : EINVAL;
    return -1;
  }
  CPU_ZERO_S(bytes, mask);
  for (int i = 0; i < g_cpus; ++i) CPU_SET_S(static_cast<size_t>(i), bytes, mask);
  return 0;
}

int __real_posix_memalign(void** memory, size_t alignment, size_t bytes);
int __wrap_posix_memalign(void** memory, size_t alignment, size_t bytes) {
  return g_no_memory ? ENOMEM : __real_posix_memalign(memory, alignment, bytes);
}

int __real_pthread_cond_wait(pthread_cond_t* condition, pthread_mutex_t* mutex);
int __wrap_pthread_cond_wait(pthread_cond_t* condition, pthread_mutex_t* mutex) {
  if (g_slow) usleep(2000);
  return __real_pthread_cond_wait(condition, mutex);
}

}  // extern "C"

namespace etalon::test {
namespace {

TEST_CASE("masks of any size") {
  for (const int cpus : {1, 2, 1023, 1024, 1025, 3000, 5000, 100000}) {
    g_cpus = cpus;
    CHECK(etalon_default_threads() == cpus);
  }
}

TEST_CASE("without affinity, the CPUs that are online") {
  g_cpus = -1;
  CHECK(etalon_default_threads() == sysconf(_SC_NPROCESSORS_ONLN));
}

TEST_CASE("without memory there is no pool") {
  int64_t somewhere = 0;
  etalon_thread_pool* const other = reinterpret_cast<etalon_thread_pool*>(&somewhere);
  etalon_thread_pool* pool = other;
  g_no_memory = true;
  CHECK(etalon_thread_pool_create(2, &pool) == ETALON_OUT_OF_MEMORY);
  CHECK(pool == other);
  g_no_memory = false;
  REQUIRE(etalon_thread_pool_create(2, &pool) == ETALON_OK);
  CHECK(RunsEachOnce(etalon_thread_pool_parallel(pool), 65));
  etalon_thread_pool_destroy(pool);
}

TEST_CASE("a forked child without memory works alone") {
  ETALON_NEEDS_THREADS_IN_CHILDREN();
  const ThreadPool pool(2);
  CHECK(ExitCodeOfChild([&] {
          g_no_memory = true;
          if (!RunsEachOnce(*pool.parallel(), 65)) return 1;
          g_no_memory = false;
          return TasksMeet(*pool.parallel(), 2) ? 0 : 2;
        }) == 0);
}

// The last look before sleep, and the wait itself, are two steps. A call between them must not be lost.
TEST_CASE("a worker that takes long to fall asleep is called") {
  ETALON_NEEDS_THREADS_IN_CHILDREN();
  g_cpus = 1;  // with two threads for one CPU, workers sleep at once
  CHECK(ExitCodeOfChild([] {
          const ThreadPool pool(2);
          g_slow = true;
          for (int round = 0; round < 20; ++round) {
            if (!TasksMeet(*pool.parallel(), 2)) return 1;
          }
          return 0;
        }) == 0);
}

TEST_CASE("a caller that takes long to fall asleep is called") {
  ETALON_NEEDS_THREADS_IN_CHILDREN();
  CHECK(ExitCodeOfChild([] {
          const ThreadPool pool(2);
          g_slow = true;
          std::atomic<int> begun;
          const etalon_task_fn end_late = [](void* arg, int64_t, int64_t, int32_t worker) {
            std::atomic<int>* all = static_cast<std::atomic<int>*>(arg);
            for (++*all; *all < 2;) std::this_thread::yield();
            if (worker != 0) usleep(500);
          };
          for (int round = 0; round < 20; ++round) {
            begun = 0;
            pool.parallel()->parallel_for(pool.parallel()->ctx, 2, end_late, &begun);
          }
          return 0;
        }) == 0);
}

}  // namespace
}  // namespace etalon::test
