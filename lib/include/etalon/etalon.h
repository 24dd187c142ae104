// etalon.h: the C interface of Etalon, attention kernels for CPUs. C99 and later, C++11 and later.
//
//   etalon_attention_desc desc;                                  what a layer is: scale, window, sizes
//   etalon_attention_desc_init(&desc, sizeof desc);
//   desc.right = 0;                                              causal
//   etalon_attention_args args;                                  what one call computes on
//   etalon_attention_args_init(&args, sizeof args);
//   args.q = &q; args.k = &k; args.v = &v; args.out = &out;      etalon_tensor: pointer, type, shape, byte strides
//   size_t bytes;
//   etalon_attention_workspace_bytes(&desc, &args, &bytes, NULL);
//   etalon_workspace workspace = {memory of `bytes` bytes aligned to 64, bytes};
//   etalon_error error;
//   if (etalon_attention(&desc, &args, &workspace, NULL, &error) != ETALON_OK) puts(error.text);
//
// Engines make a plan for each layer instead, and run its tasks on their own threads: docs/engines.md. What attention
// means here, down to the edge cases: docs/semantics.md. Which bits come out: docs/numerics.md.
//
// Common to all functions:
// - Nothing is allocated, locked, printed or thrown, and no thread is made. Any function may be called from any thread
//   at any time; two calls may share whatever both only read.
// - Everything is checked before anything is written: on error, all outputs are as they were. `error` may be NULL; else
//   it is always written, on success too.
// - The caller's floating-point environment (rounding, flushing of subnormals) does not change a bit, nor is it
//   changed.
// - Descriptors begin with struct_size and are prepared by their _init function, which a caller passes his own sizeof.
//   They grow at the end, and a new field that is 0 means what there was before it. A caller may be older or newer than
//   the library; what a newer one sets beyond the library's knowledge is refused.
// - Structs without struct_size are frozen: they keep their size and fields for ever. What they lack will come in new
//   structs and functions.
// - Whoever gets a target that is NULL reads ETALON_TARGET with getenv, on every call: no other thread may change the
//   environment meanwhile. A plan has its table, so functions that get one read no environment.
#ifndef ETALON_ETALON_H_
#define ETALON_ETALON_H_

#include <stddef.h>
#include <stdint.h>

// The version has its only home here: CMake reads it from these lines.
#define ETALON_VERSION_MAJOR 0
#define ETALON_VERSION_MINOR 1
#define ETALON_VERSION_PATCH 0

#if defined(__GNUC__)
#define ETALON_API __attribute__((visibility("default")))
#define ETALON_STATUS __attribute__((visibility("default"), warn_unused_result)) etalon_status
#else
#define ETALON_API
#define ETALON_STATUS etalon_status
#endif

