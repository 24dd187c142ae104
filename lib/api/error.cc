#include "lib/api/error.h"

#include <cstddef>
#include <cstring>

namespace etalon {
namespace {

constexpr char kCut[] = "...";

bool EndsInBracket(const char* text) {
  bool bracket = false;
  for (; *text != '\0'; ++text) bracket = *text == ']';
  return bracket;
}

// Appends to a buffer of fixed size, always ended by a zero byte.
class Writer {
 public:
  Writer(char* buffer, size_t size) : at_(buffer), end_(buffer + size - 1) { *at_ = '\0'; }

  // Reads no further than there is room, should the caller's text have no end.
  void Append(const char* text) {
    for (; *text != '\0' && at_ != end_; ++text) *at_++ = *text >= ' ' && *text <= '~' ? *text : '?';
    *at_ = '\0';
    if (*text != '\0') std::memcpy(end_ - (sizeof kCut - 1), kCut, sizeof kCut);
  }

  void Append(const Piece& number) {
    char digits[22];  // a sign, 20 digits, the end
    char* first = digits + sizeof digits - 1;
    *first = '\0';
    uint64_t rest = number.magnitude;
    do {
      *--first = static_cast<char>('0' + rest % 10);
      rest /= 10;
    } while (rest != 0);
    if (number.negative) *--first = '-';
    Append(first);
  }

  void Append(const Field& field) {
    Append(field.object);
    if (field.member != nullptr) {
      // An element of an array of arguments is a pointer.
      Append(EndsInBracket(field.object) ? "->" : ".");
      Append(field.member);
    }
    if (field.index >= 0) {
      Append("[");
      Append(Piece(field.index));
      Append("]");
    }
  }

 private:
  char* at_;
  char* const end_;
};

}  // namespace

etalon_status Fail(etalon_error* error, etalon_status status, const Field& field,
                   std::initializer_list<Piece> sentence) {
  if (error == nullptr) return status;
  std::memset(error, 0, sizeof *error);
  error->status = status;
  Writer(error->field, sizeof error->field).Append(field);
  Writer text(error->text, sizeof error->text);
  text.Append(field);
  text.Append(" ");
  for (const Piece& piece : sentence) {
    if (piece.text != nullptr) {
      text.Append(piece.text);
    } else if (piece.field != nullptr) {
      text.Append(*piece.field);
    } else {
      text.Append(piece);
    }
  }
  return status;
}

etalon_status Succeed(etalon_error* error) {
  if (error != nullptr) std::memset(error, 0, sizeof *error);
  return ETALON_OK;
}

}  // namespace etalon
