#include "lib/attention/schedule.h"

#include <cstring>

#include "arch/dispatch.h"
#include "lib/attention/count.h"
#include "lib/base/arithmetic.h"
#include "lib/base/parallel.h"
#include "lib/base/workspace.h"

namespace etalon {
namespace {

// Keys are split where there are fewer tiles than this for each worker: with more, workers are evenly enough busy. Such
// tiles are the smallest (ChooseTileRows).
constexpr int64_t kFewTilesForWorker = 2;
static_assert(kFewTilesForWorker <= kTilesForWorker, "tiles that are split have kLeastTileRows");
// Tasks for each worker that a split aims at, so that a late start or a slow core costs little.
constexpr int64_t kTasksForWorker = 4;

bool Splits(int64_t num_tiles, int32_t workers) { return workers > 1 && num_tiles < kFewTilesForWorker * workers; }

// Tiles of the largest call that is still split. Saturates; the caller multiplies with checks.
int64_t MostSplitTiles(const CallLimits& limits) {
  if (limits.workers <= 1 || limits.num_kv_heads == 0) return 0;
  int64_t rows, tiles;
  const int64_t fewer = kFewTilesForWorker * limits.workers - 1;
  const int64_t most = fewer - fewer % limits.num_kv_heads;  // each key/value head has as many tiles
  if (__builtin_mul_overflow(limits.num_q_heads / limits.num_kv_heads, limits.q_len, &rows)) return most;
  if (__builtin_mul_overflow(DivideUp(rows, kLeastTileRows), limits.num_kv_heads, &tiles)) return most;
  if (__builtin_mul_overflow(tiles, limits.batch, &tiles)) return most;
  return Smaller(tiles, most);
}

int64_t MostRowsOfTile(const CallLimits& limits) {
  int64_t rows;
  if (__builtin_mul_overflow(limits.num_q_heads / limits.num_kv_heads, limits.q_len, &rows)) return kLeastTileRows;
  return Smaller(rows, kLeastTileRows);
}

Range BlocksOf(const Span& span) {
  if (span.first >= span.last) return {0, 0};
  return {span.first / kBlock, DivideUp(span.last, kBlock)};
}

struct TileBlocks {
  const AttentionProblem& problem;
  Range operator()(int64_t tile) const {
    return BlocksOf(SpanOfTile(problem.tiles, TileAt(problem.tiles, tile), problem.sequences));
  }
};

int64_t BlocksOfTask(const AttentionProblem& problem, int64_t num_tiles, int32_t workers) {
  const TileBlocks blocks_of = {problem};
  int64_t total = 0;
  for (int64_t t = 0; t < num_tiles; ++t) {
    const Range blocks = blocks_of(t);
    total += blocks.last - blocks.first;
  }
  return Larger(1, DivideUp(total, kTasksForWorker * workers));
}

int64_t PartsOf(const Range& blocks, int64_t blocks_of_task) {
  return Larger(1, DivideUp(blocks.last - blocks.first, blocks_of_task));
}

const int64_t* CopyLengths(const int64_t* lengths, int64_t batch, unsigned char** to) {
  if (lengths == nullptr) return nullptr;
  const size_t bytes = static_cast<size_t>(batch) * sizeof *lengths;
  unsigned char* copy = *to;
  if (bytes != 0) std::memcpy(copy, lengths, bytes);
  *to += bytes;
  return reinterpret_cast<const int64_t*>(copy);
}

// The tile that a task belongs to: the last whose first_task is not beyond it.
SplitTile* FindSplitTile(const AttentionWork& work, int64_t task) {
  int64_t low = 0, high = NumTiles(work.problem.tiles);
  while (high - low > 1) {
    const int64_t middle = low + (high - low) / 2;
    if (work.split_tiles[middle].first_task <= task) {
      low = middle;
    } else {
      high = middle;
    }
  }
  return &work.split_tiles[low];
}

// The states of a split tile from one of its blocks on.
States StatesOf(const AttentionWork& work, const SplitTile& split, int64_t block) {
  const int64_t at = split.first_state + block;
  return {work.states.m + at, work.states.l + at, work.states.o + at * static_cast<int64_t>(work.problem.value_dim),
          split.num_blocks};
}

void RunSplitTask(const AttentionWork& work, int64_t task, void* scratch) {
  SplitTile* split = FindSplitTile(work, task);
  const Tile tile = TileAt(work.problem.tiles, split - work.split_tiles);
  if (split->parts == 1) {
    AttendTile(work.table, work.problem, tile, scratch);
    return;
  }
  const Range part = PartOfRange(split->num_blocks, task - split->first_task, split->parts);
  AttendBlocks(work.table, work.problem, tile, split->first_block + part.first, split->first_block + part.last,
               StatesOf(work, *split, part.first), scratch);
  // Acquire and release: the last one reads what the others have written.
  if (__atomic_sub_fetch(&split->unfinished, 1, __ATOMIC_ACQ_REL) == 0) {
    FoldTile(work.table, work.problem, tile, StatesOf(work, *split, 0), split->num_blocks, scratch);
  }
}

}  // namespace

bool LayOutAttention(const KernelTable& table, const CallLimits& limits, size_t header_bytes, AttentionLayout* layout) {
  const int64_t split_tiles = MostSplitTiles(limits);
  int64_t states = 0;
  bool fits = split_tiles == 0 ||
              !__builtin_mul_overflow(split_tiles * MostRowsOfTile(limits), DivideUp(limits.kv_len, kBlock), &states);
  int64_t state_floats;
  fits &= !__builtin_mul_overflow(states, limits.value_dim, &state_floats);

  *layout = {};
  size_t* bytes = &layout->bytes;
  ReserveBytes(bytes, header_bytes);
  layout->lengths = ReserveArray(bytes, limits.batch, 3 * sizeof(int64_t), &fits);
  layout->split_tiles = ReserveArray(bytes, split_tiles, sizeof(SplitTile), &fits);
  layout->state_m = ReserveArray(bytes, states, sizeof(float), &fits);
  layout->state_l = ReserveArray(bytes, states, sizeof(float), &fits);
  layout->state_o = ReserveArray(bytes, state_floats, sizeof(float), &fits);
  layout->scratch_stride = ScratchBytes(table, limits.head_dim, limits.value_dim);
  layout->scratch = ReserveArray(bytes, limits.workers, layout->scratch_stride, &fits);
  return fits;
}

AttentionCount CountAttention(const AttentionProblem& p, int32_t workers) {
  const int64_t num_tiles = NumTiles(p.tiles);
  if (num_tiles == 0) return {};
  AttentionCount count = {num_tiles, 1, 0, 0};
  if (Splits(num_tiles, workers)) {
    const TileBlocks blocks_of = {p};
    const int64_t blocks_of_task = BlocksOfTask(p, num_tiles, workers);
    count.num_tasks = 0;
    for (int64_t t = 0; t < num_tiles; ++t) {  // few, where keys are split
      const int64_t parts = PartsOf(blocks_of(t), blocks_of_task);
      count.num_tasks += parts;
      count.key_splits = Larger(count.key_splits, parts);
    }
  }
  const Sequences& s = p.sequences;
  const bool alike = s.q_lens == nullptr && s.kv_lens == nullptr && s.q_offsets == nullptr;
  const int64_t times = MultiplySaturated(p.tiles.num_kv_heads, alike ? p.tiles.batch : 1);
  const int64_t key_bytes = static_cast<int64_t>(p.head_dim * ElementSize(p.k.type)) +
                            static_cast<int64_t>(p.value_dim * ElementSize(p.v.type));
  for (int64_t batch = 0; batch < (alike ? 1 : p.tiles.batch); ++batch) {
    const KeyCount keys = CountKeys(p.tiles, s, batch);
    count.key_tiles = AddSaturated(count.key_tiles, MultiplySaturated(keys.chunks, times));
    count.bytes_read =
        AddSaturated(count.bytes_read, MultiplySaturated(MultiplySaturated(keys.keys, key_bytes), times));
  }
  return count;
}

int64_t BeginAttention(const KernelTable& table, const AttentionProblem& problem, int32_t workers,
                       const AttentionLayout& layout, unsigned char* workspace, AttentionWork* work) {
  *work = {};
  work->table = table;
  work->problem = problem;
  work->scratch = workspace + layout.scratch;
  work->scratch_stride = layout.scratch_stride;
  work->states = {At<float>(workspace, layout.state_m), At<float>(workspace, layout.state_l),
                  At<float>(workspace, layout.state_o), 0};
  Sequences* sequences = &work->problem.sequences;
  unsigned char* lengths = workspace + layout.lengths;
  sequences->q_lens = CopyLengths(sequences->q_lens, problem.tiles.batch, &lengths);
  sequences->kv_lens = CopyLengths(sequences->kv_lens, problem.tiles.batch, &lengths);
  sequences->q_offsets = CopyLengths(sequences->q_offsets, problem.tiles.batch, &lengths);

  const int64_t num_tiles = NumTiles(problem.tiles);
  if (!Splits(num_tiles, workers)) return num_tiles;
  work->split_tiles = At<SplitTile>(workspace, layout.split_tiles);
  const int64_t blocks_of_task = BlocksOfTask(work->problem, num_tiles, workers);
  const TileBlocks blocks_of = {work->problem};
  int64_t task = 0, state = 0;
  for (int64_t t = 0; t < num_tiles; ++t) {
    const Range blocks = blocks_of(t);
    const int32_t parts = static_cast<int32_t>(PartsOf(blocks, blocks_of_task));
    work->split_tiles[t] = {task, state, blocks.first, blocks.last - blocks.first, parts, parts};
    task += parts;
    if (parts > 1) state += TileAt(problem.tiles, t).num_rows * (blocks.last - blocks.first);
  }
  return task;
}

void RunAttention(AttentionWork* work, int64_t first, int64_t last, int32_t worker) {
  void* scratch = static_cast<unsigned char*>(work->scratch) + static_cast<size_t>(worker) * work->scratch_stride;
  for (int64_t task = first; task < last; ++task) {
    if (work->split_tiles != nullptr) {
      RunSplitTask(*work, task, scratch);
    } else {
      AttendTile(work->table, work->problem, TileOfTask(work->problem.tiles, task), scratch);
    }
  }
}

}  // namespace etalon
