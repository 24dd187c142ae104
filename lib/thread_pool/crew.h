// crew.h: the threads of a pool in one process, and the job that they work on.
#ifndef ETALON_LIB_THREAD_POOL_CREW_H_
#define ETALON_LIB_THREAD_POOL_CREW_H_

#include <etalon/etalon.h>
#include <pthread.h>
#include <sys/types.h>

#include <atomic>
#include <cstdint>

namespace etalon {

struct Crew;

struct Job {
  etalon_task_fn fn;
  void* arg;
  int64_t num_tasks;
};

struct Worker {
  Crew* crew;
  int32_t number;  // from 1; the caller is 0
  pthread_t thread;
  Worker* next;
};

struct Crew {
  pid_t pid;        // of the process that it belongs to
  Crew* abandoned;  // that of the parent process; its locks may be held for ever, so it is only freed

  // Held by the caller whose job runs. Guards the members up to `lock`, of which workers read `job` once they have
  // joined it, and `patient`, which is constant while there are workers.
  pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER;
  bool staffed = false;
  bool patient = false;  // workers look out for the next job for a while before they sleep
  int32_t threads = 1;   // the caller counted
  Worker* workers = nullptr;
  Job job = {};

  // For sleeping and waking. Guards `closing`.
  pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
  pthread_cond_t seats_free = PTHREAD_COND_INITIALIZER;  // or closing
  pthread_cond_t all_left = PTHREAD_COND_INITIALIZER;
  bool closing = false;

  // What all threads write, each on a cache line of its own. In the upper half of the first, how many workers may still
  // join the job; in the lower, how many have joined and not left.
  alignas(64) std::atomic<uint64_t> seats_and_active{0};
  alignas(64) std::atomic<int64_t> next_task{0};
};

// A crew without workers. nullptr if there is no memory.
Crew* NewCrew(pid_t pid, Crew* abandoned);

// The first time, makes threads - 1 workers, or as many as the system grants. Under `turn`, or before it is shared.
void Staff(Crew* crew, int32_t threads);

// Runs the tasks of a job on all threads, the calling one as worker 0. Under `turn`.
void Work(Crew* crew, const Job& job);

// Ends the workers and waits for them.
void Dismiss(Crew* crew);

// Frees the memory of a crew without workers, or of another process's; touches no lock.
void Free(Crew* crew);

// True inside a task of any pool.
bool InsideTask();

}  // namespace etalon

#endif  // ETALON_LIB_THREAD_POOL_CREW_H_
