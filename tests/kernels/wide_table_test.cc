// A scalar table compiled for a wider CPU than detection and choice: it asks for all that its compiler could use, and
// is refused where that is missing.
//
// arch/scalar/table.cc is compiled into this program with -march=sapphirerapids, a CPU with every x86 feature of cpu.h,
// and replaces the library's own.
#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include <doctest/doctest.h>

#include <cstdlib>
#include <string>

#include "arch/cpu.h"
#include "arch/dispatch.h"

namespace etalon::test {
namespace {

TEST_CASE("a table that was compiled for another CPU is refused, and so is one whose holes it would fill") {
  CpuFeatures every_x86 = 0;
  for (int bit = 0; bit < 40; ++bit) {
    if (CpuFeatureName(CpuFeatures{1} << bit) != nullptr) every_x86 |= CpuFeatures{1} << bit;
  }
  const CpuFeatures missing = every_x86 & ~DetectCpu();
  const TableChoice expected = missing == 0 ? TableChoice::kOk : TableChoice::kNotAvailable;
  KernelTable table = {};
  for (size_t i = 0; i < NumTables(); ++i) {
    const TableInfo info = GetTableInfo(i);
    INFO(std::string(info.name));
    CHECK(info.missing == missing);
    CHECK(ChooseTable(info.name, &table) == expected);
    CHECK(table.required == (missing == 0 ? every_x86 : 0));
  }
  unsetenv("ETALON_TARGET");
  CHECK(ChooseDefaultTable(&table) == expected);
}

}  // namespace
}  // namespace etalon::test
