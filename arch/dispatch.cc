#include "arch/dispatch.h"

#include <cstdlib>
#include <cstring>

namespace etalon {

extern const KernelTable kScalarTable;
#if defined(ETALON_HAVE_XSIMD_AVX2)
extern const KernelTable kXsimdAvx2Table;
#endif
#if defined(ETALON_HAVE_XSIMD_AVX512)
extern const KernelTable kXsimdAvx512Table;
#endif
#if defined(ETALON_HAVE_XSIMD_NEON64)
extern const KernelTable kXsimdNeon64Table;
#endif
#if defined(ETALON_HAVE_SCALAR_FMA)
extern const KernelTable kScalarFmaTable;
#endif
#if defined(ETALON_HAVE_HIGHWAY_AVX2)
extern const KernelTable kHighwayAvx2Table;
#endif
#if defined(ETALON_HAVE_HIGHWAY_AVX3)
extern const KernelTable kHighwayAvx3Table;
#endif
#if defined(ETALON_HAVE_HIGHWAY_NEON)
extern const KernelTable kHighwayNeonTable;
#endif

namespace {

// Ascending preference. The first fills the holes of the others; it runs everywhere, unless whoever compiled it chose
// wider instructions. Those of xsimd are a second opinion, to be asked for by name: never tuned, they stand below all
// that a build for all targets has beside them wherever they run, and are the default only of one that was told to have
// no more.
constexpr const KernelTable* kTables[] = {
    &kScalarTable,
#if defined(ETALON_HAVE_XSIMD_AVX2)
    &kXsimdAvx2Table,
#endif
#if defined(ETALON_HAVE_XSIMD_AVX512)
    &kXsimdAvx512Table,
#endif
#if defined(ETALON_HAVE_XSIMD_NEON64)
    &kXsimdNeon64Table,
#endif
#if defined(ETALON_HAVE_SCALAR_FMA)
    &kScalarFmaTable,
#endif
#if defined(ETALON_HAVE_HIGHWAY_AVX2)
    &kHighwayAvx2Table,
#endif
#if defined(ETALON_HAVE_HIGHWAY_AVX3)
    &kHighwayAvx3Table,
#endif
#if defined(ETALON_HAVE_HIGHWAY_NEON)
    &kHighwayNeonTable,
#endif
};
constexpr size_t kNumTables = sizeof(kTables) / sizeof(kTables[0]);

// Of the table as it is joined.
CpuFeatures Required(const KernelTable& table) { return table.required | kScalarTable.required; }

CpuFeatures Missing(const KernelTable& table) { return Required(table) & ~DetectCpu(); }

template <typename Pointer>
void Overlay(Pointer* slot, Pointer kernel) {
  if (kernel != nullptr) *slot = kernel;
}

KernelTable Join(const KernelTable& top) {
  KernelTable joined = kScalarTable;
  joined.name = top.name;
  joined.required = Required(top);
  Overlay(&joined.scratch_bytes, top.scratch_bytes);
  Overlay(&joined.scores, top.scores);
  Overlay(&joined.softmax, top.softmax);
  Overlay(&joined.weighted_sum, top.weighted_sum);
  Overlay(&joined.attend, top.attend);
  Overlay(&joined.block_states, top.block_states);
  Overlay(&joined.fold, top.fold);
  Overlay(&joined.merge, top.merge);
  Overlay(&joined.widen, top.widen);
  Overlay(&joined.narrow, top.narrow);
  Overlay(&joined.exp, top.exp);
  Overlay(&joined.log, top.log);
  Overlay(&joined.tanh, top.tanh);
  Overlay(&joined.fma, top.fma);
  return joined;
}

}  // namespace

size_t NumTables() { return kNumTables; }

TableInfo GetTableInfo(size_t index) {
  const KernelTable& table = *kTables[index];
  const CpuFeatures missing = Missing(table);
  return {table.name, missing == 0, Required(table), missing};
}

TableChoice ChooseTable(const char* name, KernelTable* table) {
  for (const KernelTable* candidate : kTables) {
    if (std::strcmp(candidate->name, name) != 0) continue;
    if (Missing(*candidate) != 0) return TableChoice::kNotAvailable;
    *table = Join(*candidate);
    return TableChoice::kOk;
  }
  return TableChoice::kUnknownName;
}

TableChoice ChooseDefaultTable(KernelTable* table) {
  const char* forced = std::getenv("ETALON_TARGET");
  if (forced != nullptr && forced[0] != '\0') return ChooseTable(forced, table);
  for (size_t i = kNumTables; i-- > 0;) {
    if (Missing(*kTables[i]) == 0) {
      *table = Join(*kTables[i]);
      return TableChoice::kOk;
    }
  }
  return TableChoice::kNotAvailable;  // the scalar table was compiled for another CPU
}

size_t ScratchBytes(const KernelTable& table, size_t head_dim, size_t value_dim) {
  const size_t own = table.scratch_bytes(head_dim, value_dim);
  const size_t scalar = kScalarTable.scratch_bytes(head_dim, value_dim);
  return own > scalar ? own : scalar;
}

}  // namespace etalon
