#include "tests/fuzz/memory.h"

#include <cstdio>
#include <cstdlib>

#if defined(__SANITIZE_ADDRESS__)
#define ETALON_FUZZ_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define ETALON_FUZZ_ASAN 1
#endif
#endif

#if defined(ETALON_FUZZ_ASAN)
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif

namespace etalon::fuzz {
namespace {

constexpr size_t kAlignment = 64;
constexpr unsigned char kMarginByte = 0xA5;
#if defined(ETALON_FUZZ_ASAN)
constexpr size_t kMargin = 0;  // the sanitizer's own are better
#else
constexpr size_t kMargin = 64;
#endif

constexpr unsigned char kExpected = 1;  // something is to be written here
constexpr unsigned char kAllowed = 2;   // this may be touched

const char* label = nullptr;

#if defined(ETALON_FUZZ_ASAN)
void PrintLabel() {
  if (label != nullptr) std::fprintf(stderr, "fuzz: %s\n", label);
}
#endif

}  // namespace

Block::Block(const std::string& name, size_t bytes, size_t skew) : name_(name), size_(bytes), front_(kMargin + skew) {
  void* memory = nullptr;
  const size_t all = front_ + bytes + kMargin;
  if (posix_memalign(&memory, kAlignment, all == 0 ? 1 : all) != 0)
    Stop("out of memory for " + name + " of " + std::to_string(all));
  memory_ = static_cast<unsigned char*>(memory);
  data_ = memory_ + front_;
  std::memset(memory_, kMarginByte, all);
  std::memset(data_, 0xFF, bytes);
}

Block::~Block() {
  Show();
  std::free(memory_);
}

bool Block::Holds(uintptr_t first, uintptr_t last) const {
  const uintptr_t start = reinterpret_cast<uintptr_t>(data_);
  return first >= start && first <= last && last <= start + size_;
}

void Block::Remember() {
  before_.assign(data_, data_ + size_);
  expected_ = before_;
  marks_.assign(size_, 0);
}

void Block::Expect(uintptr_t address, const void* bytes, size_t size) {
  std::memcpy(expected_.data() + Offset(address), bytes, size);
  std::memset(marks_.data() + Offset(address), kExpected | kAllowed, size);
}

void Block::Allow(uintptr_t address, size_t size) {
  for (size_t i = 0; i < size; ++i) marks_[Offset(address) + i] |= kAllowed;
}

void Block::Hide() {
#if defined(ETALON_FUZZ_ASAN)
  // The sanitizer knows granules of 8 bytes: hidden are those without any byte that may be touched.
  const size_t lead = reinterpret_cast<uintptr_t>(data_) % 8;
  for (size_t first = lead == 0 ? 0 : 8 - lead; first + 8 <= size_; first += 8) {
    bool any = false;
    for (size_t i = first; i < first + 8; ++i) any = any || marks_[i] != 0;
    if (!any) ASAN_POISON_MEMORY_REGION(data_ + first, 8);
  }
#endif
}

void Block::Show() {
#if defined(ETALON_FUZZ_ASAN)
  if (size_ > 0) ASAN_UNPOISON_MEMORY_REGION(data_, size_);
#endif
}

void Block::Restore() {
  if (size_ > 0) std::memcpy(data_, before_.data(), size_);
}

std::string Block::Difference(bool loosely) const { return Compare(expected_, loosely); }

std::string Block::Change() const { return Compare(before_, false); }

std::string Block::Overrun() const {
  for (size_t i = 0; i < front_ + kMargin; ++i) {
    const unsigned char* byte = i < front_ ? memory_ + i : data_ + size_ + (i - front_);
    if (*byte == kMarginByte) continue;
    return name_ + ": byte " + std::to_string(byte - data_) + " of " + std::to_string(size_) + " was written";
  }
  return "";
}

std::string Block::Compare(const std::vector<unsigned char>& want, bool loosely) const {
  const std::string overrun = Overrun();
  if (!overrun.empty()) return overrun;
  if (size_ == 0 || std::memcmp(data_, want.data(), size_) == 0) return "";
  for (size_t i = 0; i < size_; ++i) {
    if (data_[i] == want[i] || (loosely && (marks_[i] & kExpected) != 0)) continue;
    char line[200];
    std::snprintf(line, sizeof line, "%s: byte %zu of %zu is %02x, must be %02x (it was %02x, and %s be written)",
                  name_.c_str(), i, size_, data_[i], want[i], before_[i],
                  (marks_[i] & kExpected) != 0 ? "had to" : "must not");
    return line;
  }
  return "";
}

Block* Arena::Add(const std::string& name, size_t bytes, size_t skew) {
  blocks_.push_back(std::make_unique<Block>(name, bytes, skew));
  return blocks_.back().get();
}

Block* Arena::Find(uintptr_t first, uintptr_t last) const {
  for (const std::unique_ptr<Block>& block : blocks_) {
    if (block->Holds(first, last)) return block.get();
  }
  return nullptr;
}

void SetLabel(const char* name) {
  label = name;
#if defined(ETALON_FUZZ_ASAN)
  __sanitizer_set_death_callback(PrintLabel);
#endif
}

void Stop(const std::string& what) {
  std::fprintf(stderr, "fuzz: %s%s%s\n", label == nullptr ? "" : label, label == nullptr ? "" : ": ", what.c_str());
  std::abort();
}

}  // namespace etalon::fuzz
