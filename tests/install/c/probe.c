/* Says what tables the library has, which of them run here, and which it takes by itself. */
#include <etalon/etalon.h>
#include <stdio.h>

int main(void) {
  etalon_target target;
  for (int32_t i = 0; i < etalon_num_targets(); ++i) {
    if (etalon_get_target(i, &target) != ETALON_OK) return 1;
    printf("%s %s\n", target.name, target.missing == 0 ? "runs" : "lacks");
  }
  etalon_attention_desc desc;
  if (etalon_attention_desc_init(&desc, sizeof desc) != ETALON_OK) return 2;
  desc.num_q_heads = desc.num_kv_heads = desc.max_batch = desc.max_q_len = desc.max_kv_len = 1;
  desc.head_dim = desc.value_dim = 8;
  desc.q_dtype = desc.k_dtype = desc.v_dtype = desc.out_dtype = ETALON_F32;
  etalon_plan plan;
  etalon_plan_info info;
  if (etalon_plan_init(&plan, &desc, NULL) != ETALON_OK) return 3;
  if (etalon_plan_info_init(&info, sizeof info) != ETALON_OK) return 4;
  if (etalon_plan_get_info(&plan, NULL, &info, NULL) != ETALON_OK) return 5;
  printf("default %s\n", info.target);
  return 0;
}
