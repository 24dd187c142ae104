/* The binary interface from C99: the place of every field, the value of every constant, and a call that computes.
   A change here breaks programs that were compiled before it. */
#include <etalon/etalon.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int failures = 0;

static void expect(const char* what, long long got, long long want) {
  if (got == want) return;
  printf("%s is %lld, must stay %lld\n", what, got, want);
  ++failures;
}

#define SIZE(type, want) expect("sizeof(" #type ")", (long long)sizeof(type), want)
#define FIELD(type, field, offset, size)                                             \
  do {                                                                               \
    expect("offset of " #type "." #field, (long long)offsetof(type, field), offset); \
    expect("size of " #type "." #field, (long long)sizeof(((type*)0)->field), size); \
  } while (0)
#define VALUE(name, want) expect(#name, (long long)(name), want)

static void check_constants(void) {
  VALUE(ETALON_OK, 0);
  VALUE(ETALON_NULL_POINTER, 1);
  VALUE(ETALON_BAD_RANK, 2);
  VALUE(ETALON_BAD_SHAPE, 3);
  VALUE(ETALON_BAD_STRIDE, 4);
  VALUE(ETALON_BAD_DTYPE, 5);
  VALUE(ETALON_BAD_VALUE, 6);
  VALUE(ETALON_NO_HEADS, 7);
  VALUE(ETALON_BAD_HEADS, 8);
  VALUE(ETALON_BAD_HEAD_DIM, 9);
  VALUE(ETALON_MISALIGNED, 10);
  VALUE(ETALON_OVERLAP, 11);
  VALUE(ETALON_OVERFLOW, 12);
  VALUE(ETALON_SMALL_WORKSPACE, 13);
  VALUE(ETALON_BAD_STRUCT_SIZE, 14);
  VALUE(ETALON_UNSUPPORTED, 15);
  VALUE(ETALON_UNKNOWN_TARGET, 16);
  VALUE(ETALON_TARGET_UNAVAILABLE, 17);
  VALUE(ETALON_BAD_PLAN, 18);
  VALUE(ETALON_NOT_BEGUN, 19);
  VALUE(ETALON_BAD_TASKS, 20);
  VALUE(ETALON_OUT_OF_MEMORY, 21);
  VALUE(ETALON_CACHE_FULL, 22);
  VALUE(ETALON_F32, 1);
  VALUE(ETALON_F16, 2);
  VALUE(ETALON_BF16, 3);
  VALUE(ETALON_BOOL, 4);
  VALUE(ETALON_BITS, 5);
  VALUE(ETALON_MATH_EXACT, 0);
  VALUE(ETALON_MATH_FAST, 1);
  VALUE(ETALON_OPTION_ALIBI, 1);
  VALUE(ETALON_OPTION_BIAS, 2);
  VALUE(ETALON_OPTION_MASK, 4);
  VALUE(ETALON_OPTION_SINKS, 8);
  VALUE(ETALON_MAX_RANK, 5);
  VALUE(ETALON_MAX_SOURCES, 8);
}

static void check_small_structs(void) {
  SIZE(etalon_status, 4);
  SIZE(etalon_error, 256);
  FIELD(etalon_error, status, 0, 4);
  FIELD(etalon_error, field, 4, 60);
  FIELD(etalon_error, text, 64, 192);
  SIZE(etalon_tensor, 128);
  FIELD(etalon_tensor, data, 0, 8);
  FIELD(etalon_tensor, dtype, 8, 4);
  FIELD(etalon_tensor, rank, 12, 4);
  FIELD(etalon_tensor, shape, 16, 40);
  FIELD(etalon_tensor, stride_bytes, 56, 40);
  FIELD(etalon_tensor, reserved, 96, 32);
  SIZE(etalon_workspace, 16);
  FIELD(etalon_workspace, data, 0, 8);
  FIELD(etalon_workspace, bytes, 8, 8);
  SIZE(etalon_task_fn, 8);
  SIZE(etalon_parallel, 24);
  FIELD(etalon_parallel, parallel_for, 0, 8);
  FIELD(etalon_parallel, ctx, 8, 8);
  FIELD(etalon_parallel, workers, 16, 4);
  FIELD(etalon_parallel, reserved, 20, 4);
  SIZE(etalon_plan, 1024);
  FIELD(etalon_plan, opaque, 0, 1024);
  SIZE(etalon_states, 24);
  FIELD(etalon_states, m, 0, 8);
  FIELD(etalon_states, l, 8, 8);
  FIELD(etalon_states, o, 16, 8);
  SIZE(etalon_target, 24);
  FIELD(etalon_target, name, 0, 8);
  FIELD(etalon_target, missing, 8, 8);
  FIELD(etalon_target, required, 16, 8);
}

static void check_attention_structs(void) {
  SIZE(etalon_attention_desc, 128);
  FIELD(etalon_attention_desc, struct_size, 0, 8);
  FIELD(etalon_attention_desc, num_q_heads, 8, 8);
  FIELD(etalon_attention_desc, num_kv_heads, 16, 8);
  FIELD(etalon_attention_desc, head_dim, 24, 8);
  FIELD(etalon_attention_desc, value_dim, 32, 8);
  FIELD(etalon_attention_desc, max_batch, 40, 8);
  FIELD(etalon_attention_desc, max_q_len, 48, 8);
  FIELD(etalon_attention_desc, max_kv_len, 56, 8);
  FIELD(etalon_attention_desc, q_dtype, 64, 4);
  FIELD(etalon_attention_desc, k_dtype, 68, 4);
  FIELD(etalon_attention_desc, v_dtype, 72, 4);
  FIELD(etalon_attention_desc, out_dtype, 76, 4);
  FIELD(etalon_attention_desc, left, 80, 8);
  FIELD(etalon_attention_desc, right, 88, 8);
  FIELD(etalon_attention_desc, scale, 96, 4);
  FIELD(etalon_attention_desc, softcap, 100, 4);
  FIELD(etalon_attention_desc, math, 104, 4);
  FIELD(etalon_attention_desc, max_workers, 108, 4);
  FIELD(etalon_attention_desc, options, 112, 4);
  FIELD(etalon_attention_desc, num_sources, 116, 4);
  FIELD(etalon_attention_desc, target, 120, 8);
  SIZE(etalon_attention_args, 176);
  FIELD(etalon_attention_args, struct_size, 0, 8);
  FIELD(etalon_attention_args, q, 8, 8);
  FIELD(etalon_attention_args, k, 16, 8);
  FIELD(etalon_attention_args, v, 24, 8);
  FIELD(etalon_attention_args, out, 32, 8);
  FIELD(etalon_attention_args, lse, 40, 8);
  FIELD(etalon_attention_args, q_offset, 48, 8);
  FIELD(etalon_attention_args, q_offsets, 56, 8);
  FIELD(etalon_attention_args, q_lens, 64, 8);
  FIELD(etalon_attention_args, kv_lens, 72, 8);
  FIELD(etalon_attention_args, slopes, 80, 8);
  FIELD(etalon_attention_args, bias, 88, 8);
  FIELD(etalon_attention_args, mask, 96, 8);
  FIELD(etalon_attention_args, sinks, 104, 8);
  FIELD(etalon_attention_args, kv_firsts, 112, 8);
  FIELD(etalon_attention_args, prefix_lens, 120, 8);
  FIELD(etalon_attention_args, num_sequences, 128, 8);
  FIELD(etalon_attention_args, q_starts, 136, 8);
  FIELD(etalon_attention_args, kv_starts, 144, 8);
  FIELD(etalon_attention_args, prepared_mask, 152, 8);
  FIELD(etalon_attention_args, more_sources, 160, 8);
  FIELD(etalon_attention_args, places, 168, 8);
  SIZE(etalon_key_source, 120);
  FIELD(etalon_key_source, struct_size, 0, 8);
  FIELD(etalon_key_source, k, 8, 8);
  FIELD(etalon_key_source, v, 16, 8);
  FIELD(etalon_key_source, left, 24, 8);
  FIELD(etalon_key_source, right, 32, 8);
  FIELD(etalon_key_source, q_offset, 40, 8);
  FIELD(etalon_key_source, q_offsets, 48, 8);
  FIELD(etalon_key_source, kv_lens, 56, 8);
  FIELD(etalon_key_source, kv_firsts, 64, 8);
  FIELD(etalon_key_source, kv_starts, 72, 8);
  FIELD(etalon_key_source, prefix_lens, 80, 8);
  FIELD(etalon_key_source, bias, 88, 8);
  FIELD(etalon_key_source, mask, 96, 8);
  FIELD(etalon_key_source, prepared_mask, 104, 8);
  FIELD(etalon_key_source, places, 112, 8);
  SIZE(etalon_kv_places, 48);
  FIELD(etalon_kv_places, struct_size, 0, 8);
  FIELD(etalon_kv_places, page_table, 8, 8);
  FIELD(etalon_kv_places, page_table_stride, 16, 8);
  FIELD(etalon_kv_places, max_pages, 24, 8);
  FIELD(etalon_kv_places, ring_keep, 32, 8);
  FIELD(etalon_kv_places, ring_len, 40, 8);
  SIZE(etalon_kv_append_args, 72);
  FIELD(etalon_kv_append_args, struct_size, 0, 8);
  FIELD(etalon_kv_append_args, new_k, 8, 8);
  FIELD(etalon_kv_append_args, new_v, 16, 8);
  FIELD(etalon_kv_append_args, k, 24, 8);
  FIELD(etalon_kv_append_args, v, 32, 8);
  FIELD(etalon_kv_append_args, places, 40, 8);
  FIELD(etalon_kv_append_args, kv_lens, 48, 8);
  FIELD(etalon_kv_append_args, new_lens, 56, 8);
  FIELD(etalon_kv_append_args, target, 64, 8);
  SIZE(etalon_mask_args, 96);
  FIELD(etalon_mask_args, struct_size, 0, 8);
  FIELD(etalon_mask_args, batch, 8, 8);
  FIELD(etalon_mask_args, num_heads, 16, 8);
  FIELD(etalon_mask_args, q_len, 24, 8);
  FIELD(etalon_mask_args, kv_len, 32, 8);
  FIELD(etalon_mask_args, mask, 40, 8);
  FIELD(etalon_mask_args, q_segments, 48, 8);
  FIELD(etalon_mask_args, kv_segments, 56, 8);
  FIELD(etalon_mask_args, q_block, 64, 8);
  FIELD(etalon_mask_args, kv_block, 72, 8);
  FIELD(etalon_mask_args, block_starts, 80, 8);
  FIELD(etalon_mask_args, blocks, 88, 8);
  SIZE(etalon_plan_info, 72);
  FIELD(etalon_plan_info, struct_size, 0, 8);
  FIELD(etalon_plan_info, target, 8, 8);
  FIELD(etalon_plan_info, math, 16, 4);
  FIELD(etalon_plan_info, max_workers, 20, 4);
  FIELD(etalon_plan_info, workspace_bytes, 24, 8);
  FIELD(etalon_plan_info, tile_rows, 32, 8);
  FIELD(etalon_plan_info, num_tasks, 40, 8);
  FIELD(etalon_plan_info, key_splits, 48, 8);
  FIELD(etalon_plan_info, key_tiles, 56, 8);
  FIELD(etalon_plan_info, bytes_read, 64, 8);
}

static void check_primitive_structs(void) {
  SIZE(etalon_softmax_args, 96);
  FIELD(etalon_softmax_args, struct_size, 0, 8);
  FIELD(etalon_softmax_args, scores, 8, 8);
  FIELD(etalon_softmax_args, weights, 16, 8);
  FIELD(etalon_softmax_args, lse, 24, 8);
  FIELD(etalon_softmax_args, left, 32, 8);
  FIELD(etalon_softmax_args, right, 40, 8);
  FIELD(etalon_softmax_args, q_offset, 48, 8);
  FIELD(etalon_softmax_args, q_offsets, 56, 8);
  FIELD(etalon_softmax_args, q_lens, 64, 8);
  FIELD(etalon_softmax_args, kv_lens, 72, 8);
  FIELD(etalon_softmax_args, mask, 80, 8);
  FIELD(etalon_softmax_args, target, 88, 8);
  SIZE(etalon_weighted_sum_args, 104);
  FIELD(etalon_weighted_sum_args, struct_size, 0, 8);
  FIELD(etalon_weighted_sum_args, weights, 8, 8);
  FIELD(etalon_weighted_sum_args, v, 16, 8);
  FIELD(etalon_weighted_sum_args, out, 24, 8);
  FIELD(etalon_weighted_sum_args, left, 32, 8);
  FIELD(etalon_weighted_sum_args, right, 40, 8);
  FIELD(etalon_weighted_sum_args, q_offset, 48, 8);
  FIELD(etalon_weighted_sum_args, q_offsets, 56, 8);
  FIELD(etalon_weighted_sum_args, q_lens, 64, 8);
  FIELD(etalon_weighted_sum_args, kv_lens, 72, 8);
  FIELD(etalon_weighted_sum_args, mask, 80, 8);
  FIELD(etalon_weighted_sum_args, target, 88, 8);
  FIELD(etalon_weighted_sum_args, max_workers, 96, 4);
  FIELD(etalon_weighted_sum_args, reserved, 100, 4);
  SIZE(etalon_merge_args, 64);
  FIELD(etalon_merge_args, struct_size, 0, 8);
  FIELD(etalon_merge_args, out1, 8, 8);
  FIELD(etalon_merge_args, lse1, 16, 8);
  FIELD(etalon_merge_args, out2, 24, 8);
  FIELD(etalon_merge_args, lse2, 32, 8);
  FIELD(etalon_merge_args, out, 40, 8);
  FIELD(etalon_merge_args, lse, 48, 8);
  FIELD(etalon_merge_args, target, 56, 8);
  SIZE(etalon_merge_states_args, 56);
  FIELD(etalon_merge_states_args, struct_size, 0, 8);
  FIELD(etalon_merge_states_args, states, 8, 8);
  FIELD(etalon_merge_states_args, out, 16, 8);
  FIELD(etalon_merge_states_args, lse, 24, 8);
  FIELD(etalon_merge_states_args, sinks, 32, 8);
  FIELD(etalon_merge_states_args, target, 40, 8);
  FIELD(etalon_merge_states_args, max_workers, 48, 4);
  FIELD(etalon_merge_states_args, reserved, 52, 4);
}

static void run_as_one(void* ctx, int64_t num_tasks, etalon_task_fn fn, void* arg) {
  ++*(int*)ctx;
  fn(arg, 0, num_tasks, 0);
}

/* Queries of 0 weigh all keys alike, so the outputs are means: exact ones, of powers of two of keys. */
static void check_call(void) {
  float q_data[2 * 1] = {0, 0}, k_data[2 * 1] = {5, -7}, v_data[2 * 2] = {1, 10, 3, 30}, out_data[2 * 2], lse_data[2];
  const float want[2 * 2] = {1, 10, 2, 20}; /* causal: the first row sees the first key */
  const int64_t q_shape[2] = {2, 1}, v_shape[2] = {2, 2}, lse_shape[1] = {2};
  etalon_tensor q, k, v, out, lse;
  etalon_attention_desc desc;
  etalon_attention_args args;
  etalon_workspace workspace;
  etalon_parallel parallel;
  etalon_error error;
  size_t bytes = 0;
  int i, calls = 0;
  void* memory;
  expect("tensor_init q", etalon_tensor_init(&q, q_data, ETALON_F32, 2, q_shape, &error), ETALON_OK);
  expect("tensor_init k", etalon_tensor_init(&k, k_data, ETALON_F32, 2, q_shape, &error), ETALON_OK);
  expect("tensor_init v", etalon_tensor_init(&v, v_data, ETALON_F32, 2, v_shape, &error), ETALON_OK);
  expect("tensor_init out", etalon_tensor_init(&out, out_data, ETALON_F32, 2, v_shape, &error), ETALON_OK);
  expect("tensor_init lse", etalon_tensor_init(&lse, lse_data, ETALON_F32, 1, lse_shape, &error), ETALON_OK);
  expect("desc_init", etalon_attention_desc_init(&desc, sizeof desc), ETALON_OK);
  expect("args_init", etalon_attention_args_init(&args, sizeof args), ETALON_OK);
  desc.right = 0;
  args.q = &q;
  args.k = &k;
  args.v = &v;
  args.out = &out;
  args.lse = &lse;
  expect("workspace_bytes", etalon_attention_workspace_bytes(&desc, &args, &bytes, &error), ETALON_OK);
  memory = malloc(bytes + 64);
  if (memory == NULL) exit(2);
  workspace.data = (char*)memory + (64 - (size_t)((uintptr_t)memory % 64)) % 64;
  workspace.bytes = bytes;
  parallel.parallel_for = run_as_one;
  parallel.ctx = &calls;
  parallel.workers = 1;
  parallel.reserved = 0;
  expect("attention", etalon_attention(&desc, &args, &workspace, &parallel, &error), ETALON_OK);
  expect("error.status", error.status, ETALON_OK);
  expect("calls of parallel_for", calls, 1);
  for (i = 0; i < 4; ++i) {
    if (out_data[i] != want[i]) {
      printf("out[%d] is %g, must be %g\n", i, out_data[i], want[i]);
      ++failures;
    }
  }
  expect("lse of one key of score 0", lse_data[0] == 0.0f, 1);
  expect("lse of two keys", lse_data[1] > 0.6931f && lse_data[1] < 0.6932f, 1);

  /* Somebody who was compiled before there was anything behind sinks: what lies there is not his. */
  args.struct_size = offsetof(etalon_attention_args, kv_firsts);
  memset((char*)&args + args.struct_size, 0xA5, sizeof args - args.struct_size);
  expect("attention of the first version", etalon_attention(&desc, &args, &workspace, &parallel, &error), ETALON_OK);

  args.k = NULL;
  expect("attention without k", etalon_attention(&desc, &args, &workspace, &parallel, &error), ETALON_NULL_POINTER);
  expect("error.field is args.k", strcmp(error.field, "args.k"), 0);
  expect("the status has its name", strcmp(etalon_status_name(error.status), "ETALON_NULL_POINTER"), 0);
  free(memory);
}

int main(void) {
  check_constants();
  check_call();
  if (CHAR_BIT != 8 || sizeof(void*) != 8 || sizeof(size_t) != 8 || sizeof(long) != 8) {
    puts("not LP64: the layout of the structs is not checked");
    return failures != 0 ? 1 : 77;
  }
  check_small_structs();
  check_attention_structs();
  check_primitive_structs();
  return failures != 0;
}
