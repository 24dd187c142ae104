// The plan form: plans, begun calls, and the tasks of a call.
#include "lib/api/plan.h"

#include <cstring>

#include "lib/api/parallel.h"
#include "lib/base/workspace.h"

namespace etalon {
namespace {

constexpr uint64_t kBegunMagic = 0x3176'4E55'4745'4245u;

// At the start of the workspace of a begun call.
struct Begun {
  uint64_t magic;
  TaskLoop loop;
  AttentionWork work;
};

void RunTasks(void* work, int64_t first, int64_t last, int32_t worker) {
  RunAttention(static_cast<AttentionWork*>(work), first, last, worker);
}

etalon_status ReadPlan(const etalon_plan* caller, PlanData* plan, etalon_error* error) {
  if (caller == nullptr) return Fail(error, ETALON_NULL_POINTER, {"plan"}, {"is NULL"});
  std::memcpy(plan, caller, sizeof *plan);
  if (plan->magic == kPlanMagic) return ETALON_OK;
  return Fail(error, ETALON_BAD_PLAN, {"plan"}, {"was not made by etalon_plan_init of this library"});
}

etalon_status ReadPlannedCall(const etalon_plan* caller, const etalon_attention_args* args, Depth depth, PlanData* plan,
                              Call* call, etalon_error* error) {
  ETALON_CHECK(ReadPlan(caller, plan, error));
  return ReadArgs(args, Function::kAttention, Sizes::kPlanned, depth, &plan->desc, call, error);
}

etalon_status PlanFromDesc(const etalon_attention_desc* caller, PlanData* plan, etalon_error* error) {
  etalon_attention_desc desc;
  ETALON_CHECK(ReadDesc(caller, Function::kAttention, &desc, error));
  return MakePlan(desc, plan, error);
}

}  // namespace

etalon_status MakePlan(const etalon_attention_desc& desc, PlanData* plan, etalon_error* error) {
  ETALON_CHECK(CheckSizes(desc, error));
  *plan = {};
  plan->magic = kPlanMagic;
  plan->desc = desc;
  plan->desc.max_workers = WorkersOf(desc.max_workers);
  plan->desc.scale = ScaleOf(desc);
  plan->desc.num_sources = desc.num_sources == 0 ? 1 : desc.num_sources;
  plan->desc.target = nullptr;
  ETALON_CHECK(CheckTarget(desc.target, "desc", &plan->table, error));
  const CallLimits limits = {desc.max_batch,
                             desc.num_q_heads,
                             desc.num_kv_heads,
                             desc.max_q_len,
                             desc.max_kv_len,
                             plan->desc.num_sources,
                             static_cast<size_t>(desc.head_dim),
                             static_cast<size_t>(desc.value_dim),
                             plan->desc.max_workers,
                             HasOption(desc, ETALON_OPTION_ALIBI)};
  if (LayOutAttention(plan->table, limits, sizeof(Begun), &plan->layout)) return ETALON_OK;
  return Fail(error, ETALON_OVERFLOW, {"desc"}, {"has sizes or max_workers whose workspace does not fit an address"});
}

namespace {

// The work of a call, at the start of its workspace. All checks, then all writes.
etalon_status Begin(const PlanData& plan, const Call& call, const etalon_workspace* caller_workspace,
                    const etalon_parallel* parallel, int64_t* num_tasks, void** begun_at, etalon_error* error) {
  etalon_workspace workspace;
  ETALON_CHECK(CheckWorkspace(caller_workspace, "workspace", plan.layout.bytes, &workspace, error));
  ETALON_CHECK(CheckParallel(parallel, plan.desc.max_workers, error));
  Memory memory;
  Touches(call, &memory);
  memory.Writes({"workspace", "data"}, workspace);
  ETALON_CHECK(memory.Check(error));

  unsigned char* start = static_cast<unsigned char*>(workspace.data);
  Begun* begun = static_cast<Begun*>(workspace.data);
  FillProblem(plan.desc, call, &begun->work.problem);
  *num_tasks = BeginAttention(plan.table, plan.desc.max_workers, plan.layout, start, &begun->work);
  begun->loop = {RunTasks, &begun->work, *num_tasks, plan.desc.max_workers, 0, 0, 0};
  begun->magic = kBegunMagic;
  *begun_at = begun;
  return ETALON_OK;
}

}  // namespace

etalon_status BeginAndRun(const PlanData& plan, const Call& call, const etalon_workspace* workspace,
                          const etalon_parallel* parallel, etalon_error* error) {
  // The caller's structs may lie in the workspace, which is written from here on.
  const etalon_parallel own = parallel == nullptr ? etalon_parallel{} : *parallel;
  int64_t num_tasks;
  void* begun;
  ETALON_CHECK(Begin(plan, call, workspace, parallel, &num_tasks, &begun, error));
  return RunAll(&static_cast<Begun*>(begun)->loop, parallel == nullptr ? nullptr : &own, error);
}

}  // namespace etalon

