// How ranges and scratch memory are cut up: nothing is lost, doubled or misaligned.
#include <doctest/doctest.h>

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <vector>

#include "lib/base/parallel.h"
#include "lib/base/workspace.h"
#include "tests/base/sweep.h"
#include "tests/support/generate.h"

namespace etalon::test {
namespace {

struct Part {
  size_t offset;
  size_t bytes;
};

struct Free {
  void operator()(void* p) const { std::free(p); }
};

}  // namespace

TEST_SUITE_BEGIN("base layout");

TEST_CASE("parts cover a range exactly, in order, and differ by one at most, the larger ones first") {
  Failures failures;
  std::vector<int64_t> counts;
  for (int64_t count = 0; count <= 100; ++count) counts.push_back(count);
  for (const int64_t count : {int64_t{1} << 31, int64_t{1} << 53, INT64_MAX - 1, INT64_MAX}) counts.push_back(count);
  for (const int64_t count : counts) {
    for (int64_t parts = 1; parts <= 130; ++parts) {
      int64_t next = 0;
      int64_t previous_size = INT64_MAX;
      int64_t largest = 0;
      for (int64_t part = 0; part < parts; ++part) {
        const Range range = PartOfRange(count, part, parts);
        const int64_t size = range.last - range.first;
        if (part == 0) largest = size;
        if (range.first != next || size < 0 || size > previous_size || largest - size > 1) {
          failures.Add("part %lld of %lld of %lld: %lld ... %lld", static_cast<long long>(part),
                       static_cast<long long>(parts), static_cast<long long>(count),
                       static_cast<long long>(range.first), static_cast<long long>(range.last));
        }
        next = range.last;
        previous_size = size;
      }
      if (next != count)
        failures.Add("%lld parts of %lld end at %lld", static_cast<long long>(parts), static_cast<long long>(count),
                     static_cast<long long>(next));
    }
  }
  ETALON_CHECK_NONE(failures);
}

TEST_CASE("one part is the range; the last of as many parts as elements is the last element") {
  CHECK(PartOfRange(10, 0, 1).first == 0);
  CHECK(PartOfRange(10, 0, 1).last == 10);
  CHECK(PartOfRange(10, 9, 10).first == 9);
  CHECK(PartOfRange(10, 9, 10).last == 10);
  CHECK(PartOfRange(10, 2, 4).first == 6);  // 3, 3, 2, 2
  CHECK(PartOfRange(10, 2, 4).last == 8);
  CHECK(PartOfRange(3, 7, 8).first == 3);  // more parts than elements: empty ones at the end
  CHECK(PartOfRange(3, 7, 8).last == 3);
}

TEST_CASE("parts of a workspace are aligned, disjoint and inside it") {
  Random random(11);
  for (int repetition = 0; repetition < 200; ++repetition) {
    size_t size = 0;
    std::vector<Part> parts;
    const int64_t count = random.Below(12);
    for (int64_t i = 0; i < count; ++i) {
      const size_t around = static_cast<size_t>(random.Below(5)) * kWorkspaceAlignment;
      const size_t bytes = random.Below(4) == 0 ? around : around + static_cast<size_t>(random.Below(130));
      const size_t before = size;
      const size_t offset = ReserveBytes(&size, bytes);
      parts.push_back({offset, bytes});
      CHECK(offset >= before);
      CHECK(offset + bytes <= size);
      CHECK(size - before < bytes + 2 * kWorkspaceAlignment);  // no more is wasted than alignment asks for
      CHECK(offset % kWorkspaceAlignment == 0);
      CHECK(size % kWorkspaceAlignment == 0);
    }
    if (size == 0) continue;
    const std::unique_ptr<void, Free> memory(std::aligned_alloc(kWorkspaceAlignment, size));
    REQUIRE(memory != nullptr);
    // Each part is filled, then read back after all others were: an overlap would have changed it.
    for (size_t i = 0; i < parts.size(); ++i) {
      unsigned char* part = At<unsigned char>(memory.get(), parts[i].offset);
      CHECK(reinterpret_cast<uintptr_t>(part) % kWorkspaceAlignment == 0);
      for (size_t b = 0; b < parts[i].bytes; ++b) part[b] = static_cast<unsigned char>(i + 1);
    }
    Failures failures;
    for (size_t i = 0; i < parts.size(); ++i) {
      const unsigned char* part = At<unsigned char>(memory.get(), parts[i].offset);
      for (size_t b = 0; b < parts[i].bytes; ++b) {
        if (part[b] != static_cast<unsigned char>(i + 1)) failures.Add("part %zu, byte %zu", i, b);
      }
    }
    ETALON_CHECK_NONE(failures);
  }
}

TEST_CASE("the first part starts at 0, an empty one takes nothing") {
  size_t size = 0;
  CHECK(ReserveBytes(&size, 1) == 0);
  CHECK(size == 64);
  CHECK(ReserveBytes(&size, 0) == 64);
  CHECK(size == 64);
  CHECK(ReserveBytes(&size, 64) == 64);
  CHECK(size == 128);
  CHECK(ReserveBytes(&size, 65) == 128);
  CHECK(size == 256);
  float memory[64];
  CHECK(At<float>(memory, 64) == memory + 16);
}

TEST_SUITE_END();

}  // namespace etalon::test
