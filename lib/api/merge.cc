// The merge of finished results.
#include "lib/attention/merge.h"

#include "lib/api/primitives.h"

namespace etalon {
namespace {

struct MergeWork {
  const Kernels& kernels;
  const MergeProblem& problem;

  static void Run(void* arg, int64_t first, int64_t last, int32_t) {
    const MergeWork& work = *static_cast<const MergeWork*>(arg);
    for (int64_t task = first; task < last; ++task) MergeHead(work.kernels.table, work.problem, task);
  }
};

// `tensor` is another result like out1.
etalon_status CheckLike(const CheckedTensor& tensor, const CheckedTensor& out1, etalon_error* error) {
  ETALON_CHECK(CheckSameShape(tensor, out1, 4, error));
  if (tensor.type == out1.type) return ETALON_OK;
  return Fail(error, ETALON_BAD_DTYPE, {tensor.name, "dtype"}, {"is not that of args.out1"});
}

}  // namespace
}  // namespace etalon

extern "C" etalon_status etalon_merge(const etalon_merge_args* caller, const etalon_parallel* parallel,
                                      etalon_error* error) {
  using namespace etalon;  // NOLINT: one function
  etalon_merge_args args;
  ETALON_CHECK(CopyDescriptor(caller, "args", &args, sizeof args, kFirstSizeOfMergeArgs, error));
  CheckedTensor out1, lse1, out2, lse2, out, lse;
  ETALON_CHECK(CheckTensor(args.out1, "args.out1", 4, Types::kAny, Role::kInput, &out1, error));
  ETALON_CHECK(CheckHeads(out1, out1, error));
  ETALON_CHECK(CheckHeadDim(out1, 3, error));
  ETALON_CHECK(CheckTensor(args.lse1, "args.lse1", 3, Types::kF32, Role::kInput, &lse1, error));
  ETALON_CHECK(CheckSameShape(lse1, out1, 3, error));
  ETALON_CHECK(CheckTensor(args.out2, "args.out2", 4, Types::kAny, Role::kInput, &out2, error));
  ETALON_CHECK(CheckLike(out2, out1, error));
  ETALON_CHECK(CheckTensor(args.lse2, "args.lse2", 3, Types::kF32, Role::kInput, &lse2, error));
  ETALON_CHECK(CheckSameShape(lse2, out1, 3, error));
  ETALON_CHECK(CheckTensor(args.out, "args.out", 4, Types::kAny, Role::kOutput, &out, error));
  ETALON_CHECK(CheckLike(out, out1, error));
  ETALON_CHECK(CheckOptionalTensor(args.lse, "args.lse", 3, Types::kF32, Role::kOutput, &lse, error));
  if (lse.name != nullptr) ETALON_CHECK(CheckSameShape(lse, out1, 3, error));

  const MergeProblem problem = {out1.shape[0],     out1.shape[1],    out1.shape[2], static_cast<size_t>(out1.shape[3]),
                                out1.View(),       lse1.View(),      out2.View(),   lse2.View(),
                                out.MutableView(), lse.MutableView()};
  Kernels kernels;
  ETALON_CHECK(ChooseKernels(args.target, "args", 0, 0, 0, 0, &kernels, error));
  Memory memory;
  for (const CheckedTensor* tensor : {&out1, &lse1, &out2, &lse2}) memory.Reads(*tensor);
  memory.Writes(out, &out1, &out2);
  memory.Writes(lse, &lse1, &lse2);
  MergeWork work = {kernels, problem};
  Runner runner;
  ETALON_CHECK(CheckRunner(kernels, &memory, nullptr, parallel, &runner, error));
  return RunTasks(runner, {MergeWork::Run, &work, NumMergeTasks(problem)}, error);
}
