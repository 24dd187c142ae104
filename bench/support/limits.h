// limits.h: what a kernel can reach at best, as work to be timed in turn with it.
#ifndef ETALON_BENCH_SUPPORT_LIMITS_H_
#define ETALON_BENCH_SUPPORT_LIMITS_H_

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "bench/support/buffer.h"
#include "bench/support/loops.h"

namespace etalon::bench {

// `work` is what one call does, in the limit's own unit: flop, bytes or elements.
struct Limit {
  std::string name;  // "fma avx2"
  double work = 0;
  std::function<void()> run;  // empty = no such limit is known for this CPU
};

struct Bytes {
  void* data;
  size_t bytes;
};
Bytes BytesOf(Buffer* buffer);

// Fused multiply-adds of a table's vectors, out of registers. Unit: flop.
Limit FmaLimit(const Loops* loops);
// Reads all of it, by the fastest of the read loops on these very bytes (tried out first). Unit: bytes.
Limit ReadLimit(const Loops* loops, std::vector<Bytes> parts);
// Writes zeros over all of it, likewise. Unit: bytes written.
Limit StoreLimit(const Loops* loops, Bytes part);
// memcpy between two buffers of its own. Unit: bytes read + bytes written.
Limit CopyLimit(size_t bytes);
// The table's own exp over an array in L1. Unit: elements.
Limit ExpLimit(const std::string& table);

}  // namespace etalon::bench

#endif  // ETALON_BENCH_SUPPORT_LIMITS_H_