#ifdef __cplusplus
extern "C" {
#endif

// ---------------------------------------------------------------------------------------------------------- status

// What a function answers. A number keeps its meaning for ever; new ones are added at the end.
typedef int32_t etalon_status;
enum {
  ETALON_OK = 0,
  ETALON_NULL_POINTER = 1,         // a pointer that is needed is NULL
  ETALON_BAD_RANK = 2,             // a tensor has more or fewer dimensions than its place allows
  ETALON_BAD_SHAPE = 3,            // a size is negative, above the plan's maximum, or unlike that of another tensor
  ETALON_BAD_STRIDE = 4,           // the innermost stride is not the element size, or a stride no multiple of it
  ETALON_BAD_DTYPE = 5,            // no such element type, or not the one that this place needs
  ETALON_BAD_VALUE = 6,            // a number is out of its range: a scale that is NaN, a length beyond the tensor
  ETALON_NO_HEADS = 7,             // zero heads
  ETALON_BAD_HEADS = 8,            // the number of query heads is no multiple of the number of key/value heads
  ETALON_BAD_HEAD_DIM = 9,         // head_dim or value_dim is below 1
  ETALON_MISALIGNED = 10,          // a pointer is no multiple of its element size, or the workspace none of 64
  ETALON_OVERLAP = 11,             // an output lies among the bytes of another argument, or reaches a byte twice
  ETALON_OVERFLOW = 12,            // sizes so large that an address or a byte count does not fit its type
  ETALON_SMALL_WORKSPACE = 13,     // fewer bytes than the query asked for
  ETALON_BAD_STRUCT_SIZE = 14,     // struct_size is below the first version's, or absurd: _init was not called
  ETALON_UNSUPPORTED = 15,         // understood, but not offered by this version
  ETALON_UNKNOWN_TARGET = 16,      // this build has no kernel table of that name
  ETALON_TARGET_UNAVAILABLE = 17,  // this CPU or operating system cannot run that kernel table
  ETALON_BAD_PLAN = 18,            // not a plan that this library initialised
  ETALON_NOT_BEGUN = 19,           // the workspace holds no work that was begun
  ETALON_BAD_TASKS = 20,           // tasks or a worker outside what was begun, or tasks not run exactly once each
  ETALON_OUT_OF_MEMORY = 21,       // only from functions that say that they allocate (thread_pool.h)
  ETALON_CACHE_FULL = 22           // a sequence has no room for its new tokens
};

// What was wrong. All strings end with a zero byte.
typedef struct etalon_error {
  etalon_status status;
  char field[60];  // the argument at fault, as it is spelt in C: "args.k.stride_bytes[3]"; empty on success
  char text[192];  // a sentence with that field, what it holds and what it should: print this
} etalon_error;

// "ETALON_BAD_SHAPE"; "unknown status" for another number. Static storage.
ETALON_API const char* etalon_status_name(etalon_status status);
// What the status means, in a few words. Static storage.
ETALON_API const char* etalon_status_text(etalon_status status);

// --------------------------------------------------------------------------------------------------------- versions

// "0.1.0": of the library that runs, which may differ from the header's.
ETALON_API const char* etalon_version(void);
// Version of the arithmetic (docs/numerics.md). Results of two builds with the same one are equal in bits.
ETALON_API int32_t etalon_arithmetic_version(void);

// ---------------------------------------------------------------------------------------------------------- tensors

// Element types. 0 is none of them, so that a forgotten one is noticed.
enum {
  ETALON_F32 = 1,
  ETALON_F16 = 2,   // IEEE binary16
  ETALON_BF16 = 3,  // the upper half of an f32
  // Of masks alone:
  ETALON_BOOL = 4,  // a byte a key: 0 hides it, anything else does not
  ETALON_BITS = 5   // an element is a byte of 8 keys, the first in its lowest bit: 0 hides. Sizes count bytes
};

// Bytes of an element; 0 if there is no such type.
ETALON_API size_t etalon_dtype_bytes(int32_t dtype);

#define ETALON_MAX_RANK 5

// An array that the caller owns. A tensor of fewer dimensions than its place has stands for one with leading dimensions
// of size 1: [q_len, head_dim] is one head of one sequence. Batch and heads may be left out, no more: at least 2
// dimensions where 4 are named, 1 (lse) where 3 are, 3 (o of states) where 5 are.
//
// Strides are bytes, multiples of the element size; 0 repeats one element along the dimension, a negative one walks
// backwards (data is the element with all indices 0). The innermost stride is the element size, except where its
// dimension has size 1. data is a multiple of the element size, no more. An output must not reach any of its bytes
// twice: sorted by stride, each dimension steps over all that the smaller ones span. Nor may it lie among other
// arguments: what counts is all bytes from a tensor's lowest to its highest, gaps between rows included.
typedef struct etalon_tensor {
  void* data;  // inputs are only read; may be NULL if a dimension is 0
  int32_t dtype;
  int32_t rank;
  int64_t shape[ETALON_MAX_RANK];         // the first `rank` count
  int64_t stride_bytes[ETALON_MAX_RANK];  // likewise
  unsigned char reserved[32];             // 0
} etalon_tensor;

// *tensor = a packed (row-major) array of this shape. ETALON_NULL_POINTER, ETALON_BAD_DTYPE, ETALON_BAD_RANK,
// ETALON_BAD_SHAPE or ETALON_OVERFLOW, and then *tensor is untouched.
ETALON_STATUS etalon_tensor_init(etalon_tensor* tensor, void* data, int32_t dtype, int32_t rank, const int64_t* shape,
                                 etalon_error* error);

// --------------------------------------------------------------------------------------------- memory and threads

// Memory that a call writes to and nobody reads afterwards. Aligned to 64 bytes, contents do not matter, overlaps no
// tensor. NULL and 0 are fine where a query says 0.
typedef struct etalon_workspace {
  void* data;
  size_t bytes;
} etalon_workspace;

// Runs tasks first ... last - 1 as `worker`.
typedef void (*etalon_task_fn)(void* arg, int64_t first, int64_t last, int32_t worker);

// The caller's threads. parallel_for covers 0 ... num_tasks - 1 with calls of fn, in any order and cut anywhere, each
// task once, and returns when all have returned. worker is in 0 ... workers - 1; two calls that run at the same time
// have different ones. Results do not depend on any of it. etalon/thread_pool.h has one, if you have none.
typedef struct etalon_parallel {
  void (*parallel_for)(void* ctx, int64_t num_tasks, etalon_task_fn fn, void* arg);
  void* ctx;
  int32_t workers;   // at least 1, at most the max_workers of the descriptor
  int32_t reserved;  // 0
} etalon_parallel;

// ------------------------------------------------------------------------------------------------------ attention

enum {
  ETALON_MATH_EXACT = 0,  // the one arithmetic: the same bits everywhere
  ETALON_MATH_FAST = 1    // not offered yet: ETALON_UNSUPPORTED
};

// Bits of etalon_attention_desc::options: what else than q, k and v a call brings. What is named there must be in the
// args of every call, and nothing else may be: never is one ignored, or forgotten. In the one-call forms, 0 means "as
// args".
enum {
  ETALON_OPTION_ALIBI = 1,  // slopes; NULL = those of etalon_alibi_slopes (with this bit, in the one-call forms too)
  ETALON_OPTION_BIAS = 2,   // bias, of one source at least
  ETALON_OPTION_MASK = 4,   // mask or prepared_mask, of one source at least
  ETALON_OPTION_SINKS = 8
};

// The most key sources of a call.
#define ETALON_MAX_SOURCES 8

// What stays the same from call to call: a layer of a model.
//
// Row i of the queries stands at position i + q_offset (etalon_attention_args), key t of a sequence at position t. The
// row sees key t if -left <= t - (i + q_offset) <= right, a negative left or right being no limit on that side, and if
// t is below the sequence's length. Causal is right = 0. The row's own position does not count: "a window of W tokens,
// itself included" is left = W - 1, right = 0.
//
// A score is made in this order: dot product times scale, softcap, ALiBi, bias; what geometry, lengths or any mask hide
// is then not visible, all of them combined by AND.
//
// In a plan, sizes and types must be set and the max_ sizes bound its calls. In the one-call forms, 0 means "as args".
typedef struct etalon_attention_desc {
  size_t struct_size;    // by etalon_attention_desc_init
  int64_t num_q_heads;   // a multiple of num_kv_heads; query head h reads key/value head h / (the ratio of the two)
  int64_t num_kv_heads;  // at least 1
  int64_t head_dim;      // of q and k, at least 1
  int64_t value_dim;     // of v and out, at least 1, may differ from head_dim
  int64_t max_batch;
  int64_t max_q_len;
  int64_t max_kv_len;
  int32_t q_dtype;
  int32_t k_dtype;
  int32_t v_dtype;
  int32_t out_dtype;
  int64_t left;         // _init: -1
  int64_t right;        // _init: -1
  float scale;          // of the dot products; 0 = 1 / sqrt(head_dim)
  float softcap;        // cap tanh(score / cap), at least 0; 0 = off
  int32_t math;         // ETALON_MATH_EXACT
  int32_t max_workers;  // 0 = 1, at most 2^20; the workspace has scratch for so many
  uint32_t options;     // bits ETALON_OPTION_
  int32_t num_sources;  // key sources under one softmax, at most ETALON_MAX_SOURCES; 0 = 1
  const char* target;   // name of a kernel table; NULL = the environment's ETALON_TARGET, or else the best one.
                        // Read only while the function runs that gets the descriptor
} etalon_attention_desc;

// A mask in the form that costs least to use, in memory of the caller's: etalon_mask_prepare.
typedef struct etalon_mask etalon_mask;

// Where keys and values lie that are not one after the other in their tensors: in pages of a pool, in a ring, or in a
// ring of pages. Positions stay what they are, and so do the bits.
//
// Pages: k is [num_pages, num_kv_heads, page_len, head_dim], v likewise, with any strides; page_len is any number. Key
// t of sequence b lies in row t % page_len of page page_table[b * page_table_stride + t / page_len].
//
// A ring keeps the first ring_keep keys and the last ring_len of the others: key t is where key t - ring_len was, and
// that one is gone, so that no row sees it. The rows of a sequence (of its tensor, or of its pages one after the other)
// are ring_keep rows, then the ring: key t lies in row t if t < ring_keep, else in ring_keep + (t - ring_keep) %
// ring_len. kv_lens counts all keys that there ever were. Rows of a prompt see what is left when all its keys are in:
// with a window of W, itself included, q_len rows need ring_len >= W + q_len - 1 to see all they would see without.
typedef struct etalon_kv_places {
  size_t struct_size;         // by etalon_kv_places_init
  const int32_t* page_table;  // NULL = no pages. Its memory is needed, and must not change, while the call runs. Pages
                              // of keys that geometry and lengths hide from all rows are not looked at: -1, or anything
  int64_t page_table_stride;  // elements from one sequence to the next, at least 0
  int64_t max_pages;          // of a sequence; entries beyond are not read
  int64_t ring_keep;          // at least 0
  int64_t ring_len;           // 0 = no ring
} etalon_kv_places;

// One more source of keys under the same softmax: what etalon_attention_args has of its own for the first one, in the
// same words. It counts positions from 0 like any other, has its own offset, window and masks, and the heads, sizes and
// types of the first.
typedef struct etalon_key_source {
  size_t struct_size;      // by etalon_key_source_init
  const etalon_tensor* k;  // [batch, num_kv_heads, its kv_len, head_dim]
  const etalon_tensor* v;  // [batch, num_kv_heads, its kv_len, value_dim]
  int64_t left;            // _init: -1; for the first source these two are those of the descriptor
  int64_t right;           // _init: -1
  int64_t q_offset;
  const int64_t* q_offsets;
  const int64_t* kv_lens;
  const int64_t* kv_firsts;
  const int64_t* kv_starts;
  const int64_t* prefix_lens;
  const etalon_tensor* bias;
  const etalon_tensor* mask;
  const etalon_mask* prepared_mask;
  // Later versions.
  const etalon_kv_places* places;  // NULL = one after the other
} etalon_key_source;

// What one call computes on. out = softmax(scale q k^T) v, lse = log of the sum of exp(score) over visible keys.
//
// Ragged batches: with q_starts, q, out and lse are [1, num_q_heads, rows, ...], and sequence b has the rows
// q_starts[b] ... q_starts[b + 1] - 1 of them; with kv_starts, k and v are [1, num_kv_heads, rows, ...] likewise. Each
// alone, or both; num_sequences says how many. Rows of no sequence are neither read nor written. Everywhere below, and
// in the max_ sizes of the descriptor, `batch` is then the number of sequences, q_len and kv_len are those of the
// longest one, and an index counts from a sequence's own first row; but q_lens[b] and kv_lens[b] are at most the rows
// that the sequence has.
typedef struct etalon_attention_args {
  size_t struct_size;           // by etalon_attention_args_init
  const etalon_tensor* q;       // [batch, num_q_heads, q_len, head_dim]
  const etalon_tensor* k;       // [batch, num_kv_heads, kv_len, head_dim]
  const etalon_tensor* v;       // [batch, num_kv_heads, kv_len, value_dim]; k and v may share memory
  const etalon_tensor* out;     // [batch, num_q_heads, q_len, value_dim]
  const etalon_tensor* lse;     // [batch, num_q_heads, q_len], f32, natural logarithm; NULL = not wanted
  int64_t q_offset;             // position of query row 0: 0 aligns a causal mask top-left, kv_len - q_len bottom-right
  const int64_t* q_offsets;     // [batch], added to q_offset; NULL = 0
  const int64_t* q_lens;        // [batch], 0 ... q_len of the sequence; NULL = that. Rows from there on see nothing
  const int64_t* kv_lens;       // [batch], 0 ... kv_len of the sequence; NULL = that. What lies beyond is not read
  const etalon_tensor* slopes;  // ALiBi: [batch, num_q_heads] or [num_q_heads]. score - slope |distance of positions|
  const etalon_tensor* bias;    // [batch, num_q_heads, q_len, kv_len], f32, f16 or bf16, added; -inf hides the key
  const etalon_tensor* mask;    // the same shape, ETALON_BOOL; or ETALON_BITS with kv_len / 8, rounded up, innermost
  const etalon_tensor* sinks;   // [batch, num_q_heads] or [num_q_heads]: a logit that takes weight and has no value

  // Later versions. In slopes, sinks, bias and mask a size may be 1 and then counts for all (but innermost in
  // ETALON_BITS); innermost in bias and in a mask of ETALON_BOOL the stride may be 0.
  const int64_t* kv_firsts;    // [batch], 0 ... kv_lens[b]: padding on the left, not read. Key kv_firsts[b] stands at
                               // position 0. NULL = 0. Bias and masks count from the padding's first key, as k does
  const int64_t* prefix_lens;  // [batch], 0 ... 2^62: `right` does not limit keys at positions below it (prefix LM).
                               // NULL = 0
  int64_t num_sequences;       // of ragged batches, else 0
  const int64_t* q_starts;     // [num_sequences + 1], ascending, 0 ... rows; NULL = q is not ragged
  const int64_t* kv_starts;    // the same for k and v
  const etalon_mask* prepared_mask;              // NULL = none. Its memory is needed while the call runs. Not together
                                                 // with mask in one source: prepare a mask that hides what both do
  const etalon_key_source* const* more_sources;  // [desc.num_sources - 1], in the order of the softmax; NULL if none
  const etalon_kv_places* places;  // NULL = keys lie one after the other. Else kv_lens must be there, kv_len everywhere
                                   // is the longest of them, and kv_firsts and kv_starts must be NULL; with ring_keep >
                                   // 0 prepared_mask, too
} etalon_attention_args;

// Fill a descriptor with the defaults named above; everything else is 0. struct_size is the caller's sizeof.
// ETALON_NULL_POINTER, or ETALON_BAD_STRUCT_SIZE if it is below the first version's or above 4096.
ETALON_STATUS etalon_attention_desc_init(etalon_attention_desc* desc, size_t struct_size);
ETALON_STATUS etalon_attention_args_init(etalon_attention_args* args, size_t struct_size);
ETALON_STATUS etalon_key_source_init(etalon_key_source* source, size_t struct_size);
ETALON_STATUS etalon_kv_places_init(etalon_kv_places* places, size_t struct_size);

// The slopes that ALiBi models are trained with: for 2^n heads 2^(-8 h / 2^n), h = 1 ... 2^n; for other numbers those
// of the next smaller 2^n, then every other one of twice as many, from the first. slopes[num_heads]. Each is exact or
// rounded once. ETALON_NULL_POINTER, or ETALON_NO_HEADS if num_heads is below 1. Source: Press et al. 2021
// (arXiv:2108.12409), section 3.1 and their code.
ETALON_STATUS etalon_alibi_slopes(int64_t num_heads, float* slopes, etalon_error* error);

// float(1 / sqrt(head_dim)), what scale = 0 stands for. head_dim >= 1.
ETALON_API float etalon_default_scale(int64_t head_dim);

// Bytes of workspace for one call, into *bytes. Depends on shapes (of ragged batches on the
// longest sequences), desc and which options there are; pointers and strides of tensors are not looked at, arrays of
// numbers and prepared masks are checked.
// Errors: as etalon_attention, those of memory excepted.
ETALON_STATUS etalon_attention_workspace_bytes(const etalon_attention_desc* desc, const etalon_attention_args* args,
                                               size_t* bytes, etalon_error* error);

// Attention of every head of every sequence, in one pass over k and v. Rows that see no key give out = 0, lse = -inf
// (with a sink: the sink); keys that a row does not see have no influence on it, whatever their memory holds. parallel
// = NULL: all on this thread. 2 (head_dim + value_dim) flop for each visible pair of query and key. Bits:
// docs/numerics.md#chunks. Source: online softmax, Milakov and Gimelshein 2018 (arXiv:1805.02867); tiling, Dao et al.
// 2022 (arXiv:2205.14135). The order of the arithmetic is our own. Errors: any status up to ETALON_TARGET_UNAVAILABLE;
// ETALON_BAD_TASKS if parallel_for did not keep its promise, in which case some of out and lse has been written.
ETALON_STATUS etalon_attention(const etalon_attention_desc* desc, const etalon_attention_args* args,
                               const etalon_workspace* workspace, const etalon_parallel* parallel, etalon_error* error);

// ----------------------------------------------------------------------------------------------------------- masks

// Which keys a row may see, given in one of three ways. Sizes of 1 in batch and num_heads count for all.
typedef struct etalon_mask_args {
  size_t struct_size;  // by etalon_mask_args_init
  int64_t batch;       // that of the calls, or 1
  int64_t num_heads;   // num_q_heads, or 1
  int64_t q_len;       // of the calls
  int64_t kv_len;      // of the calls: keys of the source's tensor, padding on the left included

  // 1. [batch, num_heads, q_len, kv_len], ETALON_BOOL or ETALON_BITS, as in etalon_attention_args.
  const etalon_tensor* mask;

  // 2. Documents, or segments: a row sees the keys whose number is its own. Any numbers in any order. num_heads is 1.
  const int64_t* q_segments;   // [batch, q_len]
  const int64_t* kv_segments;  // [batch, kv_len]

  // 3. Blocks: row i sees the keys of kv_block tokens each that are listed for its own block i / q_block. Blocks at the
  // end may be smaller. With Q = q_len / q_block, rounded up, block_starts has batch * num_heads * Q + 1 numbers that
  // never decrease, from 0 on; the key blocks of query block n (sequence, then head, then place) are
  // blocks[block_starts[n]] ... blocks[block_starts[n + 1] - 1], ascending.
  int64_t q_block;
  int64_t kv_block;
  const int64_t* block_starts;
  const int64_t* blocks;  // may be NULL if there are none
} etalon_mask_args;

ETALON_STATUS etalon_mask_args_init(etalon_mask_args* args, size_t struct_size);

// Bytes that the prepared mask takes. Reads the whole mask. Errors: as etalon_mask_prepare.
ETALON_STATUS etalon_mask_bytes(const etalon_mask_args* args, size_t* bytes, etalon_error* error);

// Looks at a mask once, for all layers and calls that use it: as runs of visible keys where that is the shorter form (a
// span, documents, blocks), else packed to bits. Then a call walks the runs instead of reading a mask, and chunks of
// 128 keys that no row of a tile sees are neither read nor computed. Inside a chunk all keys from the first to the last
// that is seen are: blocks should be multiples of 128 keys, and best of 128 rows or more. *mask points to the start of
// `memory`, which may be copied (to any multiple of 8), shared and mapped, within this version of the library, and
// dropped when no call uses it; `args` is not needed any more. Serial; O(size of the mask). Errors: those of tensors
// and memory; ETALON_BAD_VALUE for no way or several, numbers that are not ascending, blocks that do not exist.
ETALON_STATUS etalon_mask_prepare(const etalon_mask_args* args, const etalon_workspace* memory,
                                  const etalon_mask** mask, etalon_error* error);

// ----------------------------------------------------------------------------------------------------------- plans

// A checked descriptor with its kernels chosen. Plain memory of the caller's: copy it, share it, forget it, within this
// process and while the library is loaded.
typedef struct etalon_plan {
  uint64_t opaque[128];
} etalon_plan;

// ETALON_OK if etalon_plan_init with this descriptor would succeed; else *reason says why not (may be NULL).
ETALON_STATUS etalon_supports(const etalon_attention_desc* desc, etalon_error* reason);

// Errors: as etalon_attention, those of tensors and memory excepted. On error *plan is untouched.
ETALON_STATUS etalon_plan_init(etalon_plan* plan, const etalon_attention_desc* desc, etalon_error* error);

// Bytes of workspace that are enough for every call of the plan; 0 if it is none. Grows with the max_ sizes, not with
// the product of max_q_len and max_kv_len.
ETALON_API size_t etalon_plan_workspace_bytes(const etalon_plan* plan);

// Checks args and writes into the workspace what etalon_run needs; *num_tasks is how many tasks there are (0 if nothing
// is to be done). args, its tensors, sources and arrays are not needed afterwards, but the memory of the tensors, of
// prepared masks and of page tables is. One workspace holds one begun call, and must not move. O(batch + max_workers +
// pages in use), and O(num_q_heads) for the standard slopes of ALiBi. On error nothing is written: what was begun in
// this workspace before still runs. Errors: as etalon_attention, and ETALON_BAD_PLAN.
ETALON_STATUS etalon_begin(const etalon_plan* plan, const etalon_attention_args* args,
                           const etalon_workspace* workspace, int64_t* num_tasks, etalon_error* error);

// Runs tasks first ... last - 1 of what was begun in this workspace (its data). From any threads, in any order, each
// task once, 0 <= worker < max_workers, no two calls at once with the same worker. When every task has returned, out
// and lse are whole. ETALON_NULL_POINTER, ETALON_NOT_BEGUN or ETALON_BAD_TASKS, and then nothing was run.
ETALON_STATUS etalon_run(void* workspace_data, int64_t first, int64_t last, int32_t worker);

// etalon_begin, then every task on the caller's threads; parallel = NULL: on this one. Errors: as etalon_begin, and as
// etalon_attention for parallel.
ETALON_STATUS etalon_execute(const etalon_plan* plan, const etalon_attention_args* args,
                             const etalon_workspace* workspace, const etalon_parallel* parallel, etalon_error* error);

// What a plan has decided, and what a call of it would do.
typedef struct etalon_plan_info {
  size_t struct_size;  // by etalon_plan_info_init
  const char* target;  // name of the kernel table; static storage
  int32_t math;        // ETALON_MATH_EXACT
  int32_t max_workers;
  size_t workspace_bytes;  // as etalon_plan_workspace_bytes
  int64_t tile_rows;       // query rows that are computed together, at most
  // Of the call; 0 without args.
  int64_t num_tasks;
  int64_t key_splits;  // the most tasks that the keys of one tile are split over
  int64_t key_tiles;   // pairs of a tile of rows and a chunk of 128 keys of which it may see one: the work. A mask of
                       // `mask` does not make it less, nor does one that was packed to bits, but for its ends
  int64_t bytes_read;  // of k and v, by all tiles together, with the same masks
} etalon_plan_info;

ETALON_STATUS etalon_plan_info_init(etalon_plan_info* info, size_t struct_size);
// args may be NULL. Memory behind the tensors is not touched. O(batch + max_workers + pages in use); where there is a
// prepared mask or a ring that keeps keys, which is walked, O(rows of q + runs that they see). Counts beyond 2^63 - 1
// are told as that. Errors: as etalon_begin; ETALON_OVERFLOW if the query rows of all heads and sequences are more than
// that.
ETALON_STATUS etalon_plan_get_info(const etalon_plan* plan, const etalon_attention_args* args, etalon_plan_info* info,
                                   etalon_error* error);

// ------------------------------------------------------------------------------------------------------- the cache

// New keys and values into a cache: any k and v that etalon_attention can read, with the same places. How long the
// sequences are stays with the caller, in kv_lens: add new_lens to it afterwards. Less is fewer tokens, 0 is an empty
// cache; of a ring, tokens that others have taken the place of do not come back.
typedef struct etalon_kv_append_args {
  size_t struct_size;              // by etalon_kv_append_args_init
  const etalon_tensor* new_k;      // [batch, num_kv_heads, new_len, head_dim]
  const etalon_tensor* new_v;      // [batch, num_kv_heads, new_len, value_dim]
  const etalon_tensor* k;          // [batch, num_kv_heads, room, head_dim], or a pool of pages; written. Of any type:
  const etalon_tensor* v;          // numbers are rounded to it once, or copied. k and v may interleave in one pool
  const etalon_kv_places* places;  // NULL = token t lies in row t
  const int64_t* kv_lens;          // [batch], tokens that a sequence has already; NULL = 0
  const int64_t* new_lens;         // [batch], 0 ... new_len; NULL = new_len
  const char* target;              // as in etalon_attention_desc
} etalon_kv_append_args;

ETALON_STATUS etalon_kv_append_args_init(etalon_kv_append_args* args, size_t struct_size);
// Token i of new_k and new_v becomes token kv_lens[b] + i of sequence b. Where more tokens come at once than a ring has
// room for, the last ones stay. No two tokens of a call may have the same place: pages that sequences share are only
// read. Needs no workspace. Any number of workers. Errors: those of tensors, places and memory; ETALON_CACHE_FULL if a
// sequence would outgrow the rows or pages that it has. On error nothing is written.
ETALON_STATUS etalon_kv_append(const etalon_kv_append_args* args, const etalon_parallel* parallel, etalon_error* error);

// ------------------------------------------------------------------------------------------------------ primitives
// The steps of attention by themselves, for engines with a graph of their own. Scores, weights and states are f32.
// parallel = NULL: all on this thread. The _workspace_bytes of each depend on shapes, max_workers and,
// where there may be some, options.

// Scores, after softcap, ALiBi, bias and masks, into args->out [batch, num_q_heads, q_len, kv_len], f32; -inf where a
// row does not see a key, before kv_firsts too. v, lse and sinks must be NULL, and value_dim, v_dtype and out_dtype of
// desc do not count. One source, and no ragged batch. 2 head_dim flop for each visible pair. Bits:
// docs/numerics.md#score. Errors: as etalon_attention.
ETALON_STATUS etalon_scores_workspace_bytes(const etalon_attention_desc* desc, const etalon_attention_args* args,
                                            size_t* bytes, etalon_error* error);
ETALON_STATUS etalon_scores(const etalon_attention_desc* desc, const etalon_attention_args* args,
                            const etalon_workspace* workspace, const etalon_parallel* parallel, etalon_error* error);

// Rows of scores to rows of weights. What a row sees: as in etalon_attention_desc, keys being the indices of the row.
typedef struct etalon_softmax_args {
  size_t struct_size;            // by etalon_softmax_args_init
  const etalon_tensor* scores;   // [batch, heads, q_len, kv_len], f32; -inf is not visible
  const etalon_tensor* weights;  // the same shape, f32; may be the very same tensor: in place
  const etalon_tensor* lse;      // [batch, heads, q_len], f32; NULL = not wanted
  int64_t left;                  // _init: -1
  int64_t right;                 // _init: -1
  int64_t q_offset;
  const int64_t* q_offsets;
  const int64_t* q_lens;
  const int64_t* kv_lens;
  const etalon_tensor* mask;  // [batch, heads, q_len, kv_len], ETALON_BOOL, as in etalon_attention_args; NULL = none
  const char* target;         // as in etalon_attention_desc
} etalon_softmax_args;

ETALON_STATUS etalon_softmax_args_init(etalon_softmax_args* args, size_t struct_size);
// weights = exp(score - lse), which sum to 1 within rounding; 0 where not visible; all 0 and lse = -inf in a row that
// sees nothing. Needs no workspace. Any number of workers. An order of operations of its own: within 1e-6 of what
// etalon_attention uses, not equal in bits. Bits: docs/numerics.md#masked-softmax. Errors: as etalon_attention.
ETALON_STATUS etalon_softmax(const etalon_softmax_args* args, const etalon_parallel* parallel, etalon_error* error);

// out = weights v, with nothing divided.
typedef struct etalon_weighted_sum_args {
  size_t struct_size;            // by etalon_weighted_sum_args_init
  const etalon_tensor* weights;  // [batch, num_q_heads, q_len, kv_len], f32
  const etalon_tensor* v;        // [batch, num_kv_heads, kv_len, value_dim]
  const etalon_tensor* out;      // [batch, num_q_heads, q_len, value_dim]
  int64_t left;                  // _init: -1
  int64_t right;                 // _init: -1
  int64_t q_offset;
  const int64_t* q_offsets;
  const int64_t* q_lens;
  const int64_t* kv_lens;
  const etalon_tensor* mask;  // [batch, num_q_heads, q_len, kv_len], ETALON_BOOL, as in etalon_attention_args
  const char* target;         // as in etalon_attention_desc
  int32_t max_workers;        // 0 = 1, at most 2^20
  int32_t reserved;           // 0
} etalon_weighted_sum_args;

ETALON_STATUS etalon_weighted_sum_args_init(etalon_weighted_sum_args* args, size_t struct_size);
ETALON_STATUS etalon_weighted_sum_workspace_bytes(const etalon_weighted_sum_args* args, size_t* bytes,
                                                  etalon_error* error);
// Weights of keys that a row does not see are not read, and their values have no influence, whatever they are; a
// visible key of weight 0 counts (0 times NaN is NaN). 2 value_dim flop for each visible pair. Bits:
// docs/numerics.md#weighted-sum. Errors: as etalon_attention.
ETALON_STATUS etalon_weighted_sum(const etalon_weighted_sum_args* args, const etalon_workspace* workspace,
                                  const etalon_parallel* parallel, etalon_error* error);

// Joins two results of the same rows over disjoint keys.
typedef struct etalon_merge_args {
  size_t struct_size;         // by etalon_merge_args_init
  const etalon_tensor* out1;  // [batch, heads, q_len, value_dim]
  const etalon_tensor* lse1;  // [batch, heads, q_len], f32
  const etalon_tensor* out2;  // as out1
  const etalon_tensor* lse2;  // as lse1
  const etalon_tensor* out;   // as out1, in shape and type; may be out1 or out2: in place
  const etalon_tensor* lse;   // as lse1; may be lse1 or lse2; NULL = not wanted
  const char* target;         // as in etalon_attention_desc
} etalon_merge_args;

ETALON_STATUS etalon_merge_args_init(etalon_merge_args* args, size_t struct_size);
// The attention over both sets of keys, within rounding; a side with lse = -inf passes the other through bit for bit
// (but for -0, which becomes +0, and NaN, of which there is one). Needs no workspace. Any number of workers.
// Bits: docs/numerics.md#merge. Source: Dao et al. 2022, appendix B. Errors: as etalon_attention.
ETALON_STATUS etalon_merge(const etalon_merge_args* args, const etalon_parallel* parallel, etalon_error* error);

// Unfinished attention: for each row and each block of 512 keys the largest score m, the sum l of exp(score - m), and
// the sums o of exp(score - m) v. l = 0 marks a block of which the row sees no key. Rows of m, l and o are evenly
// spaced, those of o value_dim times as wide, the innermost two dimensions of o are packed, and so are the heads: with
// a row stride of R states, m.stride_bytes = {any, 4 q_len R, 4 R, 4} and o.stride_bytes = value_dim times that,
// then 4.
//
// This struct is frozen: states of other types will be another struct.
typedef struct etalon_states {
  const etalon_tensor* m;  // [batch, num_q_heads, q_len, blocks], f32
  const etalon_tensor* l;  // the same
  const etalon_tensor* o;  // [batch, num_q_heads, q_len, blocks, value_dim], f32
} etalon_states;

// Blocks that kv_len keys make: kv_len / 512, rounded up.
ETALON_API int64_t etalon_num_blocks(int64_t kv_len);

// The states of args over all blocks of its keys (blocks = etalon_num_blocks(kv_len)). out, lse and sinks of args must
// be NULL, and out_dtype of desc does not count. One source, and no ragged batch. Whoever holds keys from position 512
// b on alone subtracts 512 b from q_offset; etalon_merge_states over the states of all holders, in order, gives the
// bytes of the call that saw all keys. Bits: docs/numerics.md#states. Errors: as etalon_attention.
ETALON_STATUS etalon_block_states_workspace_bytes(const etalon_attention_desc* desc, const etalon_attention_args* args,
                                                  size_t* bytes, etalon_error* error);
ETALON_STATUS etalon_block_states(const etalon_attention_desc* desc, const etalon_attention_args* args,
                                  const etalon_states* states, const etalon_workspace* workspace,
                                  const etalon_parallel* parallel, etalon_error* error);

typedef struct etalon_merge_states_args {
  size_t struct_size;           // by etalon_merge_states_args_init
  const etalon_states* states;  // any number of blocks, 0 too
  const etalon_tensor* out;     // [batch, num_q_heads, q_len, value_dim]
  const etalon_tensor* lse;     // [batch, num_q_heads, q_len], f32; NULL = not wanted
  const etalon_tensor* sinks;   // [batch, num_q_heads] or [num_q_heads], folded last; NULL = none
  const char* target;           // as in etalon_attention_desc
  int32_t max_workers;          // 0 = 1, at most 2^20
  int32_t reserved;             // 0
} etalon_merge_states_args;

ETALON_STATUS etalon_merge_states_args_init(etalon_merge_states_args* args, size_t struct_size);
ETALON_STATUS etalon_merge_states_workspace_bytes(const etalon_merge_states_args* args, size_t* bytes,
                                                  etalon_error* error);
// Folds the states of each row from left to right and finishes them. Bits: docs/numerics.md#fold. Errors: as
// etalon_attention.
ETALON_STATUS etalon_merge_states(const etalon_merge_states_args* args, const etalon_workspace* workspace,
                                  const etalon_parallel* parallel, etalon_error* error);

// --------------------------------------------------------------------------------------------------------- targets

// One kernel table of this build. This struct is frozen: what else there is to ask of a table will be another function.
typedef struct etalon_target {
  const char* name;   // "scalar-fma": what desc.target and ETALON_TARGET take; static storage
  uint64_t missing;   // features (below) that this CPU or operating system lacks; 0 = the table can run
  uint64_t required;  // features that it needs
} etalon_target;

// Tables of this build, in ascending preference: the default is the last one that can run.
ETALON_API int32_t etalon_num_targets(void);
// ETALON_NULL_POINTER, or ETALON_BAD_VALUE if index is not in 0 ... etalon_num_targets() - 1.
ETALON_STATUS etalon_get_target(int32_t index, etalon_target* target);

// Features of this CPU that the operating system lets programs use, one bit each.
ETALON_API uint64_t etalon_cpu_features(void);
// "avx2" for the bit of that feature; NULL if not exactly one bit with a meaning is set. Static storage.
ETALON_API const char* etalon_cpu_feature_name(uint64_t bit);

#ifdef __cplusplus
}  // extern "C"
#endif

#endif  // ETALON_ETALON_H_
