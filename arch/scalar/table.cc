// The scalar backend: docs/numerics.md as plain C++. Compiled once for the baseline, and on x86-64 once more with -mfma
// (ETALON_SCALAR_FMA): the same source, the same bits, without the detour of Fma() through f64.
#include "arch/scalar/attend-inl.h"
#include "arch/scalar/convert-inl.h"
#include "arch/scalar/merge-inl.h"
#include "arch/scalar/score-inl.h"
#include "arch/scalar/softmax-inl.h"
#include "arch/scalar/state-inl.h"
#include "arch/scalar/values-inl.h"

namespace etalon {

#if defined(ETALON_SCALAR_FMA)
#define ETALON_TABLE kScalarFmaTable
constexpr char kName[] = "scalar-fma";
constexpr CpuFeatures kRequired = kCpuAvx | kCpuFma;  // -mfma lets the compiler use AVX everywhere
#else
#define ETALON_TABLE kScalarTable
constexpr char kName[] = "scalar";
constexpr CpuFeatures kRequired = 0;
#endif

extern const KernelTable ETALON_TABLE;
constexpr KernelTable ETALON_TABLE = {
    kName,    kRequired,         ScalarScratchBytes, Scores, Softmax, WeightedSum,
    Attend,   AttendBlockStates, FoldStates,         Merge,  Widen,   Narrow,
    Map<Exp>, Map<Log>,          Map<Tanh>,          MapFma,
};

}  // namespace etalon
