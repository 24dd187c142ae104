// States of blocks: written, and merged.
#include "lib/api/call.h"
#include "lib/api/primitives.h"
#include "lib/attention/merge.h"
#include "lib/base/arithmetic.h"
#include "lib/base/parallel.h"

namespace etalon {
namespace {

struct StatesCall {
  AttentionProblem problem;
  StatesView view;
};

void WriteTile(const KernelTable& table, const StatesCall& call, const Tile& tile, void* scratch) {
  BlockStatesTile(table, call.problem, call.view, tile, scratch);
}

void MergeTile(const KernelTable& table, const StatesCall& call, const Tile& tile, void* scratch) {
  MergeStatesTile(table, call.problem, call.view, tile, scratch);
}

struct StateTensors {
  CheckedTensor m, l, o;
};

etalon_status CheckStride(const CheckedTensor& tensor, int place, int64_t stride, etalon_error* error) {
  if (tensor.shape[place] <= 1 || tensor.stride_bytes[place] == stride) return ETALON_OK;
  return Fail(error, ETALON_BAD_STRIDE, tensor.Stride(place),
              {"is ", tensor.stride_bytes[place], ", but rows of states must be evenly spaced: ", stride});
}

// Bytes from one row to the next, read off m; any where there is one row.
int64_t RowStrideBytes(const CheckedTensor& m) {
  if (m.shape[2] > 1) return m.stride_bytes[2];
  return m.shape[1] > 1 ? m.stride_bytes[1] : m.shape[3] * static_cast<int64_t>(sizeof(float));
}

// All states of a sequence with one spacing of rows, and that of o value_dim times as wide.
etalon_status CheckSpacing(const StateTensors& states, StatesView* view, etalon_error* error) {
  if (states.m.empty) {  // no row has a state: strides say nothing
    *view = {};
    return ETALON_OK;
  }
  const int64_t element = static_cast<int64_t>(sizeof(float));
  const int64_t value_dim = states.o.shape[4];
  const int64_t row = RowStrideBytes(states.m);
  int64_t of_head, o_row, o_of_head;
  if (__builtin_mul_overflow(row, states.m.shape[2], &of_head) || __builtin_mul_overflow(row, value_dim, &o_row) ||
      __builtin_mul_overflow(of_head, value_dim, &o_of_head)) {
    return Fail(error, ETALON_OVERFLOW, {states.m.name, "stride_bytes"}, {"does not fit 64 bits times value_dim"});
  }
  for (const CheckedTensor* tensor : {&states.m, &states.l}) {
    ETALON_CHECK(CheckStride(*tensor, 2, row, error));
    ETALON_CHECK(CheckStride(*tensor, 1, of_head, error));
  }
  ETALON_CHECK(CheckStride(states.o, 3, value_dim * element, error));
  ETALON_CHECK(CheckStride(states.o, 2, o_row, error));
  ETALON_CHECK(CheckStride(states.o, 1, o_of_head, error));
  view->m = reinterpret_cast<float*>(states.m.data);
  view->l = reinterpret_cast<float*>(states.l.data);
  view->o = reinterpret_cast<float*>(states.o.data);
  view->m_batch_stride = states.m.stride_bytes[0] / element;
  view->l_batch_stride = states.l.stride_bytes[0] / element;
  view->o_batch_stride = states.o.stride_bytes[0] / element;
  view->row_stride = row / element;
  view->num_states = states.m.shape[3];
  return ETALON_OK;
}

// What messages call them: those of a function's own argument, or of args.
struct StateNames {
  const char* states;
  const char* m;
  const char* l;
  const char* o;
};

etalon_status ReadStates(const etalon_states* caller, const StateNames& names, Role role, StateTensors* states,
                         etalon_error* error) {
  if (caller == nullptr) return Fail(error, ETALON_NULL_POINTER, {names.states}, {"is NULL"});
  ETALON_CHECK(CheckTensor(caller->m, names.m, 4, Types::kF32, role, &states->m, error));
  ETALON_CHECK(CheckTensor(caller->l, names.l, 4, Types::kF32, role, &states->l, error));
  ETALON_CHECK(CheckTensor(caller->o, names.o, 5, Types::kF32, role, &states->o, error));
  ETALON_CHECK(CheckSameShape(states->l, states->m, 4, error));
  ETALON_CHECK(CheckSameShape(states->o, states->m, 4, error));
  ETALON_CHECK(CheckHeads(states->m, states->m, error));
  return CheckHeadDim(states->o, 4, error);
}

// ------------------------------------------------------------------------------------------------- block states

struct BlockStatesCall {
  etalon_attention_desc desc;
  Call call;
  AttentionKernels kernels;
};

etalon_status Read(const etalon_attention_desc* caller, const etalon_attention_args* args, Depth depth,
                   BlockStatesCall* call, etalon_error* error) {
  ETALON_CHECK(ReadDesc(caller, Function::kBlockStates, &call->desc, error));
  ETALON_CHECK(ReadArgs(args, Function::kBlockStates, Sizes::kFromTensors, depth, &call->desc, &call->call, error));
  return ChooseAttentionKernels(call->desc, call->call, &call->kernels, error);
}

// ------------------------------------------------------------------------------------------------- merge of states

struct MergeStatesCall {
  StateTensors states;
  CheckedTensor out, lse, sinks;
  Kernels kernels;
};

etalon_status Read(const etalon_merge_states_args* caller, Depth depth, MergeStatesCall* call, etalon_error* error) {
  const Role input = depth == Depth::kShapes ? Role::kShape : Role::kInput;
  const Role output = depth == Depth::kShapes ? Role::kShape : Role::kOutput;
  etalon_merge_states_args args;
  ETALON_CHECK(CopyDescriptor(caller, "args", &args, sizeof args, kFirstSizeOfMergeStatesArgs, error));
  ETALON_CHECK(CheckReserved(args.reserved, {"args", "reserved"}, error));
  ETALON_CHECK(CheckWorkers(args.max_workers, {"args", "max_workers"}, error));
  const StateNames names = {"args.states", "args.states->m", "args.states->l", "args.states->o"};
  ETALON_CHECK(ReadStates(args.states, names, input, &call->states, error));
  ETALON_CHECK(CheckTensor(args.out, "args.out", 4, Types::kAny, output, &call->out, error));
  ETALON_CHECK(CheckSameShape(call->out, call->states.m, 3, error));
  ETALON_CHECK(CheckSameSize(call->out, 3, call->states.o, 4, error));
  ETALON_CHECK(CheckOptionalTensor(args.lse, "args.lse", 3, Types::kF32, output, &call->lse, error));
  if (call->lse.name != nullptr) ETALON_CHECK(CheckSameShape(call->lse, call->out, 3, error));
  ETALON_CHECK(CheckOptionalTensor(args.sinks, "args.sinks", 2, Types::kAny, input, &call->sinks, error));
  if (args.sinks != nullptr) {
    ETALON_CHECK(CheckOfHeads(call->sinks, call->out.shape[0], call->out.shape[1], error));
  }
  return ChooseKernels(args.target, "args", TileArgumentsBytes(0), 0, static_cast<size_t>(call->out.shape[3]),
                       WorkersOf(args.max_workers), &call->kernels, error);
}

}  // namespace
}  // namespace etalon

