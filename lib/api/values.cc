// The weighted sum primitive.
#include "lib/attention/values.h"

#include "lib/api/call.h"
#include "lib/api/primitives.h"

namespace etalon {
namespace {

struct WeightedSumCall {
  WeightedSumProblem problem;
  Kernels kernels;
  Memory memory;
  CheckedTensor weights, v, out, mask;
};

etalon_status Read(const etalon_weighted_sum_args* caller, Depth depth, WeightedSumCall* call, etalon_error* error) {
  const Role input = depth == Depth::kShapes ? Role::kShape : Role::kInput;
  const Role output = depth == Depth::kShapes ? Role::kShape : Role::kOutput;
  etalon_weighted_sum_args args;
  ETALON_CHECK(CopyDescriptor(caller, "args", &args, sizeof args, kFirstSizeOfWeightedSumArgs, error));
  ETALON_CHECK(CheckReserved(args.reserved, {"args", "reserved"}, error));
  ETALON_CHECK(CheckWorkers(args.max_workers, {"args", "max_workers"}, error));
  CheckedTensor& weights = call->weights;
  CheckedTensor& v = call->v;
  CheckedTensor& out = call->out;
  ETALON_CHECK(CheckTensor(args.weights, "args.weights", 4, Types::kF32, input, &weights, error));
  ETALON_CHECK(CheckTensor(args.v, "args.v", 4, Types::kAny, input, &v, error));
  ETALON_CHECK(CheckHeads(weights, v, error));
  ETALON_CHECK(CheckSameSize(v, 0, weights, 0, error));
  ETALON_CHECK(CheckSameSize(v, 2, weights, 3, error));
  ETALON_CHECK(CheckHeadDim(v, 3, error));
  ETALON_CHECK(CheckTensor(args.out, "args.out", 4, Types::kAny, output, &out, error));
  ETALON_CHECK(CheckSameShape(out, weights, 3, error));
  ETALON_CHECK(CheckSameSize(out, 3, v, 3, error));

  WeightedSumProblem& problem = call->problem;
  problem = {};
  Queries queries;
  SequenceHulls hulls;
  ETALON_CHECK(CheckQueries(nullptr, args.q_lens, weights.shape[0], weights.shape[2], &queries, error));
  const CallerSequences keys = {"args",       args.left, args.right, args.q_offset, args.q_offsets,
                                args.kv_lens, nullptr,   nullptr,    nullptr};
  ETALON_CHECK(CheckSequences(keys, queries, weights.shape[3], &problem.sequences, &hulls, error));
  CheckedTensor& mask = call->mask;
  ETALON_CHECK(CheckOptionalTensor(args.mask, "args.mask", 4, Types::kBool, input, &mask, error));
  const ColumnsShape columns = {weights.shape[0], weights.shape[1], weights.shape[2], weights.shape[3]};
  if (args.mask != nullptr) ETALON_CHECK(CheckColumns(mask, columns, error));
  problem.tiles = {weights.shape[0], v.shape[1], weights.shape[1] / v.shape[1], weights.shape[2], false};
  problem.value_dim = static_cast<size_t>(v.shape[3]);
  problem.weights = weights.View();
  problem.v = v.View();
  problem.out = out.MutableView();
  if (args.mask != nullptr) problem.mask = mask.Columns();

  call->memory.Reads(weights);
  call->memory.Reads(v);
  call->memory.Reads(queries);
  call->memory.Reads(hulls);
  call->memory.Reads(mask);
  call->memory.Writes(out);
  return ChooseKernels(args.target, "args", 0, 0, problem.value_dim, WorkersOf(args.max_workers), &call->kernels,
                       error);
}

}  // namespace
}  // namespace etalon

extern "C" {

etalon_status etalon_weighted_sum_workspace_bytes(const etalon_weighted_sum_args* args, size_t* bytes,
                                                  etalon_error* error) {
  if (bytes == nullptr) return etalon::Fail(error, ETALON_NULL_POINTER, {"bytes"}, {"is NULL"});
  etalon::WeightedSumCall call;
  ETALON_CHECK(etalon::Read(args, etalon::Depth::kShapes, &call, error));
  *bytes = call.kernels.workspace_bytes;
  return etalon::Succeed(error);
}

etalon_status etalon_weighted_sum(const etalon_weighted_sum_args* args, const etalon_workspace* workspace,
                                  const etalon_parallel* parallel, etalon_error* error) {
  etalon::WeightedSumCall call;
  ETALON_CHECK(etalon::Read(args, etalon::Depth::kMemory, &call, error));
  call.problem.tiles.tile_rows = etalon::ChooseTileRows(call.problem.tiles, call.kernels.max_workers);
  etalon::Runner runner;
  ETALON_CHECK(etalon::CheckRunner(call.kernels, &call.memory, workspace, parallel, &runner, error));
  return etalon::RunTiles<etalon::WeightedSumProblem, etalon::WeightedSumTile>(
      call.kernels, runner, call.problem, call.problem.tiles, call.out.empty, error);
}

}  // extern "C"
