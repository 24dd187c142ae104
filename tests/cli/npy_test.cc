// The .npy parser: what it takes, and that everything else is refused with a reason.
#include "cli/npy.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

namespace etalon::cli {
namespace {

std::string File(int major, const std::string& header, size_t data_bytes, long claimed = -1) {
  const size_t length = claimed < 0 ? header.size() : static_cast<size_t>(claimed);
  std::string file = "\x93NUMPY";
  file += static_cast<char>(major);
  file += '\0';
  for (int i = 0; i < (major == 1 ? 2 : 4); ++i) file += static_cast<char>(length >> 8 * i & 0xFF);
  file += header;
  for (size_t i = 0; i < data_bytes; ++i) file += static_cast<char>(i);
  return file;
}

std::string Header(const std::string& descr, const std::string& order, const std::string& shape) {
  return "{'descr': " + descr + ", 'fortran_order': " + order + ", 'shape': " + shape + ", }   \n";
}

std::string Shaped(const std::string& shape, size_t data_bytes = 0) {
  return File(1, Header("'<f2'", "False", shape), data_bytes);
}

// Parses a copy of exactly the file's size, so that a sanitizer sees any read past it.
bool Parse(const std::string& file, NpyView* view, std::string* error) {
  static std::unique_ptr<unsigned char[]> copy;  // outlives the call: the view points into it
  copy.reset(new unsigned char[file.size()]);
  std::memcpy(copy.get(), file.data(), file.size());
  return ParseNpy(copy.get(), file.size(), view, error);
}

void CheckRefused(const std::string& file, const std::string& reason) {
  CAPTURE(reason);
  NpyView view;
  view.shape = {77};
  std::string error;
  CHECK_FALSE(Parse(file, &view, &error));
  CAPTURE(error);
  CHECK(error.find(reason) != std::string::npos);
  CHECK(error.size() < 500);
  CHECK(std::count_if(error.begin(), error.end(), [](char c) { return c < 0x20 || c > 0x7E; }) == 0);
  CHECK(view.shape == std::vector<int64_t>{77});
}

void CheckShape(const std::string& file, const std::vector<int64_t>& shape) {
  NpyView view;
  std::string error;
  const bool ok = Parse(file, &view, &error);
  CAPTURE(error);
  CHECK(ok);
  CHECK(view.shape == shape);
}

TEST_CASE("every version and type") {
  const struct {
    const char* descr;
    NpyType type;
    size_t element;
  } types[] = {{"'<f2'", NpyType::kF16, 2}, {"'<f4'", NpyType::kF32, 4}, {"'<f8'", NpyType::kF64, 8}};
  for (int major = 1; major <= 3; ++major) {
    for (const auto& t : types) {
      CAPTURE(major);
      CAPTURE(t.descr);
      NpyView view;
      std::string error;
      REQUIRE(Parse(File(major, Header(t.descr, "False", "(2, 3)"), 6 * t.element), &view, &error));
      CHECK(view.type == t.type);
      CHECK(view.shape == std::vector<int64_t>{2, 3});
      REQUIRE(view.data_bytes == 6 * t.element);
      for (size_t i = 0; i < view.data_bytes; ++i) CHECK(view.data[i] == i);
      CHECK(NpyElementSize(t.type) == t.element);
    }
  }
}

TEST_CASE("a place takes its types and no others") {
  const struct {
    const char* descr;
    NpyType type;
    NpyPlace places[2];  // that take it
  } types[] = {{"<f2", NpyType::kF16, {NpyPlace::kNumbers, NpyPlace::kNumbers}},
               {"<f4", NpyType::kF32, {NpyPlace::kNumbers, NpyPlace::kNumbers}},
               {"<f8", NpyType::kF64, {NpyPlace::kNumbers, NpyPlace::kNumbers}},
               {"|b1", NpyType::kBool, {NpyPlace::kFlags, NpyPlace::kFlags}},
               {"|u1", NpyType::kU8, {NpyPlace::kFlags, NpyPlace::kIds}},
               {"<i4", NpyType::kI32, {NpyPlace::kIds, NpyPlace::kIds}},
               {"<i8", NpyType::kI64, {NpyPlace::kIds, NpyPlace::kIds}}};
  const struct {
    NpyPlace place;
    const char* offer;
  } places[] = {{NpyPlace::kNumbers, "; '<f2', '<f4' and '<f8' are"},
                {NpyPlace::kFlags, "; '|b1' and '|u1' are"},
                {NpyPlace::kIds, "; '|u1', '<i4' and '<i8' are"}};
  for (const auto& t : types) {
    for (const auto& p : places) {
      CAPTURE(t.descr);
      CAPTURE(p.offer);
      CHECK(std::string(NpyTypeDescr(t.type)) == t.descr);
      const std::string file =
          File(1, Header(std::string("'") + t.descr + "'", "False", "(3,)"), 3 * NpyElementSize(t.type));
      NpyView view;
      std::string error;
      const bool ok =
          ParseNpy(reinterpret_cast<const unsigned char*>(file.data()), file.size(), p.place, &view, &error);
      CAPTURE(error);
      CHECK(ok == (p.place == t.places[0] || p.place == t.places[1]));
      if (ok) {
        CHECK(view.type == t.type);
        CHECK(view.data_bytes == 3 * NpyElementSize(t.type));
      } else {
        CHECK(error == std::string("type '") + t.descr + "' is not supported" + p.offer);
      }
    }
  }
}

TEST_CASE("shapes and spellings that numpy accepts") {
  CheckShape(Shaped("()", 2), {});
  CheckShape(Shaped("(5,)", 10), {5});
  CheckShape(Shaped("( 2 ,3 , )", 12), {2, 3});
  CheckShape(Shaped("(0, 4611686018427387903)"), {0, INT64_MAX / 2});
  CheckShape(File(1, "{\"shape\":(1,),\"descr\":\"<f2\",\"fortran_order\":False}\n", 2), {1});
}

TEST_CASE("magic, version and lengths") {
  CheckRefused("", "not a .npy file");
  CheckRefused("\x93NUMP", "not a .npy file");
  CheckRefused("PK\x03\x04 and more", "not a .npy file");
  CheckRefused("\x93NUMPY\x01", "truncated before the version");
  const std::string good = Header("'<f2'", "False", "(2,)");
  CheckRefused(File(0, good, 4), "version 0.0");
  CheckRefused(File(4, good, 4), "version 4.0");
  std::string minor = File(1, good, 4);
  minor[7] = 1;
  CheckRefused(minor, "version 1.1");
  CheckRefused(File(2, good, 4).substr(0, 11), "truncated inside the header length");
  CheckRefused(File(1, good, 4, 60000), "claims 60000 bytes but only");
  CheckRefused(File(1, good, 4, static_cast<long>(good.size()) + 5), "bytes but only");  // one more than there are
  CheckRefused(File(2, good, 4, 0xFFFFFFFFL), "claims 4294967295 bytes; at most");
  CheckRefused(File(1, good, 4, 0), "needs '{'");
  CheckRefused(File(1, good, 4, 20), "the header");
  CheckRefused(File(1, good, 4, static_cast<long>(good.size()) - 1), "does not end with a newline");
  CheckRefused(File(1, good, 4, static_cast<long>(good.size()) + 2), "only spaces and a newline");
}

TEST_CASE("a valid file cut anywhere is refused") {
  const std::string file = File(2, Header("'<f4'", "False", "(2, 1)"), 8);
  for (size_t size = 0; size < file.size(); ++size) {
    CAPTURE(size);
    NpyView view;
    std::string error;
    CHECK_FALSE(Parse(file.substr(0, size), &view, &error));
    CHECK_FALSE(error.empty());
  }
}

TEST_CASE("data that does not fit the shape") {
  CheckRefused(Shaped("(3, 2)", 11), "needs 12 bytes of data but 11 follow");
  CheckRefused(Shaped("(3, 2)", 13), "1 bytes are left over");
  CheckRefused(Shaped("(0, 2)", 1), "1 bytes are left over");
  CheckRefused(Shaped("()", 0), "needs 2 bytes");
}

TEST_CASE("types that are not read") {
  const auto typed = [](const std::string& descr) { return File(1, Header(descr, "False", "(1,)"), 8); };
  CheckRefused(typed("'>f4'"), "big-endian");
  CheckRefused(typed("'|O'"), "Python objects are never loaded");
  CheckRefused(typed("'<i4'"), "type '<i4' is not supported");
  CheckRefused(typed("'=f4'"), "is not supported");
  CheckRefused(typed("'f4'"), "is not supported");
  CheckRefused(typed("''"), "is not supported");
  CheckRefused(typed("[('a', '<f4')]"), "structured types");
  CheckRefused(typed("'<f4\x1b[31m'"), "'<f4\\x1b[31m'");
  CheckRefused(typed("'\\x3cf4'"), "backslash");
  CheckRefused(typed("float"), "needs a type in quotes");
  CheckRefused(File(1, Header("'<f4'", "True", "(1,)"), 4), "Fortran order");
  CheckRefused(File(1, Header("'<f4'", "0", "(1,)"), 4), "needs True or False");
}

TEST_CASE("shapes that make no sense") {
  CheckRefused(Shaped("(-1,)"), "dimension 0 of the shape is negative");
  CheckRefused(Shaped("(1, -9)"), "dimension 1 of the shape is negative");
  CheckRefused(Shaped("(9223372036854775808,)"), "does not fit in 63 bits");
  CheckRefused(Shaped("(99999999999999999999999999999999,)"), "does not fit in 63 bits");
  CheckRefused(Shaped("(9223372036854775807,)"), "too many bytes");
  CheckRefused(Shaped("(4294967296, 4294967296)"), "too many bytes");
  CheckRefused(Shaped("(4294967296, 0, 4294967296)"), "too many bytes");
  CheckRefused(Shaped("(4611686018427387903,)"), "needs 9223372036854775806 bytes");
  std::string many = "(";
  std::string large = "(";  // as long as a shape can be written
  for (int i = 0; i < 32; ++i) large += "9223372036854775807, ";
  CheckRefused(Shaped(large + ")"), "9223372036854775807, ");
  for (int i = 0; i < 33; ++i) many += "1, ";
  CheckRefused(Shaped(many + ")", 2), "more than 32 dimensions");
  CheckRefused(Shaped("(3)", 6), "must be written (n,)");
  CheckRefused(Shaped("3", 6), "needs '('");
  CheckRefused(Shaped("(3 4)", 24), "needs ',' or ')'");
  CheckRefused(Shaped("(,)", 2), "needs a number");
  CheckRefused(Shaped("(03,)", 6), "leading zero");
  CheckRefused(Shaped("(3L,)", 6), "needs ',' or ')'");
  CheckRefused(Shaped("(2.0,)", 6), "needs ',' or ')'");
  CheckRefused(Shaped("(True,)", 2), "needs a number");
  CheckRefused(Shaped("((1,),)", 2), "needs a number");
}

TEST_CASE("headers that are not the dictionary") {
  const auto raw = [](const std::string& header) { return File(1, header, 2); };
  CheckRefused(raw("{}\n"), "'descr' is missing");
  CheckRefused(raw("{'descr': '<f2', 'shape': (1,)}\n"), "'fortran_order' is missing");
  CheckRefused(raw("{'descr': '<f2', 'fortran_order': False}\n"), "'shape' is missing");
  CheckRefused(raw("{'descr': '<f2', 'descr': '<f2'}\n"), "'descr' appears twice");
  CheckRefused(raw("{'descr': '<f2', 'extra': 1}\n"), "unknown key 'extra'");
  CheckRefused(raw("{'descr': '<f2' 'shape': (1,)}\n"), "needs ',' or '}'");
  CheckRefused(raw("{'descr' '<f2'}\n"), "needs ':'");
  CheckRefused(raw("{'descr': '<f2}\n"), "has no end");
  CheckRefused(raw("{'descr': '<f2',"), "needs a key in quotes");
  CheckRefused(raw("{,}\n"), "needs a key in quotes");
  CheckRefused(raw("__import__('os')\n"), "needs '{'");
  CheckRefused(raw(std::string("{\0}\n", 4)), "needs a key in quotes at byte 1 but has '\\x00'");
  CheckRefused(raw("{'descr': '<f2', 'fortran_order': False, 'shape': (1,)} x\n"), "only spaces and a newline");
  CheckRefused(raw("{'descr': '<f2', 'fortran_order': False, 'shape': (1,)}\n\n"), "only spaces and a newline");
  CheckRefused(raw("{'descr': '<f2', 'fortran_order': False, 'shape': (1,)}  "), "does not end with a newline");
}

}  // namespace
}  // namespace etalon::cli
