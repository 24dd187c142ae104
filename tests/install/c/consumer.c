// consumer.c: somebody else's program, in C99. Prints the bits of some results as ../expected.txt has them; what the
// host does with subnormals follows "#". With CONSUMER_HAS_POOL it computes on the threads of etalon::thread_pool.
#include <etalon/etalon.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef CONSUMER_HAS_POOL
#include <etalon/thread_pool.h>
#endif

// Of the standard case, the largest one here.
enum { HEADS = 4, KV_HEADS = 2, ROWS = 7, KEYS = 133, HEAD_DIM = 40, VALUE_DIM = 24 };

static const etalon_parallel* threads;

// Elements are given by their bits: built with -ffast-math, this file could not even spell an infinity.
static void print(const char* name, const float* values, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    uint32_t bits;
    memcpy(&bits, values + i, sizeof bits);
    if (i % 12 == 0) printf("%s%s", i == 0 ? "" : "\n", name);
    printf(" %08X", (unsigned)bits);
  }
  printf("\n");
}

static void print_host(void) {
  const uint32_t bits = 0x00000010;
  volatile float half = 0.5f;  // not a constant that the compiler may multiply
  float tiny;
  memcpy(&tiny, &bits, sizeof bits);
  tiny = tiny * half;
  uint32_t product;
  memcpy(&product, &tiny, sizeof product);
  printf("# subnormals are %s\n", product == bits / 2 ? "kept" : "flushed");
}

static void require(etalon_status status, const etalon_error* error) {
  if (status == ETALON_OK) return;
  printf("%s: %s\n", etalon_status_name(status), error->text);
  exit(1);
}

static etalon_tensor f32(float* data, int32_t rank, const int64_t* shape) {
  etalon_tensor tensor;
  etalon_error error;
  require(etalon_tensor_init(&tensor, data, ETALON_F32, rank, shape, &error), &error);
  return tensor;
}

// Weights and logsumexp of rows of 4 scores. num_keys may be NULL.
static void softmax(const char* name, const uint32_t* bits, int64_t rows, const int64_t* num_keys) {
  float scores[16], weights[16], lse[4];
  memcpy(scores, bits, (size_t)rows * 4 * sizeof(float));
  const int64_t shape[2] = {rows, 4};
  const etalon_tensor scores_tensor = f32(scores, 2, shape);
  const etalon_tensor weights_tensor = f32(weights, 2, shape);
  const etalon_tensor lse_tensor = f32(lse, 1, shape);
  etalon_softmax_args args;
  etalon_error error = {0};
  require(etalon_softmax_args_init(&args, sizeof args), &error);
  args.scores = &scores_tensor;
  args.weights = &weights_tensor;
  args.lse = &lse_tensor;
  args.kv_lens = num_keys;
  require(etalon_softmax(&args, threads, &error), &error);
  print(name, weights, (size_t)rows * 4);
  print(name, lse, (size_t)rows);
}

// Causal attention, aligned bottom-right, of [heads, length, dim] with default scale. num_keys may be NULL.
static void attention(const char* name, const int64_t* q_shape, float* q, const int64_t* k_shape, float* k,
                      const int64_t* v_shape, float* v, const int64_t* num_keys) {
  static float out[HEADS * ROWS * VALUE_DIM], lse[HEADS * ROWS];
  const int64_t out_shape[3] = {q_shape[0], q_shape[1], v_shape[2]};
  const etalon_tensor q_tensor = f32(q, 3, q_shape);
  const etalon_tensor k_tensor = f32(k, 3, k_shape);
  const etalon_tensor v_tensor = f32(v, 3, v_shape);
  const etalon_tensor out_tensor = f32(out, 3, out_shape);
  const etalon_tensor lse_tensor = f32(lse, 2, out_shape);

  etalon_attention_desc desc;
  etalon_attention_args args;
  etalon_error error = {0};
  require(etalon_attention_desc_init(&desc, sizeof desc), &error);
  require(etalon_attention_args_init(&args, sizeof args), &error);
  desc.right = 0;
  desc.max_workers = threads != NULL ? threads->workers : 0;
  args.q = &q_tensor;
  args.k = &k_tensor;
  args.v = &v_tensor;
  args.out = &out_tensor;
  args.lse = &lse_tensor;
  args.q_offset = k_shape[1] - q_shape[1];
  args.kv_lens = num_keys;

  size_t bytes;
  require(etalon_attention_workspace_bytes(&desc, &args, &bytes, &error), &error);
  char* const memory = malloc(bytes + 64);
  if (memory == NULL) exit(1);
  const etalon_workspace workspace = {memory + (64 - (uintptr_t)memory % 64), bytes};
  require(etalon_attention(&desc, &args, &workspace, threads, &error), &error);
  free(memory);

  print(name, out, (size_t)(out_shape[0] * out_shape[1] * out_shape[2]));
  print(name, lse, (size_t)(out_shape[0] * out_shape[1]));
}

