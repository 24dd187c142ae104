// targets.h: which of Highway's targets the files of this folder are compiled for. Each of them includes this before
// anything of Highway.
//
// Highway always compiles one target for the baseline CPU as well. On x86-64 that would be SSE2, whose MulAdd rounds
// twice; all such targets are disabled, so that it becomes HWY_SCALAR or HWY_EMU128, for which our files hold no code
// (ETALON_HIGHWAY_EXACT below). tools/check_symbols.py proves it.
#ifndef ETALON_ARCH_HIGHWAY_TARGETS_H_
#define ETALON_ARCH_HIGHWAY_TARGETS_H_

// Nothing here uses AES: without this the tables would be refused to a CPU or a virtual machine that lacks it.
#define HWY_DISABLE_PCLMUL_AES
// Compile the narrower tables even if whoever builds has widened the baseline.
#define HWY_COMPILE_ALL_ATTAINABLE

// CMake defines one macro for each table of ETALON_TARGETS.
#if defined(ETALON_HAVE_HIGHWAY_AVX2)
#define ETALON_HWY_AVX2 HWY_AVX2
#else
#define ETALON_HWY_AVX2 0
#endif
#if defined(ETALON_HAVE_HIGHWAY_AVX3)
#define ETALON_HWY_AVX3 HWY_AVX3
#else
#define ETALON_HWY_AVX3 0
#endif
#if defined(ETALON_HAVE_HIGHWAY_NEON)
#define ETALON_HWY_NEON HWY_NEON_WITHOUT_AES
#else
#define ETALON_HWY_NEON 0
#endif
#define HWY_DISABLED_TARGETS (~(ETALON_HWY_AVX2 | ETALON_HWY_AVX3 | ETALON_HWY_NEON | HWY_EMU128 | HWY_SCALAR))

// 1 while a target is compiled that fuses MulAdd: our code is for these alone.
#define ETALON_HIGHWAY_EXACT (HWY_TARGET != HWY_SCALAR && HWY_TARGET != HWY_EMU128)

#endif  // ETALON_ARCH_HIGHWAY_TARGETS_H_
