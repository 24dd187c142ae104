// Arm, 64 bits: NEON is part of the baseline.
#define ETALON_XSIMD_ARCH xsimd::neon64

#include "arch/kernel_table.h"
#include "arch/xsimd/table-inl.h"

namespace etalon {

extern const KernelTable kXsimdNeon64Table;
const KernelTable kXsimdNeon64Table = MakeTable("xsimd-neon64", kCpuNeon);

}  // namespace etalon
