// order_model.h: the order of operations, written a second time. The f64 reference cannot see a chunk of 64 keys or a
// fold whose operands are swapped, and two tables made from one source agree on any mistake. Only exp, log and tanh are
// taken from the scalar table, and the conversions from lib; both have tests of their own.
#ifndef ETALON_TESTS_KERNELS_ORDER_MODEL_H_
#define ETALON_TESTS_KERNELS_ORDER_MODEL_H_

#include "tests/support/kernel_case.h"

namespace etalon::test {

std::vector<float> ModelScores(const AttentionCase& c, size_t source = 0);
StatesResult ModelStates(const AttentionCase& c);
AttentionResult ModelAttention(const AttentionCase& c);
SoftmaxResult ModelSoftmax(const SoftmaxCase& c);
Array ModelWeightedSum(const WeightedSumCase& c);
AttentionResult ModelMerge(const MergeCase& c);

}  // namespace etalon::test

#endif  // ETALON_TESTS_KERNELS_ORDER_MODEL_H_
