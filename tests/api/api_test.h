// api_test.h: calls of the public interface as values: what is computed (ApiCase), where its arrays lie (Place), and
// who runs it (How). Every run has a workspace of exactly the bytes that were asked for, and all memory between guard
// pages.
#ifndef ETALON_TESTS_API_API_TEST_H_
#define ETALON_TESTS_API_API_TEST_H_

#include <doctest/doctest.h>
#include <etalon/etalon.h>

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "tests/api/guarded_tensor.h"
#include "tests/kernels/kernel_test.h"
#include "tests/support/targets.h"

namespace etalon::test {

// ------------------------------------------------------------------------------------------------ what is computed

struct Sizes {
  int64_t batch = 1, num_q_heads = 1, num_kv_heads = 1, q_len = 1, kv_len = 1, head_dim = 1, value_dim = 1;
};

// Attention, with packed arrays; vectors are empty where the argument is NULL.
struct ApiCase {
  Sizes size;
  Array q, k, v;
  DType out_type = DType::kF32;
  float scale = 0.0f;  // as in the descriptor
  int64_t left = -1, right = -1, q_offset = 0;
  std::vector<int64_t> q_offsets, q_lens, kv_lens;
  // Of softmax and the weighted sum: a byte for each key, sizes of 1 counting for all.
  std::vector<int64_t> mask_shape;  // none = no mask
  std::vector<uint8_t> mask;
};

ApiCase RandomCase(const Sizes& size, uint64_t seed);  // normal numbers of random types
ApiCase TrioCase(const Sizes& size);                   // the ramps of the field cases: R(3,1), R(5,2), R(7,3)
ApiCase OneHead(const AttentionCase& c);               // one source from position 0, no options

std::string Describe(const Sizes& size);
Shape RowsShape(const Sizes& size);  // [batch, num_q_heads, q_len]
const int64_t* OrNull(const std::vector<int64_t>& lengths);

// Whether query i of sequence b sees key t: the sentence of etalon.h, once more.
bool Sees(const ApiCase& c, int64_t b, int64_t i, int64_t t);

// The keys that each query of a sequence sees.
std::vector<Span> SpansOf(const ApiCase& c, int64_t b);

// The part of the case that one query head computes, for the kernels and the f64 reference.
AttentionCase HeadCase(const ApiCase& c, int64_t b, int64_t h);

// What must come out: each head by itself, by the table that defines the bits.
AttentionResult Expected(const ApiCase& c);

// Empty if the result is within the default tolerance of f64.
std::string AccuracyReport(const ApiCase& c, const AttentionResult& got);

std::string Near(const Array& got, const std::vector<double>& expected, double allowed);
std::string Near(const std::vector<float>& got, const std::vector<double>& expected, double allowed);

// ----------------------------------------------------------------------------------------------------- who runs it

// An etalon_parallel.
class Loop {
 public:
  // kForward and kReverse run one task after the other, kShuffled any cuts in any order, all on the caller's thread
  // under changing workers; kThreads runs as many threads as there are workers.
  enum class Kind { kAlone, kForward, kReverse, kShuffled, kThreads };

  Loop(Kind kind, int32_t workers, uint64_t seed = 1);
  const etalon_parallel* get() const { return kind_ == Kind::kAlone ? nullptr : &parallel_; }  // kAlone: NULL
  void Run(int64_t num_tasks, etalon_task_fn fn, void* arg) const;

 private:
  Kind kind_;
  int32_t workers_;
  uint64_t seed_;
  etalon_parallel parallel_;
};

enum class Form { kOneCall, kTasks, kExecute };

struct How {
  Form form = Form::kOneCall;
  Loop::Kind loop = Loop::Kind::kAlone;
  int32_t workers = 1;
  unsigned char fill = 0xFF;  // of the workspace
  Guard guard = Guard::kAbove;
  uint64_t seed = 1;
};
std::string Describe(const How& how);
const std::vector<How>& EveryForm();

// A call in that form, in a workspace of exactly the bytes that it asks for. `desc` is that of one call, `full` that of
// a plan.
etalon_status RunForm(const etalon_attention_desc& desc, const etalon_attention_desc& full,
                      const etalon_attention_args& args, const How& how, etalon_error* error);

struct Places {
  Place q, k, v, out, lse;
};
Places Everywhere(const Place& place);

// A case brought to memory. A test may change desc and args before it runs.
class ApiCall {
 public:
  ApiCall(const ApiCase& c, const KernelTable& table, const Places& places = {});

  GuardedTensor q, k, v, out, lse;
  etalon_attention_desc desc;  // as for one call: sizes are 0
  etalon_attention_args args;
  etalon_attention_desc PlanDesc() const;  // with sizes and types

  etalon_status Run(const How& how, etalon_error* error);
  AttentionResult Result() const;
  std::string Damage() const;  // empty if nothing was written but out and lse

 private:
  ApiCase case_;  // its lengths are what args points to
};

// Runs and checks that it succeeds and damages nothing.
AttentionResult Run(const ApiCase& c, const KernelTable& table, const How& how = {}, const Places& places = {});

// The same, after a look that every form gives these bytes.
AttentionResult RunEveryForm(const ApiCase& c, const KernelTable& table);

// Empty if every form gives these bytes, else which does not, and where.
std::string FormsReport(const ApiCase& c, const KernelTable& table, const AttentionResult& expected,
                        const Places& places = {});

}  // namespace etalon::test

#endif  // ETALON_TESTS_API_API_TEST_H_
