// plan.h: what an etalon_plan holds, and how one is made.
#ifndef ETALON_LIB_API_PLAN_H_
#define ETALON_LIB_API_PLAN_H_

#include <cstdint>
#include <type_traits>

#include "lib/api/call.h"
#include "lib/attention/schedule.h"

namespace etalon {

// Tells a plan from memory that is none. Changes with the layout of PlanData.
constexpr uint64_t kPlanMagic = 0x3176'4E41'4C50'5445u;

struct PlanData {
  uint64_t magic;
  etalon_attention_desc desc;  // complete; target is null
  KernelTable table;
  AttentionLayout layout;
};
static_assert(sizeof(PlanData) <= sizeof(etalon_plan), "etalon_plan must have room for it");
static_assert(std::is_trivially_copyable<PlanData>::value, "callers copy plans as bytes");

// From a descriptor that has passed ReadDesc, and whose open sizes are filled.
etalon_status MakePlan(const etalon_attention_desc& desc, PlanData* plan, etalon_error* error);

// Begins the call in its workspace and runs all tasks of it.
etalon_status BeginAndRun(const PlanData& plan, const Call& call, const etalon_workspace* workspace,
                          const etalon_parallel* parallel, etalon_error* error);

}  // namespace etalon

#endif  // ETALON_LIB_API_PLAN_H_
