// no_exceptions.h: a use of thread_pool.hpp in a source compiled without exceptions and RTTI.
#ifndef ETALON_TESTS_THREAD_POOL_NO_EXCEPTIONS_H_
#define ETALON_TESTS_THREAD_POOL_NO_EXCEPTIONS_H_

#include <cstdint>

namespace etalon::test {

// The threads of a ThreadPool of so many, moved twice.
int32_t ThreadsWithoutExceptions(int32_t threads);

}  // namespace etalon::test

#endif  // ETALON_TESTS_THREAD_POOL_NO_EXCEPTIONS_H_
