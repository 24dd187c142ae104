#include "arch/cpu.h"

#include <atomic>
#include <cstddef>

#if defined(__x86_64__) || defined(__i386__)
#include <cpuid.h>
#elif defined(__aarch64__) && defined(__linux__)
#include <sys/auxv.h>
#endif

namespace etalon {
namespace {

struct FeatureName {
  CpuFeature feature;
  const char* name;
};

constexpr FeatureName kNames[] = {
    {kCpuSse3, "sse3"},
    {kCpuSsse3, "ssse3"},
    {kCpuSse41, "sse4.1"},
    {kCpuSse42, "sse4.2"},
    {kCpuPopcnt, "popcnt"},
    {kCpuLzcnt, "lzcnt"},
    {kCpuBmi1, "bmi1"},
    {kCpuBmi2, "bmi2"},
    {kCpuAes, "aes"},
    {kCpuPclmul, "pclmul"},
    {kCpuAvx, "avx"},
    {kCpuF16c, "f16c"},
    {kCpuFma, "fma"},
    {kCpuAvx2, "avx2"},
    {kCpuAvx512F, "avx512f"},
    {kCpuAvx512Cd, "avx512cd"},
    {kCpuAvx512Dq, "avx512dq"},
    {kCpuAvx512Bw, "avx512bw"},
    {kCpuAvx512Vl, "avx512vl"},
    {kCpuAvx512Ifma, "avx512ifma"},
    {kCpuAvx512Vbmi, "avx512vbmi"},
    {kCpuAvx512Vbmi2, "avx512vbmi2"},
    {kCpuAvx512Vnni, "avx512vnni"},
    {kCpuAvx512Bitalg, "avx512bitalg"},
    {kCpuAvx512Vpopcntdq, "avx512vpopcntdq"},
    {kCpuAvx512Bf16, "avx512bf16"},
    {kCpuAvx512Fp16, "avx512fp16"},
    {kCpuVaes, "vaes"},
    {kCpuVpclmulqdq, "vpclmulqdq"},
    {kCpuGfni, "gfni"},
    {kCpuAvxVnni, "avxvnni"},
    {kCpuNeon, "neon"},
    {kCpuArmAes, "arm-aes"},
    {kCpuArmFp16, "arm-fp16"},
    {kCpuArmDotProd, "arm-dotprod"},
    {kCpuArmBf16, "arm-bf16"},
    {kCpuArmI8mm, "arm-i8mm"},
    {kCpuSve, "sve"},
    {kCpuSve2, "sve2"},
};

#if defined(__x86_64__) || defined(__i386__)

struct Leaf {
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
};

Leaf CpuId(unsigned leaf, unsigned subleaf) {
  Leaf r;  // stays zero where the CPU has no such leaf
  __get_cpuid_count(leaf, subleaf, &r.eax, &r.ebx, &r.ecx, &r.edx);
  return r;
}

CpuFeatures If(unsigned reg, unsigned bit, CpuFeatures feature) { return ((reg >> bit) & 1u) != 0 ? feature : 0; }

uint64_t ReadXcr0() {
  uint32_t low, high;
  __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return (static_cast<uint64_t>(high) << 32) | low;
}

CpuFeatures Detect() {
  const Leaf l1 = CpuId(1, 0), l7 = CpuId(7, 0), ext = CpuId(0x80000001u, 0);
  const Leaf l7_1 = l7.eax >= 1 ? CpuId(7, 1) : Leaf();  // eax is the last subleaf; others have no meaning
  CpuFeatures f = If(l1.ecx, 0, kCpuSse3) | If(l1.ecx, 9, kCpuSsse3) | If(l1.ecx, 19, kCpuSse41) |
                  If(l1.ecx, 20, kCpuSse42) | If(l1.ecx, 23, kCpuPopcnt) | If(ext.ecx, 5, kCpuLzcnt) |
                  If(l7.ebx, 3, kCpuBmi1) | If(l7.ebx, 8, kCpuBmi2) | If(l1.ecx, 25, kCpuAes) |
                  If(l1.ecx, 1, kCpuPclmul) | If(l7.ecx, 8, kCpuGfni);
  // Some systems and emulators advertise AVX without saving its registers: OSXSAVE says that XCR0 may be read, XCR0
  // says what is saved (bits 1-2: SSE and AVX; 5-7: mask registers and both halves of the 512-bit state).
  const bool osxsave = ((l1.ecx >> 27) & 1u) != 0;
  const uint64_t xcr0 = osxsave ? ReadXcr0() : 0;
  if ((xcr0 & 0x06) != 0x06) return f;
  f |= If(l1.ecx, 28, kCpuAvx) | If(l1.ecx, 29, kCpuF16c) | If(l1.ecx, 12, kCpuFma) | If(l7.ebx, 5, kCpuAvx2) |
       If(l7.ecx, 9, kCpuVaes) | If(l7.ecx, 10, kCpuVpclmulqdq) | If(l7_1.eax, 4, kCpuAvxVnni);
  if ((xcr0 & 0xE6) != 0xE6) return f;
  f |= If(l7.ebx, 16, kCpuAvx512F) | If(l7.ebx, 28, kCpuAvx512Cd) | If(l7.ebx, 17, kCpuAvx512Dq) |
       If(l7.ebx, 30, kCpuAvx512Bw) | If(l7.ebx, 31, kCpuAvx512Vl) | If(l7.ebx, 21, kCpuAvx512Ifma) |
       If(l7.ecx, 1, kCpuAvx512Vbmi) | If(l7.ecx, 6, kCpuAvx512Vbmi2) | If(l7.ecx, 11, kCpuAvx512Vnni) |
       If(l7.ecx, 12, kCpuAvx512Bitalg) | If(l7.ecx, 14, kCpuAvx512Vpopcntdq) | If(l7_1.eax, 5, kCpuAvx512Bf16) |
       If(l7.edx, 23, kCpuAvx512Fp16);
  return f;
}

#elif defined(__aarch64__)

CpuFeatures Detect() {
  CpuFeatures f = kCpuNeon;  // part of the 64-bit baseline
#if defined(__linux__)
  // Bit numbers of the kernel's user interface, written out because old headers lack the newer names.
  const unsigned long hwcap = getauxval(AT_HWCAP), hwcap2 = getauxval(AT_HWCAP2);
  const auto has = [](unsigned long word, int bit) { return ((word >> bit) & 1ul) != 0; };
  if (has(hwcap, 3)) f |= kCpuArmAes;
  if (has(hwcap, 9) && has(hwcap, 10)) f |= kCpuArmFp16;
  if (has(hwcap, 20)) f |= kCpuArmDotProd;
  if (has(hwcap, 22)) f |= kCpuSve;
  if (has(hwcap2, 1)) f |= kCpuSve2;
  if (has(hwcap2, 13)) f |= kCpuArmI8mm;
  if (has(hwcap2, 14)) f |= kCpuArmBf16;
#endif
  return f;
}

#else

CpuFeatures Detect() { return 0; }

#endif

}  // namespace

CpuFeatures DetectCpu() {
  // CPUID traps in a virtual machine (microseconds), so the answer is kept. Threads that race here store the same
  // value.
  constexpr uint64_t kKnown = uint64_t{1} << 63;
  static std::atomic<uint64_t> cached{0};
  uint64_t value = cached.load(std::memory_order_relaxed);
  if (value == 0) {
    value = Detect() | kKnown;
    cached.store(value, std::memory_order_relaxed);
  }
  return value & ~kKnown;
}

const char* CpuFeatureName(CpuFeatures one_bit) {
  for (const FeatureName& entry : kNames) {
    if (entry.feature == one_bit) return entry.name;
  }
  return nullptr;
}

}  // namespace etalon
