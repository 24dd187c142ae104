#include "cli/plain_loop.h"

#include <cmath>

#include "cli/widen.h"

namespace etalon::cli {
namespace {

// One row over the keys first ... last - 1. Everything is written in the plainest way; -O3 (cli/CMakeLists.txt), for
// the instructions that every CPU of the architecture has.
void PlainRow(const float* q, const float* k, const float* v, int64_t first, int64_t last, int64_t head_dim,
              int64_t value_dim, float scale, float* scores, float* out) {
  float max = -HUGE_VALF;
  for (int64_t t = first; t < last; ++t) {
    float dot = 0.0f;
    for (int64_t c = 0; c < head_dim; ++c) dot += q[c] * k[t * head_dim + c];
    scores[t] = dot * scale;
    max = scores[t] > max ? scores[t] : max;
  }
  float sum = 0.0f;
  for (int64_t c = 0; c < value_dim; ++c) out[c] = 0.0f;
  for (int64_t t = first; t < last; ++t) {
    const float weight = std::exp(scores[t] - max);
    sum += weight;
    for (int64_t c = 0; c < value_dim; ++c) out[c] += weight * v[t * value_dim + c];
  }
  for (int64_t c = 0; c < value_dim; ++c) out[c] /= sum;
}

}  // namespace

PlainLoop::PlainLoop(const Problem& problem)
    : problem_(problem),
      q_(Widened(problem.q)),
      k_(Widened(problem.k)),
      v_(Widened(problem.v)),
      scores_(static_cast<size_t>(problem.k.len)),
      out_(static_cast<size_t>(problem.q.batch * problem.q.heads * problem.q.len * problem.v.dim)) {}

void PlainLoop::Run(Rows rows) {
  const Array &q = problem_.q, &k = problem_.k, &v = problem_.v;
  const int64_t group = q.heads / k.heads;
  for (int64_t head = 0; head < q.batch * q.heads; ++head) {
    const float* keys = k_.data() + head / group * k.len * k.dim;
    const float* values = v_.data() + head / group * v.len * v.dim;
    for (int64_t i = rows.first; i < rows.last; ++i) {
      const KeySpan seen = VisibleKeys(problem_.mask, i, k.len);
      if (seen.first >= seen.last) continue;
      PlainRow(q_.data() + (head * q.len + i) * q.dim, keys, values, seen.first, seen.last, q.dim, v.dim,
               problem_.scale, scores_.data(), out_.data() + (head * q.len + i) * v.dim);
    }
  }
}

}  // namespace etalon::cli
