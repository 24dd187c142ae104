// Prepared masks.
#include "lib/api/validate.h"
#include "lib/attention/prepare_mask.h"
#include "lib/base/parallel.h"

namespace etalon {
namespace {

struct MaskCall {
  CheckedTensor dense;
  MaskInput input;
  PreparedMask layout;
  Memory memory;
};

etalon_status CheckSize(int64_t size, const char* member, etalon_error* error) {
  if (size >= 0 && size <= kLargestSize) return ETALON_OK;
  return Fail(error, size < 0 ? ETALON_BAD_SHAPE : ETALON_OVERFLOW, {"args", member},
              {"is ", size, ", must be 0 ... ", kLargestSize});
}

etalon_status CheckSizesOf(const etalon_mask_args& args, etalon_error* error) {
  ETALON_CHECK(CheckSize(args.batch, "batch", error));
  ETALON_CHECK(CheckSize(args.num_heads, "num_heads", error));
  ETALON_CHECK(CheckSize(args.q_len, "q_len", error));
  ETALON_CHECK(CheckSize(args.kv_len, "kv_len", error));
  if (args.num_heads != 0) return ETALON_OK;
  return Fail(error, ETALON_NO_HEADS, {"args", "num_heads"}, {"is 0: there are no heads"});
}

etalon_status ChooseWay(const etalon_mask_args& args, MaskWay* way, etalon_error* error) {
  const bool dense = args.mask != nullptr;
  const bool segments = args.q_segments != nullptr || args.kv_segments != nullptr;
  const bool blocks = args.block_starts != nullptr || args.blocks != nullptr || args.q_block != 0 || args.kv_block != 0;
  *way = dense ? MaskWay::kDense : segments ? MaskWay::kSegments : MaskWay::kBlocks;
  if (dense + segments + blocks == 1) return ETALON_OK;
  return Fail(error, ETALON_BAD_VALUE, {"args"},
              {dense + segments + blocks == 0 ? "gives no mask" : "gives several masks",
               ": it must have mask, or q_segments and kv_segments, or blocks"});
}

// a * b numbers of an array that must be there if they are any.
etalon_status CheckNumbers(const int64_t* array, int64_t a, int64_t b, const char* member, MaskCall* call,
                           etalon_error* error) {
  const Field field = {"args", member};
  int64_t count;
  if (__builtin_mul_overflow(a, b, &count)) return Fail(error, ETALON_OVERFLOW, field, {"has more elements than 2^63"});
  if (array == nullptr && count > 0) return Fail(error, ETALON_NULL_POINTER, field, {"is NULL"});
  Hull hull;
  ETALON_CHECK(CheckArray(array, count, field, &hull, error));
  call->memory.Reads(field, hull);
  return ETALON_OK;
}

etalon_status ReadDense(const etalon_mask_args& args, MaskCall* call, etalon_error* error) {
  ETALON_CHECK(CheckTensor(args.mask, "args.mask", 4, Types::kMask, Role::kInput, &call->dense, error));
  ETALON_CHECK(CheckColumns(call->dense, {args.batch, args.num_heads, args.q_len, args.kv_len}, error));
  call->memory.Reads(call->dense);
  call->input.dense = call->dense.Columns();
  return ETALON_OK;
}

etalon_status ReadSegments(const etalon_mask_args& args, MaskCall* call, etalon_error* error) {
  if (args.num_heads != 1) {
    return Fail(error, ETALON_BAD_SHAPE, {"args", "num_heads"},
                {"is ", args.num_heads, ", must be 1: segments are the same for all heads"});
  }
  ETALON_CHECK(CheckNumbers(args.q_segments, args.batch, args.q_len, "q_segments", call, error));
  ETALON_CHECK(CheckNumbers(args.kv_segments, args.batch, args.kv_len, "kv_segments", call, error));
  call->input.q_segments = args.q_segments;
  call->input.kv_segments = args.kv_segments;
  return ETALON_OK;
}

etalon_status CheckBlockSize(int64_t size, const char* member, etalon_error* error) {
  if (size >= 1) return ETALON_OK;
  return Fail(error, ETALON_BAD_VALUE, {"args", member}, {"is ", size, ", must be at least 1"});
}

// The key blocks of one query block.
etalon_status CheckBlocks(const etalon_mask_args& args, int64_t first, int64_t last, etalon_error* error) {
  const int64_t most = DivideUp(args.kv_len, args.kv_block) - 1;
  for (int64_t i = first; i < last; ++i) {
    const Field here = {"args", "blocks", i}, before = {"args", "blocks", i - 1};
    const int64_t block = args.blocks[i];
    if (block < 0 || block > most) {
      return Fail(error, ETALON_BAD_VALUE, here, {"is ", block, ", must be 0 ... ", most});
    }
    if (i > first && block <= args.blocks[i - 1]) {
      return Fail(error, ETALON_BAD_VALUE, here, {"is ", block, ", but ", before, " is ", args.blocks[i - 1]});
    }
  }
  return ETALON_OK;
}

etalon_status ReadBlocks(const etalon_mask_args& args, MaskCall* call, etalon_error* error) {
  ETALON_CHECK(CheckBlockSize(args.q_block, "q_block", error));
  ETALON_CHECK(CheckBlockSize(args.kv_block, "kv_block", error));
  const Field starts = {"args", "block_starts"};
  if (args.block_starts == nullptr) return Fail(error, ETALON_NULL_POINTER, starts, {"is NULL"});
  int64_t query_blocks;
  if (__builtin_mul_overflow(args.batch, args.num_heads, &query_blocks) ||
      __builtin_mul_overflow(query_blocks, DivideUp(args.q_len, args.q_block), &query_blocks) ||
      query_blocks > kLargestSize) {
    return Fail(error, ETALON_OVERFLOW, starts, {"has more elements than 2^62"});
  }
  ETALON_CHECK(CheckNumbers(args.block_starts, query_blocks + 1, 1, "block_starts", call, error));
  if (args.block_starts[0] != 0) {
    return Fail(error, ETALON_BAD_VALUE, {"args", "block_starts", 0}, {"is ", args.block_starts[0], ", must be 0"});
  }
  int64_t longest;
  ETALON_CHECK(CheckStarts(args.block_starts, query_blocks, kLargestSize, starts, &longest, error));
  ETALON_CHECK(CheckNumbers(args.blocks, args.block_starts[query_blocks], 1, "blocks", call, error));
  for (int64_t n = 0; n < query_blocks; ++n) {
    ETALON_CHECK(CheckBlocks(args, args.block_starts[n], args.block_starts[n + 1], error));
  }
  call->input.q_block = args.q_block;
  call->input.kv_block = args.kv_block;
  call->input.block_starts = args.block_starts;
  call->input.blocks = args.blocks;
  return ETALON_OK;
}

etalon_status Read(const etalon_mask_args* caller, MaskCall* call, etalon_error* error) {
  etalon_mask_args args;
  ETALON_CHECK(CopyDescriptor(caller, "args", &args, sizeof args, kFirstSizeOfMaskArgs, error));
  ETALON_CHECK(CheckSizesOf(args, error));
  MaskInput* input = &call->input;
  *input = {};
  ETALON_CHECK(ChooseWay(args, &input->way, error));
  input->batch = args.batch;
  input->num_heads = args.num_heads;
  input->q_len = args.q_len;
  input->kv_len = args.kv_len;
  input->q_block = 1;
  if (input->way == MaskWay::kDense) {
    ETALON_CHECK(ReadDense(args, call, error));
  } else if (input->way == MaskWay::kSegments) {
    ETALON_CHECK(ReadSegments(args, call, error));
  } else {
    ETALON_CHECK(ReadBlocks(args, call, error));
  }
  if (LayOutMask(*input, &call->layout)) return ETALON_OK;
  return Fail(error, ETALON_OVERFLOW, {"args"}, {"has sizes whose mask does not fit an address"});
}

}  // namespace
}  // namespace etalon

