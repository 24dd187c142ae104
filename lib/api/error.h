// error.h: fills an etalon_error. Every complaint of the library is made here, so that all of them read alike:
// "args.k.shape[3] is 63, not the 64 of args.q.shape[3]".
#ifndef ETALON_LIB_API_ERROR_H_
#define ETALON_LIB_API_ERROR_H_

#include <etalon/etalon.h>

#include <cstdint>
#include <initializer_list>
#include <type_traits>

namespace etalon {

// A part of an argument, as a caller spells it: {"args.k", "shape", 3} is args.k.shape[3].
struct Field {
  const char* object;
  const char* member = nullptr;
  int64_t index = -1;
};

// A word or a number of a sentence.
struct Piece {
  Piece(const char* words) : text(words) {}   // NOLINT: implicit, so that sentences read like sentences
  Piece(const Field& name) : field(&name) {}  // NOLINT
  // Any integer, that of a size_t above 2^63 too.
  template <typename Integer, typename = std::enable_if_t<std::is_integral<Integer>::value>>
  Piece(Integer value)  // NOLINT
      : magnitude(static_cast<uint64_t>(value)), negative(std::is_signed<Integer>::value && value < Integer{0}) {
    if (negative) magnitude = ~magnitude + 1;
  }
  const char* text = nullptr;
  const Field* field = nullptr;
  uint64_t magnitude = 0;
  bool negative = false;
};

// Writes the error if there is one to write, and returns its status. The sentence begins with the field. A caller's
// words may be anything: bytes that are not printable ASCII become '?', and what is too long ends in "...".
etalon_status Fail(etalon_error* error, etalon_status status, const Field& field,
                   std::initializer_list<Piece> sentence);

// ETALON_OK, written too.
etalon_status Succeed(etalon_error* error);

}  // namespace etalon

#endif  // ETALON_LIB_API_ERROR_H_
