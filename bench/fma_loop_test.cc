// Does the loop that all kernels are compared with issue what the CPU can: 1.9 fused operations a cycle or more? A loop
// that is slower than that would flatter every kernel.
//
// Where it does not get there, hand-written instructions that can be nothing else are timed beside it. If they do not
// either, it is the machine (a core shared with others, a CPU with one unit for such wide vectors), and the test is
// skipped: exit code 77.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <string>
#include <vector>

#include "bench/support/cycles.h"
#include "bench/support/loops.h"

namespace etalon::bench {
namespace {

constexpr int64_t kSteps = 1000;
constexpr double kWanted = 1.9;
constexpr int kSkipped = 77;

// Twelve chains and two operands, in registers 0 ... 13.
#define ETALON_CHAINS(f, r) \
  f(r, 0) f(r, 1) f(r, 2) f(r, 3) f(r, 4) f(r, 5) f(r, 6) f(r, 7) f(r, 8) f(r, 9) f(r, 10) f(r, 11)
constexpr double kControlPerStep = 48;

#if defined(__x86_64__)
#define ETALON_ZERO(r, i) "vpxor %%xmm" #i ", %%xmm" #i ", %%xmm" #i "\n\t"
#define ETALON_FMA(r, i) "vfmadd213ps %%" r "13, %%" r "12, %%" r #i "\n\t"
#define ETALON_CLOBBERS \
  "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", "xmm12", "xmm13"
#define ETALON_CONTROL(name, r)                                                                                  \
  void name() {                                                                                                  \
    int64_t steps = kSteps;                                                                                      \
    __asm__ volatile(ETALON_CHAINS(ETALON_ZERO, r) ETALON_ZERO(r, 12) ETALON_ZERO(r, 13) "1:\n\t" ETALON_CHAINS( \
                         ETALON_FMA, r) ETALON_CHAINS(ETALON_FMA, r) ETALON_CHAINS(ETALON_FMA, r)                \
                         ETALON_CHAINS(ETALON_FMA, r) "sub $1, %0\n\tjnz 1b\n\tvzeroupper"                       \
                     : "+r"(steps)                                                                               \
                     :                                                                                           \
                     : "cc", ETALON_CLOBBERS);                                                                   \
  }
ETALON_CONTROL(Control256, "ymm")
ETALON_CONTROL(Control512, "zmm")
std::function<void()> ControlFor(const Loops& loops) { return loops.lanes == 16 ? Control512 : Control256; }
#elif defined(__aarch64__)
#define ETALON_ZERO(r, i) "movi v" #i ".4s, #0\n\t"
#define ETALON_FMA(r, i) "fmla v" #i ".4s, v12.4s, v13.4s\n\t"
void Control() {
  int64_t steps = kSteps;
  __asm__ volatile(ETALON_CHAINS(ETALON_ZERO, "v") ETALON_ZERO("v", 12)
                       ETALON_ZERO("v", 13) "1:\n\t" ETALON_CHAINS(ETALON_FMA, "v") ETALON_CHAINS(ETALON_FMA, "v")
                           ETALON_CHAINS(ETALON_FMA, "v") ETALON_CHAINS(ETALON_FMA, "v") "subs %0, %0, #1\n\tb.ne 1b"
                   : "+r"(steps)
                   :
                   : "cc", "v0", "v1", "v2", "v3", "v4", "v5", "v6", "v7", "v8", "v9", "v10", "v11", "v12", "v13");
}
std::function<void()> ControlFor(const Loops&) { return Control; }
#else
std::function<void()> ControlFor(const Loops&) {
  return [] {};
}
#endif

int Test(const Loops& loops) {
  const std::vector<std::function<void()>> works = {[&] { loops.fma(kSteps); }, ControlFor(loops)};
  double ours = 0, control = 0;
  Cycles cycles;
  // A second at most; a quiet machine needs a tenth of it.
  for (int attempt = 0; attempt < 10 && ours < kWanted; ++attempt) {
    cycles = CountCycles(works, 0.1);
    if (!cycles.unknown.empty()) continue;
    ours = std::max(ours, static_cast<double>(loops.fma_per_step * kSteps) / cycles.of_one[0]);
    control = std::max(control, kControlPerStep * kSteps / cycles.of_one[1]);
  }
  if (ours == 0) {
    std::printf("%s: SKIPPED: %s\n", loops.name, cycles.unknown.c_str());
    return kSkipped;
  }
  std::printf("%s: %.3f fused operations a cycle, hand-written ones %.3f (%.2f GHz, %s)\n", loops.name, ours, control,
              cycles.ghz, cycles.how.c_str());
  if (ours >= kWanted) return 0;
  if (control < kWanted && ours >= 0.95 * control) {
    std::printf("%s: SKIPPED: this machine issues less than %.1f a cycle whatever the code\n", loops.name, kWanted);
    return kSkipped;
  }
  std::printf("%s: FAILED: %.1f were expected\n", loops.name, kWanted);
  return 1;
}

int Main() {
  int worst = 0;
  bool any = false;
  for (const Loops* loops : AvailableLoops()) {
    const int code = Test(*loops);
    any = any || code == 0;
    if (code != 0 && worst != 1) worst = code;
  }
  if (AvailableLoops().empty()) {
    std::printf("SKIPPED: no loops for this CPU\n");
    return kSkipped;
  }
  return worst == kSkipped && any ? 0 : worst;
}

}  // namespace
}  // namespace etalon::bench

int main() { return etalon::bench::Main(); }
