// The kernel tables and CPU features, for those who report or choose them.
#include <etalon/etalon.h>

#include "arch/cpu.h"
#include "arch/dispatch.h"

extern "C" {

int32_t etalon_num_targets(void) { return static_cast<int32_t>(etalon::NumTables()); }

etalon_status etalon_get_target(int32_t index, etalon_target* target) {
  if (target == nullptr) return ETALON_NULL_POINTER;
  if (index < 0 || index >= etalon_num_targets()) return ETALON_BAD_VALUE;
  const etalon::TableInfo info = etalon::GetTableInfo(static_cast<size_t>(index));
  *target = {info.name, info.missing, info.required};
  return ETALON_OK;
}

uint64_t etalon_cpu_features(void) { return etalon::DetectCpu(); }

const char* etalon_cpu_feature_name(uint64_t bit) { return etalon::CpuFeatureName(bit); }

}  // extern "C"
