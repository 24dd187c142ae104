// .npz files as the tool writes them, through its own strict reader.
#include "cli/npz_writer.h"

#include <doctest/doctest.h>

#include <cstring>

#include "cli/npy.h"
#include "cli/npz.h"

namespace etalon::cli {
namespace {

TEST_CASE("arrays come back as they were") {
  const float q[] = {1.0f, -2.5f, 3.0f, 0.0f, 1e-40f, 7.0f};
  const double exact[] = {0.1};
  const std::vector<NamedArray> arrays = {MakeNamedArray("q", NpyType::kF32, {1, 2, 3}, q),
                                          MakeNamedArray("exact", NpyType::kF64, {1}, exact)};
  const std::string bytes = NpzBytes(arrays);
  NpzFile file;
  std::string error;
  REQUIRE_MESSAGE(file.OpenBytes(bytes.data(), bytes.size(), &error), error);
  CHECK(file.names() == std::vector<std::string>{"q.npy", "exact.npy"});
  for (const NamedArray& array : arrays) {
    std::vector<unsigned char> content;
    REQUIRE_MESSAGE(file.Read(array.name + ".npy", 10000, &content, &error), error);
    NpyView view;
    REQUIRE_MESSAGE(ParseNpy(content.data(), content.size(), &view, &error), error);
    CHECK(view.type == array.type);
    CHECK(view.shape == array.shape);
    REQUIRE(view.data_bytes == array.bytes.size());
    CHECK(std::memcmp(view.data, array.bytes.data(), view.data_bytes) == 0);
  }
}

TEST_CASE("equal arrays give equal bytes") {
  const float x[] = {1.0f};
  const std::vector<NamedArray> arrays = {MakeNamedArray("x", NpyType::kF32, {1}, x)};
  const std::string bytes = NpzBytes(arrays);
  CHECK(NpzBytes(arrays) == bytes);
  // The date of the one entry, 1980-01-01, and no compression: whoever writes it when, the bytes are these.
  CHECK(bytes.compare(8, 2, std::string("\0\0", 2)) == 0);
  CHECK(bytes.compare(10, 4, std::string("\0\0\x21\0", 4)) == 0);
}

}  // namespace
}  // namespace etalon::cli
