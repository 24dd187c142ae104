// No function of the library allocates, directly or through anything it calls: the allocator of this program counts.
#include <doctest/doctest.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <set>
#include <sstream>

#include "tests/api/entry_points.h"
#include "tests/support/targets.h"

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(memory_sanitizer) || __has_feature(thread_sanitizer)
#define ETALON_TEST_OWN_MALLOC 0  // the sanitizer has its own
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || !defined(__GLIBC__)
#undef ETALON_TEST_OWN_MALLOC
#define ETALON_TEST_OWN_MALLOC 0  // or there is no name by which to reach the allocator behind ours
#endif
#ifndef ETALON_TEST_OWN_MALLOC
#define ETALON_TEST_OWN_MALLOC 1
#endif

namespace {
std::atomic<int64_t> calls_of_allocator{0};
}  // namespace

#if ETALON_TEST_OWN_MALLOC
// operator new of the standard library comes here too.
#define ETALON_TEST_COUNTED extern "C" __attribute__((visibility("default"), noinline))
extern "C" {
void* __libc_malloc(size_t);
void* __libc_calloc(size_t, size_t);
void* __libc_realloc(void*, size_t);
void* __libc_memalign(size_t, size_t);
void __libc_free(void*);
}

ETALON_TEST_COUNTED void* malloc(size_t bytes) {
  ++calls_of_allocator;
  return __libc_malloc(bytes);
}
ETALON_TEST_COUNTED void* calloc(size_t count, size_t bytes) {
  ++calls_of_allocator;
  return __libc_calloc(count, bytes);
}
ETALON_TEST_COUNTED void* realloc(void* old, size_t bytes) {
  ++calls_of_allocator;
  return __libc_realloc(old, bytes);
}
ETALON_TEST_COUNTED void* memalign(size_t alignment, size_t bytes) {
  ++calls_of_allocator;
  return __libc_memalign(alignment, bytes);
}
ETALON_TEST_COUNTED void* aligned_alloc(size_t alignment, size_t bytes) {
  ++calls_of_allocator;
  return __libc_memalign(alignment, bytes);
}
ETALON_TEST_COUNTED int posix_memalign(void** result, size_t alignment, size_t bytes) {
  ++calls_of_allocator;
  *result = __libc_memalign(alignment, bytes);
  return *result == nullptr ? ENOMEM : 0;
}
ETALON_TEST_COUNTED void free(void* pointer) {
  if (pointer != nullptr) ++calls_of_allocator;
  __libc_free(pointer);
}
#endif

namespace etalon::test {
namespace {

template <typename Work>
int64_t Counted(Work work) {
  const int64_t before = calls_of_allocator;
  work();
  return calls_of_allocator - before;
}

TEST_CASE("allocation: the counter counts" * doctest::skip(!ETALON_TEST_OWN_MALLOC)) {
  void* volatile memory = nullptr;
  CHECK(Counted([&] { memory = std::malloc(10); }) == 1);
  CHECK(Counted([&] { memory = std::realloc(memory, 20); }) == 1);
  CHECK(Counted([&] { std::free(memory); }) == 1);
  CHECK(Counted([&] { std::free(std::calloc(3, 4)); }) == 2);
  CHECK(Counted([&] { ::operator delete(memory = ::operator new(8)); }) == 2);
  CHECK(Counted([&] { std::free(memory = std::aligned_alloc(64, 64)); }) == 2);
  CHECK(Counted([&] { std::free(memory = strdup("of the C library")); }) == 2);
  CHECK(Counted([] {}) == 0);
}

TEST_CASE("allocation: no function allocates" * doctest::skip(!ETALON_TEST_OWN_MALLOC)) {
  for (const KernelTable& table : Tables()) {
    for (const char* target : {table.name, static_cast<const char*>(nullptr)}) {
      EntryPoints::Config config;
      config.target = target;
      EntryPoints calls(config);
      for (const EntryPoints::Entry& entry : EntryPoints::All()) {
        INFO(std::string(table.name), ": ", std::string(entry.functions));
        CHECK(Counted([&] { (calls.*entry.run)(); }) == 0);
      }
      CHECK(calls.Failed() == "");
    }
  }
}

// What is said of "every function" in this folder is said of every exported one.
TEST_CASE("allocation: the functions that are called are those that the library exports") {
  std::set<std::string> called, exported;
  for (const EntryPoints::Entry& entry : EntryPoints::All()) {
    std::istringstream names(entry.functions);
    for (std::string name; names >> name;) called.insert("etalon_" + name);
  }
  std::ifstream list(ETALON_TEST_SYMBOLS);
  for (std::string name; list >> name;) exported.insert(name);
  CHECK(exported.size() > 30);
  for (const std::string& name : exported) CHECK_MESSAGE(called.count(name) == 1, name, " is not called");
  for (const std::string& name : called) CHECK_MESSAGE(exported.count(name) == 1, name, " is not exported");
}

}  // namespace
}  // namespace etalon::test
