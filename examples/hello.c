// hello.c: causal attention of one sequence in one call.
#include <etalon/etalon.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { kHeads = 4, kKvHeads = 2, kLen = 6, kDim = 8 };

int main(void) {
  static float q[kHeads][kLen][kDim], k[kKvHeads][kLen][kDim], v[kKvHeads][kLen][kDim], out[kHeads][kLen][kDim];
  for (int t = 0; t < kLen; ++t) {  // all scores are 0, so a row's output is the mean of the values it sees
    for (int h = 0; h < kKvHeads; ++h) v[h][t][0] = (float)t;
  }

  const int64_t q_shape[] = {kHeads, kLen, kDim}, kv_shape[] = {kKvHeads, kLen, kDim};
  etalon_error error;
  etalon_tensor q_tensor, k_tensor, v_tensor, out_tensor;
  if (etalon_tensor_init(&q_tensor, q, ETALON_F32, 3, q_shape, &error) != ETALON_OK ||
      etalon_tensor_init(&k_tensor, k, ETALON_F32, 3, kv_shape, &error) != ETALON_OK ||
      etalon_tensor_init(&v_tensor, v, ETALON_F32, 3, kv_shape, &error) != ETALON_OK ||
      etalon_tensor_init(&out_tensor, out, ETALON_F32, 3, q_shape, &error) != ETALON_OK) {
    return puts(error.text), 1;
  }

  etalon_attention_desc desc;
  etalon_attention_args args;
  if (etalon_attention_desc_init(&desc, sizeof desc) != ETALON_OK) return 1;
  if (etalon_attention_args_init(&args, sizeof args) != ETALON_OK) return 1;
  desc.right = 0;  // causal
  args.q = &q_tensor;
  args.k = &k_tensor;
  args.v = &v_tensor;
  args.out = &out_tensor;

  size_t bytes;
  if (etalon_attention_workspace_bytes(&desc, &args, &bytes, &error) != ETALON_OK) return puts(error.text), 1;
  unsigned char* memory = malloc(bytes + 63);  // the workspace begins at a multiple of 64
  if (memory == NULL) return 1;
  const etalon_workspace workspace = {memory + (64 - (uintptr_t)memory % 64) % 64, bytes};
  const etalon_status status = etalon_attention(&desc, &args, &workspace, NULL, &error);
  free(memory);
  if (status != ETALON_OK) return puts(error.text), 1;

  for (int t = 0; t < kLen; ++t) printf("row %d of head 3: %g\n", t, (double)out[3][t][0]);  // 0, 0.5, 1, ... 2.5
  return out[3][kLen - 1][0] == 2.5f ? 0 : 1;
}
