// The limits by themselves: what this machine gives at this minute. The kernels' rows time them anew, in turn.
#include <memory>

#include "bench/subjects/subjects.h"
#include "bench/support/buffer.h"

namespace etalon::bench {
namespace {

Subject Alone(const Limit& limit, const char* unit) {
  Subject subject;
  subject.run = limit.run;
  subject.work = limit.work;
  subject.unit = unit;
  return subject;
}

// Keeps the memory that the limit reads or writes.
Subject Alone(const Limit& limit, const std::shared_ptr<Buffer>& buffer) {
  Subject subject = Alone(limit, "B");
  if (limit.run) subject.run = [buffer, run = limit.run] { run(); };
  return subject;
}

}  // namespace

Subject FmaSubject(const Loops* loops) { return Alone(FmaLimit(loops), "flop"); }

Subject ReadSubject(const Loops* loops, size_t bytes) {
  const auto buffer = std::make_shared<Buffer>(bytes);
  return Alone(ReadLimit(loops, {BytesOf(buffer.get())}), buffer);
}

Subject StoreSubject(const Loops* loops, size_t bytes) {
  const auto buffer = std::make_shared<Buffer>(bytes);
  return Alone(StoreLimit(loops, BytesOf(buffer.get())), buffer);
}

Subject CopySubject(size_t bytes) { return Alone(CopyLimit(bytes / 2), "B"); }

Subject ExpSubject(const std::string& target) { return Alone(ExpLimit(target), "elements"); }

}  // namespace etalon::bench
