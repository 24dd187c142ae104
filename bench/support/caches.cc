#include "bench/support/caches.h"

#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <string>

namespace etalon::bench {
namespace {

// As Linux tells them for the first CPU; zeros elsewhere.
Caches CachesOfSystem() {
  Caches caches;
  for (int index = 0; index < 16; ++index) {
    const std::string folder = "/sys/devices/system/cpu/cpu0/cache/index" + std::to_string(index) + "/";
    std::ifstream level_file(folder + "level"), type_file(folder + "type"), size_file(folder + "size");
    int level = 0;
    std::string type;
    size_t bytes = 0;
    char unit = 0;
    if (!(level_file >> level) || !(type_file >> type) || !(size_file >> bytes)) break;
    if (size_file >> unit) bytes <<= unit == 'K' ? 10 : unit == 'M' ? 20 : 0;
    if (type != "Data" && type != "Unified") continue;
    if (level == 1) caches.l1 = bytes;
    if (level == 2) caches.l2 = bytes;
    if (level == 3) caches.l3 = bytes;
  }
  return caches;
}

// As the C library tells them, from the CPU itself: where /sys is not to be seen, as in a chroot.
Caches CachesOfLibrary() {
  Caches caches;
#if defined(_SC_LEVEL1_DCACHE_SIZE)
  const auto size = [](int name) { return static_cast<size_t>(std::max(0L, sysconf(name))); };
  caches.l1 = size(_SC_LEVEL1_DCACHE_SIZE);
  caches.l2 = size(_SC_LEVEL2_CACHE_SIZE);
  caches.l3 = size(_SC_LEVEL3_CACHE_SIZE);
#endif
  return caches;
}

Caches FindCaches() {
  Caches caches = CachesOfSystem();
  if (caches.l1 == 0) caches = CachesOfLibrary();
  // Systems that do not tell: what small servers have.
  if (caches.l1 == 0) caches.l1 = size_t{32} << 10;
  if (caches.l2 == 0) caches.l2 = size_t{512} << 10;
  return caches;
}

}  // namespace

Caches ThisCaches() {
  static const Caches caches = FindCaches();
  return caches;
}

const char* LevelOf(size_t bytes) {
  const Caches caches = ThisCaches();
  if (bytes <= caches.l1) return "L1";
  if (bytes <= caches.l2) return "L2";
  return bytes <= caches.l3 ? "L3" : "DRAM";
}

Place PlaceInL2() { return {"L2", ThisCaches().l2 / 2, true}; }

// Four times the last cache; of a very large one (a virtual machine may tell that of the whole socket) less, for time.
Place PlaceInDram() {
  const size_t l3 = ThisCaches().l3;
  return {"DRAM", std::max(std::min(4 * l3, l3 + (size_t{256} << 20)), size_t{128} << 20), false};
}

std::vector<Place> Places() {
  const Caches caches = ThisCaches();
  std::vector<Place> places = {{"L1", caches.l1 / 2, true}, PlaceInL2()};
  if (caches.l3 != 0) places.push_back({"L3", caches.l3 / 4, true});
  places.push_back(PlaceInDram());
  return places;
}

}  // namespace etalon::bench
