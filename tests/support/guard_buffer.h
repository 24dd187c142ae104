// guard_buffer.h: memory between two pages that nobody may touch: what reads or writes past its ends faults in every
// build, not only under a sanitizer.
#ifndef ETALON_TESTS_SUPPORT_GUARD_BUFFER_H_
#define ETALON_TESTS_SUPPORT_GUARD_BUFFER_H_

#include <cstddef>

namespace etalon::test {

// Which end of the memory touches its page.
enum class Guard { kBelow, kAbove };

constexpr int kAnyOffset = -1;  // see below

class GuardBuffer {
 public:
  // `bytes` bytes, may be 0. An offset of 0 ... 63 asks for an address that is this much above a multiple of 64; up to
  // 63 bytes then lie between the memory and its page. Every byte between the two pages holds `fill`.
  GuardBuffer(size_t bytes, Guard guard, int offset = kAnyOffset, unsigned char fill = 0xFF);
  // The same, all 0 and of pages that take memory only once they are touched: for addresses that are far apart.
  static GuardBuffer Sparse(size_t bytes);
  ~GuardBuffer();
  GuardBuffer(const GuardBuffer&) = delete;
  GuardBuffer& operator=(const GuardBuffer&) = delete;

  unsigned char* data() { return data_; }
  const unsigned char* data() const { return data_; }
  size_t bytes() const { return bytes_; }

  // Whether the bytes beside the memory still hold what they were filled with: those that no page guards.
  bool Intact() const;

 private:
  GuardBuffer(size_t bytes, Guard guard, int offset, unsigned char fill, bool sparse);

  unsigned char* pages_;  // the accessible ones; an inaccessible one on either side
  size_t pages_bytes_;
  unsigned char* data_;
  size_t bytes_;
  unsigned char fill_;
};

}  // namespace etalon::test

#endif  // ETALON_TESTS_SUPPORT_GUARD_BUFFER_H_
