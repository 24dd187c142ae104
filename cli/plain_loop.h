// plain_loop.h: attention as everybody writes it first: three loops over f32 arrays, left to the compiler. What the
// demo measures the kernels beside.
#ifndef ETALON_CLI_PLAIN_LOOP_H_
#define ETALON_CLI_PLAIN_LOOP_H_

#include <vector>

#include "cli/engine.h"

namespace etalon::cli {

class PlainLoop {
 public:
  // Widens q, k and v to f32. The problem must outlive it, and its options say nothing.
  explicit PlainLoop(const Problem& problem);

  // The given rows of every head, on this thread.
  void Run(Rows rows);

  // [batch, q heads, q len, value dim]; rows that were never asked for are 0.
  const std::vector<float>& out() const { return out_; }

 private:
  const Problem& problem_;
  std::vector<float> q_, k_, v_, scores_, out_;
};

}  // namespace etalon::cli

#endif  // ETALON_CLI_PLAIN_LOOP_H_
