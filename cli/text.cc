#include "cli/text.h"

#include <cinttypes>
#include <cstdio>

namespace etalon::cli {
namespace {

template <typename... Values>
std::string Format(const char* format, Values... values) {
  char buffer[400];  // the longest is %.*f of DBL_MAX: 309 digits and the fraction
  std::snprintf(buffer, sizeof buffer, format, values...);
  return buffer;
}

}  // namespace

std::string Printable(std::string_view text, size_t max_length) {
  std::string result;
  for (size_t i = 0; i < text.size(); ++i) {
    if (i == max_length) return result + "...";
    const unsigned char c = static_cast<unsigned char>(text[i]);
    if (c >= 0x20 && c < 0x7F) {
      result += static_cast<char>(c);
    } else {
      result += Format("\\x%02x", static_cast<unsigned>(c));
    }
  }
  return result;
}

std::string PrintablePath(const std::string& path) {
  constexpr size_t kMost = 200;
  return path.size() <= kMost ? Printable(path) : "..." + Printable(path.substr(path.size() - kMost));
}

std::string General(double x, int digits) { return Format("%.*g", digits, x); }
std::string Scientific(double x, int digits) { return Format("%.*e", digits, x); }
std::string Fixed(double x, int digits) { return Format("%.*f", digits, x); }

std::string LowerCase(std::string text) {
  for (char& c : text) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return text;
}

std::string Join(const std::vector<std::string>& parts, std::string_view separator) {
  std::string result;
  for (size_t i = 0; i < parts.size(); ++i) {
    if (i > 0) result += separator;
    result += parts[i];
  }
  return result;
}

std::string ShapeText(const std::vector<int64_t>& shape) {
  std::vector<std::string> parts;
  for (const int64_t dim : shape) parts.push_back(std::to_string(dim));
  return "[" + Join(parts, ", ") + "]";
}

std::string Hex64(uint64_t x) { return Format("%016" PRIx64, x); }

std::string HashText(uint64_t hash) { return "fnv1a64:" + Hex64(hash); }

}  // namespace etalon::cli
