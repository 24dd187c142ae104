// primitive_calls.h: the primitives of the public interface on guarded memory, and what must come out of them: the
// kernels of the table that defines the bits, head by head. Each run checks that it succeeds and damages nothing.
//
// An ApiCase stands for sizes, geometry and lengths, and for the arrays that the primitive has in common with
// attention. Of How, `form` does not count.
#ifndef ETALON_TESTS_API_PRIMITIVE_CALLS_H_
#define ETALON_TESTS_API_PRIMITIVE_CALLS_H_

#include <memory>
#include <vector>

#include "tests/api/api_test.h"

namespace etalon::test {

// [batch, num_q_heads, q_len, kv_len], f32. Places: q, k, out.
Array CallScores(const ApiCase& c, const KernelTable& table, const How& how = {}, const Places& places = {});
Array ExpectedScores(const ApiCase& c);

// Of scores of that shape. Places: q for the scores, out for the weights, lse.
SoftmaxResult CallSoftmax(const ApiCase& c, const Array& scores, const KernelTable& table, const How& how = {},
                          const Places& places = {}, bool in_place = false);
SoftmaxResult ExpectedSoftmax(const ApiCase& c, const Array& scores);

// Of weights of that shape, and v and out_type of the case. Places: q for the weights, v, out.
Array CallWeightedSum(const ApiCase& c, const Array& weights, const KernelTable& table, const How& how = {},
                      const Places& places = {});
Array ExpectedWeightedSum(const ApiCase& c, const Array& weights);

// c.rows are [batch, heads, q_len] of `size`. Places: q for out1, k for out2, v for both lse, out, lse.
enum class InPlace { kNo, kFirst, kSecond };
AttentionResult CallMerge(const Sizes& size, const MergeCase& c, const KernelTable& table, const How& how = {},
                          const Places& places = {}, InPlace in_place = InPlace::kNo);

// States in memory: m, l and o with `row_stride` >= blocks states from row to row, and gaps between the sequences,
// different ones in each.
class GuardedStates {
 public:
  GuardedStates(const Sizes& size, int64_t blocks, int64_t row_stride, const StatesResult* values = nullptr);
  GuardedTensor m, l, o;
  const etalon_states* get() const { return &states_; }
  StatesResult Values() const;
  // The same memory, from block `first` on, as a caller's view of a part of it.
  struct Part {
    etalon_tensor m, l, o;
    etalon_states states;
  };
  std::unique_ptr<Part> Blocks(int64_t first, int64_t count) const;

 private:
  GuardedStates(const Shape& shape, int64_t value_dim, int64_t row_stride, const StatesResult* values);
  etalon_states states_;
};

// Writes to `states`. Places: q, k, v.
void CallBlockStates(const ApiCase& c, const etalon_states* states, const KernelTable& table, const How& how = {},
                     const Places& places = {});
StatesResult ExpectedStates(const ApiCase& c);

// Places: out, lse.
AttentionResult CallMergeStates(const ApiCase& c, const etalon_states* states, const KernelTable& table,
                                const How& how = {}, const Places& places = {});

// Ways to run a primitive.
const std::vector<How>& EveryLoop();

}  // namespace etalon::test

#endif  // ETALON_TESTS_API_PRIMITIVE_CALLS_H_
