#include "lib/api/parallel.h"

#include "lib/api/error.h"
#include "lib/base/environment.h"

namespace etalon {
namespace {

struct Part {
  const TaskLoop& loop;
  int64_t first;
  int64_t last;
  int32_t worker;
};

// A number for each task. Their sum tells a set of tasks from others of the same size, for all that a broken loop may
// do.
uint64_t Mix(int64_t task) {
  uint64_t x = (static_cast<uint64_t>(task) + 1) * 0x9E3779B97F4A7C15u;
  x = (x ^ (x >> 32)) * 0xD6E8FEB86659FD93u;
  return x ^ (x >> 32);
}

uint64_t Fingerprint(int64_t first, int64_t last) {
  uint64_t sum = 0;
  for (int64_t task = first; task < last; ++task) sum += Mix(task);
  return sum;
}

void RunGuarded(void* arg) {
  const Part& part = *static_cast<const Part*>(arg);
  part.loop.run(part.loop.work, part.first, part.last, part.worker);
}

void RunForCaller(void* arg, int64_t first, int64_t last, int32_t worker) {
  TaskLoop* loop = static_cast<TaskLoop*>(arg);
  if (!RunPart(loop, first, last, worker)) __atomic_store_n(&loop->broken, 1, __ATOMIC_RELAXED);
}

}  // namespace

bool RunPart(TaskLoop* loop, int64_t first, int64_t last, int32_t worker) {
  if (first < 0 || first > last || last > loop->num_tasks || worker < 0 || worker >= loop->workers) return false;
  if (first == last) return true;
  const int64_t count = last - first;
  if (__atomic_fetch_add(&loop->num_started, count, __ATOMIC_RELAXED) > loop->num_tasks - count) {
    __atomic_fetch_sub(&loop->num_started, count, __ATOMIC_RELAXED);
    return false;
  }
  __atomic_fetch_add(&loop->fingerprint, Fingerprint(first, last), __ATOMIC_RELAXED);
  Part part = {*loop, first, last, worker};
  RunInEnvironment(RunGuarded, &part);
  return true;
}

etalon_status RunAll(TaskLoop* loop, const etalon_parallel* caller, etalon_error* error) {
  if (loop->num_tasks == 0) return Succeed(error);
  if (caller == nullptr) {
    RunPart(loop, 0, loop->num_tasks, 0);
    return Succeed(error);
  }
  loop->workers = caller->workers;  // a begun call has scratch for max_workers, but was promised these
  caller->parallel_for(caller->ctx, loop->num_tasks, RunForCaller, loop);
  if (loop->broken != 0) {
    return Fail(error, ETALON_BAD_TASKS, {"parallel", "parallel_for"},
                {"called its function with tasks or a worker out of range, or with more tasks than there are"});
  }
  if (loop->num_started != loop->num_tasks) {
    return Fail(error, ETALON_BAD_TASKS, {"parallel", "parallel_for"},
                {"ran ", loop->num_started, " of ", loop->num_tasks, " tasks"});
  }
  if (loop->fingerprint != Fingerprint(0, loop->num_tasks)) {
    return Fail(error, ETALON_BAD_TASKS, {"parallel", "parallel_for"}, {"ran some tasks twice and others never"});
  }
  return Succeed(error);
}

}  // namespace etalon
