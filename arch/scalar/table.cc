// The scalar backend: docs/numerics.md as plain C++. Compiled once for the baseline, and on x86-64 once more with -mfma
// (ETALON_SCALAR_FMA): the same source, the same bits, without the detour of Fma() through f64.
#include "arch/scalar/attend-inl.h"
#include "arch/scalar/convert-inl.h"
#include "arch/scalar/merge-inl.h"
#include "arch/scalar/required-inl.h"
#include "arch/scalar/score-inl.h"
#include "arch/scalar/scratch-inl.h"
#include "arch/scalar/softmax-inl.h"
#include "arch/scalar/state-inl.h"
#include "arch/scalar/values-inl.h"

namespace etalon {

#if defined(ETALON_SCALAR_FMA)
#define ETALON_TABLE kScalarFmaTable
constexpr char kName[] = "scalar-fma";
static_assert((CompiledFor() & kCpuFma) != 0, "compile this table with -mfma");
#else
#define ETALON_TABLE kScalarTable
constexpr char kName[] = "scalar";
#endif

extern const KernelTable ETALON_TABLE;
constexpr KernelTable ETALON_TABLE = {
    kName,    CompiledFor(),     ScalarScratchBytes, Scores, Softmax, WeightedSum,
    Attend,   AttendBlockStates, FoldStates,         Merge,  Widen,   Narrow,
    Map<Exp>, Map<Log>,          Map<Tanh>,          MapFma,
};

}  // namespace etalon
