#include "tests/fuzz/expect.h"
#include "tests/fuzz/runner.h"
#include "tests/support/generate.h"

namespace etalon::fuzz {
namespace {

constexpr Wide kMostWork = 400000;             // for calls that a mutation has made larger
constexpr size_t kLargestWorkspace = 1 << 22;  // larger ones are told to be too small

void* AlignedDown(uintptr_t address) { return reinterpret_cast<void*>(address / 64 * 64); }

}  // namespace

void Runner::Wrong(const std::string& what) const { Stop(what + "\n  in " + Describe(*call_)); }

etalon_status Runner::Ask(const char* function, const ErrorFunction& f) const {
  std::string wrong;
  const etalon_status status = Answer(call_->wants_error, call_->environment, f, &wrong);
  if (!wrong.empty()) Wrong(std::string(function) + ": " + wrong);
  return status;
}

void Runner::CheckAnswer(const char* function, const Faults& faults, etalon_status status) const {
  if (call_->mutations.empty() && !too_large_ && faults.must != 0) {
    Wrong(std::string("the fuzzer has made a wrong call: ") + faults.Disagrees(ETALON_OK));
  }
  const std::string disagrees = faults.Disagrees(status);
  if (!disagrees.empty()) Wrong(std::string(function) + ": " + disagrees);
}

void Runner::RememberAll() const {
  for (const auto& block : call_->arena.blocks()) block->Remember();
}

void Runner::CheckUnchanged(const char* function) const {
  for (const auto& block : call_->arena.blocks()) {
    const std::string change = block->Change();
    if (!change.empty()) Wrong(std::string(function) + " has refused or asked, but " + change);
  }
}

void Runner::CheckResult(const char* function, bool loosely) const {
  for (const auto& block : call_->arena.blocks()) {
    const std::string difference = block.get() == workspace_block_ ? block->Overrun() : block->Difference(loosely);
    if (!difference.empty()) Wrong(std::string(function) + ": " + difference);
  }
}

void Runner::MakeWorkspace(size_t bytes) {
  const size_t held = bytes > kLargestWorkspace ? 4096 : bytes + call_->workspace_extra;
  too_large_ = too_large_ || bytes > kLargestWorkspace;
  workspace_ = {nullptr, held};
  passes_workspace_ = true;
  switch (call_->workspace_fault) {
    case WorkspaceFault::kNull:
      passes_workspace_ = false;
      return;
    case WorkspaceFault::kNullData:
      return;
    case WorkspaceFault::kAtEnd:
      workspace_.data = reinterpret_cast<void*>(UINTPTR_MAX - 63);
      return;
    case WorkspaceFault::kOnTensor:
      // Or on what else the call reads.
      for (size_t i = 0; i < call_->tensors.size(); ++i) {
        if (call_->tensors[i] == nullptr || (i + call_->loop.seed) % 3 == 0) continue;
        workspace_.data = AlignedDown(call_->tensors[i]->Get<uintptr_t>(offsetof(etalon_tensor, data)));
      }
      for (const ArrayBlock& array : call_->arrays) {
        if (array.block == nullptr || call_->loop.seed % 5 != 0) continue;
        workspace_.data = AlignedDown(reinterpret_cast<uintptr_t>(array.block->data()));
      }
      for (const PreparedMask& mask : call_->masks) {
        if (call_->loop.seed % 7 == 0) workspace_.data = mask.block->data();
      }
      return;
    case WorkspaceFault::kSmall:
      if (held >= bytes && bytes > 0) workspace_.bytes = held > bytes ? bytes / 2 : bytes - 1;
      break;
    case WorkspaceFault::kEmpty:
      workspace_.bytes = 0;
      break;
    default:
      break;
  }
  const size_t skew = call_->workspace_fault == WorkspaceFault::kMisaligned ? 1 + call_->loop.seed % 63 : 0;
  workspace_block_ = call_->arena.Add("workspace", workspace_.bytes, skew);
  workspace_.data = workspace_block_->data();
  test::Random random(call_->loop.seed);
  const int64_t style = random.Below(3);  // contents do not matter
  if (style == 1) std::memset(workspace_.data, 0, workspace_.bytes);
  for (size_t i = 0; style == 2 && i + sizeof(uint64_t) <= workspace_.bytes; i += sizeof(uint64_t)) {
    workspace_block_->Put(i, random.Next());
  }
}

void Runner::HideAll(const Judged& judged) const {
  for (const NamedArray& array : ArraysOf(*call_, judged)) {  // one may lie in a tensor
    const uintptr_t first = reinterpret_cast<uintptr_t>(array.data);
    const size_t bytes = static_cast<size_t>(array.count) * sizeof *array.data;
    call_->arena.Find(first, first + bytes)->Allow(first, bytes);
  }
  for (size_t i = 0; i < call_->slots.size(); ++i) {
    const Elements& e = judged.tensors[i];
    if (judged.wanted[i] && !e.empty) call_->arena.Find(e.First(), e.Last())->Hide();
  }
}

void Runner::ShowAll() const {
  for (const auto& block : call_->arena.blocks()) block->Show();
}

void Runner::Compute(const char* function, Judged judged, size_t bytes, const ErrorFunction& f) {
  JudgeMemory(*call_, Workspace(), bytes, &judged);
  JudgeParallel(*call_, MaxWorkersOf(*call_, judged), &judged);
  if (call_->workspace_fault == WorkspaceFault::kOnTensor && judged.faults.must == 0) return;
  const bool right = judged.faults.must == 0;
  if (!judged.arrays_exist || (right && (!judged.memory_exists || judged.work > kMostWork))) return;
  for (int round = 0; round < (call_->twice && right ? 2 : 1); ++round) {
    RememberAll();
    call_->loop.workers = call_->parallel.workers;
    call_->loop.num_tasks = 0;
    const bool defined = !right || Expect(*call_, judged);
    if (right) HideAll(judged);
    const etalon_status status = Ask(function, f);
    ShowAll();
    const bool broken = call_->loop.broken != Loop::kNone && call_->loop.num_tasks > 0;
    if (broken && status != ETALON_BAD_TASKS)
      Wrong(std::string(function) + " has not seen that parallel_for is broken");
    if (broken) return CheckResult(function, true);
    CheckAnswer(function, judged.faults, status);
    if (status != ETALON_OK) return CheckUnchanged(function);
    CheckResult(function, !defined);
    for (const auto& block : call_->arena.blocks()) {
      if (block.get() != workspace_block_) block->Restore();
    }
  }
}

etalon_status Runner::QueryBytes(size_t* bytes, etalon_error* error) const {
  switch (call_->function) {
    case kScores:
      return etalon_scores_workspace_bytes(Desc(), Args(), bytes, error);
    case kBlockStates:
      return etalon_block_states_workspace_bytes(Desc(), Args(), bytes, error);
    case kWeightedSum:
      return etalon_weighted_sum_workspace_bytes(ArgsAs<etalon_weighted_sum_args>(), bytes, error);
    case kMergeStates:
      return etalon_merge_states_workspace_bytes(ArgsAs<etalon_merge_states_args>(), bytes, error);
    case kMaskPrepare:
      return etalon_mask_bytes(ArgsAs<etalon_mask_args>(), bytes, error);
    default:
      return etalon_attention_workspace_bytes(Desc(), Args(), bytes, error);
  }
}

etalon_status Runner::Function(etalon_error* error) const {
  switch (call_->function) {
    case kScores:
      return etalon_scores(Desc(), Args(), Workspace(), Parallel(), error);
    case kBlockStates:
      return etalon_block_states(Desc(), Args(), States(), Workspace(), Parallel(), error);
    case kSoftmax:
      return etalon_softmax(ArgsAs<etalon_softmax_args>(), Parallel(), error);
    case kWeightedSum:
      return etalon_weighted_sum(ArgsAs<etalon_weighted_sum_args>(), Workspace(), Parallel(), error);
    case kMerge:
      return etalon_merge(ArgsAs<etalon_merge_args>(), Parallel(), error);
    case kMergeStates:
      return etalon_merge_states(ArgsAs<etalon_merge_states_args>(), Workspace(), Parallel(), error);
    default:
      return etalon_attention(Desc(), Args(), Workspace(), Parallel(), error);
  }
}

etalon_status Runner::Query(const Faults& faults, size_t* bytes) {
  constexpr size_t kUntouched = 0xA5A5A5A5;
  *bytes = kUntouched;
  std::vector<uintptr_t> data;
  for (Block* tensor : call_->tensors) {
    data.push_back(tensor == nullptr ? 0 : tensor->Get<uintptr_t>(offsetof(etalon_tensor, data)));
    if (tensor != nullptr && call_->query_without_memory) tensor->Put(offsetof(etalon_tensor, data), uintptr_t{0});
  }
  RememberAll();
  const etalon_status status =
      Ask("the query", [&](etalon_error* error) { return QueryBytes(call_->null_result ? nullptr : bytes, error); });
  CheckUnchanged("the query");
  for (size_t i = 0; i < data.size(); ++i) {
    if (call_->tensors[i] != nullptr) call_->tensors[i]->Put(offsetof(etalon_tensor, data), data[i]);
  }
  CheckAnswer("the query", faults, status);
  if (status != ETALON_OK && *bytes != kUntouched) Wrong("the query has refused and answered");
  if (status == ETALON_OK && *bytes == kUntouched) Wrong("the query has not answered");
  return status;
}

void Runner::OneCall() {
  size_t bytes = 0;
  Faults refused;
  if (call_->info->has_workspace) {
    Judged shapes = JudgeCall(*call_, Depth::kShapes, nullptr);
    if (!shapes.arrays_exist) return;
    if (call_->null_result) shapes.faults.Must(ETALON_NULL_POINTER);
    const etalon_status status = Query(shapes.faults, &bytes);
    if (status != ETALON_OK) bytes = 4096;
    if (status != ETALON_OK && !call_->null_result) {
      refused.Must(status);  // "errors: as" the call itself
      refused.May(ETALON_SMALL_WORKSPACE);
      too_large_ = true;
    }
    if (call_->null_result) return;
    MakeWorkspace(bytes);
  }
  Judged judged = JudgeCall(*call_, Depth::kMemory, nullptr);
  judged.faults.Add(refused);
  Compute(call_->info->name, judged, bytes, [this](etalon_error* error) { return Function(error); });
}

void RunCall(Call* call) {
  if (IsPlanned(call->function)) {
    RunPlanned(call);
  } else if (call->function == kMaskPrepare) {
    RunMask(call);
  } else {
    Runner(call).OneCall();
  }
}

}  // namespace etalon::fuzz
