// Plans: everything that etalon_plan_init, etalon_plan_get_info, etalon_begin, etalon_run and etalon_execute promise.
#include "tests/fuzz/expect.h"
#include "tests/fuzz/runner.h"
#include "tests/support/generate.h"

namespace etalon::fuzz {
namespace {

constexpr Wide kMostToCount = 400000;

class PlanRunner : public Runner {
 public:
  using Runner::Runner;

  void Run() {
    etalon_attention_desc desc;
    if (!MakePlan(&desc)) return;
    Faults of_plan;
    const size_t bytes = etalon_plan_workspace_bytes(As<etalon_plan>(plan_));
    BreakPlan(&of_plan);
    if (bytes == 0) Wrong("a plan that needs no workspace");
    if (of_plan.must != 0 && etalon_plan_workspace_bytes(Plan()) != 0) Wrong("a broken plan has told a size");
    AskInfo(of_plan, desc, bytes, false);
    const int64_t told = call_->null_args ? -1 : AskInfo(of_plan, desc, bytes, true);
    MakeWorkspace(bytes);
    Judged judged = JudgeCall(*call_, Depth::kMemory, &desc);
    judged.faults.Add(of_plan);
    if (call_->function == kExecute) {
      Compute("execute", judged, bytes,
              [this](etalon_error* error) { return etalon_execute(Plan(), Args(), Workspace(), Parallel(), error); });
      return;
    }
    // Begun and run as one function, so that everything is checked around both.
    call_->has_parallel = false;
    if (call_->null_result) judged.faults.Must(ETALON_NULL_POINTER);
    Compute("begin, run", judged, bytes, [&](etalon_error* error) {
      int64_t num_tasks = -77;
      const etalon_status status =
          etalon_begin(Plan(), Args(), Workspace(), call_->null_result ? nullptr : &num_tasks, error);
      if (status != ETALON_OK && num_tasks != -77) Wrong("begin has refused and told a number of tasks");
      if (status == ETALON_OK) RunTasks(num_tasks, told, desc.max_workers == 0 ? 1 : desc.max_workers);
      return status;
    });
  }

 private:
  const etalon_plan* Plan() const { return call_->plan_fault == PlanFault::kNull ? nullptr : As<etalon_plan>(plan_); }

  void Scramble(Block* block) const {
    if (block == nullptr) return;
    std::memset(block->data(), 0xEE, block->size());
    block->Remember();
  }

  bool MakePlan(etalon_attention_desc* desc) {
    Faults faults = JudgeDesc(*call_, true);
    plan_ = call_->arena.Add("plan", sizeof(etalon_plan));
    RememberAll();
    const etalon_status supported = Ask("supports", [&](etalon_error* e) { return etalon_supports(Desc(), e); });
    CheckAnswer("supports", faults, supported);
    CheckUnchanged("supports");
    etalon_plan* plan = reinterpret_cast<etalon_plan*>(plan_->data());
    if (call_->plan_fault == PlanFault::kNull) faults.Must(ETALON_NULL_POINTER);
    const etalon_status status = Ask("plan_init", [&](etalon_error* e) {
      return etalon_plan_init(call_->plan_fault == PlanFault::kNull ? nullptr : plan, Desc(), e);
    });
    CheckAnswer("plan_init", faults, status);
    if (status != ETALON_OK) {
      CheckUnchanged("plan_init");
      return false;
    }
    if (supported != ETALON_OK) Wrong("a plan that is not supported was made");
    *desc = call_->desc->Get<etalon_attention_desc>();
    // Plain memory, without a thread to what it was made from.
    Block* copy = call_->arena.Add("copy of the plan", sizeof(etalon_plan));
    std::memcpy(copy->data(), plan_->data(), sizeof(etalon_plan));
    Scramble(plan_);
    plan_ = copy;
    const uintptr_t target = reinterpret_cast<uintptr_t>(desc->target);
    if (target != 0) Scramble(call_->arena.Find(target, target));
    Scramble(call_->desc);
    return true;
  }

  void BreakPlan(Faults* faults) {
    switch (call_->plan_fault) {
      case PlanFault::kZero:
        std::memset(plan_->data(), 0, plan_->size());
        return faults->Must(ETALON_BAD_PLAN);
      case PlanFault::kMagic:
        plan_->data()[call_->loop.seed % 8] ^= static_cast<unsigned char>(1 + call_->loop.seed / 8 % 255);
        return faults->Must(ETALON_BAD_PLAN);
      default:
        return;
    }
  }

