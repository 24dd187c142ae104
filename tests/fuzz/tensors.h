// tensors.h: the tensors of a fuzzed call: layouts of every kind that is allowed, and values with everything that a
// float can be.
#ifndef ETALON_TESTS_FUZZ_TENSORS_H_
#define ETALON_TESTS_FUZZ_TENSORS_H_

#include "tests/fuzz/call.h"
#include "tests/fuzz/elements.h"

namespace etalon::fuzz {

class TensorDecoder {
 public:
  TensorDecoder(Bytes* in, Call* call);

  // The plain slots of call->sizes, entered in the arguments.
  void DecodePlain();
  // One more input. Its sizes are given, since some may be 1 instead.
  void Add(size_t slot, int32_t dtype, const std::vector<int64_t>& shape);

 private:
  struct Draft {
    Elements elements;
    bool wanted = true;
    bool distinct = false;  // laid out as an output must be
    int same_as = -1;       // in place of that slot
    Block* block = nullptr;
    size_t spare = 0;  // bytes behind it in its block
  };

  void DecodeSames();
  void LayOut(bool may_repeat, Draft* draft);
  void LayOutStates(int64_t row_states, int64_t width, Draft* draft);
  void Fill(const Slot& slot, const Elements& elements);
  static bool PlaceBehind(Draft* other, Draft* draft);
  bool PlaceInOther(const Draft& other, Draft* draft);
  void Place(const Slot& slot, Draft* draft);
  void Write(const Draft& draft, Block* block);
  void Finish(size_t slot);

  Bytes* in_;
  Call* call_;
  std::vector<Draft> drafts_;  // of the slots
  std::vector<size_t> made_;   // slots, in order
  int64_t row_states_ = 0;     // from a row of states to the next
};

}  // namespace etalon::fuzz

#endif  // ETALON_TESTS_FUZZ_TENSORS_H_
