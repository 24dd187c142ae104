// The pool in one process: what runs, where, and on how many threads.
#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include <doctest/doctest.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <time.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <etalon/thread_pool.hpp>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#include "tests/thread_pool/no_exceptions.h"
#include "tests/thread_pool/rendezvous.h"
#include "tests/thread_pool/tally.h"
#include "tests/thread_pool/tsan_options.h"

namespace etalon::test {
namespace {

double CpuSeconds() {
  timespec now;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

TEST_CASE("each task runs once, whatever the numbers of tasks and threads") {
  for (const int32_t threads : {1, 2, 3, 64, 65, 1000}) {
    const ThreadPool pool(threads);
    REQUIRE(pool.status() == ETALON_OK);
    const int32_t granted = pool.threads();
    if (granted < threads) MESSAGE("the system granted " << granted << " threads of " << threads);
    CHECK(granted >= 1);
    CHECK(granted <= threads);
    CHECK(pool.parallel()->workers == granted);
    CHECK(pool.parallel()->reserved == 0);
    for (const int64_t tasks : {0, 1, 2, 3, 64, 65, 1000}) {
      CAPTURE(threads);
      CAPTURE(tasks);
      for (int round = 0; round < 3; ++round) CHECK(RunsEachOnce(*pool.parallel(), tasks));
    }
  }
}

TEST_CASE("one call after the other, without a pause") {
  for (const int32_t threads : {2, 3, 5}) {
    const ThreadPool pool(threads);
    bool good = true;
    for (int round = 0; round < 3000; ++round) good = good && RunsEachOnce(*pool.parallel(), round % 9);
    CHECK(good);
  }
}

TEST_CASE("fewer tasks than none are none") {
  const ThreadPool pool(2);
  Tally tally(1, 2);
  for (const int64_t tasks : {int64_t{0}, int64_t{-1}, INT64_MIN}) {
    pool.parallel()->parallel_for(pool.parallel()->ctx, tasks, Count, &tally);
  }
  CHECK(tally.runs[0] == 0);
  CHECK(tally.faults == 0);
}

TEST_CASE("every thread takes part, the caller as worker 0") {
  for (const int32_t threads : {1, 2, 3, 64}) {
    CAPTURE(threads);
    const ThreadPool pool(threads);
    REQUIRE(pool.threads() == threads);
    for (int round = 0; round < 20; ++round) CHECK(TasksMeet(*pool.parallel(), threads));
    struct Callers {
      std::thread::id caller;
      std::atomic<int64_t> faults;
    } callers{std::this_thread::get_id(), {0}};
    const etalon_task_fn check = [](void* arg, int64_t, int64_t, int32_t worker) {
      Callers* c = static_cast<Callers*>(arg);
      if ((worker == 0) != (std::this_thread::get_id() == c->caller)) ++c->faults;
    };
    pool.parallel()->parallel_for(pool.parallel()->ctx, 1000, check, &callers);
    CHECK(callers.faults == 0);
  }
}

TEST_CASE("a call from inside a task runs on the calling thread") {
  struct Outer {
    etalon_parallel parallel;
    std::atomic<int64_t> faults;
  };
  const etalon_task_fn nest = [](void* arg, int64_t, int64_t, int32_t) {
    Outer* outer = static_cast<Outer*>(arg);
    struct Inner {
      Outer* outer;
      std::thread::id thread;
      int64_t tasks;
    } inner{outer, std::this_thread::get_id(), 0};
    const etalon_task_fn count = [](void* inner_arg, int64_t first, int64_t last, int32_t worker) {
      Inner* in = static_cast<Inner*>(inner_arg);
      if (worker != 0 || std::this_thread::get_id() != in->thread) ++in->outer->faults;
      in->tasks += last - first;
      if (!RunsEachOnce(in->outer->parallel, 3)) ++in->outer->faults;  // and once more
    };
    outer->parallel.parallel_for(outer->parallel.ctx, 7, count, &inner);
    if (inner.tasks != 7) ++outer->faults;
  };
  for (const int32_t threads : {1, 2, 3, 64}) {
    CAPTURE(threads);
    const ThreadPool pool(threads);
    Outer outer{*pool.parallel(), {0}};
    for (const int64_t tasks : {1, 2, 100}) outer.parallel.parallel_for(outer.parallel.ctx, tasks, nest, &outer);
    CHECK(outer.faults == 0);
    CHECK(RunsEachOnce(*pool.parallel(), 65));
  }
}

TEST_CASE("pools whose tasks call each other do not wait for each other") {
  struct Pair {
    etalon_parallel outer;
    etalon_parallel inner;
    std::atomic<int64_t> faults;
  };
  const etalon_task_fn cross = [](void* arg, int64_t, int64_t, int32_t) {
    Pair* pair = static_cast<Pair*>(arg);
    const etalon_task_fn back = [](void* back_arg, int64_t, int64_t, int32_t) {
      Pair* p = static_cast<Pair*>(back_arg);
      if (!RunsEachOnce(p->outer, 3)) ++p->faults;
    };
    pair->inner.parallel_for(pair->inner.ctx, 3, back, pair);
  };
  const ThreadPool a(2);
  const ThreadPool b(2);
  Pair ab{*a.parallel(), *b.parallel(), {0}};
  Pair ba{*b.parallel(), *a.parallel(), {0}};
  const auto hammer = [cross](Pair* pair) {
    for (int i = 0; i < 300; ++i) pair->outer.parallel_for(pair->outer.ctx, 3, cross, pair);
  };
  std::thread other(hammer, &ba);
  hammer(&ab);
  other.join();
  CHECK(ab.faults == 0);
  CHECK(ba.faults == 0);
}

TEST_CASE("calls of several threads on one pool take turns") {
  const ThreadPool pool(3);
  Tally tally(10, 3);  // of all callers: between them, too, no worker is in two tasks at once
  std::vector<std::thread> callers;
  for (int i = 0; i < 4; ++i) {
    callers.emplace_back([&] {
      for (int round = 0; round < 300; ++round) {
        pool.parallel()->parallel_for(pool.parallel()->ctx, 10, Count, &tally);
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  for (const std::atomic<int32_t>& runs : tally.runs) CHECK(runs == 1200);
  CHECK(tally.faults == 0);
}

TEST_CASE("created, used and destroyed on three threads") {
  bool good = true;
  for (int round = 0; round < 100; ++round) {
    etalon_thread_pool* pool = nullptr;
    std::thread([&] { good = etalon_thread_pool_create(3, &pool) == ETALON_OK && good; }).join();
    std::thread([&] { good = RunsEachOnce(etalon_thread_pool_parallel(pool), 20) && good; }).join();
    std::thread([&] { etalon_thread_pool_destroy(pool); }).join();
  }
  CHECK(good);
}

TEST_CASE("what was written before a call is seen by its tasks, and what they write after it") {
  const ThreadPool pool(3);
  std::vector<int64_t> values(1000);  // plain memory: the thread sanitizer sees a missing order
  bool good = true;
  for (int64_t round = 0; round < 100; ++round) {
    for (int64_t& value : values) value = round;
    const etalon_task_fn add = [](void* arg, int64_t first, int64_t last, int32_t) {
      for (int64_t i = first; i < last; ++i) (*static_cast<std::vector<int64_t>*>(arg))[static_cast<size_t>(i)] += i;
    };
    pool.parallel()->parallel_for(pool.parallel()->ctx, 1000, add, &values);
    for (size_t i = 0; i < values.size(); ++i) good = good && values[i] == round + static_cast<int64_t>(i);
  }
  CHECK(good);
}

TEST_CASE("statuses") {
  int64_t somewhere = 0;
  etalon_thread_pool* const other = reinterpret_cast<etalon_thread_pool*>(&somewhere);
  etalon_thread_pool* pool = other;
  CHECK(etalon_thread_pool_create(1, nullptr) == ETALON_NULL_POINTER);
  CHECK(etalon_thread_pool_create(-1, nullptr) == ETALON_NULL_POINTER);
  for (const int32_t threads : {-1, -2, INT32_MIN}) {
    CHECK(etalon_thread_pool_create(threads, &pool) == ETALON_BAD_VALUE);
    CHECK(pool == other);
  }
  CHECK(etalon_thread_pool_create(0, &pool) == ETALON_OK);
  CHECK(etalon_thread_pool_threads(pool) == etalon_default_threads());
  etalon_thread_pool_destroy(pool);
}

TEST_CASE("NULL is the calling thread") {
  etalon_thread_pool_destroy(nullptr);
  CHECK(etalon_thread_pool_threads(nullptr) == 1);
  const etalon_parallel parallel = etalon_thread_pool_parallel(nullptr);
  CHECK(parallel.workers == 1);
  CHECK(parallel.reserved == 0);
  for (const int64_t tasks : {0, 1, 65}) CHECK(RunsEachOnce(parallel, tasks));
}

#if defined(__linux__)
TEST_CASE("THR-3: pinned to one CPU, the default is one thread") {
  int32_t threads = 0;
  int32_t pool_threads = 0;
  std::thread([&] {  // whose mask nobody else needs
    cpu_set_t mask;
    CPU_ZERO(&mask);
    CPU_SET(sched_getcpu(), &mask);
    if (sched_setaffinity(0, sizeof mask, &mask) != 0) return;
    threads = etalon_default_threads();
    const ThreadPool pool;
    pool_threads = pool.threads();
  })
      .join();
  CHECK(threads == 1);
  CHECK(pool_threads == 1);

  cpu_set_t all;
  REQUIRE(sched_getaffinity(0, sizeof all, &all) == 0);
  CHECK(etalon_default_threads() == CPU_COUNT(&all));
}
#endif

TEST_CASE("idle workers sleep") {
  const ThreadPool pool;
  CHECK(RunsEachOnce(*pool.parallel(), 65));
  const double before = CpuSeconds();
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  CHECK(CpuSeconds() - before < 0.1);
}

TEST_CASE("workers leave signals to the host's threads") {
  static std::atomic<int> taken;
  taken = 0;
  struct sigaction action = {};
  struct sigaction old;
  action.sa_handler = [](int) { ++taken; };
  REQUIRE(sigaction(SIGUSR1, &action, &old) == 0);
  const ThreadPool pool(3);
  sigset_t usr1, before;
  sigemptyset(&usr1);
  sigaddset(&usr1, SIGUSR1);
  pthread_sigmask(SIG_BLOCK, &usr1, &before);
  CHECK(sigismember(&before, SIGUSR1) == 0);  // the pool has left our own mask alone
  kill(getpid(), SIGUSR1);
  CHECK(RunsEachOnce(*pool.parallel(), 65));
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  CHECK(taken == 0);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  CHECK(taken == 1);
  sigaction(SIGUSR1, &old, nullptr);
}

TEST_CASE("ThreadPool owns its pool, and a lost or failed one is the calling thread") {
  static_assert(!std::is_copy_constructible_v<ThreadPool> && !std::is_copy_assignable_v<ThreadPool>);
  static_assert(std::is_nothrow_move_constructible_v<ThreadPool> && std::is_nothrow_move_assignable_v<ThreadPool>);
  ThreadPool failed(-1);
  CHECK(failed.status() == ETALON_BAD_VALUE);
  CHECK(failed.threads() == 1);
  CHECK(RunsEachOnce(*failed.parallel(), 65));

  ThreadPool pool(3);
  const ThreadPool moved(std::move(pool));
  CHECK(moved.status() == ETALON_OK);
  CHECK(moved.threads() == 3);
  CHECK(moved.parallel()->workers == 3);
  CHECK(RunsEachOnce(*moved.parallel(), 65));
  CHECK(pool.threads() == 1);  // NOLINT(bugprone-use-after-move): allowed, as thread_pool.hpp says
  CHECK(pool.parallel()->workers == 1);
  CHECK(RunsEachOnce(*pool.parallel(), 65));

  failed = ThreadPool(2);
  CHECK(failed.status() == ETALON_OK);
  CHECK(failed.threads() == 2);
  CHECK(RunsEachOnce(*failed.parallel(), 65));
  ThreadPool& same = failed;
  failed = std::move(same);
  CHECK(failed.threads() == 2);
  CHECK(RunsEachOnce(*failed.parallel(), 65));

  CHECK(ThreadsWithoutExceptions(2) == 2);
}

}  // namespace
}  // namespace etalon::test
