// AVX2 with FMA. xsimd's plain avx2 rounds its fma twice.
#define ETALON_XSIMD_ARCH xsimd::fma3<xsimd::avx2>

#include "arch/kernel_table.h"
#include "arch/xsimd/table-inl.h"

namespace etalon {

extern const KernelTable kXsimdAvx2Table;
const KernelTable kXsimdAvx2Table = MakeTable("xsimd-avx2", kCpuAvx | kCpuAvx2 | kCpuFma);

}  // namespace etalon
