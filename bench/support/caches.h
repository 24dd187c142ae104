// caches.h: where whatever is measured lies, from the sizes of this CPU's caches.
#ifndef ETALON_BENCH_SUPPORT_CACHES_H_
#define ETALON_BENCH_SUPPORT_CACHES_H_

#include <cstddef>
#include <vector>

namespace etalon::bench {

struct Caches {
  size_t l1 = 0, l2 = 0, l3 = 0;  // bytes that one core reaches; 0 = there is none
};
Caches ThisCaches();
// "L2": the smallest of them that holds so many bytes; "DRAM".
const char* LevelOf(size_t bytes);

// So many bytes lie well in each level: half of L1 and L2, a quarter of an L3 that others use too, and for DRAM four
// times as much as any cache holds. L3 only if there is one.
struct Place {
  const char* name;
  size_t bytes;
  bool in_cache;
};
Place PlaceInL2();
Place PlaceInDram();
std::vector<Place> Places();

}  // namespace etalon::bench

#endif  // ETALON_BENCH_SUPPORT_CACHES_H_
