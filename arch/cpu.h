// cpu.h: what this CPU and this operating system can run. The only detection code of the library.
#ifndef ETALON_ARCH_CPU_H_
#define ETALON_ARCH_CPU_H_

#include <cstdint>

namespace etalon {

// A set of CpuFeature bits.
using CpuFeatures = uint64_t;

enum CpuFeature : uint64_t {
  // x86. A vector feature counts only if the operating system saves its registers (XCR0).
  kCpuSse3 = uint64_t{1} << 0,
  kCpuSsse3 = uint64_t{1} << 1,
  kCpuSse41 = uint64_t{1} << 2,
  kCpuSse42 = uint64_t{1} << 3,
  kCpuPopcnt = uint64_t{1} << 4,
  kCpuLzcnt = uint64_t{1} << 5,
  kCpuBmi1 = uint64_t{1} << 6,
  kCpuBmi2 = uint64_t{1} << 7,
  kCpuAes = uint64_t{1} << 8,
  kCpuPclmul = uint64_t{1} << 9,
  kCpuAvx = uint64_t{1} << 10,
  kCpuF16c = uint64_t{1} << 11,
  kCpuFma = uint64_t{1} << 12,
  kCpuAvx2 = uint64_t{1} << 13,
  kCpuAvx512F = uint64_t{1} << 14,
  kCpuAvx512Cd = uint64_t{1} << 15,
  kCpuAvx512Dq = uint64_t{1} << 16,
  kCpuAvx512Bw = uint64_t{1} << 17,
  kCpuAvx512Vl = uint64_t{1} << 18,
  kCpuAvx512Ifma = uint64_t{1} << 19,
  kCpuAvx512Vbmi = uint64_t{1} << 20,
  kCpuAvx512Vbmi2 = uint64_t{1} << 21,
  kCpuAvx512Vnni = uint64_t{1} << 22,
  kCpuAvx512Bitalg = uint64_t{1} << 23,
  kCpuAvx512Vpopcntdq = uint64_t{1} << 24,
  kCpuAvx512Bf16 = uint64_t{1} << 25,
  kCpuAvx512Fp16 = uint64_t{1} << 26,
  kCpuVaes = uint64_t{1} << 27,
  kCpuVpclmulqdq = uint64_t{1} << 28,
  kCpuGfni = uint64_t{1} << 29,
  kCpuAvxVnni = uint64_t{1} << 30,
  // Arm, 64 bits.
  kCpuNeon = uint64_t{1} << 40,
  kCpuArmAes = uint64_t{1} << 41,
  kCpuArmFp16 = uint64_t{1} << 42,
  kCpuArmDotProd = uint64_t{1} << 43,
  kCpuArmBf16 = uint64_t{1} << 44,
  kCpuArmI8mm = uint64_t{1} << 45,
  kCpuSve = uint64_t{1} << 46,
  kCpuSve2 = uint64_t{1} << 47,
};

// Detected once (lock-free, no global constructor); the same value on every call.
CpuFeatures DetectCpu();

// "avx2" for kCpuAvx2; null for a bit that has no name. Exactly one bit must be set.
const char* CpuFeatureName(CpuFeatures one_bit);

}  // namespace etalon

#endif  // ETALON_ARCH_CPU_H_
