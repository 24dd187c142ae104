// Every function runs on a thread with a small stack, as those of language runtimes have: their large arrays are in the
// caller's workspace. Prints how much each takes.
#include <doctest/doctest.h>
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>

#include "tests/api/entry_points.h"
#include "tests/support/targets.h"

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(memory_sanitizer) || __has_feature(thread_sanitizer)
#define ETALON_TEST_OWN_STACK 0
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define ETALON_TEST_OWN_STACK 0
#endif
#ifndef ETALON_TEST_OWN_STACK
#define ETALON_TEST_OWN_STACK 1
#endif

namespace etalon::test {
namespace {

constexpr size_t kStackBytes = size_t{128} << 10;
constexpr unsigned char kPaint = 0x5C;

// What any function may take: the list of all that the largest call may touch is 5 KiB of it, its tensors another 5.
// Twice the most seen with -O3.
constexpr size_t kAllowed = size_t{40} << 10;

// Painted, with a page below that faults.
class Stack {
 public:
  Stack() {
    const size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
    bytes_ = page + kStackBytes;
    void* all = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    REQUIRE(all != MAP_FAILED);
    all_ = static_cast<unsigned char*>(all);
    bottom_ = all_ + page;
    REQUIRE(mprotect(all_, page, PROT_NONE) == 0);
  }
  ~Stack() { munmap(all_, bytes_); }
  Stack(const Stack&) = delete;

  // How deep the thread has gone, its own start included.
  size_t Run(void* (*start)(void*), void* arg) {
    std::memset(bottom_, kPaint, kStackBytes);
    pthread_attr_t attributes;
    pthread_t thread;
    REQUIRE(pthread_attr_init(&attributes) == 0);
    REQUIRE(pthread_attr_setstack(&attributes, bottom_, kStackBytes) == 0);
    REQUIRE(pthread_create(&thread, &attributes, start, arg) == 0);
    REQUIRE(pthread_join(thread, nullptr) == 0);
    pthread_attr_destroy(&attributes);
    size_t untouched = 0;
    while (untouched < kStackBytes && bottom_[untouched] == kPaint) ++untouched;
    return kStackBytes - untouched;
  }

 private:
  size_t bytes_;
  unsigned char* all_;
  unsigned char* bottom_;
};

struct Job {
  EntryPoints* calls;
  const EntryPoints::Entry* entry;
};

void* RunJob(void* arg) {
  Job* job = static_cast<Job*>(arg);
  if (job->entry != nullptr) (job->calls->*job->entry->run)();
  return nullptr;
}

TEST_CASE("stack: every function fits into 128 KiB" * doctest::skip(!ETALON_TEST_OWN_STACK)) {
  Stack stack;
  Job nothing = {nullptr, nullptr};
  const size_t idle = std::min(stack.Run(RunJob, &nothing), stack.Run(RunJob, &nothing));
  std::printf("stack: an idle thread takes %zu bytes\n", idle);
  for (const KernelTable& table : Tables()) {
    EntryPoints::Config config;
    config.batch = 1;
    config.kv_len = 520;  // in two blocks
    config.q_len = 3;
    config.head_dim = config.value_dim = 512;
    config.target = table.name;
    EntryPoints on_main(config), on_thread(config);
    for (const EntryPoints::Entry& entry : EntryPoints::All()) {
      INFO(std::string(table.name), ": ", std::string(entry.functions));
      (on_main.*entry.run)();
      Job job = {&on_thread, &entry};
      const size_t depth = stack.Run(RunJob, &job);
      const size_t taken = depth > idle ? depth - idle : 0;
      std::printf("stack: %-10s %6zu bytes: %s\n", table.name, taken, entry.functions);
      CHECK(taken <= kAllowed);
      CHECK(on_thread.Results() == on_main.Results());
    }
    CHECK(on_thread.Failed() == "");
  }
}

// The paint is seen to be touched.
TEST_CASE("stack: the measure sees what is taken" * doctest::skip(!ETALON_TEST_OWN_STACK)) {
  Stack stack;
  const auto deep = [](void*) -> void* {
    volatile unsigned char array[50000];
    for (volatile unsigned char& byte : array) byte = 1;
    return nullptr;
  };
  CHECK(stack.Run(deep, nullptr) >= 50000);
}

}  // namespace
}  // namespace etalon::test
