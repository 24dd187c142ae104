// Lengths, positions, and the arrays of them.
#include <algorithm>

#include "tests/fuzz/decode.h"

namespace etalon::fuzz {

int64_t DecodeLength(Bytes* in) {
  switch (in->Below(8)) {
    case 5:
      return 1 + in->Below(40);
    case 6:
      return in->Pick<int64_t>({15, 16, 17, 31, 32, 33, 63, 64, 65});
    case 7:
      return in->Below(2);
    default:
      return 1 + in->Below(8);
  }
}

int64_t DecodeLongLength(Bytes* in) {
  if (in->OneIn(3)) return 600 + in->Below(500);
  return in->Pick<int64_t>({513, 512, 1025, 1025, 1024, 1023, 640, 1537, 1537, 127, 128, 129, 257});
}

int64_t DecodeReach(Bytes* in, int64_t kv_len) {
  switch (in->Below(8)) {
    case 3:
      return 0;
    case 4:
      return in->Below(6);
    case 5:
      return in->Below(600);
    case 6:
      return in->Pick<int64_t>({INT64_MAX, INT64_MIN, INT64_MAX - 1, kFarthest, kFarthest + 1, -2});
    case 7:
      return kv_len / 2;
    default:
      return -1;
  }
}

int64_t DecodeOffset(Bytes* in, int64_t q_len, int64_t kv_len) {
  switch (in->Below(8)) {
    case 4:
      return kv_len - q_len;
    case 5:
      return in->Below(700);
    case 6:
      return -in->Below(60);
    case 7:
      return in->Pick<int64_t>({kFarthest, -kFarthest, kFarthest - 5, 5 - kFarthest, 1000000007});
    default:
      return 0;
  }
}

Block* AddArray(const char* name, int64_t count, int64_t most, Block* holder, size_t offset, Call* call) {
  Block* block = call->arena.Add(name, static_cast<size_t>(count) * sizeof(int64_t));
  const FunctionInfo& info = *call->info;
  const size_t first[] = {info.q_offsets, info.q_lens, info.kv_lens};
  size_t at = holder == call->args ? std::find(first, first + 3, offset) - first : 3;
  if (at == 3) {
    at = call->arrays.size();
    call->arrays.emplace_back();
  }
  call->arrays[at] = {block, holder, offset, most};
  holder->Put(offset, block->data());
  return block;
}

void DecodeOffsets(Bytes* in, int64_t q_offset, Block* holder, size_t offset, const char* name, Call* call) {
  const int64_t batch = call->sizes[kBatch];
  Block* block = AddArray(name, batch, kFarthest, holder, offset, call);
  for (int64_t b = 0; b < batch; ++b) {
    int64_t more = in->Below(40) - 20;
    if (in->OneIn(8)) more = q_offset > 0 ? -kFarthest : kFarthest;
    if ((more > 0 && q_offset > kFarthest - more) || (more < 0 && q_offset < -kFarthest - more)) more = 0;
    block->Put(static_cast<size_t>(b) * sizeof more, more);
  }
}

std::vector<int64_t> DecodeLengths(Bytes* in, const std::vector<int64_t>& most, Block* holder, size_t offset,
                                   const char* name, Call* call) {
  const int64_t largest = most.empty() ? 0 : *std::max_element(most.begin(), most.end());
  Block* block = AddArray(name, static_cast<int64_t>(most.size()), largest, holder, offset, call);
  std::vector<int64_t> lengths;
  for (int64_t own : most) {
    int64_t length = in->OneIn(3) ? own : in->Below(1600);
    if (in->OneIn(4)) length = length / 512 * 512 + 1;  // one key of a block
    if (length > own) length = own == 0 ? 0 : length % own;
    block->Put(lengths.size() * sizeof length, length);
    lengths.push_back(length);
  }
  return lengths;
}

std::vector<int64_t> DecodeStarts(Bytes* in, int64_t rows, Block* holder, size_t offset, const char* name, Call* call) {
  const int64_t batch = call->sizes[kBatch];
  Block* block = AddArray(name, batch + 1, rows, holder, offset, call);
  int64_t start = in->OneIn(4) ? in->Below(rows + 1) : 0;  // of what comes before, there are rows of no sequence
  block->Put(0, start);
  std::vector<int64_t> lengths;
  for (int64_t b = 0; b < batch; ++b) {
    const int64_t rest = rows - start;
    int64_t length = rest / (batch - b);
    const int64_t way = in->Below(4);
    if (way == 1) length = 0;
    if (way == 2) length = in->Below(rest + 1);
    if (way == 3) length = rest;
    start += length;
    block->Put(static_cast<size_t>(b + 1) * sizeof start, start);
    lengths.push_back(length);
  }
  return lengths;
}

}  // namespace etalon::fuzz
