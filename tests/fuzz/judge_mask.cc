// Masks to be prepared: what is wrong with them, and what they show.
#include "tests/fuzz/judge_parts.h"

namespace etalon::fuzz {
namespace {

constexpr int64_t kMostEntries = int64_t{1} << 40;  // of any mask that fits an address

Wide BlocksOf(Wide length, Wide of_block) { return (length + of_block - 1) / of_block; }

// `count` numbers that are needed unless there are none.
bool JudgeNumbers(const Call& call, const int64_t* array, Wide count, Judged* judged) {
  if (count > INT64_MAX) judged->faults.Must(ETALON_OVERFLOW);
  if (array == nullptr && count > 0) judged->faults.Must(ETALON_NULL_POINTER);
  return count <= INT64_MAX && (array != nullptr || count == 0) && JudgeArray(call, array, count, judged);
}

void JudgeBlocks(const Call& call, Judged* judged) {
  const etalon_mask_args& a = judged->mask;
  Faults* faults = &judged->faults;
  if (a.block_starts == nullptr) faults->Must(ETALON_NULL_POINTER);
  if (a.q_block < 1 || a.kv_block < 1) return faults->Must(ETALON_BAD_VALUE);
  const Wide entries = Wide{a.batch} * a.num_heads * BlocksOf(a.q_len, a.q_block);
  if (entries > kLargest) return faults->Must(ETALON_OVERFLOW);
  if (a.block_starts == nullptr || !JudgeNumbers(call, a.block_starts, entries + 1, judged)) return;
  const int64_t count = static_cast<int64_t>(entries);
  if (a.block_starts[0] != 0) return faults->Must(ETALON_BAD_VALUE);
  for (int64_t n = 0; n < count; ++n) {
    if (a.block_starts[n + 1] < a.block_starts[n]) return faults->Must(ETALON_BAD_VALUE);
  }
  if (a.block_starts[count] > kLargest) faults->May(ETALON_BAD_VALUE);
  if (!JudgeNumbers(call, a.blocks, a.block_starts[count], judged)) return;
  judged->work += a.block_starts[count];
  for (int64_t n = 0; n < count; ++n) {
    for (int64_t i = a.block_starts[n]; i < a.block_starts[n + 1]; ++i) {
      const bool ascends = i == a.block_starts[n] || a.blocks[i] > a.blocks[i - 1];
      if (a.blocks[i] < 0 || a.blocks[i] >= BlocksOf(a.kv_len, a.kv_block) || !ascends) faults->Must(ETALON_BAD_VALUE);
    }
  }
}

bool HasSegments(const etalon_mask_args& a) { return a.q_segments != nullptr || a.kv_segments != nullptr; }
bool HasBlocks(const etalon_mask_args& a) {
  return a.block_starts != nullptr || a.blocks != nullptr || a.q_block != 0 || a.kv_block != 0;
}

bool IsListed(const etalon_mask_args& a, int64_t entry, int64_t block) {
  for (int64_t i = a.block_starts[entry]; i < a.block_starts[entry + 1]; ++i) {
    if (a.blocks[i] == block) return true;
  }
  return false;
}

bool ShowsBit(const Call& call, const Elements& e, int64_t b, int64_t h, int64_t i, int64_t column) {
  const int64_t index[4] = {b, h, i, e.dtype == ETALON_BITS ? column / 8 : column};
  int64_t at[4];
  for (int place = 0; place < 4; ++place) at[place] = e.shape[place] == 1 ? 0 : index[place];
  const uintptr_t address = e.At(at[0], at[1], at[2], at[3]);
  const unsigned char byte = *call.arena.Find(address, address + 1)->before(address);
  return e.dtype == ETALON_BITS ? (byte >> (column % 8) & 1) != 0 : byte != 0;
}

}  // namespace

void JudgeMask(const Call& call, Depth depth, Judged* judged) {
  etalon_mask_args& a = judged->mask;
  Faults* faults = &judged->faults;
  a = judged->Arg<etalon_mask_args>(0);
  if (a.num_heads == 0) faults->Must(ETALON_NO_HEADS);
  for (int64_t* size : {&a.batch, &a.num_heads, &a.q_len, &a.kv_len}) {
    if (*size < 0) faults->Must(ETALON_BAD_SHAPE);
    if (*size > kLargest) faults->Must(ETALON_OVERFLOW);
    if (*size < 0 || *size > kLargest) *size = 0;
  }
  judged->sizes[kBatch] = a.batch;
  judged->sizes[kQHeads] = a.num_heads;
  judged->sizes[kQLen] = a.q_len;
  judged->sizes[kKvLen] = a.kv_len;
  const int ways = (a.mask != nullptr ? 1 : 0) + (HasSegments(a) ? 1 : 0) + (HasBlocks(a) ? 1 : 0);
  if (ways != 1) faults->Must(ETALON_BAD_VALUE);
  // Of a row each; the bytes of so many fit a size_t, or do not.
  Wide entries = Wide{a.batch} * a.num_heads;
  const Wide of_head = HasBlocks(a) && a.q_block >= 1 ? BlocksOf(a.q_len, a.q_block) : Wide{a.q_len};
  if (entries > INT64_MAX) faults->May(ETALON_OVERFLOW);  // also of heads that have no rows
  if (entries <= kLargest || of_head == 0) entries *= of_head;
  if (entries > kMostEntries) faults->May(ETALON_OVERFLOW);
  if (entries >= kLargest) faults->Must(ETALON_OVERFLOW);
  judged->work = entries;
  if (a.mask != nullptr) {
    JudgeTensors(call, depth, judged);
    JudgeBroadcast(call, call.SlotOf("mask"), judged);
    if (entries <= kLargest) judged->work *= a.kv_len + Wide{1};
  }
  if (HasSegments(a)) {
    if (a.num_heads != 1) faults->Must(ETALON_BAD_SHAPE);
    JudgeNumbers(call, a.q_segments, Wide{a.batch} * a.q_len, judged);
    JudgeNumbers(call, a.kv_segments, Wide{a.batch} * a.kv_len, judged);
    judged->work += Wide{a.batch} * a.kv_len;
  }
  if (HasBlocks(a)) JudgeBlocks(call, judged);
}

DenseMask ShownBy(const Call& call, const Judged& judged) {
  const etalon_mask_args& a = judged.mask;
  DenseMask dense = {a.batch, a.num_heads, a.q_len, a.kv_len, {}};
  if (a.q_len == 0 || a.kv_len == 0) return dense;  // of however many heads
  const int64_t entries_of_head = HasBlocks(a) ? static_cast<int64_t>(BlocksOf(a.q_len, a.q_block)) : 0;
  for (int64_t b = 0; b < a.batch; ++b) {
    for (int64_t h = 0; h < a.num_heads; ++h) {
      for (int64_t i = 0; i < a.q_len; ++i) {
        for (int64_t t = 0; t < a.kv_len; ++t) {
          bool shown = false;
          if (a.mask != nullptr) {
            shown = ShowsBit(call, judged.tensors[call.SlotOf("mask")], b, h, i, t);
          } else if (HasSegments(a)) {
            shown = a.q_segments[b * a.q_len + i] == a.kv_segments[b * a.kv_len + t];
          } else {
            shown = IsListed(a, (b * a.num_heads + h) * entries_of_head + i / a.q_block, t / a.kv_block);
          }
          dense.shown.push_back(shown ? 1 : 0);
        }
      }
    }
  }
  return dense;
}

}  // namespace etalon::fuzz
