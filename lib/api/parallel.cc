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
  Part part = {*loop, first, last, worker};
  RunInEnvironment(RunGuarded, &part);
  return true;
}

etalon_status RunAll(TaskLoop* loop, const etalon_parallel* parallel, etalon_error* error) {
  if (loop->num_tasks == 0) return Succeed(error);
  if (parallel == nullptr) {
    RunPart(loop, 0, loop->num_tasks, 0);
    return Succeed(error);
  }
  loop->workers = parallel->workers;  // a begun call has scratch for max_workers, but was promised these
  parallel->parallel_for(parallel->ctx, loop->num_tasks, RunForCaller, loop);
  if (loop->broken != 0) {
    return Fail(error, ETALON_BAD_TASKS, {"parallel", "parallel_for"},
                {"called its function with tasks or a worker out of range, or with more tasks than there are"});
  }
  if (loop->num_started != loop->num_tasks) {
    return Fail(error, ETALON_BAD_TASKS, {"parallel", "parallel_for"},
                {"ran ", loop->num_started, " of ", loop->num_tasks, " tasks"});
  }
  return Succeed(error);
}

}  // namespace etalon
