// smoothing.cc: attention as kernel smoothing. The Nadaraya-Watson mean at x of points (x_j, y_j) that count w_j times,
//   sum of w_j K(x - x_j) y_j / sum of w_j K(x - x_j)   with K(d) = exp(-d^2 / (2 h^2)),
// is attention with query x, keys x_j and values y_j: of K's exponent x x_j / h^2 - x_j^2 / (2 h^2) - x^2 / (2 h^2) the
// first term is a score of scale 1 / h^2, the second belongs to the key, and the third is the same for all keys and
// cancels. So the bias of a key is log w_j - x_j^2 / (2 h^2), one row for all queries. A point that counts 0 times has
// the bias -inf: it is not there, whatever its y.
#include <cmath>
#include <cstdio>
#include <etalon/etalon.hpp>
#include <vector>

namespace {

constexpr float kWidth = 0.4f;  // h

// The same by its definition.
double Direct(double x, const std::vector<float>& xs, const std::vector<float>& ys, const std::vector<float>& counts) {
  double sum = 0.0, weights = 0.0;
  for (size_t j = 0; j < xs.size(); ++j) {
    const double distance = (x - xs[j]) / kWidth;
    const double weight = counts[j] * std::exp(-0.5 * distance * distance);
    sum += weight * ys[j];
    weights += weight;
  }
  return sum / weights;
}

}  // namespace

int main() {
  const std::vector<float> xs = {-1.5f, -1.0f, -0.5f, 0.0f, 0.5f, 1.0f, 1.5f};
  const std::vector<float> ys = {2.3f, 1.1f, 0.2f, 99.0f, 0.3f, 0.9f, 2.2f};  // near x^2, but for one
  const std::vector<float> counts = {1, 2, 1, 0, 1, 5, 1};
  const std::vector<float> at = {-1.25f, -0.25f, 0.0f, 0.75f};
  const int64_t points = static_cast<int64_t>(xs.size()), rows = static_cast<int64_t>(at.size());
  std::vector<float> bias, smooth(at.size());
  for (size_t j = 0; j < xs.size(); ++j) {
    bias.push_back(std::log(counts[j]) - xs[j] * xs[j] / (2 * kWidth * kWidth));
  }

  const etalon::Tensor q(at.data(), {rows, 1}), k(xs.data(), {points, 1}), v(ys.data(), {points, 1});
  const etalon::Tensor out(smooth.data(), {rows, 1}), key_bias(bias.data(), {1, 1, 1, points});
  etalon::AttentionDesc desc;
  desc.scale = 1 / (kWidth * kWidth);
  etalon::AttentionArgs args;
  args.q = &q, args.k = &k, args.v = &v, args.out = &out;
  args.bias = &key_bias;  // sizes of 1 count for all rows
  etalon::WorkspaceMemory memory;
  const etalon::Status status = etalon::Attention(desc, args, &memory);
  if (!status.ok()) return std::puts(status.text()), 1;
  for (size_t i = 0; i < at.size(); ++i) std::printf("%.4f=%.4f ", smooth[i], Direct(at[i], xs, ys, counts));
  // prints: 1.4151=1.4151 0.4672=0.4672 0.4304=0.4304 0.8463=0.8463
}
