// thread_pool.h: threads for hosts that have none of their own, as an etalon_parallel of etalon.h. C99 and later, C++11
// and later; POSIX systems.
//
//   etalon_thread_pool* pool;
//   if (etalon_thread_pool_create(0, &pool) != ETALON_OK) return;         0: one thread for each CPU that we may use
//   const etalon_parallel parallel = etalon_thread_pool_parallel(pool);
//   desc.max_workers = parallel.workers;                                  before the workspace is measured
//   etalon_attention(&desc, &args, &workspace, &parallel, &error);        as often as you like
//   etalon_thread_pool_destroy(pool);
//
// A library of its own, etalon_thread_pool; libetalon needs neither it nor threads. Unlike the functions of etalon.h,
// these allocate, lock and make threads. Results do not depend on the pool: not on its size, nor on which thread runs
// what.
//
// - Several threads may use one pool, and it may be created, used and destroyed on different ones. Calls of its
//   parallel_for take turns.
// - A call from inside a task, of the same pool or another, never waits: where the pool is busy, as a task's own pool
//   always is, it runs all its tasks on the calling thread, as worker 0.
// - After fork() the child can go on using its copy of the pool, which makes itself new threads on first use, and must
//   destroy it for itself. Only a child that was forked inside a task must not return from that task.
// - Threads start with the stack size and the CPU affinity that new threads have by default, and leave asynchronous
//   signals to the threads of the host. Between calls they sleep; unless there are more of them than CPUs, they first
//   look out for the next call for 50 us.
#ifndef ETALON_THREAD_POOL_H_
#define ETALON_THREAD_POOL_H_

#include <etalon/etalon.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct etalon_thread_pool etalon_thread_pool;

// The number of CPUs that the calling thread may run on, from its affinity mask where there is one (Linux), else of
// those online. At least 1. A limit on CPU time, as containers have, is not looked at.
ETALON_API int32_t etalon_default_threads(void);

// *pool = a pool of `threads` threads, the calling one counted: threads - 1 are made. 0 = etalon_default_threads(). If
// the system grants fewer, the pool has fewer, down to the caller alone: see etalon_thread_pool_threads.
// ETALON_NULL_POINTER (pool), ETALON_BAD_VALUE (threads < 0) or ETALON_OUT_OF_MEMORY, and then *pool is untouched.
ETALON_STATUS etalon_thread_pool_create(int32_t threads, etalon_thread_pool** pool);

// Ends the pool's threads and frees it. No call may be running on it. NULL is fine.
ETALON_API void etalon_thread_pool_destroy(etalon_thread_pool* pool);

// How many threads work on one call, the caller counted. 1 for NULL. Constant, save that a child after fork() may be
// granted fewer.
ETALON_API int32_t etalon_thread_pool_threads(const etalon_thread_pool* pool);

// What to pass to the functions that take an etalon_parallel; valid until the pool is destroyed, and copied freely.
// workers = etalon_thread_pool_threads(pool). Idle workers take the next task, one at a time; the caller is worker 0.
// NULL gives one that runs all tasks on the calling thread. Tasks must not throw.
ETALON_API etalon_parallel etalon_thread_pool_parallel(etalon_thread_pool* pool);

#ifdef __cplusplus
}  // extern "C"
#endif

#endif  // ETALON_THREAD_POOL_H_