  // -1 if the plan did not tell.
  int64_t AskInfo(const Faults& of_plan, const etalon_attention_desc& desc, size_t bytes, bool with_args) {
    Judged judged(*call_);
    if (with_args) judged = JudgeCall(*call_, Depth::kShapes, &desc);
    judged.faults.Add(of_plan);
    if (call_->null_result) judged.faults.Must(ETALON_NULL_POINTER);
    if (!judged.arrays_exist) return -1;
    Block* block = call_->arena.Add("info", sizeof(etalon_plan_info) + call_->workspace_extra / 8 * 8);
    etalon_plan_info* info = reinterpret_cast<etalon_plan_info*>(block->data());
    if (etalon_plan_info_init(info, block->size()) != ETALON_OK) Wrong("plan_info_init has failed");
    RememberAll();
    const etalon_status status = Ask("plan_get_info", [&](etalon_error* e) {
      return etalon_plan_get_info(Plan(), with_args ? Args() : nullptr, call_->null_result ? nullptr : info, e);
    });
    CheckAnswer("plan_get_info", judged.faults, status);
    if (status != ETALON_OK) {
      CheckUnchanged("plan_get_info");
      return -1;
    }
    const etalon_plan_info got = *info;
    block->Restore();
    CheckUnchanged("plan_get_info");
    const int32_t workers = desc.max_workers == 0 ? 1 : desc.max_workers;
    if (got.struct_size != block->size() || got.math != ETALON_MATH_EXACT || got.max_workers != workers ||
        got.workspace_bytes != bytes || got.tile_rows < 1 || got.target == nullptr) {
      Wrong("plan_get_info tells something else than the plan was made from");
    }
    // The model looks at every row; the library must not.
    if (with_args && judged.work > kMostToCount) return got.num_tasks;
    const Counts counts = with_args ? Count(*call_, judged, got.tile_rows) : Counts();
    const Work &least = counts.least, &most = counts.most;
    if (got.key_tiles < least.key_tiles || got.key_tiles > most.key_tiles || got.bytes_read < least.bytes_read ||
        got.bytes_read > most.bytes_read || got.num_tasks < counts.tiles ||
        (counts.tiles == 0) != (got.num_tasks == 0) || got.key_splits > got.num_tasks - counts.tiles + 1) {
      Wrong("plan_get_info counts wrong: " + std::to_string(got.num_tasks) + " tasks, " +
            std::to_string(got.key_tiles) + " key tiles, " + std::to_string(got.bytes_read) + " bytes");
    }
    return with_args ? got.num_tasks : -1;
  }

  void CheckRun(void* workspace, int64_t first, int64_t last, int32_t worker, etalon_status want) const {
    const etalon_status got = etalon_run(workspace, first, last, worker);
    if (got != want) {
      Wrong("run of " + std::to_string(first) + " ... " + std::to_string(last) + " by " + std::to_string(worker) +
            " answers " + etalon_status_name(got) + ", must be " + etalon_status_name(want));
    }
  }

  void RunTasks(int64_t num_tasks, int64_t told, int32_t workers) {
    if (told >= 0 && told != num_tasks) Wrong("begin and plan_get_info tell different numbers of tasks");
    if (!call_->twice) {  // nothing of this is needed any more
      for (Block* block : {call_->args, call_->more_sources, plan_}) Scramble(block);
      for (const ArrayBlock& array : call_->arrays) Scramble(array.block);
      for (Block* block : call_->sources) Scramble(block);
      for (Block* block : call_->tensors) Scramble(block);
    }
    // Work that was moved, or is none.
    Block other("other memory", workspace_.bytes, 0);
    std::memcpy(other.data(), workspace_.data, workspace_.bytes);
    CheckRun(other.data(), 0, num_tasks, 0, ETALON_NOT_BEGUN);
    std::memset(other.data(), call_->loop.seed % 2 == 0 ? 0 : 0xFF, other.size());
    CheckRun(other.data(), 0, num_tasks, 0, ETALON_NOT_BEGUN);
    CheckRun(other.data() + 8, 0, num_tasks, 0, ETALON_NOT_BEGUN);
    CheckRun(nullptr, 0, num_tasks, 0, ETALON_NULL_POINTER);
    const int64_t far = INT64_MAX;
    CheckRun(workspace_.data, -1, 0, 0, ETALON_BAD_TASKS);
    CheckRun(workspace_.data, 0, num_tasks + 1, 0, ETALON_BAD_TASKS);
    CheckRun(workspace_.data, far, far, 0, ETALON_BAD_TASKS);
    CheckRun(workspace_.data, INT64_MIN, far, 0, ETALON_BAD_TASKS);
    CheckRun(workspace_.data, 0, num_tasks, workers, ETALON_BAD_TASKS);
    CheckRun(workspace_.data, 0, num_tasks, -1, ETALON_BAD_TASKS);
    if (num_tasks > 0) CheckRun(workspace_.data, num_tasks, num_tasks - 1, 0, ETALON_BAD_TASKS);
    test::Random random(call_->loop.seed + 2);
    for (const auto& part : CutTasks(call_->loop.seed, num_tasks)) {
      CheckRun(workspace_.data, part.first, part.second, static_cast<int32_t>(random.Below(workers)), ETALON_OK);
    }
    if (num_tasks > 0) CheckRun(workspace_.data, 0, 1, 0, ETALON_BAD_TASKS);  // once each
  }

  Block* plan_ = nullptr;
};

}  // namespace

void RunPlanned(Call* call) { PlanRunner(call).Run(); }

}  // namespace etalon::fuzz
