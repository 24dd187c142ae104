// report.h: how the tool talks: aligned tables, colour and progress.
#ifndef ETALON_CLI_REPORT_H_
#define ETALON_CLI_REPORT_H_

#include <cstdio>
#include <string>
#include <vector>

namespace etalon::cli {

// True on a terminal, unless NO_COLOR is set to anything (no-color.org).
bool WantsColour(std::FILE* stream);

enum class Tone { kPlain, kGood, kBad };

struct Cell {
  std::string text;
  Tone tone = Tone::kPlain;
};

// Columns are as wide as their widest cell. Units stand in a line of their own under the names.
class TextTable {
 public:
  enum class Align { kLeft, kRight };

  void Column(std::string name, std::string unit, Align align);
  void Row(std::vector<Cell> cells);  // one for each column
  std::string Text(bool colour) const;

 private:
  struct Head {
    std::string name;
    std::string unit;
    Align align;
  };
  std::vector<Head> columns_;
  std::vector<std::vector<Cell>> rows_;
};

// What is being done right now, on stderr: one line that is rewritten on a terminal, a line each elsewhere.
class Progress {
 public:
  Progress();
  ~Progress();  // leaves no half-written line behind
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void Say(const std::string& text);
  void Clear();

 private:
  bool terminal_;
};

}  // namespace etalon::cli

#endif  // ETALON_CLI_REPORT_H_
