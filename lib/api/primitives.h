// primitives.h: how the primitives run: a tile of rows a task, scratch for each worker.
#ifndef ETALON_LIB_API_PRIMITIVES_H_
#define ETALON_LIB_API_PRIMITIVES_H_

#include <cstddef>
#include <cstdint>

#include "lib/api/parallel.h"
#include "lib/api/validate.h"
#include "lib/attention/tiles.h"

namespace etalon {

// Kernels of a primitive and what they need of the workspace.
struct Kernels {
  KernelTable table;
  size_t scratch_stride = 0;
  int32_t max_workers = 0;  // 0: any number, there is no scratch
  size_t workspace_bytes = 0;
};

// The table called `target`, with scratch for vectors of these sizes. `object` names the descriptor.
etalon_status ChooseKernels(const char* target, const char* object, size_t head_dim, size_t value_dim,
                            int32_t max_workers, Kernels* kernels, etalon_error* error);

// Checks workspace, threads and overlap, then runs `run` over the tasks.
struct Tasks {
  void (*run)(void* work, int64_t first, int64_t last, int32_t worker);
  void* work;
  int64_t num_tasks;
};
etalon_status RunPrimitive(const Kernels& kernels, Memory* memory, const etalon_workspace* caller_workspace,
                           const etalon_parallel* parallel, unsigned char** scratch, const Tasks& tasks,
                           etalon_error* error);

// The work of a primitive whose tasks are tiles.
template <typename Problem, void (*kRunTile)(const KernelTable&, const Problem&, const Tile&, void*)>
struct TileWork {
  const Kernels& kernels;
  const Problem& problem;
  const RowTiles& tiles;
  unsigned char* scratch = nullptr;

  static void Run(void* arg, int64_t first, int64_t last, int32_t worker) {
    const TileWork& work = *static_cast<const TileWork*>(arg);
    unsigned char* scratch = work.scratch;
    if (scratch != nullptr) scratch += static_cast<size_t>(worker) * work.kernels.scratch_stride;
    for (int64_t t = first; t < last; ++t) {
      kRunTile(work.kernels.table, work.problem, TileOfTask(work.tiles, t), scratch);
    }
  }
};

// RunPrimitive over all tiles; none if `empty`: no output has an element, and other sizes may be anything.
template <typename Problem, void (*kRunTile)(const KernelTable&, const Problem&, const Tile&, void*)>
etalon_status RunTiles(const Kernels& kernels, const Problem& problem, const RowTiles& tiles, bool empty,
                       Memory* memory, const etalon_workspace* workspace, const etalon_parallel* parallel,
                       etalon_error* error) {
  using Work = TileWork<Problem, kRunTile>;
  Work work = {kernels, problem, tiles};
  return RunPrimitive(kernels, memory, workspace, parallel, &work.scratch,
                      {Work::Run, &work, empty ? 0 : NumTiles(tiles)}, error);
}

}  // namespace etalon

#endif  // ETALON_LIB_API_PRIMITIVES_H_
