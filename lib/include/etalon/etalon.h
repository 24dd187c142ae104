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
  ETALON_OUT_OF_MEMORY = 21        // only from functions that say that they allocate (thread_pool.h)
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
  ETALON_F16 = 2,  // IEEE binary16
  ETALON_BF16 = 3  // the upper half of an f32
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

// Bits of etalon_attention_desc::options. This version offers none of them: ETALON_UNSUPPORTED.
enum { ETALON_OPTION_ALIBI = 1, ETALON_OPTION_BIAS = 2, ETALON_OPTION_MASK = 4, ETALON_OPTION_SINKS = 8 };

// What stays the same from call to call: a layer of a model.
//
// Row i of the queries stands at position i + q_offset (etalon_attention_args), key t of a sequence at position t. The
// row sees key t if -left <= t - (i + q_offset) <= right, a negative left or right being no limit on that side, and if
// t is below the sequence's length. Causal is right = 0. The row's own position does not count: "a window of W tokens,
// itself included" is left = W - 1, right = 0.
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
  float softcap;        // cap tanh(score / cap); 0 = off; this version offers no other value
  int32_t math;         // ETALON_MATH_EXACT
  int32_t max_workers;  // 0 = 1, at most 2^20; the workspace has scratch for so many
  uint32_t options;     // 0
  int32_t num_sources;  // key sources under one softmax; 0 = 1; this version offers no other value
  const char* target;   // name of a kernel table; NULL = the environment's ETALON_TARGET, or else the best one.
                        // Read only while the function runs that gets the descriptor
} etalon_attention_desc;

// What one call computes on. out = softmax(scale q k^T) v, lse = log of the sum of exp(score) over visible keys.
//
// With several key sources (a later version) k, v and kv_lens will be the first of desc.num_sources, and an array of
// the others a new field at the end, which struct_size shows to be there.
typedef struct etalon_attention_args {
  size_t struct_size;           // by etalon_attention_args_init
  const etalon_tensor* q;       // [batch, num_q_heads, q_len, head_dim]
  const etalon_tensor* k;       // [batch, num_kv_heads, kv_len, head_dim]
  const etalon_tensor* v;       // [batch, num_kv_heads, kv_len, value_dim]; k and v may share memory
  const etalon_tensor* out;     // [batch, num_q_heads, q_len, value_dim]
  const etalon_tensor* lse;     // [batch, num_q_heads, q_len], f32, natural logarithm; NULL = not wanted
  int64_t q_offset;             // position of query row 0: 0 aligns a causal mask top-left, kv_len - q_len bottom-right
  const int64_t* q_offsets;     // [batch], added to q_offset; NULL = 0
  const int64_t* q_lens;        // [batch], 0 ... q_len; NULL = q_len. Rows from there on get out = 0, lse = -inf
  const int64_t* kv_lens;       // [batch], 0 ... kv_len; NULL = kv_len. Keys and values from there on are not read
  const etalon_tensor* slopes;  // ALiBi;    not offered yet: NULL
  const etalon_tensor* bias;    // additive; not offered yet: NULL
  const etalon_tensor* mask;    //           not offered yet: NULL
  const etalon_tensor* sinks;   //           not offered yet: NULL
} etalon_attention_args;

// Fill a descriptor with the defaults named above; everything else is 0. struct_size is the caller's sizeof.
// ETALON_NULL_POINTER, or ETALON_BAD_STRUCT_SIZE if it is below the first version's or above 4096.
ETALON_STATUS etalon_attention_desc_init(etalon_attention_desc* desc, size_t struct_size);
ETALON_STATUS etalon_attention_args_init(etalon_attention_args* args, size_t struct_size);

// float(1 / sqrt(head_dim)), what scale = 0 stands for. head_dim >= 1.
ETALON_API float etalon_default_scale(int64_t head_dim);

// Bytes of workspace for one call, into *bytes. Depends on shapes and desc alone; pointers and
// strides of tensors are not looked at, arrays of lengths are checked.
// Errors: as etalon_attention, those of memory excepted.
ETALON_STATUS etalon_attention_workspace_bytes(const etalon_attention_desc* desc, const etalon_attention_args* args,
                                               size_t* bytes, etalon_error* error);

// Attention of every head of every sequence, in one pass over k and v. Rows that see no key give out = 0, lse = -inf;
// keys that a row does not see have no influence on it, whatever their memory holds. parallel = NULL: all on this
// thread. 2 (head_dim + value_dim) flop for each visible pair of query and key.
// Bits: docs/numerics.md#chunks. Source: online softmax, Milakov and Gimelshein 2018 (arXiv:1805.02867); tiling, Dao et
// al. 2022 (arXiv:2205.14135). The order of the arithmetic is our own.
// Errors: any status up to ETALON_TARGET_UNAVAILABLE; ETALON_BAD_TASKS if parallel_for did not keep its promise, in
// which case some of out and lse has been written.
ETALON_STATUS etalon_attention(const etalon_attention_desc* desc, const etalon_attention_args* args,
                               const etalon_workspace* workspace, const etalon_parallel* parallel, etalon_error* error);

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
// is to be done). args, its tensors and arrays are not needed afterwards, but the memory of q, k, v, out and lse is.
// One workspace holds one begun call, and must not move. O(batch + max_workers). On error nothing is written: what was
// begun in this workspace before still runs. Errors: as etalon_attention, and ETALON_BAD_PLAN.
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
  int64_t key_tiles;   // pairs of a tile of rows and a chunk of 128 keys of which it may see one: the work
  int64_t bytes_read;  // of k and v, by all tiles together
} etalon_plan_info;

ETALON_STATUS etalon_plan_info_init(etalon_plan_info* info, size_t struct_size);
// args may be NULL. Memory behind the tensors is not touched. O(batch + max_workers). Counts beyond 2^63 - 1 are told
// as that. Errors: as etalon_begin; ETALON_OVERFLOW if the query rows of all heads and sequences are more than that.
ETALON_STATUS etalon_plan_get_info(const etalon_plan* plan, const etalon_attention_args* args, etalon_plan_info* info,
                                   etalon_error* error);

// ------------------------------------------------------------------------------------------------------ primitives
// The steps of attention by themselves, for engines with a graph of their own. Scores, weights and states are f32.
// parallel = NULL: all on this thread. The _workspace_bytes of each depend on shapes and max_workers alone.

// Scores scale q k^T into args->out [batch, num_q_heads, q_len, kv_len], f32; -inf where a row does not see a key. v
// and lse must be NULL, and value_dim, v_dtype and out_dtype of desc do not count. 2 head_dim flop for each visible
// pair. Bits: docs/numerics.md#score. Errors: as etalon_attention.
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
  const etalon_tensor* mask;  // not offered yet: NULL
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
  const etalon_tensor* mask;  // not offered yet: NULL
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

// The states of args over all blocks of its keys (blocks = etalon_num_blocks(kv_len)). out and lse of args must be
// NULL, and out_dtype of desc does not count. Whoever holds keys from position 512 b on alone subtracts 512 b from
// q_offset; etalon_merge_states over the states of all holders, in order, gives the bytes of the call that saw all
// keys. Bits: docs/numerics.md#states. Errors: as etalon_attention.
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
  const etalon_tensor* sinks;   // not offered yet: NULL
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
