// thread_pool.cc: the C interface, and how a pool survives fork().
#include <etalon/thread_pool.h>
#include <pthread.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <new>

#include "lib/thread_pool/crew.h"

// After fork(), the child has this memory but not the threads, and the locks are as whoever held them left them. So the
// pool is no more than a pointer to the crew of one process, and the child's first use puts another crew in its place.
struct etalon_thread_pool {
  std::atomic<etalon::Crew*> crew;
  std::atomic<int32_t> threads;
};

namespace {

using etalon::Crew;

// The crew of this process. nullptr only in a child without memory for one.
Crew* CrewHere(etalon_thread_pool* pool) {
  const pid_t pid = getpid();
  Crew* crew = pool->crew.load(std::memory_order_acquire);
  while (crew->pid != pid) {
    Crew* fresh = etalon::NewCrew(pid, crew);
    if (fresh == nullptr) return nullptr;
    if (pool->crew.compare_exchange_strong(crew, fresh, std::memory_order_acq_rel)) return fresh;
    etalon::Free(fresh);  // another thread of the child was faster, and crew is its
  }
  return crew;
}

void ParallelFor(void* ctx, int64_t num_tasks, etalon_task_fn fn, void* arg) {
  if (num_tasks <= 0) return;
  etalon_thread_pool* pool = static_cast<etalon_thread_pool*>(ctx);
  Crew* crew = pool == nullptr ? nullptr : CrewHere(pool);
  // Inside a task, waiting could never end: not for our own pool, nor for another's if its task waits for ours.
  if (crew == nullptr || (etalon::InsideTask() && pthread_mutex_trylock(&crew->turn) != 0)) {
    fn(arg, 0, num_tasks, 0);
    return;
  }
  if (!etalon::InsideTask()) pthread_mutex_lock(&crew->turn);
  etalon::Staff(crew, pool->threads.load(std::memory_order_relaxed));
  pool->threads.store(crew->threads, std::memory_order_relaxed);
  etalon::Work(crew, {fn, arg, num_tasks});
  pthread_mutex_unlock(&crew->turn);
}

}  // namespace

etalon_status etalon_thread_pool_create(int32_t threads, etalon_thread_pool** pool) {
  if (pool == nullptr) return ETALON_NULL_POINTER;
  if (threads < 0) return ETALON_BAD_VALUE;
  void* memory = std::malloc(sizeof(etalon_thread_pool));
  Crew* crew = etalon::NewCrew(getpid(), nullptr);
  if (memory == nullptr || crew == nullptr) {
    std::free(memory);
    if (crew != nullptr) etalon::Free(crew);
    return ETALON_OUT_OF_MEMORY;
  }
  etalon::Staff(crew, threads == 0 ? etalon_default_threads() : threads);
  etalon_thread_pool* made = new (memory) etalon_thread_pool;
  made->crew.store(crew, std::memory_order_release);
  made->threads.store(crew->threads, std::memory_order_relaxed);
  *pool = made;
  return ETALON_OK;
}

void etalon_thread_pool_destroy(etalon_thread_pool* pool) {
  if (pool == nullptr) return;
  Crew* crew = pool->crew.load(std::memory_order_acquire);
  if (crew->pid == getpid()) etalon::Dismiss(crew);
  while (crew != nullptr) {
    Crew* abandoned = crew->abandoned;
    etalon::Free(crew);
    crew = abandoned;
  }
  std::free(pool);
}

int32_t etalon_thread_pool_threads(const etalon_thread_pool* pool) {
  return pool == nullptr ? 1 : pool->threads.load(std::memory_order_relaxed);
}

etalon_parallel etalon_thread_pool_parallel(etalon_thread_pool* pool) {
  return {ParallelFor, pool, etalon_thread_pool_threads(pool), 0};
}
