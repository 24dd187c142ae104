#include "lib/api/primitives.h"

#include "arch/dispatch.h"
#include "lib/base/workspace.h"

namespace etalon {

etalon_status ChooseKernels(const char* target, const char* object, size_t head_dim, size_t value_dim,
                            int32_t max_workers, Kernels* kernels, etalon_error* error) {
  ETALON_CHECK(CheckTarget(target, object, &kernels->table, error));
  kernels->max_workers = max_workers;
  if (max_workers == 0) return ETALON_OK;
  bool fits = true;
  kernels->scratch_stride = ScratchBytes(kernels->table, head_dim, value_dim);
  ReserveArray(&kernels->workspace_bytes, max_workers, kernels->scratch_stride, &fits);
  if (fits) return ETALON_OK;
  return Fail(error, ETALON_OVERFLOW, {object, "max_workers"},
              {"is ", max_workers, ": the scratch of so many does not fit an address"});
}

etalon_status RunPrimitive(const Kernels& kernels, Memory* memory, const etalon_workspace* caller_workspace,
                           const etalon_parallel* parallel, unsigned char** scratch, const Tasks& tasks,
                           etalon_error* error) {
  etalon_workspace workspace;
  ETALON_CHECK(CheckWorkspace(caller_workspace, kernels.workspace_bytes, &workspace, error));
  ETALON_CHECK(CheckParallel(parallel, kernels.max_workers, error));
  memory->Writes(workspace);
  ETALON_CHECK(memory->Check(error));
  *scratch = static_cast<unsigned char*>(workspace.data);
  TaskLoop loop = {tasks.run, tasks.work, tasks.num_tasks, parallel == nullptr ? 1 : parallel->workers, 0, 0, 0};
  return RunAll(&loop, parallel, error);
}

}  // namespace etalon
