#include "lib/attention/merge.h"

namespace etalon {
namespace {

// From the first row of a tile on.
States StatesOfTile(const AttentionProblem& p, const StatesView& s, const Tile& tile) {
  const int64_t row = tile.kv_head * p.tiles.group * p.tiles.q_len + tile.first;
  const int64_t state = row * s.row_stride;
  if (s.m == nullptr) return {};  // no states, no memory
  return {s.m + tile.batch * s.m_batch_stride + state, s.l + tile.batch * s.l_batch_stride + state,
          s.o + tile.batch * s.o_batch_stride + state * static_cast<int64_t>(p.value_dim), s.row_stride};
}

}  // namespace

int64_t NumMergeTasks(const MergeProblem& p) {
  return p.batch == 0 || p.heads == 0 || p.q_len == 0 ? 0 : p.batch * p.heads;
}

void MergeHead(const KernelTable& table, const MergeProblem& p, int64_t task) {
  const int64_t batch = task / p.heads;
  const int64_t head = task % p.heads;
  MergeArgs args = {};
  args.num_rows = static_cast<size_t>(p.q_len);
  args.value_dim = p.value_dim;
  args.type = p.out.type;
  args.out1 = p.out1.Row(batch, head, 0);
  args.out1_stride_bytes = p.out1.row_stride_bytes;
  args.lse1 = static_cast<const float*>(p.lse1.Row(batch, head, 0));
  args.out2 = p.out2.Row(batch, head, 0);
  args.out2_stride_bytes = p.out2.row_stride_bytes;
  args.lse2 = static_cast<const float*>(p.lse2.Row(batch, head, 0));
  args.out = p.out.Row(batch, head, 0);
  args.out_stride_bytes = p.out.row_stride_bytes;
  if (p.lse.data != nullptr) args.lse = static_cast<float*>(p.lse.Row(batch, head, 0));
  table.merge(args);
}

void MergeStatesTile(const KernelTable& table, const AttentionProblem& p, const StatesView& states, const Tile& tile,
                     void* scratch) {
  FoldTile(table, p, tile, StatesOfTile(p, states, tile), states.num_states, scratch);
}

void BlockStatesTile(const KernelTable& table, const AttentionProblem& p, const StatesView& states, const Tile& tile,
                     void* scratch) {
  AttendBlocks(table, p, tile, 0, 0, states.num_states, StatesOfTile(p, states, tile), scratch);
}

}  // namespace etalon
