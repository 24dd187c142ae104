// What each tensor argument may be by itself.
#include <doctest/doctest.h>

#include "tests/api/errors_trial.h"

namespace etalon::test {
namespace {

std::string Indexed(const Argument& argument, const char* member, int index) {
  return std::string(argument.name) + "." + member + "[" + std::to_string(index) + "]";
}
std::string Member(const Argument& argument, const char* member) { return std::string(argument.name) + "." + member; }

// Packed again: strides are bytes.
void Retype(etalon_tensor* tensor, int32_t dtype) {
  *tensor = PackedTensor(tensor->data, dtype, std::vector<int64_t>(tensor->shape, tensor->shape + tensor->rank));
}

TEST_CASE("errors: a tensor that is NULL") {
  for (const Argument& argument : Arguments()) {
    const Spoil spoil = [&](Trial& t) { *argument.pointer(t) = nullptr; };
    Expect("NULL", argument.functions, spoil, argument.optional ? ETALON_OK : ETALON_NULL_POINTER,
           argument.optional ? "" : argument.name);
  }
}

TEST_CASE("errors: the rank of a tensor") {
  for (const Argument& argument : Arguments()) {
    const int smallest = argument.rank > 2 ? argument.rank - 2 : 1;  // heads and batches may be left out
    for (int32_t rank : {smallest - 1, argument.rank + 1, 0, -1, 6, INT32_MIN, INT32_MAX}) {
      const Spoil spoil = [&](Trial& t) { (t.*argument.tensor).rank = rank; };
      Expect("rank " + std::to_string(rank), argument.functions, spoil, ETALON_BAD_RANK, Member(argument, "rank"));
    }
  }
}

TEST_CASE("errors: sizes of a tensor that are negative or huge") {
  for (const Argument& argument : Arguments()) {
    for (int i = 0; i < argument.rank; ++i) {
      for (int64_t size : {int64_t{-1}, INT64_MIN}) {
        Expect(
            "size " + std::to_string(size), argument.functions, [&](Trial& t) { (t.*argument.tensor).shape[i] = size; },
            ETALON_BAD_SHAPE, Indexed(argument, "shape", i));
      }
      for (int64_t size : {kLargest + 1, INT64_MAX}) {
        Expect(
            "size " + std::to_string(size), argument.functions, [&](Trial& t) { (t.*argument.tensor).shape[i] = size; },
            ETALON_OVERFLOW, Indexed(argument, "shape", i));
      }
    }
  }
}

TEST_CASE("errors: element types") {
  for (const Argument& argument : Arguments()) {
    for (int32_t dtype : {0, int{ETALON_BOOL}, int{ETALON_BITS}, 6, -1, 255, INT32_MIN}) {
      Expect(
          "dtype " + std::to_string(dtype), argument.functions, [&](Trial& t) { (t.*argument.tensor).dtype = dtype; },
          ETALON_BAD_DTYPE, Member(argument, "dtype"));
    }
    if (!argument.f32) continue;
    for (int32_t dtype : {ETALON_F16, ETALON_BF16}) {
      Expect(
          "16 bits", argument.functions, [&](Trial& t) { Retype(&(t.*argument.tensor), dtype); }, ETALON_BAD_DTYPE,
          Member(argument, "dtype"));
    }
  }
}

TEST_CASE("errors: the reserved bytes of a tensor") {
  for (const Argument& argument : Arguments()) {
    for (size_t i : {size_t{0}, size_t{15}, sizeof(etalon_tensor().reserved) - 1}) {
      Expect(
          "reserved", argument.functions, [&](Trial& t) { (t.*argument.tensor).reserved[i] = 1; }, ETALON_UNSUPPORTED,
          Member(argument, "reserved"));
    }
  }
}

TEST_CASE("errors: element types of a descriptor") {
  struct Type {
    int32_t etalon_attention_desc::* member;
    const char* field;
    Functions functions;  // where it counts; 0 is no type in a plan
  };
  for (const Type& type :
       {Type{&etalon_attention_desc::q_dtype, "desc.q_dtype", kWithDesc},
        Type{&etalon_attention_desc::k_dtype, "desc.k_dtype", kWithDesc},
        Type{&etalon_attention_desc::v_dtype, "desc.v_dtype", kWithDesc & ~kScoring},
        Type{&etalon_attention_desc::out_dtype, "desc.out_dtype", kWithDesc & ~kScoring & ~kStating}}) {
    for (int32_t dtype : {0, int{ETALON_BOOL}, int{ETALON_BITS}, -1, INT32_MAX}) {
      Expect(
          "no type", dtype == 0 ? kSupports | kPlanInit : type.functions,
          [&](Trial& t) { t.desc.value.*type.member = dtype; }, ETALON_BAD_DTYPE, type.field);
    }
  }
}

// In a plan the types are settled; a call may not bring others. Without a plan, the same where the descriptor says one.
TEST_CASE("errors: element types unlike the descriptor's") {
  Expect({
      {"q", kWithArgs, [](Trial& t) { Retype(&t.q, ETALON_BF16); }, ETALON_BAD_DTYPE, "args.q.dtype"},
      {"k", kWithArgs, [](Trial& t) { t.k.dtype = ETALON_BF16; }, ETALON_BAD_DTYPE, "args.k.dtype"},
      {"v", kFused | kStating, [](Trial& t) { t.v.dtype = ETALON_F16; }, ETALON_BAD_DTYPE, "args.v.dtype"},
      {"out", kFused, [](Trial& t) { t.out.dtype = ETALON_BF16; }, ETALON_BAD_DTYPE, "args.out.dtype"},
      {"desc.q_dtype", kWithArgs, [](Trial& t) { t.desc.value.q_dtype = ETALON_F16, Replan(&t); }, ETALON_BAD_DTYPE,
       "args.q.dtype"},
      {"desc.k_dtype", kWithArgs, [](Trial& t) { t.desc.value.k_dtype = ETALON_F32, Replan(&t); }, ETALON_BAD_DTYPE,
       "args.k.dtype"},
      {"desc.v_dtype", kFused | kStating, [](Trial& t) { t.desc.value.v_dtype = ETALON_F32, Replan(&t); },
       ETALON_BAD_DTYPE, "args.v.dtype"},
      {"desc.out_dtype", kFused, [](Trial& t) { t.desc.value.out_dtype = ETALON_F32, Replan(&t); }, ETALON_BAD_DTYPE,
       "args.out.dtype"},
      {"does not count", kScoring, [](Trial& t) { t.desc.value.v_dtype = t.desc.value.out_dtype = 7; }, ETALON_OK, ""},
      {"does not count", kStating, [](Trial& t) { t.desc.value.out_dtype = 7; }, ETALON_OK, ""},
      {"out2", kMerge, [](Trial& t) { t.out2.dtype = ETALON_BF16; }, ETALON_BAD_DTYPE, "args.out2.dtype"},
      {"out of merge", kMerge, [](Trial& t) { t.out.dtype = ETALON_BF16; }, ETALON_BAD_DTYPE, "args.out.dtype"},
      {"out1", kMerge, [](Trial& t) { t.out1.dtype = ETALON_BF16; }, ETALON_BAD_DTYPE, "args.out2.dtype"},
  });
}

}  // namespace
}  // namespace etalon::test
