// parallel.h: runs the tasks of one call on the caller's threads, in the library's floating-point environment, and sees
// whether all were run.
#ifndef ETALON_LIB_API_PARALLEL_H_
#define ETALON_LIB_API_PARALLEL_H_

#include <etalon/etalon.h>

#include <cstdint>

namespace etalon {

struct TaskLoop {
  void (*run)(void* work, int64_t first, int64_t last, int32_t worker);
  void* work;
  int64_t num_tasks;
  int32_t workers;
  // Written by all workers.
  int32_t broken;  // a part was refused
  int64_t num_started;
  uint64_t fingerprint;  // of the tasks that were started
};

// Tasks first ... last - 1. False, with nothing run, if the part or the worker is out of range or more tasks were asked
// for than there are.
bool RunPart(TaskLoop* loop, int64_t first, int64_t last, int32_t worker);

// All tasks. `parallel` has been checked and may be null.
etalon_status RunAll(TaskLoop* loop, const etalon_parallel* parallel, etalon_error* error);

}  // namespace etalon

#endif  // ETALON_LIB_API_PARALLEL_H_
