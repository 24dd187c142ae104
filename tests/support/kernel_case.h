// kernel_case.h: a kernel call with its data as one value that tests can build, vary and run on any table.
#ifndef ETALON_TESTS_SUPPORT_KERNEL_CASE_H_
#define ETALON_TESTS_SUPPORT_KERNEL_CASE_H_

#include <cstdint>
#include <vector>

#include "arch/kernel_table.h"

namespace etalon::test {

// Elements of one storage type. Keeps its bytes in a buffer of exactly their size, so that a sanitizer sees overruns.
class Array {
 public:
  Array() = default;
  Array(DType type, int64_t size) : type_(type), bytes_(static_cast<size_t>(size) * ElementSize(type)) {}
  Array(DType type, const std::vector<float>& values);  // narrowed
  static Array FromBits(DType type, const std::vector<uint32_t>& words);

  DType type() const { return type_; }
  int64_t size() const { return static_cast<int64_t>(bytes_.size() / ElementSize(type_)); }
  const void* data() const { return bytes_.data(); }
  void* data() { return bytes_.data(); }
  const void* at(int64_t i) const { return bytes_.data() + static_cast<size_t>(i) * ElementSize(type_); }
  void* at(int64_t i) { return bytes_.data() + static_cast<size_t>(i) * ElementSize(type_); }
  float operator[](int64_t i) const { return LoadElement(type_, bytes_.data(), static_cast<size_t>(i)); }
  uint32_t Word(int64_t i) const;  // the stored bits
  void SetWord(int64_t i, uint32_t word);
  bool operator==(const Array& other) const { return type_ == other.type_ && bytes_ == other.bytes_; }
  bool operator!=(const Array& other) const { return !(*this == other); }

 private:
  DType type_ = DType::kF32;
  std::vector<unsigned char> bytes_;
};

// How a mask is told to a kernel. No form changes a bit.
enum class MaskForm { kBytes, kBits, kRuns, kRunsAndBits };

// k [num_keys, head_dim], v [num_keys, value_dim] at positions base ...; options are empty where absent.
struct SourceData {
  int64_t num_keys = 0;
  int64_t base = 0;
  Array k;
  Array v;
  std::vector<Span> spans;    // [rows]; empty = all keys
  Array bias;                 // [rows, num_keys]
  std::vector<uint8_t> mask;  // [rows, num_keys]
  MaskForm mask_form = MaskForm::kBytes;
  int64_t first_column = 0;  // of the mask, for position base: those before are there, and show
  int64_t q_shift = 0;       // added to q_pos
};

// Query rows that share their keys: a tile of the fused pass, or the rows of a scores call (first source, k only).
struct AttentionCase {
  int64_t rows = 0;
  int64_t head_dim = 0;
  int64_t value_dim = 0;
  float scale = 1.0f;
  float softcap = 0.0f;
  Array q;
  std::vector<int64_t> q_pos;  // [rows]; empty = 0
  std::vector<float> slopes;   // [rows]; empty = no ALiBi
  std::vector<float> sinks;    // [rows]; empty = none
  std::vector<SourceData> sources;
  DType out_type = DType::kF32;
};

struct AttentionResult {
  Array out;               // [rows, value_dim]
  std::vector<float> lse;  // [rows]
};

// States of all blocks that the sources touch, in order: those of source i are blocks base / 512 ... (base + num_keys -
// 1) / 512.
struct StatesResult {
  int64_t per_row = 0;
  std::vector<float> m, l;  // [rows, per_row]
  std::vector<float> o;     // [rows, per_row, value_dim]
};

struct SoftmaxCase {
  int64_t rows = 0;
  int64_t num_keys = 0;
  std::vector<float> s;
  std::vector<Span> spans;
  std::vector<uint8_t> mask;
};

struct SoftmaxResult {
  std::vector<float> w;
  std::vector<float> lse;
};

struct WeightedSumCase {
  int64_t rows = 0;
  int64_t num_keys = 0;
  int64_t value_dim = 0;
  std::vector<float> w;
  Array v;
  std::vector<Span> spans;
  std::vector<uint8_t> mask;
  DType out_type = DType::kF32;
};

struct MergeCase {
  int64_t rows = 0;
  int64_t value_dim = 0;
  Array out1, out2;  // of one type
  std::vector<float> lse1, lse2;
};

// Each runs in the library's floating-point environment, with scratch of exactly the size that the table asks for.
std::vector<float> RunScores(const KernelTable& table, const AttentionCase& c);
AttentionResult RunAttend(const KernelTable& table, const AttentionCase& c);
// In calls of at most `blocks_per_call` blocks, the last blocks first: a call that writes another's states shows.
StatesResult RunBlockStates(const KernelTable& table, const AttentionCase& c, int64_t blocks_per_call = INT64_MAX);
AttentionResult RunFold(const KernelTable& table, const AttentionCase& c, const StatesResult& states);
SoftmaxResult RunSoftmax(const KernelTable& table, const SoftmaxCase& c, bool in_place = false);
Array RunWeightedSum(const KernelTable& table, const WeightedSumCase& c);
AttentionResult RunMerge(const KernelTable& table, const MergeCase& c);
std::vector<float> RunMap(const KernelTable& table, void (*KernelTable::*function)(const float*, float*, size_t),
                          const std::vector<float>& x);
std::vector<float> RunFma(const KernelTable& table, const std::vector<float>& a, const std::vector<float>& b,
                          const std::vector<float>& c);

}  // namespace etalon::test

#endif  // ETALON_TESTS_SUPPORT_KERNEL_CASE_H_
