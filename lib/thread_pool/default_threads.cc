// default_threads.cc: how many CPUs this thread may run on.
#include <etalon/thread_pool.h>
#include <sched.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>

namespace {

#if defined(__linux__)

// 0 if the mask cannot be read. The system refuses a mask that is too small for its CPUs, without saying how large
// would do.
int32_t CpusInAffinityMask() {
  constexpr int kMostCpus = 1 << 20;
  for (int cpus = 1024; cpus <= kMostCpus; cpus *= 2) {
    cpu_set_t* mask = CPU_ALLOC(static_cast<size_t>(cpus));
    if (mask == nullptr) return 0;
    const size_t bytes = CPU_ALLOC_SIZE(static_cast<size_t>(cpus));
    const int count = sched_getaffinity(0, bytes, mask) == 0 ? CPU_COUNT_S(bytes, mask) : 0;
    CPU_FREE(mask);
    if (count > 0) return count;
  }
  return 0;
}

#else

int32_t CpusInAffinityMask() { return 0; }

#endif

}  // namespace

int32_t etalon_default_threads(void) {
  const int32_t cpus = CpusInAffinityMask();
  if (cpus > 0) return cpus;
  const long online = sysconf(_SC_NPROCESSORS_ONLN);  // NOLINT(google-runtime-int): the type of sysconf
  return online > 0 && online <= INT32_MAX ? static_cast<int32_t>(online) : 1;
}
