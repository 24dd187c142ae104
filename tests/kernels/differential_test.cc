// Every table against the scalar one, in bytes, over random calls of all kernels (random_tile.h, random_rows.h).
//   differential_test [--rounds N] [--draws N] [--seed S] [--target NAME]
// A round is a thousand draws. Each draw has a seed of its own, S + its number: --seed of one that failed and --draws 1
// repeat it. Where the CPU can, scalar-fma stands for the scalar table in large draws: it is the same source, ten times
// faster, and compared with it in the small ones.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "arch/dispatch.h"
#include "tests/kernels/random_rows.h"
#include "tests/kernels/random_tile.h"
#include "tests/support/draws.h"
#include "tests/support/targets.h"

namespace etalon::test {
namespace {

constexpr int64_t kProducts = 2000000;       // of a draw
constexpr int64_t kManyProducts = 20000000;  // of one in fifty
constexpr int64_t kScalarProducts = 100000;
constexpr int kMostReports = 20;

struct Run {
  std::vector<KernelTable> tables;  // all, but the one compared with
  KernelTable reference;
  int64_t comparisons = 0;
  int64_t numbers = 0, nans = 0, infinities = 0;  // of attend's lse: whether the draws are of any worth
  int failures = 0;
};

size_t FirstDifference(const ByteVector& a, const ByteVector& b) {
  size_t i = 0;
  while (i < a.size() && i < b.size() && a[i] == b[i]) ++i;
  return i;
}

void Report(Run* run, const KernelTable& table, const char* kernel, uint64_t seed, const std::string& text,
            const std::string& where) {
  if (++run->failures > kMostReports) return;
  std::printf("FAILED: %s of %s, --draws 1 --seed %llu: %s\n  %s\n", kernel, table.name,
              static_cast<unsigned long long>(seed), where.c_str(), text.c_str());
}

bool Skips(const KernelTable& table, const RandomTile& tile) {
  return std::strcmp(table.name, "scalar") == 0 && tile.products() > kScalarProducts;
}

using Kernel = void (RandomTile::*)(const KernelTable&);

bool Differs(RandomTile* tile, Kernel kernel, const KernelTable& table, const KernelTable& reference, size_t* at) {
  (tile->*kernel)(reference);
  const ByteVector want = tile->Written();
  (tile->*kernel)(table);
  *at = FirstDifference(tile->Written(), want);
  return tile->Written() != want;
}

// Fewer rows that still differ, halved as long as that can be.
std::string SmallestRows(uint64_t seed, int64_t work, Kernel kernel, const KernelTable& table,
                         const KernelTable& reference) {
  size_t first = 0, last = RandomTile(seed, work).num_rows(), at;
  for (bool smaller = true; smaller && last - first > 1;) {
    smaller = false;
    const size_t middle = first + (last - first) / 2;
    for (const std::pair<size_t, size_t>& half : {std::make_pair(first, middle), std::make_pair(middle, last)}) {
      RandomTile tile(seed, work);
      tile.KeepRows(half.first, half.second);
      if (smaller || !Differs(&tile, kernel, table, reference, &at)) continue;
      first = half.first;
      last = half.second;
      smaller = true;
    }
  }
  std::string text = "; rows " + std::to_string(first) + " to " + std::to_string(last - 1) + " are enough";
  if (last - first == 1) text += ": " + RandomTile(seed, work).DescribeRow(first);
  return text;
}

void CompareTile(uint64_t seed, Run* run) {
  const int64_t work = seed % 50 == 0 ? kManyProducts : seed % 4 == 0 ? kScalarProducts : kProducts;
  RandomTile tile(seed, work);
  struct Named {
    const char* name;
    Kernel kernel;
  };
  for (const Named& k : {Named{"attend", &RandomTile::Attend}, Named{"scores", &RandomTile::Scores},
                         Named{"block_states", &RandomTile::BlockStates}, Named{"fold", &RandomTile::Fold}}) {
    (tile.*k.kernel)(run->reference);
    const ByteVector want = tile.Written();
    if (k.kernel == &RandomTile::BlockStates) tile.KeepStates();
    for (size_t r = 0; r < tile.num_rows() && k.kernel == &RandomTile::Attend; ++r) {
      const float lse = tile.lse()[r];
      ++(std::isnan(lse) ? run->nans : std::isinf(lse) ? run->infinities : run->numbers);
    }
    for (const KernelTable& table : run->tables) {
      if (Skips(table, tile)) continue;
      (tile.*k.kernel)(table);
      ++run->comparisons;
      if (tile.Written() == want) continue;
      const size_t at = FirstDifference(tile.Written(), want);
      const bool attends = k.kernel == &RandomTile::Attend;
      std::string where =
          attends || k.kernel == &RandomTile::Fold ? tile.Where(at) : "float " + std::to_string(at / sizeof(float));
      if (attends) where += SmallestRows(seed, work, k.kernel, table, run->reference);
      Report(run, table, k.name, seed, tile.text(), where);
    }
  }
}

void CompareRows(uint64_t seed, Run* run) {
  struct Named {
    const char* name;
    ByteVector (*kernel)(uint64_t, const KernelTable&, std::string*);
  };
  for (const Named& k : {Named{"softmax", RandomSoftmaxRows}, Named{"weighted_sum", RandomWeightedSumRows},
                         Named{"merge", RandomMergeRows}}) {
    std::string text;
    const ByteVector want = k.kernel(seed, run->reference, &text);
    for (const KernelTable& table : run->tables) {
      if (std::strcmp(table.name, "scalar") == 0 && seed % 8 != 0) continue;
      const ByteVector got = k.kernel(seed, table, &text);
      ++run->comparisons;
      if (got != want) Report(run, table, k.name, seed, text, "byte " + std::to_string(FirstDifference(got, want)));
    }
  }
}

int Main(int64_t draws, uint64_t seed) {
  Run run;
  run.reference = FastDefinition();
  if (std::strcmp(run.reference.name, "scalar") != 0) run.tables.push_back(Definition());
  for (const KernelTable& table : Tables()) {
    const bool is_scalar = std::strcmp(table.name, "scalar") == 0;
    if (!is_scalar && std::strcmp(table.name, run.reference.name) != 0) run.tables.push_back(table);
  }
  std::printf("differential: seed %llu, compared with %s:", static_cast<unsigned long long>(seed), run.reference.name);
  for (const KernelTable& table : run.tables) std::printf(" %s", table.name);
  std::printf("\n");
  const auto start = std::chrono::steady_clock::now();
  for (int64_t i = 0; i < draws; ++i) {
    CompareTile(seed + static_cast<uint64_t>(i), &run);
    CompareRows(seed + static_cast<uint64_t>(i), &run);
    if ((i + 1) % (100 * kDrawsOfRound) == 0)
      std::fprintf(stderr, "differential: %lld draws\n", static_cast<long long>(i + 1));
  }
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  std::printf("differential: %lld draws, %lld comparisons, %d differ, %.1f s\n", static_cast<long long>(draws),
              static_cast<long long>(run.comparisons), run.failures, seconds);
  std::printf("differential: logsumexp of rows is a number %lld times, infinite %lld, NaN %lld\n",
              static_cast<long long>(run.numbers), static_cast<long long>(run.infinities),
              static_cast<long long>(run.nans));
  bool complete;
  std::fputs(TargetReport(&complete).c_str(), stdout);
  return run.failures == 0 && complete ? 0 : 1;
}

}  // namespace
}  // namespace etalon::test

int main(int argc, char** argv) {
  etalon::test::Draws draws = {ETALON_TEST_DRAWS, 1};
  for (int i = 1; i < argc; i += 2) {
    const std::string flag = argv[i];
    if (i + 1 < argc && etalon::test::TakeDrawFlag(flag, argv[i + 1], &draws)) continue;
    if (i + 1 == argc || flag != "--target") {
      std::fprintf(stderr, "usage: differential_test [--rounds N] [--draws N] [--seed S] [--target NAME]\n");
      return 2;
    }
    if (!etalon::test::SelectTarget(argv[i + 1])) {
      std::fprintf(stderr, "--target %s: no such table here\n", argv[i + 1]);
      return 2;
    }
  }
  return etalon::test::Main(draws.count, draws.seed);
}
