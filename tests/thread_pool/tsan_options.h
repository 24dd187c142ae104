// tsan_options.h: the thread sanitizer of a test that forks. Include it in one source of each program.
#ifndef ETALON_TESTS_THREAD_POOL_TSAN_OPTIONS_H_
#define ETALON_TESTS_THREAD_POOL_TSAN_OPTIONS_H_

#if defined(__SANITIZE_THREAD__)
#define ETALON_TEST_TSAN
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define ETALON_TEST_TSAN
#endif
#endif

#if defined(ETALON_TEST_TSAN)
// Else it ends a child of fork() that makes threads.
extern "C" __attribute__((visibility("default"))) const char* __tsan_default_options() { return "die_after_fork=0"; }
#endif

#endif  // ETALON_TESTS_THREAD_POOL_TSAN_OPTIONS_H_
