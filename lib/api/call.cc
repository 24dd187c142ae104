#include "lib/api/call.h"

namespace etalon {
namespace {

// *size is 0 and may be filled from the tensor, or it is the tensor's already.
etalon_status Settle(const CheckedTensor& tensor, int place, const char* member, Sizes sizes, int64_t* size,
                     etalon_error* error) {
  if (*size == 0 && sizes == Sizes::kFromTensors) *size = tensor.shape[place];
  if (*size == tensor.shape[place]) return ETALON_OK;
  return Fail(error, ETALON_BAD_SHAPE, tensor.Shape(place),
              {"is ", tensor.shape[place], ", but ", Field{"desc", member}, " is ", *size});
}

etalon_status SettleMaximum(const CheckedTensor& tensor, int place, const char* member, Sizes sizes, int64_t* maximum,
                            etalon_error* error) {
  if (*maximum == 0 && sizes == Sizes::kFromTensors) *maximum = tensor.shape[place];
  if (tensor.shape[place] <= *maximum) return ETALON_OK;
  return Fail(error, ETALON_BAD_SHAPE, tensor.Shape(place),
              {"is ", tensor.shape[place], ", above ", Field{"desc", member}, ", which is ", *maximum});
}

etalon_status SettleType(const CheckedTensor& tensor, int32_t caller, const char* member, Sizes sizes, int32_t* dtype,
                         etalon_error* error) {
  if (*dtype == 0 && sizes == Sizes::kFromTensors) *dtype = caller;
  if (*dtype == caller) return ETALON_OK;
  return Fail(error, ETALON_BAD_DTYPE, {tensor.name, "dtype"},
              {"is ", caller, ", but ", Field{"desc", member}, " is ", *dtype});
}

etalon_status CheckUnused(const void* pointer, const char* member, etalon_error* error) {
  if (pointer == nullptr) return ETALON_OK;
  return Fail(error, ETALON_BAD_VALUE, {"args", member}, {"must be NULL: this function does not use it"});
}

etalon_status ReadTensors(const etalon_attention_args& args, Function function, Depth depth, Call* call,
                          etalon_error* error) {
  const Role input = depth == Depth::kShapes ? Role::kShape : Role::kInput;
  const Role output = depth == Depth::kShapes ? Role::kShape : Role::kOutput;
  ETALON_CHECK(CheckTensor(args.q, "args.q", 4, Types::kAny, input, &call->q, error));
  ETALON_CHECK(CheckTensor(args.k, "args.k", 4, Types::kAny, input, &call->k, error));
  ETALON_CHECK(CheckHeads(call->q, call->k, error));
  ETALON_CHECK(CheckSameSize(call->k, 0, call->q, 0, error));
  ETALON_CHECK(CheckHeadDim(call->q, 3, error));
  ETALON_CHECK(CheckSameSize(call->k, 3, call->q, 3, error));
  call->v = {};
  call->out = {};
  call->lse = {};
  if (function == Function::kScores) {
    ETALON_CHECK(CheckUnused(args.v, "v", error));
    ETALON_CHECK(CheckUnused(args.lse, "lse", error));
    ETALON_CHECK(CheckTensor(args.out, "args.out", 4, Types::kF32, output, &call->out, error));
    ETALON_CHECK(CheckSameShape(call->out, call->q, 3, error));
    return CheckSameSize(call->out, 3, call->k, 2, error);
  }
  ETALON_CHECK(CheckTensor(args.v, "args.v", 4, Types::kAny, input, &call->v, error));
  ETALON_CHECK(CheckSameShape(call->v, call->k, 3, error));
  ETALON_CHECK(CheckHeadDim(call->v, 3, error));
  if (function == Function::kBlockStates) {
    ETALON_CHECK(CheckUnused(args.out, "out", error));
    return CheckUnused(args.lse, "lse", error);
  }
  ETALON_CHECK(CheckTensor(args.out, "args.out", 4, Types::kAny, output, &call->out, error));
  ETALON_CHECK(CheckSameShape(call->out, call->q, 3, error));
  ETALON_CHECK(CheckSameSize(call->out, 3, call->v, 3, error));
  ETALON_CHECK(CheckOptionalTensor(args.lse, "args.lse", 3, Types::kF32, output, &call->lse, error));
  return call->lse.name == nullptr ? ETALON_OK : CheckSameShape(call->lse, call->q, 3, error);
}

Uses UsesOf(Function function) { return {function != Function::kScores, function == Function::kAttention}; }

}  // namespace

etalon_status ReadDesc(const etalon_attention_desc* caller, Function function, etalon_attention_desc* desc,
                       etalon_error* error) {
  ETALON_CHECK(CopyDescriptor(caller, "desc", desc, sizeof *desc, kFirstSizeOfDesc, error));
  return CheckDesc(*desc, UsesOf(function), error);
}

etalon_status ReadArgs(const etalon_attention_args* caller, Function function, Sizes sizes, Depth depth,
                       etalon_attention_desc* desc, Call* call, etalon_error* error) {
  etalon_attention_args args;
  ETALON_CHECK(CopyDescriptor(caller, "args", &args, sizeof args, kFirstSizeOfArgs, error));
  ETALON_CHECK(CheckAbsent(args.slopes, {"args", "slopes"}, error));
  ETALON_CHECK(CheckAbsent(args.bias, {"args", "bias"}, error));
  ETALON_CHECK(CheckAbsent(args.mask, {"args", "mask"}, error));
  ETALON_CHECK(CheckAbsent(args.sinks, {"args", "sinks"}, error));
  ETALON_CHECK(ReadTensors(args, function, depth, call, error));

  ETALON_CHECK(Settle(call->q, 1, "num_q_heads", sizes, &desc->num_q_heads, error));
  ETALON_CHECK(Settle(call->k, 1, "num_kv_heads", sizes, &desc->num_kv_heads, error));
  ETALON_CHECK(Settle(call->q, 3, "head_dim", sizes, &desc->head_dim, error));
  ETALON_CHECK(SettleType(call->q, args.q->dtype, "q_dtype", sizes, &desc->q_dtype, error));
  ETALON_CHECK(SettleType(call->k, args.k->dtype, "k_dtype", sizes, &desc->k_dtype, error));
  const Uses uses = UsesOf(function);
  if (uses.values) {
    ETALON_CHECK(Settle(call->v, 3, "value_dim", sizes, &desc->value_dim, error));
    ETALON_CHECK(SettleType(call->v, args.v->dtype, "v_dtype", sizes, &desc->v_dtype, error));
  }
  if (uses.out) ETALON_CHECK(SettleType(call->out, args.out->dtype, "out_dtype", sizes, &desc->out_dtype, error));
  ETALON_CHECK(SettleMaximum(call->q, 0, "max_batch", sizes, &desc->max_batch, error));
  ETALON_CHECK(SettleMaximum(call->q, 2, "max_q_len", sizes, &desc->max_q_len, error));
  ETALON_CHECK(SettleMaximum(call->k, 2, "max_kv_len", sizes, &desc->max_kv_len, error));

  const CallerSequences sequences = {args.q_offset, args.q_offsets, args.q_lens, args.kv_lens};
  return CheckSequences(sequences, call->q.shape[0], call->q.shape[2], call->k.shape[2], desc->left, desc->right,
                        &call->sequences, &call->hulls, error);
}

etalon_status CheckRows(const CheckedTensor& q, etalon_error* error) {
  int64_t rows = q.empty ? 0 : 1;
  for (int place = 0; place < 3; ++place) {
    if (__builtin_mul_overflow(rows, q.shape[place], &rows)) {
      return Fail(error, ETALON_OVERFLOW, q.Shape(place), {"is ", q.shape[place], ": the rows do not fit 64 bits"});
    }
  }
  return ETALON_OK;
}

AttentionProblem ProblemOf(const etalon_attention_desc& desc, const Call& call) {
  AttentionProblem problem = {};
  problem.tiles = {call.q.shape[0], desc.num_kv_heads, desc.num_q_heads / desc.num_kv_heads, call.q.shape[2], false};
  problem.tiles.tile_rows = ChooseTileRows(problem.tiles, desc.max_workers);
  problem.sequences = call.sequences;
  problem.head_dim = static_cast<size_t>(desc.head_dim);
  problem.value_dim = call.v.name == nullptr ? 0 : static_cast<size_t>(desc.value_dim);
  problem.q = call.q.View();
  problem.k = call.k.View();
  problem.v = call.v.View();
  problem.out = call.out.MutableView();
  problem.lse = call.lse.MutableView();
  problem.scale = ScaleOf(desc);
  return problem;
}

void Touches(const Call& call, Memory* memory) {
  memory->Reads(call.q);
  memory->Reads(call.k);
  memory->Reads(call.v);
  memory->Reads(call.hulls);
  memory->Writes(call.out);
  memory->Writes(call.lse);
}

float ScaleOf(const etalon_attention_desc& desc) {
  const bool given = (HostBits(desc.scale) & 0x7FFFFFFFu) != 0;  // no comparison: the host may flush subnormals
  return given ? desc.scale : DefaultScale(static_cast<size_t>(desc.head_dim));
}

int32_t WorkersOf(int32_t max_workers) { return max_workers == 0 ? 1 : max_workers; }

}  // namespace etalon

extern "C" float etalon_default_scale(int64_t head_dim) {
  return etalon::DefaultScale(static_cast<size_t>(head_dim < 1 ? 1 : head_dim));
}
