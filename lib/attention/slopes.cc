#include "lib/attention/slopes.h"

#include "lib/base/environment.h"

namespace etalon {
namespace {

// 2^(-8 steps / 2^log_heads), steps <= 2^log_heads: roots of 1/2 for the bits of the fraction, from the highest on,
// then halves. Square roots and products are exact to the last bit on every machine, which no pow is.
double Slope(int64_t steps, int log_heads) {
  double slope = 1.0, root = 0.5;
  for (int bit = log_heads - 4; bit >= 0; --bit) {
    root = __builtin_sqrt(root);
    if ((steps >> bit & 1) != 0) slope *= root;
  }
  const int64_t halves = log_heads >= 3 ? steps >> (log_heads - 3) : steps << (3 - log_heads);
  for (int64_t i = 0; i < halves; ++i) slope *= 0.5;
  return slope;
}

struct SlopesJob {
  int64_t num_heads;
  float* slopes;
};

void ComputeSlopes(void* arg) {
  const SlopesJob& job = *static_cast<const SlopesJob*>(arg);
  int log_heads = 0;
  while (job.num_heads >> log_heads > 1) ++log_heads;
  const int64_t power = int64_t{1} << log_heads;  // of heads that have slopes of their own
  for (int64_t h = 0; h < job.num_heads; ++h) {
    job.slopes[h] = static_cast<float>(h < power ? Slope(h + 1, log_heads) : Slope(2 * (h - power) + 1, log_heads + 1));
  }
}

}  // namespace

void StandardSlopes(int64_t num_heads, float* slopes) {
  SlopesJob job = {num_heads, slopes};
  RunInEnvironment(ComputeSlopes, &job);
}

}  // namespace etalon
