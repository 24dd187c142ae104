// The limit loops in NEON vectors.
#include "bench/support/loop_sets.h"

#if defined(__aarch64__)
#include <arm_neon.h>

#define ETALON_ATTR
namespace etalon::bench {
namespace {

using Vector = float32x4_t;
constexpr int kLanes = 4, kChains = 24;
inline Vector Set(float x) { return vdupq_n_f32(x); }
inline Vector Load(const float* p) { return vld1q_f32(p); }
inline Vector Or(Vector a, Vector b) {
  return vreinterpretq_f32_u32(vorrq_u32(vreinterpretq_u32_f32(a), vreinterpretq_u32_f32(b)));
}
// fmla adds to its first operand: here that is the chain, and x * y is the same each time.
inline Vector Fma(Vector a, Vector x, Vector y) { return vfmaq_f32(a, x, y); }
inline void Store(Vector v, float* p) { vst1q_f32(p, v); }
inline void Escape(Vector& v) { __asm__ volatile("" : "+w"(v)); }
inline void Prefetch(const void* p) { __builtin_prefetch(p); }

#include "bench/support/loops.inc"

}  // namespace

const Loops kNeonLoops = {
    "neon", "neon", kLanes, 4 * kChains, FmaLoop, {ReadLoop, ReadAheadLoop, ReadFourLoop}, {StoreLoop, StorePastLoop}};

}  // namespace etalon::bench
#endif
