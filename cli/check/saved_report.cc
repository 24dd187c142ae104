// Reads what `etalon check --json` has printed.
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <system_error>

#include "cli/check/compare.h"
#include "cli/text.h"

namespace etalon::cli {
namespace {

using nlohmann::json;

constexpr std::uintmax_t kMaxBytes = std::uintmax_t{1} << 26;  // far more than a report has

// The member of an object that stands at `where` ("tables[2]"; empty: the whole file). Throws what is wrong with it.
const json& Member(const json& object, const std::string& where, const char* name) {
  const std::string full = where.empty() ? name : where + "." + name;
  if (!object.is_object()) throw std::runtime_error((where.empty() ? "the whole" : where) + " is no object");
  const auto found = object.find(name);
  if (found == object.end()) throw std::runtime_error(full + " is missing");
  return *found;
}

template <typename T>
T Get(const json& object, const std::string& where, const char* name, bool (json::*is)() const noexcept,
      const char* what) {
  const json& member = Member(object, where, name);
  if (!(member.*is)()) throw std::runtime_error((where.empty() ? "" : where + ".") + name + " is no " + what);
  return member.get<T>();
}

std::string Text(const json& object, const std::string& where, const char* name) {
  return Printable(Get<std::string>(object, where, name, &json::is_string, "text"));
}

// An infinite error stands in JSON as null.
double Number(const json& object, const std::string& where, const char* name) {
  if (Member(object, where, name).is_null()) return HUGE_VAL;
  return Get<double>(object, where, name, &json::is_number, "number");
}

SavedTable TableFrom(const json& j, const std::string& where) {
  SavedTable table;
  table.name = Text(j, where, "name");
  table.available = Get<bool>(j, where, "available", &json::is_boolean, "true or false");
  if (!table.available) {
    table.reason = Text(j, where, "reason");
    return table;
  }
  table.digest = Text(j, where, "digest");
  table.bits_equal = Get<bool>(j, where, "bits_equal", &json::is_boolean, "true or false");
  table.max_abs = Number(j, where, "max_abs");
  table.rms_error = Number(j, where, "rms_error");
  table.max_ulp = Number(j, where, "max_ulp");
  const json& hashes = Member(j, where, "hashes");
  if (!hashes.is_object()) throw std::runtime_error(where + ".hashes is no object");
  for (const auto& [name, hash] : hashes.items()) {
    if (!hash.is_string()) throw std::runtime_error(where + ".hashes: " + Printable(name) + " is no text");
    table.hashes[Printable(name)] = Printable(hash.get<std::string>());
  }
  return table;
}

SavedReport ReportFrom(const json& j) {
  SavedReport report;
  report.version = Text(j, "", "version");
  // json::get wraps what is too large.
  const uint64_t arithmetic = Get<uint64_t>(j, "", "arithmetic", &json::is_number_unsigned, "whole number");
  if (arithmetic > INT32_MAX)
    throw std::runtime_error("arithmetic is no whole number up to " + std::to_string(INT32_MAX));
  report.arithmetic = static_cast<int64_t>(arithmetic);
  report.digest = Text(j, "", "digest");
  report.cpu = Text(Member(j, "", "cpu"), "cpu", "name");
  const json& tables = Member(j, "", "tables");
  if (!tables.is_array()) throw std::runtime_error("tables is no array");
  for (size_t i = 0; i < tables.size(); ++i) {
    report.tables.push_back(TableFrom(tables[i], "tables[" + std::to_string(i) + "]"));
  }
  return report;
}

}  // namespace

bool ReadSavedReport(const std::string& path, SavedReport* report, std::string* error) {
  const std::string named = PrintablePath(path) + ": ";
  std::error_code status;
  const bool is_folder = std::filesystem::is_directory(path, status);
  std::ifstream file(path, std::ios::binary);
  if (!file || is_folder) {
    *error = named + (is_folder ? "is a folder" : "cannot be read");
    return false;
  }
  std::string text;
  for (std::istreambuf_iterator<char> at(file), end; at != end && text.size() <= kMaxBytes; ++at) text += *at;
  const json j = text.size() > kMaxBytes ? json(json::value_t::discarded) : json::parse(text, nullptr, false);
  if (j.is_discarded()) {
    *error = named + "not JSON, which `etalon check --json` prints";
    return false;
  }
  try {
    *report = ReportFrom(j);
  } catch (const std::runtime_error& wrong) {
    *error = named + "not a report of `etalon check --json`: " + wrong.what();
    return false;
  }
  report->path = path;
  return true;
}

}  // namespace etalon::cli
