// The Highway tables: the functions of stages.h joined. No code of a wide target is compiled here.
#include "arch/highway/stages.h"

namespace etalon {
namespace {

// What Highway lets the compiler use for AVX2 (its set_macros-inl.h), without AES (targets.h). Other processors' tables
// need neither.
[[maybe_unused]] constexpr CpuFeatures kAvx2Features =
    kCpuSse3 | kCpuSsse3 | kCpuSse41 | kCpuSse42 | kCpuAvx | kCpuAvx2 | kCpuBmi1 | kCpuBmi2 | kCpuFma | kCpuF16c;
[[maybe_unused]] constexpr CpuFeatures kAvx3Features =
    kAvx2Features | kCpuAvx512F | kCpuAvx512Cd | kCpuAvx512Vl | kCpuAvx512Dq | kCpuAvx512Bw;

}  // namespace

#define ETALON_STAGES(target_namespace)                                                                               \
  target_namespace::ScratchBytes, target_namespace::Scores, target_namespace::Softmax, target_namespace::WeightedSum, \
      target_namespace::Attend, target_namespace::BlockStates, target_namespace::FoldStates, target_namespace::Merge, \
      target_namespace::Widen, target_namespace::Narrow, target_namespace::MapExp, target_namespace::MapLog,          \
      target_namespace::MapTanh, target_namespace::MapFma

#if defined(ETALON_HAVE_HIGHWAY_AVX2)
extern const KernelTable kHighwayAvx2Table;
constexpr KernelTable kHighwayAvx2Table = {"highway-avx2", kAvx2Features, ETALON_STAGES(N_AVX2)};
#endif
#if defined(ETALON_HAVE_HIGHWAY_AVX3)
extern const KernelTable kHighwayAvx3Table;
constexpr KernelTable kHighwayAvx3Table = {"highway-avx3", kAvx3Features, ETALON_STAGES(N_AVX3)};
#endif
#if defined(ETALON_HAVE_HIGHWAY_NEON)
extern const KernelTable kHighwayNeonTable;
constexpr KernelTable kHighwayNeonTable = {"highway-neon", kCpuNeon, ETALON_STAGES(N_NEON_WITHOUT_AES)};
#endif

}  // namespace etalon
