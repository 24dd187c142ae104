// memory.h: all memory that a fuzzed call sees, in pieces of exactly the right size, with what they held before the
// call and what they must hold after it.
#ifndef ETALON_TESTS_FUZZ_MEMORY_H_
#define ETALON_TESTS_FUZZ_MEMORY_H_

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

namespace etalon::fuzz {

// One allocation. AddressSanitizer sees the byte before and the byte behind it; other builds look at margins.
class Block {
 public:
  // data() is a multiple of 64 plus `skew`. All bytes are 0xFF, a NaN in every type.
  Block(const std::string& name, size_t bytes, size_t skew);
  ~Block();
  Block(const Block&) = delete;

  const std::string& name() const { return name_; }
  unsigned char* data() const { return data_; }
  size_t size() const { return size_; }
  bool Holds(uintptr_t first, uintptr_t last) const;

  // What is here now is what was there before the call, and what must be there after it, until Expect.
  void Remember();
  const unsigned char* before(uintptr_t address) const { return before_.data() + Offset(address); }
  void Expect(uintptr_t address, const void* bytes, size_t size);
  // These bytes may be read or written. Hide makes the sanitizer stop whoever touches another one.
  void Allow(uintptr_t address, size_t size);
  void Hide();
  void Show();

  void Restore();  // as it was before
  // Empty, or where the contents differ from what they must be. `loosely`: where something was expected, anything is
  // right.
  std::string Difference(bool loosely) const;
  // The same against what was there before.
  std::string Change() const;
  // The same of the bytes around it alone.
  std::string Overrun() const;

  template <typename T>
  T Get(size_t offset = 0) const {
    T value;
    std::memcpy(&value, data_ + offset, sizeof value);
    return value;
  }
  template <typename T>
  void Put(size_t offset, const T& value) {
    std::memcpy(data_ + offset, &value, sizeof value);
  }

 private:
  size_t Offset(uintptr_t address) const { return address - reinterpret_cast<uintptr_t>(data_); }
  std::string Compare(const std::vector<unsigned char>& want, bool loosely) const;

  std::string name_;
  size_t size_;
  size_t front_;
  unsigned char* memory_;
  unsigned char* data_;
  std::vector<unsigned char> before_;
  std::vector<unsigned char> expected_;
  std::vector<unsigned char> marks_;  // kExpected and kAllowed, of each byte
};

class Arena {
 public:
  Block* Add(const std::string& name, size_t bytes, size_t skew = 0);
  // The block that holds all these bytes, or null.
  Block* Find(uintptr_t first, uintptr_t last) const;
  const std::vector<std::unique_ptr<Block>>& blocks() const { return blocks_; }

 private:
  std::vector<std::unique_ptr<Block>> blocks_;
};

// The input that is being run, for messages. Null if unknown.
void SetLabel(const char* label);
// Prints what went wrong and aborts, which a fuzzing engine takes for a finding.
[[noreturn]] void Stop(const std::string& what);

}  // namespace etalon::fuzz

#endif  // ETALON_TESTS_FUZZ_MEMORY_H_
