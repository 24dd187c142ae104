// kernel_test.h: what the kernel tests share: random cases, comparisons in bytes, and memory with canaries around it.
#ifndef ETALON_TESTS_KERNELS_KERNEL_TEST_H_
#define ETALON_TESTS_KERNELS_KERNEL_TEST_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "arch/kernel_table.h"
#include "lib/base/environment.h"
#include "tests/support/generate.h"
#include "tests/support/kernel_case.h"

namespace etalon::test {

// Empty if equal in bytes, else the first difference, for CHECK(Difference(a, b) == "").
std::string Difference(const std::vector<float>& got, const std::vector<float>& want);
std::string Difference(const Array& got, const Array& want);
std::string Difference(const AttentionResult& got, const AttentionResult& want);
std::string Difference(const StatesResult& got, const StatesResult& want);
std::string Difference(const SoftmaxResult& got, const SoftmaxResult& want);

// Empty if every NaN is the canonical one; for out also if every zero is +0.
std::string NotCanonical(const std::vector<float>& values);
std::string NotCanonical(const Array& values);
std::string NotCanonicalOut(const Array& out);
std::string NotCanonicalOut(const AttentionResult& result);

std::string Describe(const AttentionCase& c);

// Where tails begin and end for every vector width, chunk and block.
inline const std::vector<int64_t>& TailSizes() {
  static const std::vector<int64_t> sizes = {1,  2,  3,  7,   8,   15,  16,  17,  31, 32,
                                             33, 64, 80, 127, 128, 129, 511, 512, 513};
  return sizes;
}

struct RandomOptions {
  bool options = true;    // spans, masks, biases, softcap, ALiBi, sinks, several sources, bases
  bool specials = false;  // NaN, infinities, subnormals and huge numbers among the inputs
  int64_t max_dim = 129;
  int64_t max_keys = 513;
};
AttentionCase RandomAttention(uint64_t seed, const RandomOptions& options = {});
SoftmaxCase RandomSoftmax(uint64_t seed, bool specials);
WeightedSumCase RandomWeightedSum(uint64_t seed, bool specials);
MergeCase RandomMerge(uint64_t seed, bool specials);

// Array(type, {x}) would be x elements.
inline Array F32(const std::vector<float>& values) { return Array(DType::kF32, values); }

// A case with nothing but the arrays: one source from position 0. A type, so that PlainCase{...} evaluates its
// arguments in order: compilers differ in the order of a function's arguments, and random inputs would differ with them
// (Array{...} likewise).
struct PlainCase : AttentionCase {
  PlainCase(Array q, Array k, Array v, int64_t head_dim, int64_t value_dim, float scale);
};
// q = 0, v[j] = j: every output is the plain mean of the visible j.
AttentionCase MeanCase(int64_t rows, int64_t num_keys, DType type = DType::kF32);
float ScaleOf(int64_t head_dim);

// Whether geometry, mask and bias let row r see key i of a source. A score of -inf hides a key too; random cases have
// none.
bool Allows(const SourceData& source, int64_t row, int64_t i);

// Elements first ... first + count - 1.
Array Slice(const Array& a, int64_t first, int64_t count);
// Keys first ... last - 1 of a source, at their positions or from position 0 on.
SourceData SliceSource(const AttentionCase& c, const SourceData& s, int64_t first, int64_t last, bool keep_positions);
// Rows first ... last - 1.
AttentionCase SliceRows(const AttentionCase& c, int64_t first, int64_t last);

template <typename Function>
void InEnvironment(Function function) {
  RunInEnvironment([](void* f) { (*static_cast<Function*>(f))(); }, &function);
}

// Rows with any byte stride in memory that is aligned to the element and no more. All bytes that belong to no row hold
// 0xFF, which read as NaN; Intact() tells whether they still do.
class Strided {
 public:
  Strided(int64_t rows, int64_t row_bytes, int64_t stride_bytes, int64_t element_bytes);
  // The rows of a packed array.
  Strided(const Array& packed, int64_t rows, int64_t stride_bytes);

  void* data() { return bytes_.data() + origin_; }
  const void* data() const { return bytes_.data() + origin_; }
  bool Intact() const;
  Array Packed(DType type) const;

 private:
  int64_t rows_, row_bytes_, stride_bytes_, origin_;
  std::vector<unsigned char> bytes_;
};

// Scratch of exactly the table's size, filled with NaN.
class ScratchMemory {
 public:
  ScratchMemory(const KernelTable& table, int64_t head_dim, int64_t value_dim);
  ~ScratchMemory();
  ScratchMemory(const ScratchMemory&) = delete;
  void* get() const { return memory_; }

 private:
  void* memory_;
};

}  // namespace etalon::test

#endif  // ETALON_TESTS_KERNELS_KERNEL_TEST_H_
