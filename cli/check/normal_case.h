// normal_case.h: attention over one source whose q, k and v are standard-normal, or multiples of that.
#ifndef ETALON_CLI_CHECK_NORMAL_CASE_H_
#define ETALON_CLI_CHECK_NORMAL_CASE_H_

#include <cstdint>
#include <vector>

#include "cli/engine.h"
#include "tests/support/generate.h"
#include "tests/support/kernel_case.h"

namespace etalon::cli {

struct Shape {
  int64_t rows;
  int64_t keys;
  int64_t dim;  // of q, k and v
};

constexpr float kUnit = 0.8660254f;  // of test::Random's normals, whose deviation is 2 / sqrt(3)

inline test::AttentionCase AttentionOf(const Shape& shape, DType type, const std::vector<float>& q,
                                       const std::vector<float>& k, const std::vector<float>& v) {
  test::AttentionCase c;
  c.rows = shape.rows;
  c.head_dim = c.value_dim = shape.dim;
  c.scale = DefaultScaleOf(shape.dim);
  c.q = test::Array(type, q);
  c.sources.resize(1);
  c.sources[0].num_keys = shape.keys;
  c.sources[0].k = test::Array(type, k);
  c.sources[0].v = test::Array(type, v);
  return c;
}

// Times these factors. With a q_factor and a k_factor of 1 the logits have deviation 1.
inline test::AttentionCase NormalAttention(const Shape& shape, DType type, uint64_t seed, float q_factor = 1.0f,
                                           float k_factor = 1.0f, float v_factor = 1.0f) {
  test::Random random(seed);
  const std::vector<float> q = random.Normals(shape.rows * shape.dim, kUnit * q_factor);
  const std::vector<float> k = random.Normals(shape.keys * shape.dim, kUnit * k_factor);
  const std::vector<float> v = random.Normals(shape.keys * shape.dim, kUnit * v_factor);
  return AttentionOf(shape, type, q, k, v);
}

}  // namespace etalon::cli

#endif  // ETALON_CLI_CHECK_NORMAL_CASE_H_
