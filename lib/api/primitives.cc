#include "lib/api/primitives.h"

#include "arch/dispatch.h"
#include "lib/attention/slopes.h"
#include "lib/base/workspace.h"

namespace etalon {

etalon_status ChooseKernels(const char* target, const char* object, size_t tile_bytes, size_t head_dim,
                            size_t value_dim, int32_t max_workers, Kernels* kernels, etalon_error* error) {
  ETALON_CHECK(CheckTarget(target, object, &kernels->table, error));
  kernels->max_workers = max_workers;
  if (max_workers == 0) return ETALON_OK;
  bool fits = true;
  kernels->scratch_stride = tile_bytes + ScratchBytes(kernels->table, head_dim, value_dim);
  kernels->scratch = ReserveArray(&kernels->workspace_bytes, max_workers, kernels->scratch_stride, &fits);
  if (fits) return ETALON_OK;
  return Fail(error, ETALON_OVERFLOW, {object, "max_workers"},
              {"is ", max_workers, ": the scratch of so many does not fit an address"});
}

etalon_status CheckRunner(const Kernels& kernels, Memory* memory, const etalon_workspace* caller_workspace,
                          const etalon_parallel* parallel, Runner* runner, etalon_error* error) {
  etalon_workspace workspace;
  ETALON_CHECK(CheckWorkspace(caller_workspace, "workspace", kernels.workspace_bytes, &workspace, error));
  ETALON_CHECK(CheckParallel(parallel, kernels.max_workers, error));
  memory->Writes({"workspace", "data"}, workspace);
  ETALON_CHECK(memory->Check(error));
  runner->workspace = static_cast<unsigned char*>(workspace.data);
  runner->alone = parallel == nullptr;
  runner->parallel = runner->alone ? etalon_parallel{} : *parallel;
  return ETALON_OK;
}

etalon_status ChooseAttentionKernels(const etalon_attention_desc& desc, const Call& call, AttentionKernels* kernels,
                                     etalon_error* error) {
  bool fits = true;
  const int64_t slopes = HasOption(desc, ETALON_OPTION_ALIBI) ? desc.num_q_heads : 0;
  kernels->slopes = ReserveArray(&kernels->kernels.workspace_bytes, slopes, sizeof(float), &fits);
  if (!fits) {
    return Fail(error, ETALON_OVERFLOW, call.q.Shape(1), {"is ", slopes, ": the slopes do not fit an address"});
  }
  const size_t value_dim = call.sources[0].v.name == nullptr ? 0 : static_cast<size_t>(desc.value_dim);
  return ChooseKernels(desc.target, "desc", TileArgumentsBytes(1), static_cast<size_t>(desc.head_dim), value_dim,
                       WorkersOf(desc.max_workers), &kernels->kernels, error);
}

void FillSlopes(const AttentionKernels& kernels, const Runner& runner, AttentionProblem* problem) {
  if (!problem->alibi || problem->slopes.data != nullptr) return;
  float* slopes = At<float>(runner.workspace, kernels.slopes);
  StandardSlopes(problem->tiles.num_kv_heads * problem->tiles.group, slopes);
  problem->standard_slopes = slopes;
}

etalon_status RunTasks(const Runner& runner, const Tasks& tasks, etalon_error* error) {
  const int32_t workers = runner.alone ? 1 : runner.parallel.workers;
  TaskLoop loop = {tasks.run, tasks.work, tasks.num_tasks, workers, 0, 0, 0};
  return RunAll(&loop, runner.alone ? nullptr : &runner.parallel, error);
}

}  // namespace etalon
