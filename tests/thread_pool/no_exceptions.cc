#include "tests/thread_pool/no_exceptions.h"

#include <etalon/thread_pool.hpp>
#include <utility>

#if defined(__EXCEPTIONS) || defined(__GXX_RTTI)
#error "compile this file with -fno-exceptions -fno-rtti"
#endif

namespace etalon::test {

int32_t ThreadsWithoutExceptions(int32_t threads) {
  ThreadPool first(threads);
  ThreadPool second(std::move(first));
  first = std::move(second);
  return first.status() == ETALON_OK ? first.threads() : -1;
}

}  // namespace etalon::test
