// Parts of `etalon attend`: the .npy writer, arrays as the library takes them, options, the error of a sample.
#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "cli/attend_options.h"
#include "cli/fnv.h"
#include "cli/npy_writer.h"
#include "cli/reference.h"
#include "cli/tensors.h"

namespace etalon::cli {
namespace {

TEST_CASE("a header is what numpy.save writes") {
  const std::string dictionary = "{'descr': '<f4', 'fortran_order': False, 'shape': (4, 20, 5), }";
  const std::string header = NpyHeader(NpyType::kF32, {4, 20, 5});
  REQUIRE(header.size() == 128);
  CHECK(header.substr(0, 10) == std::string("\x93NUMPY\x01\x00\x76\x00", 10));
  CHECK(header.substr(10, dictionary.size()) == dictionary);
  CHECK(header.substr(10 + dictionary.size()) == std::string(117 - dictionary.size(), ' ') + "\n");
}

TEST_CASE("the reader takes every header that the writer makes") {
  std::vector<std::vector<int64_t>> shapes = {{}, {0}, {7}, {2, 3}, {1, 2, 1, 3}, {1000000, 0}, {INT64_MAX, 0}};
  for (size_t rank = 5; rank <= 32; ++rank) shapes.push_back(std::vector<int64_t>(rank, rank % 2 == 0 ? 1 : 0));
  shapes.push_back(std::vector<int64_t>(32, 0));
  for (int64_t& dim : shapes.back()) dim = 1;
  for (const auto& [type, place] : {std::pair<NpyType, NpyPlace>{NpyType::kF16, NpyPlace::kNumbers},
                                    {NpyType::kF32, NpyPlace::kNumbers},
                                    {NpyType::kF64, NpyPlace::kNumbers},
                                    {NpyType::kBool, NpyPlace::kFlags},
                                    {NpyType::kI64, NpyPlace::kIds}}) {
    for (const std::vector<int64_t>& shape : shapes) {
      if (!shape.empty() && shape[0] == INT64_MAX) continue;  // the reader counts its bytes although it is empty
      size_t count = 1;
      for (const int64_t dim : shape) count *= static_cast<size_t>(dim);
      const std::string header = NpyHeader(type, shape);
      CHECK(header.size() % 64 == 0);
      CHECK(header.back() == '\n');
      const std::string file = header + std::string(count * NpyElementSize(type), '\x01');
      NpyView view;
      std::string error;
      const bool ok = ParseNpy(reinterpret_cast<const unsigned char*>(file.data()), file.size(), place, &view, &error);
      CAPTURE(error);
      CHECK(ok);
      CHECK(view.type == type);
      CHECK(view.shape == shape);
    }
  }
}

template <typename T>
NpyView View(NpyType type, std::vector<int64_t> shape, const std::vector<T>& values) {
  return {type, std::move(shape), reinterpret_cast<const unsigned char*>(values.data()), values.size() * sizeof(T)};
}

TEST_CASE("arrays with and without a batch") {
  const std::vector<float> values = {1, 2, 3, 4, 5, 6};
  Array array;
  std::string error;
  REQUIRE(TakeArray(View(NpyType::kF32, {1, 3, 2}, values), false, &array, &error));
  CHECK(ShapeOf(array, 3) == std::vector<int64_t>{1, 3, 2});
  CHECK(array.batch == 1);
  CHECK(array.type == ElementKind::kF32);
  CHECK(std::memcmp(array.bytes.data(), values.data(), 24) == 0);
  CHECK_FALSE(TakeArray(View(NpyType::kF32, {3, 1, 2, 1}, values), false, &array, &error));
  CHECK(error.find("must be [heads, length, channels]") != std::string::npos);
  REQUIRE(TakeArray(View(NpyType::kF32, {3, 1, 2, 1}, values), true, &array, &error));
  CHECK(ShapeOf(array, 4) == std::vector<int64_t>{3, 1, 2, 1});
  CHECK_FALSE(TakeArray(View(NpyType::kF32, {3, 2}, values), true, &array, &error));
  CHECK_FALSE(TakeArray(View(NpyType::kF32, {3, 0, 2}, std::vector<float>()), true, &array, &error));
  CHECK(error.find("which is empty") != std::string::npos);
}

TEST_CASE("f64 becomes the nearest f32, or is refused with its index") {
  const double infinity = std::numeric_limits<double>::infinity();
  const std::vector<double> good = {1 + 0x1p-24, 1 + 0x3p-24, 0x1.fffffefffffffp127, 0x1p-150, -infinity, 0x1.8p-149};
  const std::vector<float> expected = {1.0f, 1 + 0x1p-22f, 0x1.fffffep127f, 0.0f, -HUGE_VALF, 0x1p-148f};
  Array array;
  std::string error;
  REQUIRE(TakeArray(View(NpyType::kF64, {2, 1, 3}, good), false, &array, &error));
  CHECK(array.type == ElementKind::kF32);
  REQUIRE(array.bytes.size() == 24);
  CHECK(std::memcmp(array.bytes.data(), expected.data(), 24) == 0);
  const std::vector<double> bad = {0, 1, infinity, 2, 0x1.ffffffp127, 1e300};
  CHECK_FALSE(TakeArray(View(NpyType::kF64, {2, 1, 3}, bad), false, &array, &error));
  CHECK(error == "element [1, 0, 1] is 3.402823568e+38, which is beyond the range of f32");
}

TEST_CASE("a scale is rounded once, and what would mean the default is refused") {
  float scale;
  std::string error;
  REQUIRE(ParseScale("0.1", &scale, &error));
  CHECK(scale == 0.1f);
  REQUIRE(
      ParseScale("1.000000059604644775390626", &scale, &error));  // just above half way; by way of f64 it would be 1
  CHECK(scale == 1 + 0x1p-23f);
  REQUIRE(ParseScale("1e-45", &scale, &error));
  CHECK(scale == 0x1p-149f);
  for (const std::string text : {"", " 1", "1 ", "x", "nan", "inf", "1e39", "0", "-0", "1e-46"}) {
    CAPTURE(text);
    error.clear();
    CHECK_FALSE(ParseScale(text, &scale, &error));
    CHECK_FALSE(error.empty());
  }
}

TEST_CASE("windows, causal masks and offsets meet") {
  AttendOptions options;
  const auto is = [&](int64_t left, int64_t right, int64_t q_offset) {
    const Mask mask = MaskOf(options, 5, 8);
    CAPTURE(MaskText(mask));
    CHECK(mask.left == left);
    CHECK(mask.right == right);
    CHECK(mask.q_offset == q_offset);
  };
  is(-1, -1, 0);
  options.window = "3,4";
  is(3, 4, 0);
  options.q_offset = -2;
  is(3, 4, -2);
  options.q_offset.reset();
  options.causal = "top-left";
  is(3, 0, 0);
  options.causal = "bottom-right";
  is(3, 0, 3);
  options.window = "3,-1";
  is(3, 0, 3);
  options.window.clear();
  is(-1, 0, 3);
}

TEST_CASE("bytes have the published hashes") {
  CHECK(Fnv1aBytes("", 0) == 0xcbf29ce484222325u);
  CHECK(Fnv1aBytes("foobar", 6) == 0x85944171f73967e8u);
}

Array Floats(int64_t heads, int64_t len, int64_t dim, const std::vector<float>& values) {
  Array array = {ElementKind::kF32, 1, heads, len, dim, std::vector<unsigned char>(values.size() * 4)};
  std::memcpy(array.bytes.data(), values.data(), array.bytes.size());
  return array;
}

TEST_CASE("the reference of a sample looks at its heads and rows alone, and expects f16 to round") {
  const Array q = Floats(3, 2, 1, std::vector<float>(6, 0.0f));
  const Array k = Floats(3, 1, 1, {1, 1, 1});
  const Array v = Floats(3, 1, 1, {0.1f, 2, 3});
  const Problem problem = {q, k, v, {}, 1.0f};
  Array out = Floats(3, 2, 1, {0.1f, 0.1f, 7, 2, 3, 3});  // row 0 of head 1 is wrong
  Accuracy accuracy = Compare(problem, out, {0, 1}, {0, 2});
  CHECK(accuracy.ok);
  CHECK(accuracy.max_abs == 0.0);
  CHECK(accuracy.heads == 2);
  CHECK(accuracy.rows == 2);
  CHECK(Compare(problem, out, {1}, {0, 1, 2}).ok);
  CHECK_FALSE(Compare(problem, out, {0}, {1}).ok);

  const uint16_t halves[] = {0x2E66, 0x2E66, 0x4000, 0x4000, 0x4200, 0x4200};  // the first are the nearest to 0.1
  out = {ElementKind::kF16, 1, 3, 2, 1, std::vector<unsigned char>(sizeof halves)};
  std::memcpy(out.bytes.data(), halves, sizeof halves);
  accuracy = Compare(problem, out, {0, 1}, {0});
  CHECK(accuracy.ok);
  CHECK(accuracy.relative_rms > 1e-4);
  CHECK(accuracy.predicted_relative_rms < 1e-3);
  const Array same = Floats(3, 2, 1, {0x1.998p-4f, 0x1.998p-4f, 2, 2, 3, 3});
  CHECK_FALSE(Compare(problem, same, {0, 1}, {0}).ok);  // in f32 so large an error is a fault
}

}  // namespace
}  // namespace etalon::cli
