// The masked softmax primitive.
#include "lib/attention/softmax.h"

#include "lib/api/primitives.h"

namespace etalon {
namespace {

void RunTile(const KernelTable& table, const SoftmaxProblem& problem, const Tile& tile, void*) {
  SoftmaxTile(table, problem, tile);
}

}  // namespace
}  // namespace etalon

extern "C" etalon_status etalon_softmax(const etalon_softmax_args* caller, const etalon_parallel* parallel,
                                        etalon_error* error) {
  using namespace etalon;  // NOLINT: one function
  etalon_softmax_args args;
  ETALON_CHECK(CopyDescriptor(caller, "args", &args, sizeof args, kFirstSizeOfSoftmaxArgs, error));
  CheckedTensor scores, weights, lse, mask;
  ETALON_CHECK(CheckTensor(args.scores, "args.scores", 4, Types::kF32, Role::kInput, &scores, error));
  ETALON_CHECK(CheckTensor(args.weights, "args.weights", 4, Types::kF32, Role::kOutput, &weights, error));
  ETALON_CHECK(CheckSameShape(weights, scores, 4, error));
  ETALON_CHECK(CheckOptionalTensor(args.lse, "args.lse", 3, Types::kF32, Role::kOutput, &lse, error));
  if (lse.name != nullptr) ETALON_CHECK(CheckSameShape(lse, scores, 3, error));
  ETALON_CHECK(CheckHeads(scores, scores, error));

  SoftmaxProblem problem = {};
  Queries queries;
  SequenceHulls hulls;
  ETALON_CHECK(CheckQueries(nullptr, args.q_lens, scores.shape[0], scores.shape[2], &queries, error));
  const CallerSequences keys = {"args",       args.left, args.right, args.q_offset, args.q_offsets,
                                args.kv_lens, nullptr,   nullptr,    nullptr};
  ETALON_CHECK(CheckSequences(keys, queries, scores.shape[3], &problem.sequences, &hulls, error));
  ETALON_CHECK(CheckOptionalTensor(args.mask, "args.mask", 4, Types::kBool, Role::kInput, &mask, error));
  const ColumnsShape columns = {scores.shape[0], scores.shape[1], scores.shape[2], scores.shape[3]};
  if (args.mask != nullptr) ETALON_CHECK(CheckColumns(mask, columns, error));
  problem.tiles = {scores.shape[0], scores.shape[1], 1, scores.shape[2], false};
  problem.scores = scores.View();
  problem.weights = weights.MutableView();
  problem.lse = lse.MutableView();
  if (args.mask != nullptr) problem.mask = mask.Columns();

  Kernels kernels;
  ETALON_CHECK(ChooseKernels(args.target, "args", 0, 0, 0, 0, &kernels, error));
  Memory memory;
  memory.Reads(scores);
  memory.Reads(queries);
  memory.Reads(hulls);
  memory.Reads(mask);
  memory.Writes(weights, &scores);
  memory.Writes(lse);
  const bool empty = weights.empty && (lse.name == nullptr || lse.empty);
  Runner runner;
  ETALON_CHECK(CheckRunner(kernels, &memory, nullptr, parallel, &runner, error));
  return RunTiles<SoftmaxProblem, RunTile>(kernels, runner, problem, problem.tiles, empty, error);
}
