// hello.c: causal attention of one sequence in one call.
#include <etalon/etalon.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { kHeads = 4, kKvHeads = 2, kLen = 6, kDim = 8 };

static float q_data[kHeads][kLen][kDim], k_data[kKvHeads][kLen][kDim], v_data[kKvHeads][kLen][kDim];
static float out_data[kHeads][kLen][kDim];
static etalon_error error;

static void Check(etalon_status status) {
  if (status == ETALON_OK) return;
  fprintf(stderr, "%s: %s\n", etalon_status_text(status), error.text);
  exit(1);
}

int main(void) {
  for (int t = 0; t < kLen; ++t) {  // all scores are 0, so a row's output is the mean of the values it sees
    for (int h = 0; h < kKvHeads; ++h) v_data[h][t][0] = (float)t;
  }

  const int64_t q_shape[] = {kHeads, kLen, kDim}, kv_shape[] = {kKvHeads, kLen, kDim};
  etalon_tensor q, k, v, out;
  Check(etalon_tensor_init(&q, q_data, ETALON_F32, 3, q_shape, &error));
  Check(etalon_tensor_init(&k, k_data, ETALON_F32, 3, kv_shape, &error));
  Check(etalon_tensor_init(&v, v_data, ETALON_F32, 3, kv_shape, &error));
  Check(etalon_tensor_init(&out, out_data, ETALON_F32, 3, q_shape, &error));
  etalon_attention_desc desc;
  etalon_attention_args args;
  Check(etalon_attention_desc_init(&desc, sizeof desc));
  Check(etalon_attention_args_init(&args, sizeof args));
  desc.right = 0;  // causal: no key to the right of the row's own
  args.q = &q, args.k = &k, args.v = &v, args.out = &out;
  etalon_workspace workspace;
  Check(etalon_attention_workspace_bytes(&desc, &args, &workspace.bytes, &error));
  workspace.data = aligned_alloc(64, (workspace.bytes + 63) / 64 * 64);
  Check(etalon_attention(&desc, &args, &workspace, NULL, &error));  // no threads; a NULL workspace is an error, too

  free(workspace.data);
  for (int t = 0; t < kLen; ++t) printf("%g ", (double)out_data[kHeads - 1][t][0]);  // prints: 0 0.5 1 1.5 2 2.5
  return 0;
}
