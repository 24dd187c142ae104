#include "lib/thread_pool/crew.h"

#include <etalon/thread_pool.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <time.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <new>

namespace etalon {
namespace {

thread_local bool t_inside_task = false;

// Of seats_and_active.
constexpr uint64_t kSeat = uint64_t{1} << 32;
constexpr uint64_t kActive = 1;
uint64_t Seats(uint64_t state) { return state / kSeat; }
uint64_t Active(uint64_t state) { return state % kSeat; }

// Takes a seat if there is one. An exchange and no lock: many may try at once, and a queue at a lock would put them to
// sleep.
bool Join(Crew* crew, uint64_t* seats_left) {
  uint64_t state = crew->seats_and_active.load(std::memory_order_relaxed);
  while (Seats(state) > 0) {
    if (crew->seats_and_active.compare_exchange_weak(state, state - kSeat + kActive, std::memory_order_acquire,
                                                     std::memory_order_relaxed)) {
      *seats_left = Seats(state) - 1;
      return true;
    }
  }
  return false;
}

// Takes away the seats that are left, and says how many workers are active.
uint64_t CloseJob(Crew* crew) { return Active(crew->seats_and_active.fetch_and(kSeat - 1, std::memory_order_acquire)); }

void Leave(Crew* crew) {
  CloseJob(crew);  // there is no task to join for; the job is still the same, as we are active
  if (Active(crew->seats_and_active.fetch_sub(kActive, std::memory_order_release)) > 1) return;
  pthread_mutex_lock(&crew->lock);  // or the caller might look, see us, and begin to wait after the signal
  pthread_cond_signal(&crew->all_left);
  pthread_mutex_unlock(&crew->lock);
}

// Whoever takes a seat calls two more: a call takes a microsecond or two, which the caller would spend alone, and this
// way they end as soon as the tasks have been handed out.
void CallWorkers(Crew* crew, uint64_t seats) {
  if (seats > 0) pthread_cond_signal(&crew->seats_free);
  if (seats > 1) pthread_cond_signal(&crew->seats_free);
}

void RunTasks(Crew* crew, const Job& job, int32_t worker) {
  for (;;) {
    const int64_t task = crew->next_task.fetch_add(1, std::memory_order_relaxed);
    if (task >= job.num_tasks) return;
    job.fn(job.arg, task, task + 1, worker);
  }
}

int64_t Nanoseconds() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return int64_t{1000000000} * now.tv_sec + now.tv_nsec;
}

void Pause() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __asm__ volatile("isb");
#endif
}

// Sleeping and waking cost 10 us and more, as much as many a job, and who wakes may be put on the caller's CPU. So
// small jobs in quick succession take half the time. Whoever else wants this CPU, maybe the caller, gets it.
void LookOutForSeat(const Crew* crew) {
  constexpr int64_t kPatience = 50000;
  const int64_t end = Nanoseconds() + kPatience;
  do {
    for (int i = 0; i < 16; ++i) {
      if (Seats(crew->seats_and_active.load(std::memory_order_relaxed)) > 0) return;
      Pause();
    }
    sched_yield();
  } while (Nanoseconds() < end);
}

// False if the crew is closing.
bool AwaitSeat(Crew* crew) {
  if (crew->patient) LookOutForSeat(crew);
  pthread_mutex_lock(&crew->lock);
  while (!crew->closing && Seats(crew->seats_and_active.load(std::memory_order_relaxed)) == 0) {
    pthread_cond_wait(&crew->seats_free, &crew->lock);
  }
  const bool closing = crew->closing;
  pthread_mutex_unlock(&crew->lock);
  return !closing;
}

void* WorkerMain(void* arg) {
  const Worker* self = static_cast<const Worker*>(arg);
  Crew* crew = self->crew;
  t_inside_task = true;
  for (;;) {
    uint64_t seats_left;
    if (Join(crew, &seats_left)) {
      CallWorkers(crew, seats_left);
      RunTasks(crew, crew->job, self->number);
      Leave(crew);
    } else if (!AwaitSeat(crew)) {
      return nullptr;
    }
  }
}

// Of the thread itself, or of a profiler. All other signals are for the host's own threads to handle.
constexpr int kOwnSignals[] = {SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGPROF, SIGSEGV, SIGSYS, SIGTRAP};

void BlockSignals(sigset_t* before) {
  sigset_t blocked;
  sigfillset(&blocked);
  for (const int signal : kOwnSignals) sigdelset(&blocked, signal);
  pthread_sigmask(SIG_BLOCK, &blocked, before);
}

}  // namespace

bool InsideTask() { return t_inside_task; }

Crew* NewCrew(pid_t pid, Crew* abandoned) {
  void* memory = nullptr;
  if (posix_memalign(&memory, alignof(Crew), sizeof(Crew)) != 0) return nullptr;
  Crew* crew = new (memory) Crew;
  crew->pid = pid;
  crew->abandoned = abandoned;
  return crew;
}

void Staff(Crew* crew, int32_t threads) {
  if (crew->staffed) return;
  crew->staffed = true;
  crew->patient = threads <= etalon_default_threads();  // with more, who looks out keeps a CPU from who works
  sigset_t before;
  BlockSignals(&before);
  while (crew->threads < threads) {
    Worker* worker = static_cast<Worker*>(std::malloc(sizeof(Worker)));
    if (worker == nullptr) break;
    worker->crew = crew;
    worker->number = crew->threads;
    worker->next = crew->workers;
    if (pthread_create(&worker->thread, nullptr, WorkerMain, worker) != 0) {
      std::free(worker);
      break;
    }
    crew->workers = worker;
    ++crew->threads;
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

void Work(Crew* crew, const Job& job) {
  const bool outer = t_inside_task;
  t_inside_task = true;
  const int64_t others = job.num_tasks < crew->threads ? job.num_tasks - 1 : crew->threads - 1;
  if (others == 0) {
    job.fn(job.arg, 0, job.num_tasks, 0);
  } else {
    crew->job = job;
    crew->next_task.store(0, std::memory_order_relaxed);
    const uint64_t seats = static_cast<uint64_t>(others);
    pthread_mutex_lock(&crew->lock);  // or a worker might look, see no seat, and fall asleep after the call
    crew->seats_and_active.store(seats * kSeat, std::memory_order_release);
    pthread_mutex_unlock(&crew->lock);
    CallWorkers(crew, seats);
    RunTasks(crew, job, 0);
    if (CloseJob(crew) > 0) {  // who has not woken up by now is not waited for
      pthread_mutex_lock(&crew->lock);
      while (Active(crew->seats_and_active.load(std::memory_order_acquire)) > 0) {
        pthread_cond_wait(&crew->all_left, &crew->lock);
      }
      pthread_mutex_unlock(&crew->lock);
    }
  }
  t_inside_task = outer;
}

void Dismiss(Crew* crew) {
  pthread_mutex_lock(&crew->lock);
  crew->closing = true;
  pthread_cond_broadcast(&crew->seats_free);
  pthread_mutex_unlock(&crew->lock);
  while (crew->workers != nullptr) {
    Worker* worker = crew->workers;
    pthread_join(worker->thread, nullptr);
    crew->workers = worker->next;
    std::free(worker);
  }
  pthread_cond_destroy(&crew->all_left);
  pthread_cond_destroy(&crew->seats_free);
  pthread_mutex_destroy(&crew->lock);
  pthread_mutex_destroy(&crew->turn);
}

void Free(Crew* crew) {
  while (crew->workers != nullptr) {
    Worker* worker = crew->workers;
    crew->workers = worker->next;
    std::free(worker);
  }
  std::free(crew);
}

}  // namespace etalon
