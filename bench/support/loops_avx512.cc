// The limit loops in 512-bit vectors.
#include "bench/support/loop_sets.h"

#if defined(__x86_64__)
#include <immintrin.h>

#define ETALON_ATTR __attribute__((target("avx512f")))
#define ETALON_HAVE_STORE_PAST
namespace etalon::bench {
namespace {

using Vector = __m512;
constexpr int kLanes = 16, kChains = 24;
ETALON_ATTR inline Vector Set(float x) { return _mm512_set1_ps(x); }
ETALON_ATTR inline Vector Load(const float* p) { return _mm512_load_ps(p); }
ETALON_ATTR inline Vector Or(Vector a, Vector b) {
  // On integers: the one on floats is not in AVX-512F.
  return _mm512_castsi512_ps(_mm512_or_si512(_mm512_castps_si512(a), _mm512_castps_si512(b)));
}
ETALON_ATTR inline Vector Fma(Vector a, Vector x, Vector y) { return _mm512_fmadd_ps(a, x, y); }
ETALON_ATTR inline void Store(Vector v, float* p) { _mm512_store_ps(p, v); }
ETALON_ATTR inline void StorePast(Vector v, float* p) { _mm512_stream_ps(p, v); }
ETALON_ATTR inline void Escape(Vector& v) { __asm__ volatile("" : "+v"(v)); }
inline void Prefetch(const void* p) { _mm_prefetch(static_cast<const char*>(p), _MM_HINT_T0); }

#include "bench/support/loops.inc"

}  // namespace

const Loops kAvx512Loops = {"avx512",
                            "avx512f",
                            kLanes,
                            4 * kChains,
                            FmaLoop,
                            {ReadLoop, ReadAheadLoop, ReadFourLoop},
                            {StoreLoop, StorePastLoop}};

}  // namespace etalon::bench
#endif
