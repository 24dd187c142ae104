#include "lib/attention/schedule.h"

#include <cstring>

#include "lib/attention/count.h"
#include "lib/attention/slopes.h"
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

// Blocks of all sources that the tile may see.
int64_t NumBlocks(const AttentionProblem& p, const Tile& tile) {
  int64_t blocks = 0;
  for (int64_t i = 0; i < p.num_sources; ++i) {
    const Range of_source = BlocksOf(SpanOfTile(p.tiles, tile, p.sources[i].sequences));
    blocks += of_source.last - of_source.first;
  }
  return blocks;
}

// Walks the tiles in order. Few, where keys are split; needs no first_tiles.
class TileWalk {
 public:
  explicit TileWalk(const RowTiles& tiles) : tiles_(tiles) { SkipEmpty(); }

  bool Done() const { return batch_ == tiles_.batch; }
  Tile Get() const { return TileOf(tiles_, batch_, kv_head_, of_group_); }
  void Next() {
    if (++of_group_ < TilesOfGroup(tiles_, batch_)) return;
    of_group_ = 0;
    if (++kv_head_ < tiles_.num_kv_heads) return;
    kv_head_ = 0;
    ++batch_;
    SkipEmpty();
  }

 private:
  void SkipEmpty() {
    while (batch_ < tiles_.batch && QLen(tiles_, batch_) == 0) ++batch_;
  }

  const RowTiles& tiles_;
  int64_t batch_ = 0;
  int64_t kv_head_ = 0;
  int64_t of_group_ = 0;
};

int64_t BlocksOfTask(const AttentionProblem& p, int32_t workers) {
  int64_t total = 0;
  for (TileWalk walk(p.tiles); !walk.Done(); walk.Next()) total += NumBlocks(p, walk.Get());
  return Larger(1, DivideUp(total, kTasksForWorker * workers));
}

int64_t PartsOf(int64_t blocks, int64_t blocks_of_task) { return Larger(1, DivideUp(blocks, blocks_of_task)); }

// Arrays of at most batch + 1 numbers: q_lens, q_starts and first_tiles, and five of each source.
int64_t NumSequenceArrays(int64_t num_sources) { return 3 + 5 * num_sources; }

// Copies arrays one after the other.
struct ArrayCopier {
  int64_t* to;

  void Copy(const int64_t** array, int64_t count) {
    if (*array == nullptr) return;
    if (count != 0) std::memcpy(to, *array, static_cast<size_t>(count) * sizeof *to);
    *array = to;
    to += count;
  }
};

// The arrays of the caller's that the problem points to.
void CopyArrays(AttentionProblem* p, int64_t* to) {
  ArrayCopier copier = {to};
  const int64_t batch = p->tiles.batch;
  copier.Copy(&p->tiles.q_starts, batch + 1);
  if (p->tiles.q_starts != nullptr) {
    FillFirstTiles(p->tiles, copier.to);
    p->tiles.first_tiles = copier.to;
    copier.to += batch + 1;
  }
  const int64_t* q_lens = p->num_sources == 0 ? nullptr : p->sources[0].sequences.q_lens;
  copier.Copy(&q_lens, batch);
  for (int64_t i = 0; i < p->num_sources; ++i) {
    Sequences* s = &p->sources[i].sequences;
    s->q_lens = q_lens;
    copier.Copy(&s->q_offsets, batch);
    copier.Copy(&s->kv_lens, batch);
    copier.Copy(&s->kv_firsts, batch);
    copier.Copy(&s->kv_starts, batch + 1);
    copier.Copy(&s->prefix_lens, batch);
  }
}

// The tile that a task belongs to: the last whose first_task is not beyond it.
SplitTile* FindSplitTile(const AttentionWork& work, int64_t task) {
  int64_t low = 0, high = work.num_tiles;
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
  int64_t first = 0;  // of the tile's blocks, that of this source
  for (int64_t i = 0; i < work.problem.num_sources; ++i) {
    const Range blocks = BlocksOf(SpanOfTile(work.problem.tiles, tile, work.problem.sources[i].sequences));
    const int64_t from = Larger(part.first, first), to = Smaller(part.last, first + blocks.last - blocks.first);
    if (from < to) {
      AttendBlocks(work.table, work.problem, tile, i, blocks.first + from - first, blocks.first + to - first,
                   StatesOf(work, *split, from), scratch);
    }
    first += blocks.last - blocks.first;
  }
  // Acquire and release: the last one reads what the others have written.
  if (__atomic_sub_fetch(&split->unfinished, 1, __ATOMIC_ACQ_REL) == 0) {
    FoldTile(work.table, work.problem, tile, StatesOf(work, *split, 0), split->num_blocks, scratch);
  }
}

}  // namespace

