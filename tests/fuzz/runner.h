// runner.h: what RunCall does around any function: memory, verdicts, comparisons.
#ifndef ETALON_TESTS_FUZZ_RUNNER_H_
#define ETALON_TESTS_FUZZ_RUNNER_H_

#include <string>

#include "tests/fuzz/run.h"

namespace etalon::fuzz {

class Runner {
 public:
  explicit Runner(Call* call) : call_(call) {}

  // The functions of one step: a query for the workspace, and the call.
  void OneCall();

 protected:
  // What is passed.
  template <typename T>
  static const T* As(const Block* block) {
    return block == nullptr ? nullptr : reinterpret_cast<const T*>(block->data());
  }
  template <typename T>
  const T* ArgsAs() const {
    return call_->null_args ? nullptr : As<T>(call_->args);
  }
  const etalon_attention_args* Args() const { return ArgsAs<etalon_attention_args>(); }
  const etalon_attention_desc* Desc() const {
    return call_->null_desc ? nullptr : As<etalon_attention_desc>(call_->desc);
  }
  const etalon_states* States() const { return call_->null_states ? nullptr : As<etalon_states>(call_->states); }
  const etalon_workspace* Workspace() const { return passes_workspace_ ? &workspace_ : nullptr; }
  const etalon_parallel* Parallel() const { return call_->has_parallel ? &call_->parallel : nullptr; }

  [[noreturn]] void Wrong(const std::string& what) const;

  // Calls the function; error and environment are looked at.
  etalon_status Ask(const char* function, const ErrorFunction& f) const;
  void CheckAnswer(const char* function, const Faults& faults, etalon_status status) const;

  void RememberAll() const;
  void CheckUnchanged(const char* function) const;
  // `loosely`: the outputs may hold anything.
  void CheckResult(const char* function, bool loosely) const;

  // Memory for `bytes`, or what a mutation wants instead.
  void MakeWorkspace(size_t bytes);

  // All checks around a function that computes. It is called only if nothing that is not there can be touched.
  void Compute(const char* function, Judged judged, size_t bytes, const ErrorFunction& f);

  Call* call_;
  etalon_workspace workspace_ = {};
  Block* workspace_block_ = nullptr;

  etalon_status QueryBytes(size_t* bytes, etalon_error* error) const;
  etalon_status Query(const Faults& faults, size_t* bytes);

 private:
  void HideAll(const Judged& judged) const;
  void ShowAll() const;
  etalon_status Function(etalon_error* error) const;

  bool passes_workspace_ = false;
  bool too_large_ = false;  // the workspace, for an address or for us
};

// Plans: made, asked, and used in one of the two ways.
void RunPlanned(Call* call);

// Masks: prepared, and looked at through etalon_scores.
void RunMask(Call* call);

}  // namespace etalon::fuzz

#endif  // ETALON_TESTS_FUZZ_RUNNER_H_
