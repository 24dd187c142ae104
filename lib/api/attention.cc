// The one-call form: a plan for just this call, and the call.
#include "lib/api/plan.h"

namespace etalon {
namespace {

etalon_status PlanCall(const etalon_attention_desc* caller, const etalon_attention_args* args, Depth depth,
                       PlanData* plan, Call* call, etalon_error* error) {
  etalon_attention_desc desc;
  ETALON_CHECK(ReadDesc(caller, Function::kAttention, &desc, error));
  ETALON_CHECK(ReadArgs(args, Function::kAttention, Sizes::kFromTensors, depth, &desc, call, error));
  return MakePlan(desc, plan, error);
}

}  // namespace
}  // namespace etalon

extern "C" {

etalon_status etalon_attention_workspace_bytes(const etalon_attention_desc* desc, const etalon_attention_args* args,
                                               size_t* bytes, etalon_error* error) {
  if (bytes == nullptr) return etalon::Fail(error, ETALON_NULL_POINTER, {"bytes"}, {"is NULL"});
  etalon::PlanData plan;
  etalon::Call call;
  ETALON_CHECK(etalon::PlanCall(desc, args, etalon::Depth::kShapes, &plan, &call, error));
  *bytes = plan.layout.bytes;
  return etalon::Succeed(error);
}

etalon_status etalon_attention(const etalon_attention_desc* desc, const etalon_attention_args* args,
                               const etalon_workspace* workspace, const etalon_parallel* parallel,
                               etalon_error* error) {
  etalon::PlanData plan;
  etalon::Call call;
  ETALON_CHECK(etalon::PlanCall(desc, args, etalon::Depth::kMemory, &plan, &call, error));
  return etalon::BeginAndRun(plan, call, workspace, parallel, error);
}

}  // extern "C"