bool LayOutAttention(const KernelTable& table, const CallLimits& limits, size_t header_bytes, AttentionLayout* layout) {
  const int64_t split_tiles = MostSplitTiles(limits);
  int64_t states = 0, blocks = 0;
  bool fits =
      split_tiles == 0 || (!__builtin_mul_overflow(DivideUp(limits.kv_len, kBlock), limits.num_sources, &blocks) &&
                           !__builtin_mul_overflow(split_tiles * MostRowsOfTile(limits), blocks, &states));
  int64_t state_floats;
  fits &= !__builtin_mul_overflow(states, limits.value_dim, &state_floats);

  *layout = {};
  size_t* bytes = &layout->bytes;
  ReserveBytes(bytes, header_bytes);
  const size_t of_batch = static_cast<size_t>(NumSequenceArrays(limits.num_sources)) * sizeof(int64_t);
  layout->arrays = ReserveArray(bytes, limits.batch + 1, of_batch, &fits);
  layout->slopes = ReserveArray(bytes, limits.alibi ? limits.num_q_heads : 0, sizeof(float), &fits);
  layout->split_tiles = ReserveArray(bytes, split_tiles, sizeof(SplitTile), &fits);
  layout->state_m = ReserveArray(bytes, states, sizeof(float), &fits);
  layout->state_l = ReserveArray(bytes, states, sizeof(float), &fits);
  layout->state_o = ReserveArray(bytes, state_floats, sizeof(float), &fits);
  layout->scratch_stride = TileScratchBytes(table, limits.num_sources, limits.head_dim, limits.value_dim);
  layout->scratch = ReserveArray(bytes, limits.workers, layout->scratch_stride, &fits);
  return fits;
}

AttentionCount CountAttention(const AttentionProblem& p, int32_t workers) {
  const int64_t num_tiles = NumTiles(p.tiles);
  if (num_tiles == 0) return {};
  AttentionCount count = {num_tiles, 1, 0, 0};
  if (Splits(num_tiles, workers)) {
    const int64_t blocks_of_task = BlocksOfTask(p, workers);
    count.num_tasks = 0;
    for (TileWalk walk(p.tiles); !walk.Done(); walk.Next()) {
      const int64_t parts = PartsOf(NumBlocks(p, walk.Get()), blocks_of_task);
      count.num_tasks += parts;
      count.key_splits = Larger(count.key_splits, parts);
    }
  }
  for (int64_t i = 0; i < p.num_sources; ++i) {
    const SourceProblem& s = p.sources[i];
    const int64_t key_bytes = static_cast<int64_t>(p.head_dim * ElementSize(s.k.type)) +
                              static_cast<int64_t>(p.value_dim * ElementSize(s.v.type));
    const KeyCount keys = CountAllKeys(p.tiles, s.sequences);
    count.key_tiles = AddSaturated(count.key_tiles, keys.chunks);
    count.bytes_read = AddSaturated(count.bytes_read, MultiplySaturated(keys.keys, key_bytes));
  }
  return count;
}

int64_t BeginAttention(const KernelTable& table, int32_t workers, const AttentionLayout& layout,
                       unsigned char* workspace, AttentionWork* work) {
  work->table = table;
  work->split_tiles = nullptr;
  work->scratch = workspace + layout.scratch;
  work->scratch_stride = layout.scratch_stride;
  work->states = {At<float>(workspace, layout.state_m), At<float>(workspace, layout.state_l),
                  At<float>(workspace, layout.state_o), 0};
  AttentionProblem* p = &work->problem;
  CopyArrays(p, At<int64_t>(workspace, layout.arrays));
  if (p->alibi && p->slopes.data == nullptr) {
    float* slopes = At<float>(workspace, layout.slopes);
    StandardSlopes(p->tiles.num_kv_heads * p->tiles.group, slopes);
    p->standard_slopes = slopes;
  }

  work->num_tiles = NumTiles(p->tiles);
  if (work->num_tiles == 0 || !Splits(work->num_tiles, workers)) return work->num_tiles;
  work->split_tiles = At<SplitTile>(workspace, layout.split_tiles);
  const int64_t blocks_of_task = BlocksOfTask(*p, workers);
  int64_t task = 0, state = 0;
  SplitTile* split = work->split_tiles;
  for (TileWalk walk(p->tiles); !walk.Done(); walk.Next()) {
    const int64_t blocks = NumBlocks(*p, walk.Get());
    const int32_t parts = static_cast<int32_t>(PartsOf(blocks, blocks_of_task));
    *split++ = {task, state, blocks, parts, parts};
    task += parts;
    if (parts > 1) state += walk.Get().num_rows * blocks;
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
