// schedule.h: the tasks of a call of attention: how keys are split where tiles of rows are too few to busy all workers,
// what lies where in the workspace, and who finishes a tile. No choice made here changes a bit of the result.
#ifndef ETALON_LIB_ATTENTION_SCHEDULE_H_
#define ETALON_LIB_ATTENTION_SCHEDULE_H_

#include <cstddef>
#include <cstdint>

#include "arch/kernel_table.h"
#include "lib/attention/attention.h"

namespace etalon {

// The largest call that a workspace must do for.
struct CallLimits {
  int64_t batch;  // sequences
  int64_t num_q_heads;
  int64_t num_kv_heads;
  int64_t q_len;
  int64_t kv_len;  // of each source
  int64_t num_sources;
  size_t head_dim;
  size_t value_dim;
  int32_t workers;
  bool alibi;
};

// Offsets into a workspace, made from the limits alone, so that whoever asks for the size and whoever uses the memory
// agree.
struct AttentionLayout {
  size_t arrays;  // of the sequences: NumSequenceArrays(num_sources), `batch` + 1 numbers each
  size_t slopes;
  size_t split_tiles;
  size_t state_m;
  size_t state_l;
  size_t state_o;
  size_t scratch;  // of worker 0
  size_t scratch_stride;
  size_t bytes;
};

// False if a size does not fit. The first header_bytes are left to the caller, who keeps an AttentionWork there.
bool LayOutAttention(const KernelTable& table, const CallLimits& limits, size_t header_bytes, AttentionLayout* layout);

// A tile whose keys are split over tasks (or over one, where splitting is on). Its blocks are those that it may see of
// the first source, then of the next.
struct SplitTile {
  int64_t first_task;
  int64_t first_state;
  int64_t num_blocks;
  int32_t parts;
  int32_t unfinished;  // parts; whoever brings it to 0 folds the states
};

// A begun call.
struct AttentionWork {
  KernelTable table;
  AttentionProblem problem;
  int64_t num_tiles;
  SplitTile* split_tiles;  // [num_tiles], or null: a task is a tile
  States states;           // of all split tiles, one after the other; row_stride is not used
  void* scratch;
  size_t scratch_stride;
};

// Work counted without doing it, in O(batch + workers), but O(tiles) where a source has a prepared mask.
struct AttentionCount {
  int64_t num_tasks;
  int64_t key_splits;
  int64_t key_tiles;
  int64_t bytes_read;
};
AttentionCount CountAttention(const AttentionProblem& problem, int32_t workers);

// Fills *work, whose problem is there already, and the parts of the workspace that it points to; returns the number of
// tasks. What the tiles and the sequences of the problem point to is copied, prepared masks excepted. The standard
// slopes are filled if they are wanted.
int64_t BeginAttention(const KernelTable& table, int32_t workers, const AttentionLayout& layout,
                       unsigned char* workspace, AttentionWork* work);

// Tasks first ... last - 1, in the library's environment or not: the caller sees to it.
void RunAttention(AttentionWork* work, int64_t first, int64_t last, int32_t worker);

}  // namespace etalon

#endif  // ETALON_LIB_ATTENTION_SCHEDULE_H_
