// targets.h: every kernel table that this CPU can run, for tests that must hold on each.
#ifndef ETALON_TESTS_SUPPORT_TARGETS_H_
#define ETALON_TESTS_SUPPORT_TARGETS_H_

#include <string>
#include <vector>

#include "arch/kernel_table.h"

namespace etalon::test {

// Restricts Tables() to one name (test_main's --target). False if this build or CPU has no such table.
bool SelectTarget(const std::string& name);

// The available tables, or the selected one. Each call counts as a run of those tables.
std::vector<KernelTable> Tables();
// scalar-fma where it can run: the source of the table that defines the bits, ten times as fast.
KernelTable FastDefinition();

// The table that defines the bits: always "scalar".
KernelTable Definition();

// What ran and what was skipped and why, a line a table. *complete is false if some test asked for tables and an
// available, not deselected one was left out, or if no table can run here.
std::string TargetReport(bool* complete);

}  // namespace etalon::test

#endif  // ETALON_TESTS_SUPPORT_TARGETS_H_
