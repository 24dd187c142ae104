// engine.h: all that the tool asks of the library, in the tool's own words. Only engine.cc includes its headers.
#ifndef ETALON_CLI_ENGINE_H_
#define ETALON_CLI_ENGINE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "cli/array.h"
#include "cli/problem.h"

namespace etalon::cli {

std::string LibraryVersion();
int ArithmeticVersion();

std::string CpuName();
std::vector<std::string> CpuFeatureNames();

// CPUs that this process may run on, at least 1.
int UsableCpus();

struct TableState {
  std::string name;
  std::string backend;  // "scalar" of "scalar-fma"
  bool available;
  bool chosen;
  std::string reason;  // why chosen, why not, or what is missing
};

// Every table of this build in ascending preference. `named` is the one that --target asks for, ahead of ETALON_TARGET;
// empty if it was not given. If what is asked for cannot be had, none is chosen and *error says so; otherwise it is
// empty.
std::vector<TableState> Tables(std::string* error, const std::string& named = "");

// The name of the chosen one; empty if none is.
std::string ChosenOf(const std::vector<TableState>& tables);

// What to say of a table that cannot be had; `asked` is "--target=NAME". Lists those of this build.
std::string RefusalOf(const std::string& asked, bool known, const std::vector<TableState>& tables);

float DefaultScaleOf(int64_t head_dim);

// Attention of some rows of every head, planned once and run as often as one likes. The problem's arrays must outlive
// it. Throws std::runtime_error if the library refuses.
class PlannedAttention {
 public:
  // By the table called `table`, which is available, on threads - 1 threads of its own and the caller's.
  PlannedAttention(const std::string& table, const Problem& problem, Rows rows, int threads,
                   ElementKind out_type = ElementKind::kF32);
  ~PlannedAttention();
  PlannedAttention(const PlannedAttention&) = delete;
  PlannedAttention& operator=(const PlannedAttention&) = delete;

  void Run();
  // The same in pieces; `done` is told the share of the work that is over after each.
  void RunInPieces(const std::function<void(double share)>& done);

  // Of the last run.
  const Array& out() const;               // [batch, q heads, rows, value dim]
  const std::vector<float>& lse() const;  // [batch, q heads, rows]

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

// out [batch, q heads, rows, value dim] in f32, for a single run.
std::vector<float> Attend(const std::string& table, const Problem& problem, Rows rows, int threads);

}  // namespace etalon::cli

#endif  // ETALON_CLI_ENGINE_H_
