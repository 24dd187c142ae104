// options_case.h: calls with everything that may come beside q, k and v: softcap, ALiBi, bias, masks in every form,
// sinks, prefixes, padding, ragged batches and several sources. What must come out is said once more here, key by key:
// each row is given to the kernel that defines the bits with a mask of all that it sees.
#ifndef ETALON_TESTS_API_OPTIONS_CASE_H_
#define ETALON_TESTS_API_OPTIONS_CASE_H_

#include <string>
#include <vector>

#include "tests/api/api_test.h"

namespace etalon::test {

// Numbers of options: packed, of sizes of which any may be 1.
struct OptionArray {
  Array values;
  Shape shape;  // none = not given
  int64_t At(const Shape& index) const;
};

enum class MaskKind { kNone, kBool, kBits, kPreparedBool, kPreparedBits, kSegments, kBlocks };

struct MaskCase {
  MaskKind form = MaskKind::kNone;
  Shape shape;                 // [batch, num_q_heads, q_len, kv_len], each size that or 1
  std::vector<uint8_t> shows;  // of that shape: what is meant, in whatever form it is given
  std::vector<int64_t> q_segments, kv_segments;
  int64_t q_block = 0, kv_block = 0;
  std::vector<int64_t> block_starts, blocks;

  bool Shows(int64_t b, int64_t h, int64_t i, int64_t column) const;
};

// Where the keys of a source are put. What they mean stays as if they lay one after the other, but for those that a
// ring has lost.
struct PlacesCase {
  int64_t page_len = 0;   // 0 = no pages
  int64_t spare = 0;      // pages in the pool, or rows behind a ring, that are nobody's
  int64_t ring_keep = 0;  // as in etalon_kv_places
  int64_t ring_len = 0;
  uint64_t seed = 0;  // of the order of pages

  bool any() const { return page_len > 0 || ring_len > 0; }
};

struct SourceCase {
  int64_t kv_len = 1;  // rows of k and v; of all sequences if ragged
  Array k, v;
  int64_t left = -1, right = -1, q_offset = 0;
  std::vector<int64_t> q_offsets, kv_lens, kv_firsts, kv_starts, prefix_lens;
  OptionArray bias;
  MaskCase mask;
  PlacesCase places;  // then kv_lens is there, and its longest is kv_len
};

struct OptionsCase {
  int64_t batch = 1;  // sequences
  int64_t num_q_heads = 1, num_kv_heads = 1, head_dim = 1, value_dim = 1;
  int64_t q_len = 1;  // rows of q; of all sequences if ragged
  Array q;
  DType out_type = DType::kF32;
  float scale = 0.0f;
  float softcap = 0.0f;
  bool alibi = false;
  OptionArray slopes;  // none = the standard ones
  OptionArray sinks;
  std::vector<int64_t> q_starts, q_lens;
  std::vector<SourceCase> sources;

  int64_t QLen(int64_t b) const;                    // queries of a sequence
  int64_t Columns(size_t source, int64_t b) const;  // keys of a sequence, padding included
  int64_t First(size_t source, int64_t b) const;    // where they begin, from its first row on, and end
  int64_t End(size_t source, int64_t b) const;
  int64_t LongestQ() const;
  int64_t LongestKv(size_t source) const;
  int64_t QueryBatches() const { return q_starts.empty() ? batch : 1; }
  int64_t KeyBatches(size_t source) const { return sources[source].kv_starts.empty() ? batch : 1; }
  Shape RowsShape() const { return {QueryBatches(), num_q_heads, q_len}; }  // [batch, num_q_heads, q_len]
};
std::string Describe(const OptionsCase& c);

// One source, no options.
OptionsCase FromCase(const ApiCase& c);

// Whether a query sees the key at a position of a source, bias of -inf apart: the sentences of etalon.h, once more.
bool Sees(const OptionsCase& c, size_t source, int64_t b, int64_t h, int64_t i, int64_t position);

// The same by geometry and lengths alone, for no head.
bool SeesByGeometry(const OptionsCase& c, size_t source, int64_t b, int64_t i, int64_t position);

// What one query head of a sequence computes, with a mask of all that each row sees: for the kernels and for f64.
AttentionCase HeadCase(const OptionsCase& c, int64_t b, int64_t h);

AttentionResult Expected(const OptionsCase& c);
std::string AccuracyReport(const OptionsCase& c, const AttentionResult& got);  // empty if near enough to f64
Array ExpectedScores(const OptionsCase& c);

// Any of it at once. `seed` alone decides. Keys that nobody sees may hold NaN.
OptionsCase RandomOptions(uint64_t seed);  // options_random.cc

// The mask in another form, which must make no difference; the form must be one that the mask can be given in.
OptionsCase WithForm(OptionsCase c, MaskKind form);

}  // namespace etalon::test

#endif  // ETALON_TESTS_API_OPTIONS_CASE_H_
