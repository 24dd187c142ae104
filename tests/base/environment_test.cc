// RunInEnvironment: whatever the state of the host's floating-point unit, the bits are the same, and the host finds its
// state as it left it.
//
// The register is written and read here by hand, and nothing in this file computes between a write and the write that
// puts the default back: with unmasked exceptions that would end the process.
#include "lib/base/environment.h"

#include <doctest/doctest.h>

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "arch/dispatch.h"
#include "lib/base/types.h"
#include "tests/support/generate.h"
#include "tests/support/targets.h"

#if defined(__x86_64__) || defined(__i386__) || defined(__aarch64__)

namespace etalon::test {
namespace {

struct Host {
  uint64_t control;
  uint64_t flags;  // 0 where they share a register with the control
};

bool operator==(const Host& a, const Host& b) { return a.control == b.control && a.flags == b.flags; }

enum Stage { kExp = 1, kFma = 2, kAttend = 4, kAll = 7 };

struct HostState {
  const char* name;
  Host host;
  int changes;  // which stages give other bits in this state if nothing guards them
  bool traps;   // unguarded arithmetic would end the process
};

#if defined(__aarch64__)

Host ReadHost() {
  Host host;
  __asm__ volatile("mrs %0, fpcr" : "=r"(host.control)::"memory");
  __asm__ volatile("mrs %0, fpsr" : "=r"(host.flags)::"memory");
  return host;
}

void WriteHost(const Host& host) {
  __asm__ volatile("msr fpcr, %0" ::"r"(host.control) : "memory");
  __asm__ volatile("msr fpsr, %0" ::"r"(host.flags) : "memory");
}

constexpr Host kDefault = {0, 0};
constexpr uint64_t kUp = 1u << 22, kDown = 2u << 22, kToZero = 3u << 22;
constexpr uint64_t kFlush = 1u << 24, kFlushF16 = 1u << 19, kDefaultNaN = 1u << 25, kUnmasked = 0x9F00;
constexpr uint64_t kAllFlags = 0x9F, kSticky = 1u << 27;

// A CPU may ignore a bit it does not know or cannot trap on; what it reads back is what must be found again.
const HostState kStates[] = {
    {"default", {0, 0}, 0, false},
    {"up", {kUp, 0}, kAll, false},
    {"down", {kDown, 0}, kAll, false},
    {"to zero", {kToZero, 0}, kAll, false},
    {"FZ", {kFlush, 0}, kFma | kAttend, false},
    {"FZ, up", {kFlush | kUp, 0}, kAll, false},
    {"FZ, FZ16, default NaN, to zero", {kFlush | kFlushF16 | kDefaultNaN | kToZero, 0}, kAll, false},
    {"unmasked", {kUnmasked, 0}, 0, true},
    {"unmasked, FZ, down", {kUnmasked | kFlush | kDown, 0}, 0, true},
    {"some flags", {0, 0x11}, 0, false},
    {"all flags", {0, kAllFlags | kSticky}, 0, false},
    {"unmasked, all flags", {kUnmasked, kAllFlags | kSticky}, 0, true},
    {"everything", {kUnmasked | kFlush | kFlushF16 | kDefaultNaN | kToZero, kAllFlags | kSticky}, 0, true},
};

#else

// _mm_getcsr would do, but a compiler may take it for a pure read and reuse it.
Host ReadHost() {
  uint32_t mxcsr;
  __asm__ volatile("stmxcsr %0" : "=m"(mxcsr)::"memory");
  return {mxcsr, 0};
}

void WriteHost(const Host& host) {
  const uint32_t mxcsr = static_cast<uint32_t>(host.control);
  __asm__ volatile("ldmxcsr %0" ::"m"(mxcsr) : "memory");
}

constexpr uint64_t kMasked = 0x1F80, kAllFlags = 0x3F;
constexpr uint64_t kDown = 0x2000, kUp = 0x4000, kToZero = 0x6000, kFlush = 0x8000, kZeroInputs = 0x0040;
constexpr Host kDefault = {kMasked, 0};

const HostState kStates[] = {
    {"default", {kMasked, 0}, 0, false},
    {"up", {kMasked | kUp, 0}, kAll, false},
    {"down", {kMasked | kDown, 0}, kAll, false},
    {"to zero", {kMasked | kToZero, 0}, kAll, false},
    {"FTZ", {kMasked | kFlush, 0}, kFma | kAttend, false},
    {"DAZ", {kMasked | kZeroInputs, 0}, kFma | kAttend, false},
    {"FTZ, DAZ", {kMasked | kFlush | kZeroInputs, 0}, kFma | kAttend, false},
    {"FTZ, DAZ, up", {kMasked | kFlush | kZeroInputs | kUp, 0}, kAll, false},
    {"unmasked", {0, 0}, 0, true},
    {"unmasked, FTZ, down", {kFlush | kDown, 0}, 0, true},
    {"inexact unmasked", {kMasked & ~uint64_t{0x1000}, 0}, 0, true},
    {"some flags", {kMasked | 0x21, 0}, 0, false},
    {"all flags", {kMasked | kAllFlags, 0}, 0, false},
    {"unmasked, all flags", {kAllFlags, 0}, 0, true},
    {"everything", {kAllFlags | kFlush | kZeroInputs | kToZero, 0}, 0, true},
};

#endif

// Inputs and outputs of the three stages on one table, all of it prepared beforehand.
struct Stages {
  explicit Stages(const KernelTable& which) : table(which) {
    Random random(5);
    for (int i = 0; i < 64; ++i) exp_in.push_back(random.Normal() * 4 - 20);
    const float triples[][3] = {
        {0x1.2345p-70f, 0x1.6789p-70f, 0.0f},  // a subnormal result
        {0x1.8p-140f, 0x1p30f, 0.0f},          // a subnormal input
    };
    for (const auto& triple : triples) {
      a.push_back(triple[0]);
      b.push_back(triple[1]);
      c.push_back(triple[2]);
    }
    for (int i = 0; i < 32; ++i) {  // inexact, in either direction and of either sign
      a.push_back(random.Normal());
      b.push_back(random.Normal());
      c.push_back(random.Normal());
    }
    q = random.Normals(kDim);
    k = random.Normals(kKeys * kDim);
    // One channel of ordinary values, one of subnormals, one that becomes subnormal through its weights.
    const float factors[kValues] = {1.0f, 0x1p-130f, 0x1p-122f};
    for (int64_t i = 0; i < kKeys * kValues; ++i) v.push_back(random.Normal() * factors[i % kValues]);
    scratch.resize(ScratchBytes(table, kDim, kValues) / sizeof(float) + 32);

    row.q = q.data();
    row.out = out;
    row.lse = &lse;
    source.k = k.data();
    source.v = v.data();
    source.k_stride_bytes = kDim * 4;
    source.v_stride_bytes = kValues * 4;
    source.num_keys = kKeys;
    keys.span = {0, kKeys};
    attend.rows = &row;
    attend.num_rows = 1;
    attend.sources = &source;
    attend.num_sources = 1;
    attend.keys = &keys;
    attend.head_dim = kDim;
    attend.value_dim = kValues;
    attend.options.scale = 0.70710678f;
    const uintptr_t address = reinterpret_cast<uintptr_t>(scratch.data());
    attend.scratch = reinterpret_cast<void*>((address + 63) / 64 * 64);
    exp_out.resize(exp_in.size());
    fma_out.resize(a.size());
  }
  Stages(const Stages&) = delete;
  Stages& operator=(const Stages&) = delete;

