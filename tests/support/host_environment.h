// host_environment.h: floating-point states that a host program may be in when it calls us.
#ifndef ETALON_TESTS_SUPPORT_HOST_ENVIRONMENT_H_
#define ETALON_TESTS_SUPPORT_HOST_ENVIRONMENT_H_

#include <cstdint>
#include <string>

#if defined(__x86_64__)
#include <xmmintrin.h>
#else
#include <cfenv>
#endif

namespace etalon::test {

// Names for SetHostEnvironment; "flush" is FTZ and DAZ, as a program linked with -ffast-math has them.
constexpr const char* kHostEnvironments[] = {"default", "flush", "down", "up", "zero"};

// The control and status registers as one number, to see that a call leaves them as they were.
inline uint64_t HostEnvironment() {
#if defined(__x86_64__)
  return _mm_getcsr();
#elif defined(__aarch64__)
  uint64_t fpcr, fpsr;
  __asm__ volatile("mrs %0, fpcr" : "=r"(fpcr)::"memory");
  __asm__ volatile("mrs %0, fpsr" : "=r"(fpsr)::"memory");
  return fpcr << 32 | fpsr;
#elif defined(__arm__)
  uint32_t fpscr;
  __asm__ volatile("vmrs %0, fpscr" : "=r"(fpscr)::"memory");
  return fpscr & 0x07FFFFFF;  // not the result of the last comparison, nor whether an integer has saturated
#else
  return static_cast<uint64_t>(std::fegetround());
#endif
}

// The same without the exception flags.
inline uint64_t HostControl() {
#if defined(__x86_64__)
  return HostEnvironment() & ~uint64_t{0x3F};
#elif defined(__aarch64__)
  return HostEnvironment() >> 32;
#elif defined(__arm__)
  return HostEnvironment() & ~uint64_t{0x9F};
#else
  return HostEnvironment();
#endif
}

// False if this architecture has no such state. The exception flags are set to a pattern that work would change.
inline bool SetHostEnvironment(const std::string& name) {
  const int index = name == "default" ? 0
                    : name == "flush" ? 1
                    : name == "down"  ? 2
                    : name == "up"    ? 3
                    : name == "zero"  ? 4
                                      : -1;
  if (index < 0) return false;
#if defined(__x86_64__)
  const unsigned states[] = {0x1F80, 0x9FC0, 0x3F80, 0x5F80, 0x7F80};
  _mm_setcsr(states[index] | 0x04);  // division by zero flagged, inexact not
  return true;
#elif defined(__aarch64__)
  const uint64_t states[] = {0, uint64_t{1} << 24, uint64_t{2} << 22, uint64_t{1} << 22, uint64_t{3} << 22};
  __asm__ volatile("msr fpcr, %0" ::"r"(states[index]) : "memory");
  __asm__ volatile("msr fpsr, %0" ::"r"(uint64_t{2}) : "memory");
  return true;
#elif defined(__arm__)
  const uint32_t states[] = {0, 1u << 24, 2u << 22, 1u << 22, 3u << 22};
  __asm__ volatile("vmsr fpscr, %0" ::"r"(states[index] | 2u) : "memory");
  return true;
#else
#if defined(FE_DOWNWARD) && defined(FE_UPWARD) && defined(FE_TOWARDZERO)
  const int rounding[] = {FE_TONEAREST, -1, FE_DOWNWARD, FE_UPWARD, FE_TOWARDZERO};
  return rounding[index] >= 0 && std::fesetround(rounding[index]) == 0;
#else
  return index == 0;
#endif
#endif
}

}  // namespace etalon::test

#endif  // ETALON_TESTS_SUPPORT_HOST_ENVIRONMENT_H_
