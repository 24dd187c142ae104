// kernel_table.h: THE seam between lib (what to compute) and arch (how). A backend fills a KernelTable; every pointer's
// contract stands beside it. All kernels give the bits of docs/numerics.md; whoever writes one needs that text and this
// file.
//
// Common to all kernels: the caller runs them inside RunInEnvironment (lib/base/environment.h); arguments are valid and
// sizes are at least 1 unless said otherwise; pointers are aligned to their element, no more, but scratch to 64 bytes;
// strides are bytes and may be zero or negative; inputs overlap no output unless said otherwise; nothing is allocated;
// floats are written in canonical form (numerics: one NaN).
#ifndef ETALON_ARCH_KERNEL_TABLE_H_
#define ETALON_ARCH_KERNEL_TABLE_H_

#include <cstddef>
#include <cstdint>

#include "arch/cpu.h"
#include "lib/base/types.h"

namespace etalon {

// Positions first ... last - 1. If first >= last there are none, wherever the two lie. Else they lie inside what there
// is: base ... base + num_keys of the source, 0 ... num_keys for the row primitives (softmax, weighted sum).
struct Span {
  int64_t first;
  int64_t last;
};

// One query row of a tile. The rows of a tile read the same keys; they may belong to several heads of one group.
struct QueryRow {
  const void* q;  // head_dim elements of ScoreOptions::q_type, not scaled; not read if no span of the row has a key
  float slope;    // read only if ScoreOptions::alibi
  float sink;     // read only if AttendArgs::sinks
  void* out;      // attend, fold: value_dim elements of the output type
  float* lse;     // attend, fold: natural log; may be null
};

// What one row sees of one source: the keys of the span that neither the mask nor the runs hide. Keys, values and
// biases that it does not see may be read if a row of the tile sees another key of their chunk, but have no influence.
//
// Masks and runs speak of columns: position p is column p - base + first_column of the source. Memory of a mask beside
// the columns of the span is not read.
struct RowKeys {
  Span span;
  const void* bias;     // element i belongs to position base + i; null = none
  const uint8_t* mask;  // see MaskType; null = hides nothing
  int64_t position;     // of the row, among those of this source, any: for ALiBi. Distances are unsigned, 64 bits
  const Span* runs;  // of columns, ascending, none empty, none touching the next; null = hide nothing. None = hide all
  int64_t num_runs;  // columns outside of all are hidden. Chunks that no row sees are not read
};

enum class MaskType : uint8_t {
  kBytes,  // column i is the byte mask[i * mask_stride_bytes]: 0 = hidden
  kBits    // column i is bit i % 8, the lowest being 0, of byte mask[i / 8]: 0 = hidden
};

// Where rows lie that do not lie one after the other by position. Position p has the slot p; in a ring, from ring_keep
// on, ring_keep + (p - ring_keep) % ring_len. Slot s is row s % page_len of page pages[s / page_len]. Every position of
// a chunk from the first to the last that a row of the tile sees has a slot in memory, what is seen or not.
struct KeyPlaces {
  int64_t page_len;      // 0 = rows lie one after the other, and nothing else here counts
  const int32_t* pages;  // null = all slots are rows of one page; then page_len is any number above 0
  int64_t k_page_stride_bytes;
  int64_t v_page_stride_bytes;
  int64_t ring_keep;  // >= 0
  int64_t ring_len;   // >= 1; 0 = no ring
};

// Keys and values at positions base ... base + num_keys - 1. Chunks and blocks are counted from position 0.
struct KeySource {
  const void* k;  // at position base; head_dim elements a row; may be null if no span has a key
  const void* v;  // at position base; value_dim elements a row; likewise, and where a kernel reads no values
  int64_t k_stride_bytes;
  int64_t v_stride_bytes;
  DType k_type;
  DType v_type;
  int64_t base;      // >= 0; base + num_keys <= 2^62, so that the end of no block overflows
  int64_t num_keys;  // >= 0
  DType bias_type;
  int64_t bias_stride_bytes;  // between keys
  int64_t mask_stride_bytes;  // between keys; kBytes
  MaskType mask_type;
  int64_t first_column;  // of position base, >= 0
  KeyPlaces places;      // if page_len > 0: k and v are row 0 of page 0, and base is 0
};

// What happens between the dot product and the softmax, the same for all rows of a tile.
struct ScoreOptions {
  DType q_type;
  float scale;    // as it is used
  float softcap;  // > 0; 0 = off
  bool alibi;
};

// s[r * row_stride + i] = score of row r against the key at position base + i, i < source->num_keys; -inf where not
// visible.
struct ScoresArgs {
  const QueryRow* rows;
  size_t num_rows;
  const RowKeys* keys;  // [num_rows]
  const KeySource* source;
  size_t head_dim;
  ScoreOptions options;
  float* s;
  int64_t row_stride;  // elements; of any size and sign, as long as the rows do not overlap
  void* scratch;       // ScratchBytes(table, head_dim, 0)
};

// One row of the masked softmax primitive. Positions of the span are indices of the row. w may be s.
struct SoftmaxRow {
  const float* s;
  float* w;
  float* lse;  // may be null
  Span span;
  const uint8_t* mask;  // 0 = not visible; null = every key of the span
};

struct SoftmaxArgs {
  const SoftmaxRow* rows;
  size_t num_rows;
  int64_t num_keys;  // >= 0
  int64_t mask_stride_bytes;
};

// One row of the weighted sum primitive.
struct WeightedSumRow {
  const float* w;
  void* out;            // value_dim elements of out_type
  Span span;            // indices
  const uint8_t* mask;  // 0 = not visible; null = every key of the span
};

struct WeightedSumArgs {
  const WeightedSumRow* rows;
  size_t num_rows;
  const void* v;
  int64_t v_stride_bytes;
  DType v_type;
  DType out_type;
  int64_t num_keys;  // >= 0
  int64_t mask_stride_bytes;
  size_t value_dim;
  void* scratch;  // ScratchBytes(table, 0, value_dim)
};

// A tile of rows against every source, one softmax over all of it.
struct AttendArgs {
  const QueryRow* rows;
  size_t num_rows;
  const KeySource* sources;  // in call order
  size_t num_sources;        // >= 0
  const RowKeys* keys;       // [num_sources][num_rows]
  size_t head_dim;
  size_t value_dim;
  ScoreOptions options;
  DType out_type;
  bool sinks;
  void* scratch;  // ScratchBytes(table, head_dim, value_dim)
};

// States of rows: state (r, i) is m[r * row_stride + i], l[the same], o[(r * row_stride + i) * value_dim ...]. l = 0
// marks a state that has seen no key; it is written as m = -inf, o = 0.
struct States {
  float* m;
  float* l;
  float* o;
  int64_t row_stride;  // states; of any size and sign, as long as rows that are written do not overlap
};

// One state for each row and each block first_block ... last_block - 1 of the tile's only source; state i of a row is
// that of block first_block + i. Blocks without a visible key of the row have the empty state, those that hold no key
// of the source as well. If first_block >= last_block nothing is written. `out`, `lse` and `sink` of the rows are not
// used.
struct BlockStatesArgs {
  AttendArgs tile;      // num_sources = 1
  int64_t first_block;  // >= 0
  int64_t last_block;   // <= 2^53 = 2^62 / 512
  States states;
};

// Folds the states of each row left, then its sink, and writes out and lse.
struct FoldArgs {
  const QueryRow* rows;  // out, lse, sink are used
  size_t num_rows;
  States states;
  int64_t num_states;  // of each row, >= 0
  size_t value_dim;
  DType out_type;
  bool sinks;
  void* scratch;  // ScratchBytes(table, 0, value_dim)
};

// Joins two results of the same rows that were computed over disjoint keys.
struct MergeArgs {
  size_t num_rows;
  size_t value_dim;
  DType type;  // of out1, out2 and out
  const void* out1;
  int64_t out1_stride_bytes;
  const float* lse1;  // [num_rows]
  const void* out2;
  int64_t out2_stride_bytes;
  const float* lse2;
  void* out;  // may be out1 or out2, with the same stride
  int64_t out_stride_bytes;
  float* lse;  // may be null, lse1 or lse2
};

// Every result is a function of the arguments alone: not of the table, the tile's other rows, or the call that came
// before. A null pointer to a function is a hole, which dispatch fills with the scalar kernel.
struct KernelTable {
  const char* name;      // "scalar-fma"; also the value of ETALON_TARGET
  CpuFeatures required;  // all of them, or the table is not offered

