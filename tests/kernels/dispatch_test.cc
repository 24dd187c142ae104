// Listing, forcing and joining kernel tables.
#include "arch/dispatch.h"

#include <doctest/doctest.h>

#include <cstdlib>
#include <cstring>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "arch/cpu.h"
#include "tests/support/targets.h"

namespace etalon::test {
namespace {

// Sets ETALON_TARGET for one scope. Null unsets it.
class ForcedTarget {
 public:
  explicit ForcedTarget(const char* name) {
    const char* old = std::getenv("ETALON_TARGET");
    had_ = old != nullptr;
    if (had_) old_ = old;
    if (name != nullptr) {
      setenv("ETALON_TARGET", name, 1);
    } else {
      unsetenv("ETALON_TARGET");
    }
  }
  ~ForcedTarget() {
    if (had_) {
      setenv("ETALON_TARGET", old_.c_str(), 1);
    } else {
      unsetenv("ETALON_TARGET");
    }
  }
  ForcedTarget(const ForcedTarget&) = delete;

 private:
  bool had_;
  std::string old_;
};

KernelTable Marked() {
  KernelTable table;
  std::memset(static_cast<void*>(&table), 0xA5, sizeof table);
  return table;
}

bool Untouched(const KernelTable& table) {
  const KernelTable marked = Marked();
  return std::memcmp(&table, &marked, sizeof table) == 0;
}

bool NoHoles(const KernelTable& t) {
  return t.name != nullptr && t.scratch_bytes != nullptr && t.scores != nullptr && t.softmax != nullptr &&
         t.weighted_sum != nullptr && t.attend != nullptr && t.block_states != nullptr && t.fold != nullptr &&
         t.merge != nullptr && t.widen != nullptr && t.narrow != nullptr && t.exp != nullptr && t.log != nullptr &&
         t.tanh != nullptr && t.fma != nullptr;
}

// A new pointer in the struct must be added to NoHoles.
static_assert(sizeof(KernelTable) == sizeof(const char*) + sizeof(CpuFeatures) + 14 * sizeof(void (*)()) ||
                  sizeof(void*) != 8,
              "KernelTable has changed");

TEST_CASE("tables are listed, named once, and scalar is always there") {
  std::set<std::string> names;
  REQUIRE(NumTables() >= 1);
  for (size_t i = 0; i < NumTables(); ++i) {
    const TableInfo info = GetTableInfo(i);
    INFO(std::string(info.name));
    CHECK(names.insert(info.name).second);
    CHECK(info.available == (info.missing == 0));
    CHECK((info.missing & DetectCpu()) == 0);
    for (int bit = 0; bit < 64; ++bit) {
      if (((info.missing >> bit) & 1) != 0) CHECK(CpuFeatureName(CpuFeatures{1} << bit) != nullptr);
    }
  }
  CHECK(std::string(GetTableInfo(0).name) == "scalar");
  CHECK(GetTableInfo(0).available);  // else this program, compiled with the same flags, would not run either
#if !defined(__SSE3__)
  CHECK(Definition().required == 0);
#endif
  size_t available = 0;
  for (size_t i = 0; i < NumTables(); ++i) available += GetTableInfo(i).available ? 1 : 0;
  CHECK(Tables().size() <= available);
}

// Tables whose arithmetic is known to be ours. Highway's other targets round a MulAdd twice or need more of the CPU
// than table.cc says; of xsimd's, plain avx2 rounds its fma twice.
TEST_CASE("the tables are those that the build chose, and no others") {
  std::string names;
  for (size_t i = 0; i < NumTables(); ++i) names += (i == 0 ? "" : " ") + std::string(GetTableInfo(i).name);
  CHECK(names == ETALON_TEST_TABLES);
  const std::set<std::string> known = {"scalar",     "xsimd-avx2",   "xsimd-avx512", "xsimd-neon64",
                                       "scalar-fma", "highway-avx2", "highway-avx3", "highway-neon"};
  for (size_t i = 0; i < NumTables(); ++i) {
    INFO(std::string(GetTableInfo(i).name));
    CHECK(known.count(GetTableInfo(i).name) == 1);
  }
}

TEST_CASE("forcing by name gives that table without holes, or a status and nothing else") {
  for (size_t i = 0; i < NumTables(); ++i) {
    const TableInfo info = GetTableInfo(i);
    INFO(std::string(info.name));
    KernelTable table = Marked();
    const TableChoice choice = ChooseTable(info.name, &table);
    const ForcedTarget forced(info.name);
    KernelTable by_environment = Marked();
    CHECK(ChooseDefaultTable(&by_environment) == choice);
    CHECK(std::memcmp(&table, &by_environment, sizeof table) == 0);
    if (!info.available) {
      CHECK(choice == TableChoice::kNotAvailable);
      CHECK(Untouched(table));
      continue;
    }
    REQUIRE(choice == TableChoice::kOk);
    CHECK(std::string(table.name) == info.name);
    CHECK(NoHoles(table));
    CHECK((table.required & ~DetectCpu()) == 0);
    for (int bit = 0; bit < 64; ++bit) {
      if (((table.required >> bit) & 1) != 0) CHECK(CpuFeatureName(CpuFeatures{1} << bit) != nullptr);
    }
  }
}

TEST_CASE("an unknown name is a status, by argument and by environment; nothing is chosen instead") {
  for (const char* name : {"no-such-table", "Scalar", "scalar ", "scala", "scalar-fma2", " "}) {
    INFO(std::string(name));
    KernelTable table = Marked();
    CHECK(ChooseTable(name, &table) == TableChoice::kUnknownName);
    CHECK(Untouched(table));
    const ForcedTarget forced(name);
    CHECK(ChooseDefaultTable(&table) == TableChoice::kUnknownName);
    CHECK(Untouched(table));
  }
  KernelTable table = Marked();
  CHECK(ChooseTable("", &table) == TableChoice::kUnknownName);
  CHECK(Untouched(table));
}

TEST_CASE("the default is the last available table, also with an empty ETALON_TARGET") {
  const char* last = nullptr;
  for (size_t i = 0; i < NumTables(); ++i) {
    if (GetTableInfo(i).available) last = GetTableInfo(i).name;
  }
  REQUIRE(last != nullptr);
  for (const char* value : {static_cast<const char*>(nullptr), ""}) {
    const ForcedTarget forced(value);
    KernelTable table = Marked(), again = Marked();
    REQUIRE(ChooseDefaultTable(&table) == TableChoice::kOk);
    CHECK(std::string(table.name) == last);
    REQUIRE(ChooseDefaultTable(&again) == TableChoice::kOk);
    CHECK(std::memcmp(&table, &again, sizeof table) == 0);
  }
}

TEST_CASE("a joined table needs scratch for its own kernels and for those that fill its holes") {
  for (const KernelTable& table : Tables()) {
    INFO(std::string(table.name));
    for (size_t head_dim : {0, 1, 80, 513}) {
      for (size_t value_dim : {0, 1, 64, 512}) {
        CHECK(ScratchBytes(table, head_dim, value_dim) >= table.scratch_bytes(head_dim, value_dim));
        CHECK(ScratchBytes(table, head_dim, value_dim) >= Definition().scratch_bytes(head_dim, value_dim));
      }
    }
  }
}

TEST_CASE("features: one answer, a name for each bit, none for others") {
  CHECK(DetectCpu() == DetectCpu());
  std::set<std::string> names;
  for (int bit = 0; bit < 64; ++bit) {
    const char* name = CpuFeatureName(CpuFeatures{1} << bit);
    if (name != nullptr) CHECK(names.insert(name).second);
    if (((DetectCpu() >> bit) & 1) != 0) CHECK(name != nullptr);
  }
  CHECK(CpuFeatureName(CpuFeatures{1} << 62) == nullptr);
  CHECK(std::string(CpuFeatureName(kCpuAvx2)) == "avx2");
  CHECK(std::string(CpuFeatureName(kCpuNeon)) == "neon");
}

TEST_CASE("any thread may choose at any time") {
  const ForcedTarget none(nullptr);
  KernelTable expected;
  REQUIRE(ChooseDefaultTable(&expected) == TableChoice::kOk);
  std::vector<int> equal(8, 0);
  std::vector<std::thread> threads;
  for (int& result : equal) {
    threads.emplace_back([&expected, &result] {
      KernelTable table;
      result = ChooseDefaultTable(&table) == TableChoice::kOk && table.attend == expected.attend ? 1 : 0;
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (int result : equal) CHECK(result == 1);
}

#if defined(__x86_64__)
TEST_CASE("features agree with the compiler's own detection") {
  __builtin_cpu_init();
  const auto has = [](CpuFeatures feature) { return (DetectCpu() & feature) != 0; };
  CHECK(has(kCpuAvx) == (__builtin_cpu_supports("avx") != 0));
  CHECK(has(kCpuFma) == (__builtin_cpu_supports("fma") != 0));
  CHECK(has(kCpuAvx2) == (__builtin_cpu_supports("avx2") != 0));
  CHECK(has(kCpuAvx512F) == (__builtin_cpu_supports("avx512f") != 0));
  CHECK(has(kCpuF16c) == (__builtin_cpu_supports("f16c") != 0));
  CHECK(has(kCpuBmi2) == (__builtin_cpu_supports("bmi2") != 0));
  CHECK(has(kCpuSse42) == (__builtin_cpu_supports("sse4.2") != 0));
  CHECK(has(kCpuAvx512Bw) == (__builtin_cpu_supports("avx512bw") != 0));
  CHECK(has(kCpuAvx512Vnni) == (__builtin_cpu_supports("avx512vnni") != 0));
}
#endif

}  // namespace
}  // namespace etalon::test
