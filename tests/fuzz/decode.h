// decode.h: what the decoders of calls, options and masks have in common.
#ifndef ETALON_TESTS_FUZZ_DECODE_H_
#define ETALON_TESTS_FUZZ_DECODE_H_

#include <vector>

#include "tests/fuzz/call.h"
#include "tests/fuzz/tensors.h"

namespace etalon::fuzz {

constexpr int64_t kMostDecodedWork = 40000;  // multiplications of an expectation
constexpr int64_t kFarthest = int64_t{1} << 62;

// Of queries, or keys of which several may be long.
int64_t DecodeLength(Bytes* in);
int64_t DecodeLongLength(Bytes* in);
// left or right; q_offset.
int64_t DecodeReach(Bytes* in, int64_t kv_len);
int64_t DecodeOffset(Bytes* in, int64_t q_len, int64_t kv_len);

// An array of `count` numbers that `holder` points to.
Block* AddArray(const char* name, int64_t count, int64_t most, Block* holder, size_t offset, Call* call);

// Arrays of a number for each sequence. Lengths: 0 ... most[b].
void DecodeOffsets(Bytes* in, int64_t q_offset, Block* holder, size_t offset, const char* name, Call* call);
std::vector<int64_t> DecodeLengths(Bytes* in, const std::vector<int64_t>& most, Block* holder, size_t offset,
                                   const char* name, Call* call);
// Cuts rows into sequences; returns how many each has.
std::vector<int64_t> DecodeStarts(Bytes* in, int64_t rows, Block* holder, size_t offset, const char* name, Call* call);

// As a caller of this version, or a newer one, prepares it.
template <typename Descriptor>
Block* NewDescriptor(Bytes* in, const char* name, etalon_status (*init)(Descriptor*, size_t), Call* call) {
  size_t size = sizeof(Descriptor);
  if (in->OneIn(6)) size += 8 * static_cast<size_t>(1 + in->Below(4));
  if (in->OneIn(32)) size = 4096;
  Block* block = call->arena.Add(name, size);
  if (init(reinterpret_cast<Descriptor*>(block->data()), size) != ETALON_OK) Stop(std::string(name) + ": _init failed");
  if (block->Get<size_t>() != size) Stop(std::string(name) + ": _init set another struct_size");
  return block;
}

// The rows of each sequence: its own, or those of the tensors.
struct Rows {
  std::vector<int64_t> q, kv;
};

// What a call may bring beside its tensors, and more key sources. Decided last, so that inputs from before there was
// any of it, or shorter ones, are calls without.
void DecodeOptions(Bytes* in, const Rows& rows, TensorDecoder* tensors, Call* call);

// A mask of call->sizes in one of the three ways, as a call of etalon_mask_prepare.
enum class MaskWay { kBool, kBits, kSegments, kBlocks, kNumWays };
void DecodeMask(Bytes* in, MaskWay way, Call* call);

}  // namespace etalon::fuzz

#endif  // ETALON_TESTS_FUZZ_DECODE_H_