extern "C" {

etalon_status etalon_mask_bytes(const etalon_mask_args* args, size_t* bytes, etalon_error* error) {
  if (bytes == nullptr) return etalon::Fail(error, ETALON_NULL_POINTER, {"bytes"}, {"is NULL"});
  etalon::MaskCall call;
  ETALON_CHECK(etalon::Read(args, &call, error));
  *bytes = call.layout.bytes;
  return etalon::Succeed(error);
}

etalon_status etalon_mask_prepare(const etalon_mask_args* args, const etalon_workspace* memory,
                                  const etalon_mask** mask, etalon_error* error) {
  if (mask == nullptr) return etalon::Fail(error, ETALON_NULL_POINTER, {"mask"}, {"is NULL"});
  etalon::MaskCall call;
  ETALON_CHECK(etalon::Read(args, &call, error));
  etalon_workspace workspace;
  ETALON_CHECK(etalon::CheckWorkspace(memory, "memory", call.layout.bytes, &workspace, error));
  call.memory.Writes({"memory", "data"}, workspace);
  ETALON_CHECK(call.memory.Check(error));
  etalon::WriteMask(call.input, call.layout, workspace.data);
  *mask = static_cast<const etalon_mask*>(workspace.data);
  return etalon::Succeed(error);
}

}  // extern "C"
