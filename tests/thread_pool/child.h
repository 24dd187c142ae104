// child.h: runs a part of a test in a forked process.
#ifndef ETALON_TESTS_THREAD_POOL_CHILD_H_
#define ETALON_TESTS_THREAD_POOL_CHILD_H_

#include <doctest/doctest.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <thread>

namespace etalon::test {

// The exit code of a child that runs `work`, an int(), for at most 5 s; minus the signal that ended it (-14: too long).
template <class Work>
int ExitCodeOfChild(Work work) {
  std::fflush(nullptr);
  const pid_t child = fork();
  if (child < 0) return -1000;
  if (child == 0) {
    alarm(5);
    _exit(work());
  }
  int status = 0;
  if (waitpid(child, &status, 0) != child) return -1001;
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

// Whether a child of a process with threads can make threads. In qemu's user emulation the child ends in an assertion.
static inline bool ChildrenHaveThreads() {
  static const bool yes = [] {
    const auto nothing = [](void*) -> void* { return nullptr; };
    const auto make = [&] {
      pthread_t thread;
      return pthread_create(&thread, nullptr, nothing, nullptr) == 0 ? pthread_join(thread, nullptr) : 1;
    };
    std::atomic<bool> stop{false};
    std::thread other([&] {
      while (!stop) std::this_thread::yield();
    });
    const int code = ExitCodeOfChild(make);
    stop = true;
    other.join();
    return code == 0;
  }();
  return yes;
}

}  // namespace etalon::test

// At the top of a test whose children make threads.
#define ETALON_NEEDS_THREADS_IN_CHILDREN()                                     \
  do {                                                                         \
    if (!etalon::test::ChildrenHaveThreads()) {                                \
      MESSAGE("SKIPPED: no threads in forked children here, pool or no pool"); \
      return;                                                                  \
    }                                                                          \
  } while (false)

#endif  // ETALON_TESTS_THREAD_POOL_CHILD_H_
