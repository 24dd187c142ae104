// problem.h: all that one call of attention depends on, and how much work it is. Which keys a row sees is said once
// more here and in mask.h, independently of lib/attention, so that it can check that.
#ifndef ETALON_CLI_PROBLEM_H_
#define ETALON_CLI_PROBLEM_H_

#include <cstdint>
#include <vector>

#include "cli/array.h"
#include "cli/mask.h"

namespace etalon::cli {

// What is done to scores, and which keys are hidden beyond geometry. In the arrays each size is that of the call, or 1,
// which counts for all; an array without heads is not given.
struct ScoreOptions {
  float softcap = 0.0f;  // 0: none
  bool alibi = false;
  Array slopes;  // [batch, q heads, 1, 1], f16 or f32; not given: the standard ones
  Array bias;    // [batch, q heads, q len, kv len], f16 or f32; -inf hides
  Array mask;    // the same of flags; false hides
  Array sinks;   // as slopes
  // A row sees the keys whose number is its own; both empty: all.
  std::vector<int64_t> q_segments;   // [1 or batch, q len]
  std::vector<int64_t> kv_segments;  // [as many, kv len]
};

inline bool IsGiven(const Array& array) { return array.heads > 0; }

// Sizes are valid: at least 1, all agree in batch, k and v in heads and len, q and k in dim, and k's heads divide q's.
struct Problem {
  const Array& q;
  const Array& k;
  const Array& v;
  Mask mask;
  float scale;
  ScoreOptions options = {};
};

// Query rows first ... last - 1 of every head; 0 <= first < last <= q.len.
struct Rows {
  int64_t first;
  int64_t last;
};

// One row of a head, to look at what bias, mask and segments say of each key. The problem must outlive it.
class RowOptions {
 public:
  RowOptions(const Problem& problem, int64_t batch, int64_t q_head, int64_t row);

  float Bias(int64_t key) const;    // 0 if there is none
  bool Allowed(int64_t key) const;  // by mask and segments
  bool Shows(int64_t key) const;    // what none of the three hides; geometry apart

 private:
  struct Line {
    ElementKind type = ElementKind::kF32;
    const unsigned char* data = nullptr;  // null: not given
    int64_t step_bytes = 0;
  };
  static Line LineOf(const Array& array, int64_t batch, int64_t q_head, int64_t row);

  Line bias_;
  Line mask_;
  int64_t segment_ = 0;
  const int64_t* kv_segments_ = nullptr;
};

// Number of a head of slopes or sinks.
float HeadValue(const Array& array, int64_t batch, int64_t q_head);

// Pairs of a row and a key that it sees, of some rows of every head. What arrays hide is counted by a look at every
// pair.
int64_t VisiblePairs(const Problem& problem, Rows rows);

// What mask and segments allow together, as one mask [1 or batch, 1 or q heads, rows, kv len].
Array JoinedMask(const Problem& problem, Rows rows);

// Floating-point operations: a multiplication and an addition for each channel of the score and of the value, over
// visible pairs.
double Flop(const Problem& problem, int64_t visible_pairs);
inline double Flop(const Problem& problem, Rows rows) { return Flop(problem, VisiblePairs(problem, rows)); }

}  // namespace etalon::cli

#endif  // ETALON_CLI_PROBLEM_H_