  // Scratch of this table's own kernels, in bytes, for these sizes (0 = the kernel reads no such vectors). Callers ask
  // ScratchBytes (arch/dispatch.h), which also covers the kernels that fill the table's holes.
  size_t (*scratch_bytes)(size_t head_dim, size_t value_dim);

  void (*scores)(const ScoresArgs&);             // numerics: score, score options
  void (*softmax)(const SoftmaxArgs&);           // numerics: masked softmax primitive
  void (*weighted_sum)(const WeightedSumArgs&);  // numerics: weighted sum primitive
  void (*attend)(const AttendArgs&);             // numerics: chunks, fold, sinks and output
  void (*block_states)(const BlockStatesArgs&);  // the same, stopped after each block
  void (*fold)(const FoldArgs&);                 // the rest of it: attend = block_states, then fold, in bytes
  void (*merge)(const MergeArgs&);               // numerics: merge of (out, lse)

  void (*widen)(DType type, const void* in, float* out, size_t n);   // exact; a NaN stays some NaN
  void (*narrow)(DType type, const float* in, void* out, size_t n);  // type f16 or bf16, nearest even

  // The functions by themselves, for tests and accuracy reports; n >= 0. A NaN stays some NaN.
  void (*exp)(const float* x, float* y, size_t n);
  void (*log)(const float* x, float* y, size_t n);
  void (*tanh)(const float* x, float* y, size_t n);
  void (*fma)(const float* a, const float* b, const float* c, float* y, size_t n);
};

}  // namespace etalon

#endif  // ETALON_ARCH_KERNEL_TABLE_H_
