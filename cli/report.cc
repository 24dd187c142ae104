#include "cli/report.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>

#include "cli/text.h"

namespace etalon::cli {
namespace {

std::string Padded(const std::string& text, size_t width, bool right) {
  const std::string space(width - text.size(), ' ');
  return right ? space + text : text + space;
}

std::string Toned(const std::string& text, Tone tone) {
  if (tone == Tone::kPlain) return text;
  return (tone == Tone::kGood ? "\x1b[32m" : "\x1b[1;31m") + text + "\x1b[0m";
}

// One that understands more than lines.
bool IsTerminal(std::FILE* stream) {
  const char* term = std::getenv("TERM");
  return isatty(fileno(stream)) != 0 && (term == nullptr || std::strcmp(term, "dumb") != 0);
}

size_t ColumnsOf(std::FILE* terminal) {
  winsize size = {};
  return ioctl(fileno(terminal), TIOCGWINSZ, &size) == 0 && size.ws_col > 1 ? size.ws_col : 80;
}

}  // namespace

bool WantsColour(std::FILE* stream) {
  const char* no_color = std::getenv("NO_COLOR");
  return (no_color == nullptr || no_color[0] == '\0') && IsTerminal(stream);
}

void TextTable::Column(std::string name, std::string unit, Align align) {
  columns_.push_back({std::move(name), std::move(unit), align});
}

void TextTable::Row(std::vector<Cell> cells) { rows_.push_back(std::move(cells)); }

std::string TextTable::Text(bool colour) const {
  std::vector<size_t> widths;
  for (size_t c = 0; c < columns_.size(); ++c) {
    size_t width = std::max(columns_[c].name.size(), columns_[c].unit.size());
    for (const auto& row : rows_) width = std::max(width, row[c].text.size());
    widths.push_back(width);
  }
  std::string text;
  const auto line = [&](const std::vector<Cell>& cells) {
    std::string plain;
    for (size_t c = 0; c < cells.size(); ++c) {
      const std::string padded = Padded(cells[c].text, widths[c], columns_[c].align == Align::kRight);
      plain += (c == 0 ? "" : "  ") + (colour ? Toned(padded, cells[c].tone) : padded);
    }
    text += plain.substr(0, plain.find_last_not_of(' ') + 1) + "\n";
  };
  std::vector<Cell> names;
  std::vector<Cell> units;
  bool any_unit = false;
  for (const Head& column : columns_) {
    names.push_back({column.name});
    units.push_back({column.unit});
    any_unit = any_unit || !column.unit.empty();
  }
  line(names);
  if (any_unit) line(units);
  for (const auto& row : rows_) line(row);
  return text;
}

std::string ProgressText(const std::string& text, double done, double total, double seconds) {
  if (!(total > 0.0)) return text;
  const double share = std::min(1.0, std::max(0.0, done / total));
  std::string head = Fixed(std::floor(100.0 * share), 0);
  head = "[" + std::string(3 - head.size(), ' ') + head + " %";
  if (share > 0.0 && seconds >= 1.0) {  // the first second tells too little
    const double left = seconds / share * (1.0 - share);
    head += ", about " + (left < 100.0 ? Fixed(std::ceil(left), 0) + " s" : Fixed(std::ceil(left / 60.0), 0) + " min") +
            " left";
  }
  return head + "] " + text;
}

Progress::Progress(double total_work)
    : terminal_(IsTerminal(stderr)), total_(total_work), start_(std::chrono::steady_clock::now()) {}

Progress::~Progress() { Clear(); }

void Progress::Say(const std::string& text) {
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  std::string line = ProgressText(text, done_, total_, seconds);
  // A line that the terminal breaks in two cannot be rewritten.
  if (terminal_) line = line.substr(0, ColumnsOf(stderr) - 1);
  std::fprintf(stderr, terminal_ ? "\r\x1b[K%s" : "%s\n", line.c_str());
  std::fflush(stderr);
}

void Progress::Clear() {
  if (terminal_) std::fputs("\r\x1b[K", stderr);
}

}  // namespace etalon::cli
