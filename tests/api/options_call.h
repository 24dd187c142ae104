// options_call.h: an OptionsCase brought to memory and through every form of the public interface.
#ifndef ETALON_TESTS_API_OPTIONS_CALL_H_
#define ETALON_TESTS_API_OPTIONS_CALL_H_

#include <memory>
#include <string>
#include <vector>

#include "tests/api/guarded_mask.h"
#include "tests/api/options_case.h"
#include "tests/api/scattered_keys.h"

namespace etalon::test {

// A case brought to memory, options in any layout. A test may change desc and args before it runs.
class OptionsCall {
 public:
  OptionsCall(const OptionsCase& c, const KernelTable& table);
  OptionsCall(const OptionsCall&) = delete;

  std::unique_ptr<GuardedTensor> q, out, lse, slopes, sinks;
  struct Source {
    std::unique_ptr<GuardedTensor> k, v, bias;
    std::unique_ptr<GuardedMask> mask;
    std::unique_ptr<ScatteredKeys> scattered;
    etalon_key_source caller;
  };
  std::vector<Source> sources;
  etalon_attention_desc desc;  // as for one call: sizes are 0
  etalon_attention_args args;
  etalon_attention_desc PlanDesc() const;  // with sizes, types and options

  etalon_status Run(const How& how, etalon_error* error);
  AttentionResult Result() const;
  std::string Damage() const;  // empty if nothing was written but out and lse
  etalon_plan_info Info(int32_t workers) const;
  // Spoils every struct and array of numbers of the call, but no memory of a tensor or a prepared mask. Result() still
  // reads what was written.
  void Forget();

 private:
  OptionsCase case_;  // its lengths are what args points to
  std::vector<const etalon_key_source*> more_;
};

// Runs and checks that it succeeds and damages nothing.
AttentionResult Run(const OptionsCase& c, const KernelTable& table, const How& how = {});
// The same, after a look that every form gives these bytes.
AttentionResult RunEveryForm(const OptionsCase& c, const KernelTable& table);

// The primitives of one source, not ragged. Scores are [batch, num_q_heads, q_len, kv_len].
Array CallScores(const OptionsCase& c, const KernelTable& table, const How& how = {});
// etalon_block_states, then etalon_merge_states with the sinks.
AttentionResult CallByStates(const OptionsCase& c, const KernelTable& table, const How& how = {});

}  // namespace etalon::test

#endif  // ETALON_TESTS_API_OPTIONS_CALL_H_