// The ramp of the field cases; exact, whatever the compiler makes of it.
static void ramp(int a, int b, float* out, int count) {
  for (int i = 0; i < count; ++i) out[i] = (float)((a * i + b) % 61 - 30) / 32.0f;
}

int main(void) {
  print_host();
#ifdef CONSUMER_HAS_POOL
  etalon_thread_pool* pool;
  if (etalon_thread_pool_create(3, &pool) != ETALON_OK) return 1;
  const etalon_parallel parallel = etalon_thread_pool_parallel(pool);
  threads = &parallel;
#endif

  const uint32_t half = 0xBF000000, minus_infinity = 0xFF800000, nan = 0xFFC12345;
  const uint32_t pair[4] = {0, half, minus_infinity, minus_infinity};
  const uint32_t masked[8] = {
      minus_infinity, minus_infinity, minus_infinity, minus_infinity, 0, minus_infinity, 0, half};
  const uint32_t not_a_number[4] = {0, nan, half, minus_infinity};
  const uint32_t tail[4] = {0, 0, 0xC2AE6666, 0xC2AE0000};  // half of exp(-87.2) is subnormal, like that of exp(-87)
  const int64_t none[1] = {0};
  softmax("softmax_pair", pair, 1, NULL);
  softmax("softmax_masked", masked, 2, NULL);
  softmax("softmax_empty", masked + 4, 1, none);
  softmax("softmax_nan", not_a_number, 1, NULL);
  softmax("softmax_tail", tail, 1, NULL);

  static float q[HEADS * ROWS * HEAD_DIM], k[KV_HEADS * KEYS * HEAD_DIM], v[KV_HEADS * KEYS * VALUE_DIM];
  const int64_t q_shape[3] = {HEADS, ROWS, HEAD_DIM};
  const int64_t k_shape[3] = {KV_HEADS, KEYS, HEAD_DIM};
  const int64_t v_shape[3] = {KV_HEADS, KEYS, VALUE_DIM};
  ramp(3, 1, q, HEADS * ROWS * HEAD_DIM);
  ramp(5, 2, k, KV_HEADS * KEYS * HEAD_DIM);
  ramp(7, 3, v, KV_HEADS * KEYS * VALUE_DIM);
  attention("standard", q_shape, q, k_shape, k, v_shape, v, NULL);

  const int64_t one_row[3] = {1, 1, 2}, two_keys[3] = {1, 2, 2};
  attention("empty", one_row, q, two_keys, k, two_keys, v, none);
  const uint32_t tiny_bits[4] = {0x00000005, 0x80400000, 0x00000014, 0x00000003};
  float tiny[4];
  memcpy(tiny, tiny_bits, sizeof tiny);
  attention("subnormal", one_row, q, two_keys, tiny, two_keys, tiny, NULL);
  const uint32_t nan_bits[4] = {0, nan, half, half};
  float with_nan[4];
  memcpy(with_nan, nan_bits, sizeof with_nan);
  attention("nan", one_row, q, two_keys, k, two_keys, with_nan, NULL);

#ifdef CONSUMER_HAS_POOL
  etalon_thread_pool_destroy(pool);
#endif
  print_host();
  return 0;
}
