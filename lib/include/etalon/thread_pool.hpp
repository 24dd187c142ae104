// thread_pool.hpp: the pool of thread_pool.h with an owner. C++17; needs neither exceptions nor RTTI.
#ifndef ETALON_THREAD_POOL_HPP_
#define ETALON_THREAD_POOL_HPP_

#include <etalon/thread_pool.h>

#include <cstdint>

namespace etalon {

// etalon::ThreadPool pool;
// desc.max_workers = pool.threads();
// etalon_attention(&desc, &args, &workspace, pool.parallel(), &error);
//
// There is no state in which it cannot be used. A pool that could not be made (see status) or was moved from consists
// of the calling thread: slower, with the same bits.
class [[nodiscard]] ThreadPool {
 public:
  // threads: the caller counted; 0 = etalon_default_threads().
  explicit ThreadPool(int32_t threads = 0)
      : status_(etalon_thread_pool_create(threads, &pool_)), parallel_(etalon_thread_pool_parallel(pool_)) {}

  ThreadPool(ThreadPool&& other) noexcept : pool_(other.pool_), status_(other.status_), parallel_(other.parallel_) {
    other.Forget();
  }
  ThreadPool& operator=(ThreadPool&& other) noexcept {
    if (this == &other) return *this;
    etalon_thread_pool_destroy(pool_);
    pool_ = other.pool_;
    status_ = other.status_;
    parallel_ = other.parallel_;
    other.Forget();
    return *this;
  }
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;
  ~ThreadPool() { etalon_thread_pool_destroy(pool_); }

  // What etalon_thread_pool_create said: ETALON_OK, ETALON_BAD_VALUE or ETALON_OUT_OF_MEMORY.
  [[nodiscard]] etalon_status status() const { return status_; }

  // How many threads work on one call: fewer than asked for if the system granted fewer.
  [[nodiscard]] int32_t threads() const { return etalon_thread_pool_threads(pool_); }

  // Valid until this object is moved from or ends.
  [[nodiscard]] const etalon_parallel* parallel() const { return &parallel_; }

 private:
  void Forget() {
    pool_ = nullptr;
    parallel_ = etalon_thread_pool_parallel(nullptr);
  }

  etalon_thread_pool* pool_ = nullptr;
  etalon_status status_;
  etalon_parallel parallel_;
};

}  // namespace etalon

#endif  // ETALON_THREAD_POOL_HPP_