extern "C" {

etalon_status etalon_supports(const etalon_attention_desc* desc, etalon_error* reason) {
  etalon::PlanData plan;
  ETALON_CHECK(etalon::PlanFromDesc(desc, &plan, reason));
  return etalon::Succeed(reason);
}

etalon_status etalon_plan_init(etalon_plan* plan, const etalon_attention_desc* desc, etalon_error* error) {
  if (plan == nullptr) return etalon::Fail(error, ETALON_NULL_POINTER, {"plan"}, {"is NULL"});
  etalon::PlanData data;
  ETALON_CHECK(etalon::PlanFromDesc(desc, &data, error));
  std::memset(plan, 0, sizeof *plan);
  std::memcpy(plan, &data, sizeof data);
  return etalon::Succeed(error);
}

size_t etalon_plan_workspace_bytes(const etalon_plan* plan) {
  etalon::PlanData data;
  return etalon::ReadPlan(plan, &data, nullptr) == ETALON_OK ? data.layout.bytes : 0;
}

etalon_status etalon_begin(const etalon_plan* plan, const etalon_attention_args* args,
                           const etalon_workspace* workspace, int64_t* num_tasks, etalon_error* error) {
  if (num_tasks == nullptr) return etalon::Fail(error, ETALON_NULL_POINTER, {"num_tasks"}, {"is NULL"});
  etalon::PlanData data;
  etalon::Call call;
  ETALON_CHECK(etalon::ReadPlannedCall(plan, args, etalon::Depth::kMemory, &data, &call, error));
  void* begun;
  ETALON_CHECK(etalon::Begin(data, call, workspace, nullptr, num_tasks, &begun, error));
  return etalon::Succeed(error);
}

etalon_status etalon_run(void* workspace_data, int64_t first, int64_t last, int32_t worker) {
  if (workspace_data == nullptr) return ETALON_NULL_POINTER;
  etalon::Begun* begun = static_cast<etalon::Begun*>(workspace_data);
  // It holds pointers into itself: memory that was moved is not what was begun.
  if (reinterpret_cast<uintptr_t>(workspace_data) % etalon::kWorkspaceAlignment != 0 ||
      begun->magic != etalon::kBegunMagic || begun->loop.work != &begun->work) {
    return ETALON_NOT_BEGUN;
  }
  return etalon::RunPart(&begun->loop, first, last, worker) ? ETALON_OK : ETALON_BAD_TASKS;
}

etalon_status etalon_execute(const etalon_plan* plan, const etalon_attention_args* args,
                             const etalon_workspace* workspace, const etalon_parallel* parallel, etalon_error* error) {
  etalon::PlanData data;
  etalon::Call call;
  ETALON_CHECK(etalon::ReadPlannedCall(plan, args, etalon::Depth::kMemory, &data, &call, error));
  return etalon::BeginAndRun(data, call, workspace, parallel, error);
}

etalon_status etalon_plan_get_info(const etalon_plan* plan, const etalon_attention_args* args, etalon_plan_info* info,
                                   etalon_error* error) {
  etalon_plan_info full;
  ETALON_CHECK(etalon::CopyDescriptor(info, "info", &full, sizeof full, etalon::kFirstSizeOfInfo, error));
  etalon::PlanData data;
  etalon::AttentionCount count = {};
  int64_t tile_rows = etalon::kMostTileRows;
  if (args == nullptr) {
    ETALON_CHECK(etalon::ReadPlan(plan, &data, error));
  } else {
    etalon::Call call;
    ETALON_CHECK(etalon::ReadPlannedCall(plan, args, etalon::Depth::kShapes, &data, &call, error));
    etalon::AttentionProblem problem;
    etalon::FillProblem(data.desc, call, &problem);
    tile_rows = problem.tiles.tile_rows;
    count = etalon::CountAttention(problem, data.desc.max_workers);
  }
  const size_t struct_size = full.struct_size;
  full = {struct_size, data.table.name, data.desc.math,   data.desc.max_workers, data.layout.bytes,
          tile_rows,   count.num_tasks, count.key_splits, count.key_tiles,       count.bytes_read};
  std::memcpy(info, &full, struct_size < sizeof full ? struct_size : sizeof full);
  return etalon::Succeed(error);
}

}  // extern "C"
