#include "cli/tables.h"

#include <algorithm>

#include "cli/text.h"

namespace etalon::cli {
namespace {

// "a,b" has the parts "a" and "b", "a," has "a" and "".
std::vector<std::string> Split(const std::string& text) {
  std::vector<std::string> parts;
  size_t from = 0;
  for (size_t comma; (comma = text.find(',', from)) != std::string::npos; from = comma + 1) {
    parts.push_back(text.substr(from, comma - from));
  }
  parts.push_back(text.substr(from));
  return parts;
}

}  // namespace

bool SelectTables(const std::string& names, std::vector<TableState>* tables, std::string* error) {
  const std::vector<TableState> states = Tables(error);
  if (names.empty() && !error->empty()) return false;
  error->clear();  // what ETALON_TARGET says does not matter beside --target
  if (names.empty() || names == "all") {
    for (const TableState& state : states) {
      if (names.empty() ? state.chosen : state.available) tables->push_back(state);
    }
    return true;
  }
  for (const std::string& name : Split(names)) {
    const auto called = [&](const TableState& state) { return state.name == name; };
    const auto found = std::find_if(states.begin(), states.end(), called);
    if (found == states.end() || !found->available) {
      *error = RefusalOf("--target=" + Printable(name, 60), found != states.end(), states);
      return false;
    }
    if (std::none_of(tables->begin(), tables->end(), called)) tables->push_back(*found);
  }
  return true;
}

}  // namespace etalon::cli
