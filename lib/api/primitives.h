// primitives.h: how the primitives run: a tile of rows a task, scratch for each worker.
#ifndef ETALON_LIB_API_PRIMITIVES_H_
#define ETALON_LIB_API_PRIMITIVES_H_

#include <cstddef>
#include <cstdint>

#include "lib/api/call.h"
#include "lib/api/parallel.h"
#include "lib/api/validate.h"
#include "lib/attention/tiles.h"

namespace etalon {

// Kernels of a primitive and what they need of the workspace.
struct Kernels {
  KernelTable table;
  size_t scratch = 0;  // where that of the first worker begins
  size_t scratch_stride = 0;
  int32_t max_workers = 0;  // 0: any number, there is no scratch
  size_t workspace_bytes = 0;
};

// The table called `target`, with scratch for vectors of these sizes behind `tile_bytes` of the primitive's own.
// `object` names the descriptor. What else the workspace holds has been reserved in kernels->workspace_bytes before.
etalon_status ChooseKernels(const char* target, const char* object, size_t tile_bytes, size_t head_dim,
                            size_t value_dim, int32_t max_workers, Kernels* kernels, etalon_error* error);

// What a primitive runs with, once everything was checked.
struct Runner {
  unsigned char* workspace;
  etalon_parallel parallel;  // a copy: the caller's may lie in the workspace
  bool alone;                // there is none
};

// Checks workspace, threads and overlap.
etalon_status CheckRunner(const Kernels& kernels, Memory* memory, const etalon_workspace* workspace,
                          const etalon_parallel* parallel, Runner* runner, etalon_error* error);

// The same for a primitive that computes on a call of attention: tiles of its only source, and standard slopes.
struct AttentionKernels {
  Kernels kernels;
  size_t slopes;  // where they lie in the workspace
};
etalon_status ChooseAttentionKernels(const etalon_attention_desc& desc, const Call& call, AttentionKernels* kernels,
                                     etalon_error* error);
// Fills the slopes, if the call takes the standard ones.
void FillSlopes(const AttentionKernels& kernels, const Runner& runner, AttentionProblem* problem);

struct Tasks {
  void (*run)(void* work, int64_t first, int64_t last, int32_t worker);
  void* work;
  int64_t num_tasks;
};
etalon_status RunTasks(const Runner& runner, const Tasks& tasks, etalon_error* error);

// The work of a primitive whose tasks are tiles.
template <typename Problem, void (*kRunTile)(const KernelTable&, const Problem&, const Tile&, void*)>
struct TileWork {
  const Kernels& kernels;
  const Problem& problem;
  const RowTiles& tiles;
  unsigned char* scratch;  // of all workers, or null

  static void Run(void* arg, int64_t first, int64_t last, int32_t worker) {
    const TileWork& work = *static_cast<const TileWork*>(arg);
    unsigned char* scratch = work.scratch;
    if (scratch != nullptr) scratch += static_cast<size_t>(worker) * work.kernels.scratch_stride;
    for (int64_t t = first; t < last; ++t) {
      kRunTile(work.kernels.table, work.problem, TileOfTask(work.tiles, t), scratch);
    }
  }
};

// RunTasks over all tiles; none if `empty`: no output has an element, and other sizes may be anything.
template <typename Problem, void (*kRunTile)(const KernelTable&, const Problem&, const Tile&, void*)>
etalon_status RunTiles(const Kernels& kernels, const Runner& runner, const Problem& problem, const RowTiles& tiles,
                       bool empty, etalon_error* error) {
  using Work = TileWork<Problem, kRunTile>;
  unsigned char* scratch = runner.workspace;
  if (scratch != nullptr) scratch += kernels.scratch;
  Work work = {kernels, problem, tiles, scratch};
  return RunTasks(runner, {Work::Run, &work, empty ? 0 : NumTiles(tiles)}, error);
}

}  // namespace etalon

#endif  // ETALON_LIB_API_PRIMITIVES_H_
