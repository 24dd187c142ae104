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
  ETALON_CHECK(CheckAbsent(args.mask, {"args", "mask"}, error));
  CheckedTensor scores, weights, lse;
  ETALON_CHECK(CheckTensor(args.scores, "args.scores", 4, Types::kF32, Role::kInput, &scores, error));
  ETALON_CHECK(CheckTensor(args.weights, "args.weights", 4, Types::kF32, Role::kOutput, &weights, error));
  ETALON_CHECK(CheckSameShape(weights, scores, 4, error));
  ETALON_CHECK(CheckOptionalTensor(args.lse, "args.lse", 3, Types::kF32, Role::kOutput, &lse, error));
  if (lse.name != nullptr) ETALON_CHECK(CheckSameShape(lse, scores, 3, error));
  ETALON_CHECK(CheckHeads(scores, scores, error));

  const CallerSequences lengths = {args.q_offset, args.q_offsets, args.q_lens, args.kv_lens};
  SoftmaxProblem problem = {};
  SequenceHulls hulls;
  ETALON_CHECK(CheckSequences(lengths, scores.shape[0], scores.shape[2], scores.shape[3], args.left, args.right,
                              &problem.sequences, &hulls, error));
  problem.tiles = {scores.shape[0], scores.shape[1], 1, scores.shape[2], false};
  problem.scores = scores.View();
  problem.weights = weights.MutableView();
  problem.lse = lse.MutableView();

  Kernels kernels;
  ETALON_CHECK(ChooseKernels(args.target, "args", 0, 0, 0, &kernels, error));
  Memory memory;
  memory.Reads(scores);
  memory.Reads(hulls);
  memory.Writes(weights, &scores);
  memory.Writes(lse);
  const bool empty = weights.empty && (lse.name == nullptr || lse.empty);
  return RunTiles<SoftmaxProblem, RunTile>(kernels, problem, problem.tiles, empty, &memory, nullptr, parallel, error);
}
