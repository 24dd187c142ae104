// The tool's smaller parts: text, tables, masks, row choices, hashes and the f64 reference.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "cli/demo_layer.h"
#include "cli/mask.h"
#include "cli/reference.h"
#include "cli/report.h"
#include "cli/text.h"

namespace etalon::cli {
namespace {

TEST_CASE("text from outside cannot reach the terminal as control characters") {
  CHECK(Printable("plain") == "plain");
  CHECK(Printable("a\x1b[2J\n\xff") == "a\\x1b[2J\\x0a\\xff");
  CHECK(Printable("abcdef", 3) == "abc...");
  CHECK(Printable("abc", 3) == "abc");
}

TEST_CASE("numbers and shapes as text") {
  CHECK(Fixed(2.25, 1) == "2.2");
  CHECK(Fixed(1e308, 0).size() == 309);
  CHECK(Scientific(0.00012345, 1) == "1.2e-04");
  CHECK(ShapeText({}) == "[]");
  CHECK(ShapeText({6, 1500}) == "[6, 1500]");
  CHECK(Hex64(255) == "00000000000000ff");
}

TEST_CASE("tables are aligned, with and without colour") {
  TextTable table;
  table.Column("name", "", TextTable::Align::kLeft);
  table.Column("time", "ms", TextTable::Align::kRight);
  table.Row({{"a"}, {"1.5"}});
  table.Row({{"longer"}, {"10.25", Tone::kBad}});
  CHECK(table.Text(false) ==
        "name     time\n"
        "           ms\n"
        "a         1.5\n"
        "longer  10.25\n");
  CHECK(table.Text(true).find("\x1b[1;31m10.25\x1b[0m") != std::string::npos);
  CHECK(table.Text(true).find("\x1b[32m") == std::string::npos);
}

TEST_CASE("progress tells the time left when it can know it") {
  CHECK(ProgressText("work", 0, 0, 9) == "work");
  CHECK(ProgressText("work", 0, 4, 9) == "[  0 %] work");
  CHECK(ProgressText("work", 1, 4, 0.5) == "[ 25 %] work");
  CHECK(ProgressText("work", 1, 4, 5) == "[ 25 %, about 15 s left] work");
  CHECK(ProgressText("work", 1, 100, 5) == "[  1 %, about 9 min left] work");
  CHECK(ProgressText("work", 5, 4, 5) == "[100 %, about 0 s left] work");
}

TEST_CASE("the count of visible pairs is that of the pairs seen") {
  for (const Mask& mask :
       {Mask{}, CausalMask(), WindowMask(1), WindowMask(3), WindowMask(INT64_MAX), Mask{INT64_MAX, 0, 0},
        Mask{-1, 0, 4}, Mask{-1, 0, -3}, Mask{2, 1, 2}, Mask{0, -1, 1}, Mask{-1, INT64_MAX, 3}, Mask{-1, 0, 0, 3},
        Mask{1, 0, -2, 4}, Mask{2, 0, 9, 3}, Mask{-1, -1, 0, 2}, Mask{0, 0, 1, INT64_MAX}}) {
    for (const int64_t rows : {1, 4, 9}) {
      for (const int64_t keys : {1, 5, 8}) {
        int64_t count = 0;
        for (int64_t i = 0; i < rows; ++i) {
          for (int64_t t = 0; t < keys; ++t) count += Sees(mask, i, t) ? 1 : 0;
        }
        CAPTURE(MaskText(mask));
        CHECK(VisiblePairs(mask, 0, rows, keys) == count);
      }
    }
  }
  CHECK(VisiblePairs(CausalMask(), 0, 5, 5) == 15);
  CHECK(VisiblePairs(WindowMask(2), 0, 5, 5) == 9);
  CHECK(VisiblePairs(Mask{-1, 0, 0, 2}, 0, 3, 5) == 7);
}

TEST_CASE("rows for the reference and runs for slow tables reach both ends") {
  CHECK(SpreadRows(5, 32) == std::vector<int64_t>{0, 1, 2, 3, 4});
  CHECK(SpreadRows(100, 3) == std::vector<int64_t>{0, 49, 99});
  CHECK(SpreadRows(100, 1) == std::vector<int64_t>{0});
  for (const int64_t pieces : {1, 2, 3, 7, 31, 1000}) {
    const std::vector<Rows> runs = SpreadRuns(1000, 32, pieces);
    CAPTURE(pieces);
    CHECK(runs.front().first == 0);
    if (pieces > 1) CHECK(runs.back().last == 1000);
    for (size_t i = 1; i < runs.size(); ++i) CHECK(runs[i].first >= runs[i - 1].last);
  }
  CHECK(SpreadRuns(1000, 32, 4).size() == 4);
  CHECK(SpreadRuns(1000, 32, 32).size() == 1);
}

TEST_CASE("the hash is FNV-1a of the bytes, in pieces too") {
  float letters;  // the hash of "foob" is one of the published test vectors
  float more;
  std::memcpy(&letters, "foob", 4);
  std::memcpy(&more, "arba", 4);
  CHECK(Fnv1aBytes(nullptr, 0) == 0xcbf29ce484222325u);
  const uint64_t foob = Fnv1aBytes(&letters, 4);
  CHECK(foob == 0xdd120e790c2512afu);
  const float both[] = {letters, more};
  CHECK(Fnv1aBytes(both, 8) == Fnv1aBytes(&more, 4, foob));
  const float zeros[] = {0.0f, -0.0f};
  CHECK(Fnv1aBytes(&zeros[0], 4) != Fnv1aBytes(&zeros[1], 4));
}

TEST_CASE("rows are taken from every head") {
  const std::vector<float> out = {0, 1, 2, 3, 4, 5, 10, 11, 12, 13, 14, 15};  // 2 heads, 3 rows, 2 channels
  CHECK(TakeRows(out, 2, 3, 2, {1, 3}) == std::vector<float>{2, 3, 4, 5, 12, 13, 14, 15});
}

Array Floats(int64_t heads, int64_t len, int64_t dim, const std::vector<float>& values) {
  Array array = {ElementKind::kF32, 1, heads, len, dim, std::vector<unsigned char>(values.size() * 4)};
  std::memcpy(array.bytes.data(), values.data(), array.bytes.size());
  return array;
}

Array Halves(int64_t heads, int64_t len, int64_t dim, const std::vector<uint16_t>& values) {
  Array array = {ElementKind::kF16, 1, heads, len, dim, std::vector<unsigned char>(values.size() * 2)};
  std::memcpy(array.bytes.data(), values.data(), array.bytes.size());
  return array;
}

// Two keys with scores 0 and log 3: weights 1/4 and 3/4.
TEST_CASE("the reference on a case solved by hand") {
  const Array q = Floats(1, 1, 1, {std::log(3.0f)});
  const Array k = Floats(1, 2, 1, {0.0f, 1.0f});
  const Array v = Floats(1, 2, 2, {8.0f, 0.0f, 0.0f, 4.0f});
  const Problem problem = {q, k, v, {}, 1.0f};
  Accuracy good = Compare(problem, {2.0f, 3.0f}, {0});
  CHECK(good.ok);
  CHECK(good.max_abs < 1e-6);
  CHECK(good.predicted_relative_rms > 1e-9);
  CHECK(good.predicted_relative_rms < 1e-6);
  Accuracy bad = Compare(problem, {2.0f, 3.01f}, {0});
  CHECK_FALSE(bad.ok);
  CHECK(bad.max_abs == doctest::Approx(0.01).epsilon(1e-3));
  CHECK(bad.relative_rms == doctest::Approx(0.01 / std::sqrt(13.0)).epsilon(1e-3));
  Accuracy infinite = Compare(problem, {2.0f, std::numeric_limits<float>::infinity()}, {0});
  CHECK_FALSE(infinite.ok);
  CHECK(infinite.not_finite == 1);
}

// A cap of 1 makes the scores 100 and -100 to 1 and -1, and their errors to nothing; the sink weighs as much as key 0.
TEST_CASE("the reference caps scores, adds a bias and knows sinks") {
  const Array q = Floats(1, 1, 1, {100.0f});
  const Array k = Floats(1, 2, 1, {1.0f, -1.0f});
  const Array v = Floats(1, 2, 1, {1.0f, 0.0f});
  Problem problem = {q, k, v, {}, 1.0f};
  problem.options.softcap = 1.0f;
  const float capped = static_cast<float>(1.0 / (1.0 + std::exp(-2.0)));
  const Accuracy accuracy = Compare(problem, {capped}, {0});
  CHECK(accuracy.ok);
  CHECK(accuracy.max_abs < 1e-7);
  CHECK(accuracy.predicted_relative_rms > 1e-9);
  CHECK(accuracy.predicted_relative_rms < 1e-7);
  CHECK_FALSE(Compare(problem, {1.0f}, {0}).ok);
  problem.options.bias = {ElementKind::kF16, 1, 1, 1, 2, {0, 0, 0, 0x40}};  // 0, 2
  CHECK(Compare(problem, {0.5f}, {0}).max_abs < 1e-12);
  problem.options.sinks = Floats(1, 1, 1, {1.0f});
  CHECK(Compare(problem, {static_cast<float>(1.0 / 3.0)}, {0}).max_abs < 1e-7);
  problem.options.bias = {ElementKind::kF16, 1, 1, 1, 2, {0, 0, 0, 0xFC}};  // 0, -infinity
  CHECK(Compare(problem, {0.5f}, {0}).max_abs < 1e-12);
}

TEST_CASE("a cap far away leaves the expected error of a long dot product as it is") {
  const Array q = Floats(1, 1, 64, std::vector<float>(64, 1.0f));
  std::vector<float> keys(128, 0.0f);
  std::fill(keys.begin(), keys.begin() + 64, 0.1f);
  const Array k = Floats(1, 2, 64, keys);
  const Array v = Floats(1, 2, 1, {1.0f, 0.0f});
  Problem problem = {q, k, v, {}, 0.25f};
  const double plain = Compare(problem, {0.8f}, {0}).predicted_relative_rms;
  problem.options.softcap = 1e6f;
  const double capped = Compare(problem, {0.8f}, {0}).predicted_relative_rms;
  CHECK(capped > plain);
  CHECK(capped < 1.2 * plain);
}

TEST_CASE("the reference reads f16, groups of heads, and masks") {
  const Array q = Halves(2, 2, 1, {0, 0, 0, 0});
  const Array k = Halves(1, 2, 1, {0x3C00, 0x3C00});
  const Array v = Halves(1, 2, 1, {0xC200, 0x0001});  // -3, 2^-24
  const float tiny = 0x1p-24f;
  const float mean = static_cast<float>((-3.0 + 0x1p-24) / 2.0);
  CHECK(Compare({q, k, v, CausalMask(), 1.0f}, {-3.0f, mean, -3.0f, mean}, {0, 1}).ok);
  CHECK(Compare({q, k, v, WindowMask(1), 1.0f}, {-3.0f, tiny, -3.0f, tiny}, {0, 1}).max_abs == 0.0);
  CHECK_FALSE(Compare({q, k, v, Mask(), 1.0f}, {-3.0f, mean, -3.0f, mean}, {0, 1}).ok);
}

Array Numbers(int64_t heads, int64_t len, int64_t dim, int step) {
  std::vector<float> values;
  for (int i = 0; i < heads * len * dim; ++i) values.push_back(static_cast<float>(i * step % 61 - 30) / 16.0f);
  return Floats(heads, len, dim, values);
}

// All of them, for 4 heads, 40 rows and 40 keys.
ScoreOptions EveryOption() {
  ScoreOptions options;
  options.softcap = 3.0f;
  options.alibi = true;
  options.slopes = Numbers(4, 1, 1, 7);
  options.bias = Numbers(4, 40, 40, 11);
  options.mask = {ElementKind::kFlag, 1, 1, 40, 40, {}};
  for (int i = 0; i < 40 * 40; ++i) options.mask.bytes.push_back(static_cast<unsigned char>(i % 7 % 3));
  options.sinks = Numbers(1, 1, 1, 5);
  for (int64_t i = 0; i < 40; ++i) options.q_segments.push_back(i / 20), options.kv_segments.push_back(i % 3 % 2);
  return options;
}

TEST_CASE("each table agrees with the reference through the engine, any rows and threads") {
  std::string error;
  const std::vector<TableState> tables = Tables(&error);
  const Array q = Numbers(4, 40, 8, 37);
  const Array k = Numbers(2, 40, 8, 29);
  const Array v = Numbers(2, 40, 8, 23);
  std::vector<Problem> problems;
  for (const Mask& mask : {Mask(), CausalMask(), WindowMask(7), Mask{9, 0, 0, 25}}) {
    problems.push_back({q, k, v, mask, 0.5f});
    problems.push_back({q, k, v, mask, 0.5f, EveryOption()});
  }
  problems.push_back(problems.back());
  problems.back().options.mask = Array();  // then the segments are a mask of their own
  for (const Problem& problem : problems) {
    for (const TableState& table : tables) {
      if (!table.available) continue;
      CAPTURE(table.name);
      CAPTURE(MaskText(problem.mask));
      CAPTURE(problem.options.alibi);
      const std::vector<float> whole = Attend(table.name, problem, {0, 40}, 1);
      CHECK(Compare(problem, whole, SpreadRows(40, 40)).ok);
      CHECK(Attend(table.name, problem, {0, 40}, 3) == whole);
      CHECK(Attend(table.name, problem, {13, 29}, 2) == TakeRows(whole, 4, 40, 8, {13, 29}));
    }
  }
}

}  // namespace
}  // namespace etalon::cli