extern "C" {

int64_t etalon_num_blocks(int64_t kv_len) { return kv_len <= 0 ? 0 : etalon::DivideUp(kv_len, etalon::kBlock); }

etalon_status etalon_block_states_workspace_bytes(const etalon_attention_desc* desc, const etalon_attention_args* args,
                                                  size_t* bytes, etalon_error* error) {
  if (bytes == nullptr) return etalon::Fail(error, ETALON_NULL_POINTER, {"bytes"}, {"is NULL"});
  etalon::BlockStatesCall call;
  ETALON_CHECK(etalon::Read(desc, args, etalon::Depth::kShapes, &call, error));
  *bytes = call.kernels.kernels.workspace_bytes;
  return etalon::Succeed(error);
}

etalon_status etalon_block_states(const etalon_attention_desc* desc, const etalon_attention_args* args,
                                  const etalon_states* caller_states, const etalon_workspace* workspace,
                                  const etalon_parallel* parallel, etalon_error* error) {
  using namespace etalon;  // NOLINT: one function
  BlockStatesCall call;
  ETALON_CHECK(Read(desc, args, Depth::kMemory, &call, error));
  StateTensors states;
  const StateNames names = {"states", "states->m", "states->l", "states->o"};
  ETALON_CHECK(ReadStates(caller_states, names, Role::kOutput, &states, error));
  ETALON_CHECK(CheckSameShape(states.m, call.call.q, 3, error));
  ETALON_CHECK(CheckSameSize(states.o, 4, call.call.sources[0].v, 3, error));
  const int64_t blocks = etalon_num_blocks(call.call.sources[0].sequences.kv_len);
  if (states.m.shape[3] != blocks) {
    return Fail(error, ETALON_BAD_SHAPE, states.m.Shape(3),
                {"is ", states.m.shape[3], ", must be etalon_num_blocks(kv_len) = ", blocks});
  }
  StatesCall work;
  FillProblem(call.desc, call.call, &work.problem);
  ETALON_CHECK(CheckSpacing(states, &work.view, error));
  Memory memory;
  Touches(call.call, &memory);
  for (const CheckedTensor* tensor : {&states.m, &states.l, &states.o}) memory.Writes(*tensor);
  Runner runner;
  ETALON_CHECK(CheckRunner(call.kernels.kernels, &memory, workspace, parallel, &runner, error));
  FillSlopes(call.kernels, runner, &work.problem);
  return RunTiles<StatesCall, WriteTile>(call.kernels.kernels, runner, work, work.problem.tiles, states.m.empty, error);
}

etalon_status etalon_merge_states_workspace_bytes(const etalon_merge_states_args* args, size_t* bytes,
                                                  etalon_error* error) {
  if (bytes == nullptr) return etalon::Fail(error, ETALON_NULL_POINTER, {"bytes"}, {"is NULL"});
  etalon::MergeStatesCall call;
  ETALON_CHECK(etalon::Read(args, etalon::Depth::kShapes, &call, error));
  *bytes = call.kernels.workspace_bytes;
  return etalon::Succeed(error);
}

etalon_status etalon_merge_states(const etalon_merge_states_args* args, const etalon_workspace* workspace,
                                  const etalon_parallel* parallel, etalon_error* error) {
  using namespace etalon;  // NOLINT: one function
  MergeStatesCall call;
  ETALON_CHECK(Read(args, Depth::kMemory, &call, error));
  StatesCall work = {};
  ETALON_CHECK(CheckSpacing(call.states, &work.view, error));
  const CheckedTensor& out = call.out;
  work.problem.tiles = {out.shape[0], out.shape[1], 1, out.shape[2], false};
  work.problem.value_dim = static_cast<size_t>(out.shape[3]);
  work.problem.out = out.MutableView();
  work.problem.lse = call.lse.MutableView();
  work.problem.sinks = call.sinks.View();
  Memory memory;
  for (const CheckedTensor* tensor : {&call.states.m, &call.states.l, &call.states.o}) memory.Reads(*tensor);
  memory.Reads(call.sinks);
  memory.Writes(out);
  memory.Writes(call.lse);
  Runner runner;
  ETALON_CHECK(CheckRunner(call.kernels, &memory, workspace, parallel, &runner, error));
  return RunTiles<StatesCall, MergeTile>(call.kernels, runner, work, work.problem.tiles, out.empty, error);
}

}  // extern "C"
