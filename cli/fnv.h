// fnv.h: a hash by which people compare outputs; no protection against anyone.
#ifndef ETALON_CLI_FNV_H_
#define ETALON_CLI_FNV_H_

#include <cstddef>
#include <cstdint>

namespace etalon::cli {

// FNV-1a, 64 bits. Goes on from `hash`, if there is more than one piece.
constexpr uint64_t kFnvStart = 0xCBF29CE484222325u;
inline uint64_t Fnv1aBytes(const void* data, size_t bytes, uint64_t hash = kFnvStart) {
  for (size_t i = 0; i < bytes; ++i) hash = (hash ^ static_cast<const unsigned char*>(data)[i]) * 0x100000001B3u;
  return hash;
}

}  // namespace etalon::cli

#endif  // ETALON_CLI_FNV_H_
