// Masks as etalon_mask_prepare takes them.
#include "tests/fuzz/decode.h"
#include "tests/support/generate.h"

namespace etalon::fuzz {
namespace {

using Args = etalon_mask_args;

int64_t Blocks(int64_t length, int64_t of_block) { return length / of_block + (length % of_block != 0 ? 1 : 0); }

void DecodeDense(Bytes* in, int32_t dtype, Call* call) {
  const Sizes& s = call->sizes;
  std::vector<int64_t> shape;
  for (Size size : {kBatch, kQHeads, kQLen}) shape.push_back(in->OneIn(4) ? 1 : s[size]);
  if (dtype == ETALON_BITS) {
    shape.push_back(Blocks(s[kKvLen], 8));
  } else {
    shape.push_back(in->OneIn(6) ? 1 : s[kKvLen]);
  }
  TensorDecoder(in, call).Add(call->SlotOf("mask"), dtype, shape);
}

// Numbers of documents: in stretches, in the order of their numbers or in none.
void DecodeSegments(Bytes* in, int64_t length, size_t offset, const char* name, Call* call) {
  const int64_t count = call->sizes[kBatch] * length;
  Block* block = AddArray(name, count, INT64_MAX, call->args, offset, call);
  const int64_t stretch = in->Pick<int64_t>({4, 1, 2, 17, 100, 700}), kinds = 1 + in->Below(5);
  const bool sorted = !in->OneIn(3), extreme = in->OneIn(5);
  test::Random random(in->Seed());
  int64_t number = 0;
  for (int64_t i = 0; i < count; ++i) {
    if (i % length == 0) number = 0;
    if (random.Below(stretch) == 0) number = sorted ? number + random.Below(2) : random.Below(kinds);
    const int64_t ends[] = {INT64_MIN, INT64_MAX, -1, 0, INT64_MIN + 1};
    block->Put(static_cast<size_t>(i) * sizeof number, extreme ? ends[number % 5] : number);
  }
}

void DecodeBlocks(Bytes* in, Call* call) {
  const Sizes& s = call->sizes;
  const int64_t q_block = in->OneIn(8) ? INT64_MAX : 1 + in->Below(s[kQLen] + 3);
  const int64_t kv_block = in->OneIn(8) ? INT64_MAX : 1 + in->Below(in->OneIn(2) ? 200 : 8);
  const int64_t keep = 1 + in->Below(5), entries = s[kBatch] * s[kQHeads] * Blocks(s[kQLen], q_block);
  test::Random random(in->Seed());
  std::vector<int64_t> starts = {0}, blocks;
  for (int64_t n = 0; n < entries; ++n) {
    for (int64_t block = 0; block < Blocks(s[kKvLen], kv_block); ++block) {
      if (random.Below(keep) == 0) blocks.push_back(block);
    }
    starts.push_back(static_cast<int64_t>(blocks.size()));
  }
  call->args->Put(offsetof(Args, q_block), q_block);
  call->args->Put(offsetof(Args, kv_block), kv_block);
  const int64_t count = static_cast<int64_t>(blocks.size()), last = Blocks(s[kKvLen], kv_block) - 1;
  Block* of_starts = AddArray("block_starts", entries + 1, count, call->args, offsetof(Args, block_starts), call);
  std::memcpy(of_starts->data(), starts.data(), of_starts->size());
  if (count == 0 && in->OneIn(2)) return;  // NULL will do
  Block* of_blocks = AddArray("blocks", count, last, call->args, offsetof(Args, blocks), call);
  if (count > 0) std::memcpy(of_blocks->data(), blocks.data(), of_blocks->size());
}

}  // namespace

void DecodeMask(Bytes* in, MaskWay way, Call* call) {
  call->args = NewDescriptor(in, "args", etalon_mask_args_init, call);
  if (way == MaskWay::kSegments) call->sizes[kQHeads] = 1;
  const Sizes& s = call->sizes;
  call->args->Put(offsetof(Args, batch), s[kBatch]);
  call->args->Put(offsetof(Args, num_heads), s[kQHeads]);
  call->args->Put(offsetof(Args, q_len), s[kQLen]);
  call->args->Put(offsetof(Args, kv_len), s[kKvLen]);
  switch (way) {
    case MaskWay::kBits:
      return DecodeDense(in, ETALON_BITS, call);
    case MaskWay::kSegments:
      DecodeSegments(in, s[kQLen], offsetof(Args, q_segments), "q_segments", call);
      return DecodeSegments(in, s[kKvLen], offsetof(Args, kv_segments), "kv_segments", call);
    case MaskWay::kBlocks:
      return DecodeBlocks(in, call);
    default:
      return DecodeDense(in, ETALON_BOOL, call);
  }
}

}  // namespace etalon::fuzz