  std::vector<uint32_t> Results(int stage) const {
    std::vector<uint32_t> words;
    if (stage == kExp) words = Words(exp_out.data(), exp_out.size());
    if (stage == kFma) words = Words(fma_out.data(), fma_out.size());
    if (stage == kAttend) {
      words = Words(out, kValues);
      words.push_back(Bits(lse));
    }
    return words;
  }

  static std::vector<uint32_t> Words(const float* x, size_t n) {
    std::vector<uint32_t> words(n);
    std::memcpy(words.data(), x, n * sizeof(float));
    return words;
  }

  static constexpr int64_t kKeys = 300, kDim = 8, kValues = 3;
  KernelTable table;
  std::vector<float> exp_in, exp_out, a, b, c, fma_out, q, k, v, scratch;
  float out[kValues] = {};
  float lse = 0;
  QueryRow row = {};
  KeySource source = {};
  RowKeys keys = {};
  AttendArgs attend = {};
};

void RunExp(void* p) {
  Stages& s = *static_cast<Stages*>(p);
  s.table.exp(s.exp_in.data(), s.exp_out.data(), s.exp_in.size());
}

void RunFmaStage(void* p) {
  Stages& s = *static_cast<Stages*>(p);
  s.table.fma(s.a.data(), s.b.data(), s.c.data(), s.fma_out.data(), s.a.size());
}

void RunAttendStage(void* p) {
  Stages& s = *static_cast<Stages*>(p);
  s.table.attend(s.attend);
}

struct NamedStage {
  int stage;
  const char* name;
  void (*run)(void*);
};

const NamedStage kStages[] = {{kExp, "exp", RunExp}, {kFma, "fma", RunFmaStage}, {kAttend, "attend", RunAttendStage}};

// What a piece of work saw, and what the host found around it.
struct Observed {
  Host at_entry;
  Host before_inner, after_inner;
};

// Raises every exception: invalid, division by zero, overflow, underflow, inexact (and a subnormal operand).
void RaiseAll() {
  volatile float zero = 0, one = 1, large = FromBits(0x7F7FFFFFu), small = FromBits(0x00800001u), three = 3;
  volatile float subnormal = FromBits(0x00000003u);
  volatile float sink;
  sink = zero / zero;
  sink = one / zero;
  sink = large * large;
  sink = small * small;
  sink = one / three;
  sink = subnormal * three;
  (void)sink;
}

void ObserveAndRaise(void* p) {
  static_cast<Observed*>(p)->at_entry = ReadHost();
  RaiseAll();
}

void Leave(void*) { WriteHost(kStates[1].host); }

void RunNested(void* p) {
  Observed& observed = *static_cast<Observed*>(p);
  WriteHost(kStates[4].host);  // work may do that, too: the inner call must neither mind nor undo it
  observed.before_inner = ReadHost();
  Observed inner;
  RunInEnvironment(ObserveAndRaise, &inner);
  observed.after_inner = ReadHost();
  observed.at_entry = inner.at_entry;
}

}  // namespace

TEST_SUITE_BEGIN("base environment");

TEST_CASE("in every state of the host the bits are those of the default state, and the state is kept") {
  for (const KernelTable& table : Tables()) {
    Stages s(table);
    for (const NamedStage& stage : kStages) {
      RunInEnvironment(stage.run, &s);
      const std::vector<uint32_t> expected = s.Results(stage.stage);
      for (const HostState& state : kStates) {
        WriteHost(state.host);
        const Host before = ReadHost();
        RunInEnvironment(stage.run, &s);
        const Host after = ReadHost();
        WriteHost(kDefault);
        CAPTURE(std::string(table.name));
        CAPTURE(std::string(stage.name));
        CAPTURE(std::string(state.name));
        CAPTURE(before.control);
        CAPTURE(after.control);
        CAPTURE(before.flags);
        CAPTURE(after.flags);
        CHECK(s.Results(stage.stage) == expected);
        CHECK(after == before);
      }
    }
  }
}

// Without this the test above could pass on inputs that no state can change.
TEST_CASE("the inputs are sensitive: without the guard the state shows in the bits") {
  for (const KernelTable& table : Tables()) {
    Stages s(table);
    for (const NamedStage& stage : kStages) {
      RunInEnvironment(stage.run, &s);
      const std::vector<uint32_t> expected = s.Results(stage.stage);
      for (const HostState& state : kStates) {
        if (state.traps) continue;
        WriteHost(state.host);
        stage.run(&s);
        WriteHost(kDefault);
        CAPTURE(std::string(table.name));
        CAPTURE(std::string(stage.name));
        CAPTURE(std::string(state.name));
        CHECK((s.Results(stage.stage) != expected) == ((state.changes & stage.stage) != 0));
      }
    }
  }
}

TEST_CASE("work begins in the default state, and the flags it raises stay inside") {
  for (const HostState& state : kStates) {
    Observed observed;
    WriteHost(state.host);
    const Host before = ReadHost();
    RunInEnvironment(ObserveAndRaise, &observed);
    const Host after = ReadHost();
    WriteHost(kDefault);
    CAPTURE(std::string(state.name));
    CHECK(observed.at_entry == kDefault);
    CHECK(after == before);
  }
}

TEST_CASE("that work does raise flags") {
  WriteHost(kDefault);
  RaiseAll();
  const Host raised = ReadHost();
  WriteHost(kDefault);
#if defined(__aarch64__)
  CHECK((raised.flags & 0x1F) == 0x1F);  // the subnormal operand has a flag only in flushing modes
#else
  CHECK((raised.control & kAllFlags) == kAllFlags);
#endif
}

TEST_CASE("a state that work leaves behind does not reach the host") {
  for (const HostState& state : kStates) {
    WriteHost(state.host);
    const Host before = ReadHost();
    RunInEnvironment(Leave, nullptr);
    const Host after = ReadHost();
    WriteHost(kDefault);
    CAPTURE(std::string(state.name));
    CHECK(after == before);
  }
}

TEST_CASE("calls nest: the inner one begins in the default state and gives back the outer one's") {
  for (const HostState& state : kStates) {
    Observed observed;
    WriteHost(state.host);
    const Host before = ReadHost();
    RunInEnvironment(RunNested, &observed);
    const Host after = ReadHost();
    WriteHost(kDefault);
    CAPTURE(std::string(state.name));
    CHECK(observed.at_entry == kDefault);
    CHECK(observed.after_inner == observed.before_inner);
    CHECK(after == before);
  }
}

TEST_SUITE_END();

}  // namespace etalon::test

#endif
