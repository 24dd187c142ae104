// report.h: how the tool talks: aligned tables, colour and progress.
#ifndef ETALON_CLI_REPORT_H_
#define ETALON_CLI_REPORT_H_

#include <chrono>
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

// "[ 40 %, about 12 s left] text": `done` of `total` (any unit) took `seconds`. Says nothing about time before there is
// something to tell it from, and nothing at all where total is 0.
std::string ProgressText(const std::string& text, double done, double total, double seconds);

// What is being done right now, on stderr: one line that is rewritten on a terminal, a line each elsewhere.
class Progress {
 public:
  explicit Progress(double total_work = 0.0);
  ~Progress();  // leaves no half-written line behind
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void Say(const std::string& text);
  void Finish(double work) { done_ += work; }  // so much of it is over; shown with the next Say
  void Clear();

 private:
  bool terminal_;
  double total_;
  double done_ = 0.0;
  std::chrono::steady_clock::time_point start_;
};

}  // namespace etalon::cli

#endif  // ETALON_CLI_REPORT_H_
