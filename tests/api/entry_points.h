// entry_points.h: every function of the public interface called once, each on arrays of its own, for tests of what must
// hold for all of them: the same bits in any environment, no allocation, a small stack.
#ifndef ETALON_TESTS_API_ENTRY_POINTS_H_
#define ETALON_TESTS_API_ENTRY_POINTS_H_

#include <etalon/etalon.h>

#include <cstdint>
#include <string>
#include <vector>

#include "tests/support/kernel_case.h"

namespace etalon::test {

class EntryPoints {
 public:
  struct Config {
    int64_t batch = 2, num_q_heads = 4, num_kv_heads = 2, q_len = 5, kv_len = 600, head_dim = 20, value_dim = 12;
    DType q_type = DType::kF32, k_type = DType::kF16, v_type = DType::kBF16, out_type = DType::kF16;
    int32_t workers = 3;           // take turns on the calling thread
    const char* target = nullptr;  // NULL: the default
    float scale = 0.0f;
    float softcap = 20.0f;  // of Options
  };
  explicit EntryPoints(const Config& config);
  EntryPoints(const EntryPoints&) = delete;

  struct Entry {
    const char* functions;  // those that it calls
    void (EntryPoints::*run)();
  };
  // Each may be run by itself, and allocates nothing.
  static const std::vector<Entry>& All();

  void Clear();                                // all outputs, to a pattern
  std::vector<unsigned char> Results() const;  // all outputs, and what was answered
  // The first call that did not answer as it should; empty if there is none.
  std::string Failed() const { return failed_ == nullptr ? "" : failed_; }

 private:
  // An array with its tensor.
  struct Data {
    Array array;
    etalon_tensor tensor;
  };
  static Data Make(DType type, const std::vector<int64_t>& shape, uint64_t seed);
  std::vector<Data*> Outputs();
  void Expect(const char* what, etalon_status got, etalon_status want = ETALON_OK);
  void Prepare();
  etalon_workspace* Workspace(size_t bytes);

  void Constants();
  void Describe();
  void Attention();
  void Plan();
  void Begin();
  void Execute();
  void Scores();
  void Options();
  void Cache();
  void Softmax();
  void WeightedSum();
  void Merge();
  void BlockStates();
  void MergeStates();
  void Targets();
  void Refuse();

  const Config config_;
  Data q_, k_, v_, in_scores_, in_weights_, out1_, lse1_, out2_, lse2_, in_m_, in_l_, in_o_;
  Data out_, lse_, task_out_, task_lse_, plan_out_, plan_lse_, scores_, weights_, softmax_lse_, sum_, merged_;
  Data merged_lse_, m_, l_, o_, folded_, folded_lse_, bias_, sinks_, options_out_, options_lse_, option_scores_;
  Data cache_k_, cache_v_, cache_out_, cache_lse_;
  std::vector<int32_t> page_table_;
  std::vector<unsigned char> mask_bytes_;
  etalon_tensor mask_;
  alignas(64) unsigned char mask_memory_[4096];
  std::vector<int64_t> q_offsets_, q_lens_, kv_lens_, kv_firsts_;
  etalon_attention_desc desc_;
  etalon_attention_args args_;
  etalon_states states_, in_states_;
  etalon_parallel parallel_;
  etalon_plan plan_;
  etalon_workspace workspace_;
  std::vector<unsigned char> memory_;
  std::vector<uint64_t> answers_;  // numbers
  const char* failed_ = nullptr;
};

}  // namespace etalon::test

#endif  // ETALON_TESTS_API_ENTRY_POINTS_H_
