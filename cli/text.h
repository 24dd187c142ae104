// text.h: small helpers that turn values into text for people.
#ifndef ETALON_CLI_TEXT_H_
#define ETALON_CLI_TEXT_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace etalon::cli {

// Text from outside (file contents, file names) made harmless for a terminal: bytes other than printable ASCII become
// \xNN, and what exceeds max_length is cut and marked.
std::string Printable(std::string_view text, size_t max_length = 200);

// A path likewise; of a long one the end, which says more.
std::string PrintablePath(const std::string& path);

// printf's %.*g, %.*e and %.*f for one number.
std::string General(double x, int digits);
std::string Scientific(double x, int digits);
std::string Fixed(double x, int digits);

// Of ASCII letters alone, whatever the locale.
std::string LowerCase(std::string text);

std::string Join(const std::vector<std::string>& parts, std::string_view separator);

// "[6, 1500, 64]"
std::string ShapeText(const std::vector<int64_t>& shape);

// Sixteen hexadecimal digits.
std::string Hex64(uint64_t x);

// "fnv1a64:" and the digits: what outputs are compared by (fnv.h).
std::string HashText(uint64_t hash);

}  // namespace etalon::cli

#endif  // ETALON_CLI_TEXT_H_
