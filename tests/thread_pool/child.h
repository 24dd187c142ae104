// child.h: runs a part of a test in a forked process.
#ifndef ETALON_TESTS_THREAD_POOL_CHILD_H_
#define ETALON_TESTS_THREAD_POOL_CHILD_H_

#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>

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

}  // namespace etalon::test

#endif  // ETALON_TESTS_THREAD_POOL_CHILD_H_
