// tables.h: the kernel tables that --target names.
#ifndef ETALON_CLI_TABLES_H_
#define ETALON_CLI_TABLES_H_

#include <string>
#include <vector>

#include "cli/engine.h"

namespace etalon::cli {

// Of names with commas between, or "all" that are available; each once, in the order of the names. Empty: the one that
// the library chooses by itself (ETALON_TARGET, or the best). False: *error says which cannot be had, and lists those
// of this build.
bool SelectTables(const std::string& names, std::vector<TableState>* tables, std::string* error);

}  // namespace etalon::cli

#endif  // ETALON_CLI_TABLES_H_
