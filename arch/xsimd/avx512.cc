// AVX-512 of F, CD, DQ, BW and VL: the first processors with AVX-512 for servers have these.
#define ETALON_XSIMD_ARCH xsimd::avx512bw

#include "arch/kernel_table.h"
#include "arch/xsimd/table-inl.h"

namespace etalon {

extern const KernelTable kXsimdAvx512Table;
const KernelTable kXsimdAvx512Table =
    MakeTable("xsimd-avx512", kCpuAvx | kCpuAvx2 | kCpuFma | kCpuF16c | kCpuAvx512F | kCpuAvx512Cd | kCpuAvx512Dq |
                                  kCpuAvx512Bw | kCpuAvx512Vl);

}  // namespace etalon
