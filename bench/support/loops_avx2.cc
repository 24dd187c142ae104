// The limit loops in 256-bit vectors.
#include "bench/support/loop_sets.h"

#if defined(__x86_64__)
#include <immintrin.h>

#define ETALON_ATTR __attribute__((target("avx2,fma")))
#define ETALON_HAVE_STORE_PAST
namespace etalon::bench {
namespace {

using Vector = __m256;
constexpr int kLanes = 8, kChains = 12;
ETALON_ATTR inline Vector Set(float x) { return _mm256_set1_ps(x); }
ETALON_ATTR inline Vector Load(const float* p) { return _mm256_load_ps(p); }
ETALON_ATTR inline Vector Or(Vector a, Vector b) { return _mm256_or_ps(a, b); }
ETALON_ATTR inline Vector Fma(Vector a, Vector x, Vector y) { return _mm256_fmadd_ps(a, x, y); }
ETALON_ATTR inline void Store(Vector v, float* p) { _mm256_store_ps(p, v); }
ETALON_ATTR inline void StorePast(Vector v, float* p) { _mm256_stream_ps(p, v); }
ETALON_ATTR inline void Escape(Vector& v) { __asm__ volatile("" : "+x"(v)); }
inline void Prefetch(const void* p) { _mm_prefetch(static_cast<const char*>(p), _MM_HINT_T0); }

#include "bench/support/loops.inc"

}  // namespace

const Loops kAvx2Loops = {"avx2",
                          "avx2 fma",
                          kLanes,
                          4 * kChains,
                          FmaLoop,
                          {ReadLoop, ReadAheadLoop, ReadFourLoop},
                          {StoreLoop, StorePastLoop}};

}  // namespace etalon::bench
#endif
