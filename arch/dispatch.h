// dispatch.h: THE one place that chooses kernels.
#ifndef ETALON_ARCH_DISPATCH_H_
#define ETALON_ARCH_DISPATCH_H_

#include <cstddef>

#include "arch/kernel_table.h"

namespace etalon {

// One table that this build knows, in order of preference (the last that is available is the default).
struct TableInfo {
  const char* name;
  bool available;
  CpuFeatures required;
  CpuFeatures missing;  // features of these that the CPU or the operating system lacks; 0 if available
};

size_t NumTables();
TableInfo GetTableInfo(size_t index);  // index < NumTables()

enum class TableChoice {
  kOk,
  kUnknownName,   // no such table in this build
  kNotAvailable,  // this CPU or operating system cannot run it
};

// Fills *table with the kernels of the table called `name`, holes filled by the scalar one: no pointer is null. On
// failure *table is untouched; a forced table is never replaced by another. Idempotent and lock-free.
TableChoice ChooseTable(const char* name, KernelTable* table);

// The same for the table that the environment variable ETALON_TARGET names, or the last available one if it is unset or
// empty.
TableChoice ChooseDefaultTable(KernelTable* table);

// Bytes of scratch for any kernel of a chosen table, aligned to kWorkspaceAlignment; per thread.
size_t ScratchBytes(const KernelTable& table, size_t head_dim, size_t value_dim);

}  // namespace etalon

#endif  // ETALON_ARCH_DISPATCH_H_
