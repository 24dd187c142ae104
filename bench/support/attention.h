// attention.h: an attention problem on random data, as a user of the public interface would set it up: a plan, a
// workspace, tensors.
#ifndef ETALON_BENCH_SUPPORT_ATTENTION_H_
#define ETALON_BENCH_SUPPORT_ATTENTION_H_

#include <cstdint>
#include <etalon/etalon.hpp>
#include <memory>
#include <string>
#include <vector>

#include "bench/support/buffer.h"
#include "bench/support/extras.h"
#include "bench/support/subject.h"

namespace etalon::bench {

// One sequence; head_dim = value_dim; outputs are f32.
struct AttentionShape {
  int64_t q_heads = 1;
  int64_t kv_heads = 1;
  int64_t q_len = 0;
  int64_t kv_len = 0;
  int64_t head_dim = 0;
  ElementType type = ElementType::kF32;  // of q, k and v
  int64_t left = -1;
  int64_t right = -1;
  bool tokens_outermost = false;  // [tokens, heads, channels], as engines have it; else [heads, tokens, channels]
  int32_t workers = 1;
  ExtrasSpec extras = {};
  // Keys and values in pages of so many tokens, in any order, as [page, heads, token, channel]; 0 = no pages.
  int64_t page_len = 0;

  AttentionShape Causal() const;
  int64_t q_offset() const { return kv_len - q_len; }  // queries are the last tokens
  int64_t VisiblePairs() const;                        // of all heads; looks at every pair if there is a mask
  double Flop() const { return 4.0 * static_cast<double>(head_dim) * static_cast<double>(VisiblePairs()); }
};

class AttentionProblem {
 public:
  AttentionProblem(const AttentionShape& shape, const std::string& target);
  AttentionProblem(const AttentionProblem&) = delete;
  AttentionProblem& operator=(const AttentionProblem&) = delete;

  void Run(const etalon_parallel* parallel = nullptr);  // through the plan
  Check Judged();                                       // runs it

  // What a call reads.
  Bytes k_bytes() { return AllOf(shape_.page_len > 0 ? k_pages_.get() : &k_data_); }
  Bytes v_bytes() { return AllOf(shape_.page_len > 0 ? v_pages_.get() : &v_data_); }
  const AttentionShape& shape() const { return shape_; }
  const Extras& extras() const { return extras_; }
  size_t workspace_bytes() const { return plan_.workspace_bytes(); }

  // For who calls other functions on the same data.
  const Tensor& q() const { return q_; }
  const Tensor& k() const { return k_; }
  const Tensor& v() const { return v_; }
  const Tensor& out() const { return out_; }
  const AttentionDesc& desc() const { return desc_; }
  const AttentionArgs& args() const { return args_; }
  const Plan& plan() const { return plan_; }
  const etalon_workspace& workspace() const { return *workspace_.get(); }

 private:
  Tensor View(const Buffer& data, ElementType type, int64_t heads, int64_t length) const;
  static Bytes AllOf(Buffer* buffer) { return {buffer->data(), buffer->bytes()}; }

  AttentionShape shape_;
  Extras extras_;
  std::string target_;
  void MakePages();

  Buffer q_data_, k_data_, v_data_, out_data_;
  Tensor q_, k_, v_, out_;
  // Copies of k and v, if there are pages.
  std::unique_ptr<Buffer> k_pages_, v_pages_;
  std::unique_ptr<Tensor> k_pool_, v_pool_;
  std::vector<int32_t> page_table_;
  KvPlaces places_;
  AttentionDesc desc_;
  AttentionArgs args_;
  Plan plan_;
  WorkspaceMemory workspace_;
};

// Prints why and exits: a benchmark that its own calls are refused in has nothing to measure.
void Require(const Status& status);

// Standard-normal numbers, about.
void FillNormal(Buffer* buffer, ElementType type, uint64_t seed);

int64_t ElementBytes(ElementType type);
const char* TypeName(ElementType type);  // "bf16"

// The exact answers of rows `rows` of one head, [rows, head_dim], or of its scores, [rows, kv_len].
std::vector<double> ExactAttention(const AttentionProblem& problem, int64_t head, const std::vector<int64_t>& rows);
std::vector<double> ExactScores(const AttentionProblem& problem, int64_t head, const std::vector<int64_t>& rows);

// One row of a tensor [1, heads, length, channels], and all rows of one of its heads.
Tensor RowOf(const Tensor& tensor, int64_t head, int64_t row);
Tensor HeadOf(const Tensor& tensor, int64_t head);

}  // namespace etalon::bench

#endif  // ETALON_BENCH_SUPPORT_ATTENTION_H_
