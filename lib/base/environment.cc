#include "lib/base/environment.h"

#include <cstdint>

#if defined(__x86_64__) || defined(__i386__)
#include <xmmintrin.h>
#elif !defined(__aarch64__)
#include <cfenv>
#endif

namespace etalon {
namespace {

#if defined(__x86_64__) || defined(__i386__)

struct Environment {
  uint32_t mxcsr;
};

Environment Save() { return {_mm_getcsr()}; }
void SetDefault() { _mm_setcsr(0x1F80u); }  // all exceptions masked, nearest, no FTZ, no DAZ, flags clear
void Restore(const Environment& saved) { _mm_setcsr(saved.mxcsr); }

#elif defined(__aarch64__)

struct Environment {
  uint64_t fpcr;
  uint64_t fpsr;
};

Environment Save() {
  Environment saved;
  __asm__ volatile("mrs %0, fpcr" : "=r"(saved.fpcr)::"memory");
  __asm__ volatile("mrs %0, fpsr" : "=r"(saved.fpsr)::"memory");
  return saved;
}

void Write(uint64_t fpcr, uint64_t fpsr) {
  __asm__ volatile("msr fpcr, %0" ::"r"(fpcr) : "memory");
  __asm__ volatile("msr fpsr, %0" ::"r"(fpsr) : "memory");
}

void SetDefault() { Write(0, 0); }  // the whole register: FZ, FZ16, AH, rounding and traps, whatever the CPU knows
void Restore(const Environment& saved) { Write(saved.fpcr, saved.fpsr); }

#else  // the C library's default: nearest and no traps. Whether it also ends a flush mode is up to that library: glibc
       // does on 32-bit Arm (FPSCR.FZ; tools/digest_matrix.sh tries it), RISC-V has none, others have not been tried.

struct Environment {
  std::fenv_t env;
};

Environment Save() {
  Environment saved;
  std::fegetenv(&saved.env);
  return saved;
}

void SetDefault() { std::fesetenv(FE_DFL_ENV); }
void Restore(const Environment& saved) { std::fesetenv(&saved.env); }

#endif

}  // namespace

// noinline: link-time optimisation could otherwise move the arithmetic of a caller across the writes.
__attribute__((noinline)) void RunInEnvironment(void (*work)(void*), void* arg) {
  const Environment saved = Save();
  void (*volatile opaque)(void*) = work;  // link-time optimisation could see through a plain pointer
  SetDefault();
  opaque(arg);
  Restore(saved);
}

}  // namespace etalon
