// buffer.h: memory whose pages are there before anything is timed, aligned to cache lines and no better, as users have
// it.
#ifndef ETALON_BENCH_SUPPORT_BUFFER_H_
#define ETALON_BENCH_SUPPORT_BUFFER_H_

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>

namespace etalon::bench {

inline size_t FloatBytes(int64_t n) { return static_cast<size_t>(n) * sizeof(float); }

class Buffer {
 public:
  explicit Buffer(size_t bytes) : bytes_(bytes), data_(::operator new(bytes, std::align_val_t{64})) {
    std::memset(data_, 0, bytes);
  }
  ~Buffer() { ::operator delete(data_, std::align_val_t{64}); }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  void* data() { return data_; }
  const void* data() const { return data_; }
  float* floats() { return static_cast<float*>(data_); }
  size_t bytes() const { return bytes_; }

 private:
  size_t bytes_;
  void* data_;
};

}  // namespace etalon::bench

#endif  // ETALON_BENCH_SUPPORT_BUFFER_H_
