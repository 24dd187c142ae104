// The pool across fork(). A child says by its exit code what it saw.
#include <doctest/doctest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <etalon/thread_pool.hpp>
#include <thread>
#include <vector>

#include "tests/thread_pool/child.h"
#include "tests/thread_pool/rendezvous.h"
#include "tests/thread_pool/tally.h"

namespace etalon::test {
namespace {

// The call of the tests: its result depends on all tasks, and is the same however they are run.
int64_t SumOfSquares(const etalon_parallel& parallel) {
  std::atomic<int64_t> sum{0};
  const etalon_task_fn add = [](void* arg, int64_t first, int64_t last, int32_t) {
    for (int64_t i = first; i < last; ++i) *static_cast<std::atomic<int64_t>*>(arg) += i * i;
  };
  parallel.parallel_for(parallel.ctx, 100, add, &sum);
  return sum;
}

constexpr int64_t kSum = 328350;

TEST_CASE("THR-4: the same call before fork(), in the child, and in the parent again") {
  ETALON_NEEDS_THREADS_IN_CHILDREN();
  for (const int32_t threads : {1, 2, 64}) {
    CAPTURE(threads);
    const ThreadPool pool(threads);
    CHECK(SumOfSquares(*pool.parallel()) == kSum);
    CHECK(ExitCodeOfChild([&] {
            if (SumOfSquares(*pool.parallel()) != kSum) return 1;
            if (pool.threads() != threads) return 2;
            return RunsEachOnce(*pool.parallel(), 1000) ? 0 : 3;
          }) == 0);
    CHECK(SumOfSquares(*pool.parallel()) == kSum);
    CHECK(pool.threads() == threads);
  }
}

TEST_CASE("a child's pool has threads") {
  ETALON_NEEDS_THREADS_IN_CHILDREN();
  const ThreadPool pool(3);
  CHECK(ExitCodeOfChild([&] { return TasksMeet(*pool.parallel(), 3) ? 0 : 1; }) == 0);
}

TEST_CASE("fork() while another thread uses the pool, whatever it holds") {
  ETALON_NEEDS_THREADS_IN_CHILDREN();
  const ThreadPool pool(3);
  std::atomic<bool> stop{false};
  std::atomic<int64_t> faults{0};
  std::thread other([&] {
    while (!stop) {
      if (SumOfSquares(*pool.parallel()) != kSum) ++faults;
    }
  });
  int failures = 0;
  for (int round = 0; round < 50; ++round) {
    failures += ExitCodeOfChild([&] { return SumOfSquares(*pool.parallel()) == kSum ? 0 : 1; }) != 0;
  }
  stop = true;
  other.join();
  CHECK(failures == 0);
  CHECK(faults == 0);
  CHECK(SumOfSquares(*pool.parallel()) == kSum);
}

TEST_CASE("a child may destroy its pool, used or not, and the parent goes on") {
  ETALON_NEEDS_THREADS_IN_CHILDREN();
  etalon_thread_pool* pool = nullptr;
  REQUIRE(etalon_thread_pool_create(3, &pool) == ETALON_OK);
  for (const bool used : {false, true}) {
    CHECK(ExitCodeOfChild([&] {
            if (used && SumOfSquares(etalon_thread_pool_parallel(pool)) != kSum) return 1;
            etalon_thread_pool_destroy(pool);
            return 0;
          }) == 0);
    CHECK(SumOfSquares(etalon_thread_pool_parallel(pool)) == kSum);
  }
  etalon_thread_pool_destroy(pool);
}

TEST_CASE("children of children") {
  ETALON_NEEDS_THREADS_IN_CHILDREN();
  etalon_thread_pool* pool = nullptr;
  REQUIRE(etalon_thread_pool_create(2, &pool) == ETALON_OK);
  for (const bool used_between : {false, true}) {
    CHECK(ExitCodeOfChild([&] {
            if (used_between && SumOfSquares(etalon_thread_pool_parallel(pool)) != kSum) return 1;
            const int code = ExitCodeOfChild([&] {
              if (SumOfSquares(etalon_thread_pool_parallel(pool)) != kSum) return 1;
              etalon_thread_pool_destroy(pool);
              return 0;
            });
            if (code != 0) return 2;
            return SumOfSquares(etalon_thread_pool_parallel(pool)) == kSum ? 0 : 3;
          }) == 0);
  }
  etalon_thread_pool_destroy(pool);
}

TEST_CASE("a child whose threads all come first take turns") {
  ETALON_NEEDS_THREADS_IN_CHILDREN();
  const ThreadPool pool(3);
  int failures = 0;
  for (int round = 0; round < 20; ++round) {
    failures += ExitCodeOfChild([&] {
                  std::atomic<int> ready{0};
                  Tally tally(20, 3);  // of all threads: with a pool each, a worker would be in two tasks at once
                  std::vector<std::thread> threads;
                  for (int i = 0; i < 4; ++i) {
                    threads.emplace_back([&] {
                      for (++ready; ready < 4;) std::this_thread::yield();
                      pool.parallel()->parallel_for(pool.parallel()->ctx, 20, Count, &tally);
                    });
                  }
                  for (std::thread& thread : threads) thread.join();
                  for (const std::atomic<int32_t>& runs : tally.runs) {
                    if (runs != 4) return 1;
                  }
                  return tally.faults == 0 ? 0 : 2;
                }) != 0;
  }
  CHECK(failures == 0);
}

TEST_CASE("a child forked inside a task may use the pool") {
  ETALON_NEEDS_THREADS_IN_CHILDREN();
  struct Outer {
    etalon_parallel parallel;
    std::atomic<int> failures;
  };
  const ThreadPool pool(2);
  Outer outer{*pool.parallel(), {0}};
  const etalon_task_fn fork_in_task = [](void* arg, int64_t, int64_t, int32_t) {
    Outer* out = static_cast<Outer*>(arg);
    if (ExitCodeOfChild([&] { return SumOfSquares(out->parallel) == kSum ? 0 : 1; }) != 0) ++out->failures;
  };
  pool.parallel()->parallel_for(pool.parallel()->ctx, 4, fork_in_task, &outer);
  CHECK(outer.failures == 0);
  CHECK(SumOfSquares(*pool.parallel()) == kSum);
}

// How many of `wanted` threads the system grants at once, the calling one counted.
int ThreadsGranted(int wanted) {
  std::atomic<bool> stop{false};
  const auto wait = [](void* arg) -> void* {
    while (!*static_cast<std::atomic<bool>*>(arg)) usleep(1000);
    return nullptr;
  };
  std::vector<pthread_t> threads;
  pthread_t thread;
  while (static_cast<int>(threads.size()) < wanted - 1 && pthread_create(&thread, nullptr, wait, &stop) == 0) {
    threads.push_back(thread);
  }
  stop = true;
  for (const pthread_t made : threads) pthread_join(made, nullptr);
  return static_cast<int>(threads.size()) + 1;
}

// Root may have any number of threads, so the child becomes somebody else.
TEST_CASE("more threads than the system grants") {
  ETALON_NEEDS_THREADS_IN_CHILDREN();
  constexpr int kMost = 6;
  constexpr int kUnlimited = 77;
  const ThreadPool before(3);
  const int code = ExitCodeOfChild([&] {
    const rlimit limit{kMost, kMost};
    if (setrlimit(RLIMIT_NPROC, &limit) != 0) return kUnlimited;
    if (geteuid() == 0 && setuid(54321) != 0) return kUnlimited;
    if (ThreadsGranted(kMost + 1) > kMost) return kUnlimited;
    const ThreadPool pool(1000);
    if (pool.status() != ETALON_OK) return 1;
    if (pool.threads() < 1 || pool.threads() > kMost) return 2;
    if (pool.parallel()->workers != pool.threads()) return 3;
    if (!RunsEachOnce(*pool.parallel(), 1000)) return 4;
    // The parent's pool gets what is left, maybe nothing, and works.
    if (!RunsEachOnce(*before.parallel(), 1000)) return 5;
    return before.threads() >= 1 && before.threads() <= 3 ? 0 : 6;
  });
  if (code == kUnlimited) {
    MESSAGE("SKIPPED: no way to limit the number of threads here");
  } else {
    CHECK(code == 0);
  }
}

}  // namespace
}  // namespace etalon::test
