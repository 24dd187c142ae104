#include "tests/support/guard_buffer.h"

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#if defined(__unix__) || defined(__APPLE__)
#include <sys/mman.h>
#include <unistd.h>
#endif

namespace etalon::test {
namespace {

constexpr size_t kAlignment = 64;

[[noreturn]] void GiveUp(const char* what, size_t bytes) {
  std::fprintf(stderr, "guard pages: %s of %zu bytes failed: %s\n", what, bytes, std::strerror(errno));
  std::abort();
}

#if defined(__unix__) || defined(__APPLE__)

size_t PageBytes() { return static_cast<size_t>(sysconf(_SC_PAGESIZE)); }

// Accessible pages between two inaccessible ones.
unsigned char* MapPages(size_t bytes) {
  const size_t page = PageBytes();
  int flags = MAP_PRIVATE | MAP_ANONYMOUS;
#if defined(MAP_NORESERVE)
  flags |= MAP_NORESERVE;
#endif
  void* all = mmap(nullptr, bytes + 2 * page, PROT_NONE, flags, -1, 0);
  if (all == MAP_FAILED) GiveUp("mmap", bytes + 2 * page);
  unsigned char* pages = static_cast<unsigned char*>(all) + page;
  if (mprotect(pages, bytes, PROT_READ | PROT_WRITE) != 0) GiveUp("mprotect", bytes);
  return pages;
}

void UnmapPages(unsigned char* pages, size_t bytes) { munmap(pages - PageBytes(), bytes + 2 * PageBytes()); }

#else

size_t PageBytes() { return 4096; }
unsigned char* MapPages(size_t bytes) {
  errno = ENOSYS;
  GiveUp("this system has no mmap: mapping", bytes);
}
void UnmapPages(unsigned char*, size_t) {}

#endif

}  // namespace

GuardBuffer::GuardBuffer(size_t bytes, Guard guard, int offset, unsigned char fill, bool sparse)
    : bytes_(bytes), fill_(fill) {
  const size_t page = PageBytes();
  pages_bytes_ = (bytes + 2 * kAlignment + page - 1) / page * page;
  pages_ = MapPages(pages_bytes_);
  if (!sparse) std::memset(pages_, fill, pages_bytes_);
  if (guard == Guard::kBelow && bytes > 0) {  // of no bytes, none may be read
    data_ = pages_ + (offset == kAnyOffset ? 0 : offset);
    return;
  }
  data_ = pages_ + (pages_bytes_ - bytes);
  if (offset != kAnyOffset) data_ -= (reinterpret_cast<uintptr_t>(data_) - static_cast<uintptr_t>(offset)) % kAlignment;
}

GuardBuffer::GuardBuffer(size_t bytes, Guard guard, int offset, unsigned char fill)
    : GuardBuffer(bytes, guard, offset, fill, false) {}

GuardBuffer GuardBuffer::Sparse(size_t bytes) { return GuardBuffer(bytes, Guard::kAbove, kAnyOffset, 0, true); }

GuardBuffer::~GuardBuffer() { UnmapPages(pages_, pages_bytes_); }

bool GuardBuffer::Intact() const {
  for (const unsigned char* p = pages_; p < data_; ++p) {
    if (*p != fill_) return false;
  }
  for (const unsigned char* p = data_ + bytes_; p < pages_ + pages_bytes_; ++p) {
    if (*p != fill_) return false;
  }
  return true;
}

}  // namespace etalon::test
