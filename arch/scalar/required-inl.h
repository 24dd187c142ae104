// required-inl.h: the CPU features that the compiler of this object was allowed to use. Whoever builds with
// -march=x86-64-v3 gets a scalar table full of such instructions: it must be refused to an older CPU.
//
// Detection and choice are compiled for the baseline in any case (cmake/EtalonFlags.cmake), so the refusal is reached
// on every CPU, unless the code before it (the callers in lib, the program) was built wider and does not get that far.
#ifndef ETALON_ARCH_SCALAR_REQUIRED_INL_H_
#define ETALON_ARCH_SCALAR_REQUIRED_INL_H_

#include "arch/kernel_table.h"

namespace etalon {
namespace {

struct Extension {
  bool allowed;
  CpuFeature feature;
};

// A macro that is not defined stays its own name, which begins with an underscore; one that is turns into its value.
#define ETALON_TEXT(macro) #macro
#define ETALON_DEFINED(macro) (ETALON_TEXT(macro)[0] != '_')

// x86 only, and what cpu.h can detect of it. Not looked for: MOVBE, which every CPU with AVX2 has; FMA4, XOP and APX.
constexpr Extension kExtensions[] = {
    {ETALON_DEFINED(__SSE3__), kCpuSse3},
    {ETALON_DEFINED(__SSSE3__), kCpuSsse3},
    {ETALON_DEFINED(__SSE4_1__), kCpuSse41},
    {ETALON_DEFINED(__SSE4_2__), kCpuSse42},
    {ETALON_DEFINED(__POPCNT__), kCpuPopcnt},
    {ETALON_DEFINED(__LZCNT__), kCpuLzcnt},
    {ETALON_DEFINED(__BMI__), kCpuBmi1},
    {ETALON_DEFINED(__BMI2__), kCpuBmi2},
    {ETALON_DEFINED(__AES__), kCpuAes},
    {ETALON_DEFINED(__PCLMUL__), kCpuPclmul},
    {ETALON_DEFINED(__AVX__), kCpuAvx},
    {ETALON_DEFINED(__F16C__), kCpuF16c},
    {ETALON_DEFINED(__FMA__), kCpuFma},
    {ETALON_DEFINED(__AVX2__), kCpuAvx2},
    {ETALON_DEFINED(__AVX512F__), kCpuAvx512F},
    {ETALON_DEFINED(__AVX512CD__), kCpuAvx512Cd},
    {ETALON_DEFINED(__AVX512DQ__), kCpuAvx512Dq},
    {ETALON_DEFINED(__AVX512BW__), kCpuAvx512Bw},
    {ETALON_DEFINED(__AVX512VL__), kCpuAvx512Vl},
    {ETALON_DEFINED(__AVX512IFMA__), kCpuAvx512Ifma},
    {ETALON_DEFINED(__AVX512VBMI__), kCpuAvx512Vbmi},
    {ETALON_DEFINED(__AVX512VBMI2__), kCpuAvx512Vbmi2},
    {ETALON_DEFINED(__AVX512VNNI__), kCpuAvx512Vnni},
    {ETALON_DEFINED(__AVX512BITALG__), kCpuAvx512Bitalg},
    {ETALON_DEFINED(__AVX512VPOPCNTDQ__), kCpuAvx512Vpopcntdq},
    {ETALON_DEFINED(__AVX512BF16__), kCpuAvx512Bf16},
    {ETALON_DEFINED(__AVX512FP16__), kCpuAvx512Fp16},
    {ETALON_DEFINED(__VAES__), kCpuVaes},
    {ETALON_DEFINED(__VPCLMULQDQ__), kCpuVpclmulqdq},
    {ETALON_DEFINED(__GFNI__), kCpuGfni},
    {ETALON_DEFINED(__AVXVNNI__), kCpuAvxVnni},
};

#undef ETALON_DEFINED
#undef ETALON_TEXT

constexpr CpuFeatures CompiledFor() {
  CpuFeatures features = 0;
  for (const Extension& extension : kExtensions) {
    if (extension.allowed) features |= extension.feature;
  }
  return features;
}

}  // namespace
}  // namespace etalon

#endif  // ETALON_ARCH_SCALAR_REQUIRED_INL_H_
