// Numbers of descriptors, lengths, what this version does not offer, sizes of structs, and names of kernel tables.
#include <doctest/doctest.h>

#include <cstddef>
#include <cstdlib>
#include <limits>

#include "tests/api/errors_trial.h"

namespace etalon::test {
namespace {

constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

TEST_CASE("errors: scale") {
  for (float scale : {kNaN, -kNaN, kInfinity, -kInfinity}) {
    Expect("scale", kWithDesc, [&](Trial& t) { t.desc.value.scale = scale; }, ETALON_BAD_VALUE, "desc.scale");
  }
  for (float scale : {-1.0f, 0x1p-149f, -0.0f, 3e38f}) {
    Expect("scale", kWithDesc, [&](Trial& t) { t.desc.value.scale = scale; }, ETALON_OK, "");
  }
}

TEST_CASE("errors: softcap") {
  for (float softcap : {kNaN, -kNaN, kInfinity, -kInfinity, -50.0f, -0x1p-149f}) {
    Expect(
        "no softcap", kWithDesc, [&](Trial& t) { t.desc.value.softcap = softcap; }, ETALON_BAD_VALUE, "desc.softcap");
  }
  for (float softcap : {50.0f, 0x1p-149f, 3e38f, -0.0f}) {
    Expect("softcap", kWithDesc, [&](Trial& t) { t.desc.value.softcap = softcap; }, ETALON_OK, "");
  }
}

TEST_CASE("errors: math, options, sources, workers") {
  Expect("fast", kWithDesc, [](Trial& t) { t.desc.value.math = ETALON_MATH_FAST; }, ETALON_UNSUPPORTED, "desc.math");
  for (int32_t math : {2, -1, INT32_MIN, INT32_MAX}) {
    Expect("math", kWithDesc, [&](Trial& t) { t.desc.value.math = math; }, ETALON_BAD_VALUE, "desc.math");
  }
  for (int bit = 4; bit < 32; ++bit) {
    Expect(
        "option", kWithDesc, [&](Trial& t) { t.desc.value.options = 1u << bit; }, ETALON_UNSUPPORTED, "desc.options");
  }
  Expect("options", kWithDesc, [](Trial& t) { t.desc.value.options = UINT32_MAX; }, ETALON_UNSUPPORTED, "desc.options");
  Expect("options", kSupports | kPlanInit, [](Trial& t) { t.desc.value.options = 15; }, ETALON_OK, "");
  for (int32_t sources : {-1, INT32_MIN, ETALON_MAX_SOURCES + 1, INT32_MAX}) {
    Expect(
        "sources", kWithDesc, [&](Trial& t) { t.desc.value.num_sources = sources; }, ETALON_BAD_VALUE,
        "desc.num_sources");
  }
  Expect(
      "sources", kSupports | kPlanInit, [](Trial& t) { t.desc.value.num_sources = ETALON_MAX_SOURCES; }, ETALON_OK, "");
  Expect("a source", kWithDesc, [](Trial& t) { t.desc.value.num_sources = 1; }, ETALON_OK, "");
  for (int32_t workers : {-1, INT32_MIN, (1 << 20) + 1, INT32_MAX}) {
    Expect(
        "workers", kWithDesc, [&](Trial& t) { t.desc.value.max_workers = workers; }, ETALON_BAD_VALUE,
        "desc.max_workers");
    Expect(
        "workers", kSumming, [&](Trial& t) { t.sum.value.max_workers = workers; }, ETALON_BAD_VALUE,
        "args.max_workers");
    Expect(
        "workers", kMerging, [&](Trial& t) { t.merge_states.value.max_workers = workers; }, ETALON_BAD_VALUE,
        "args.max_workers");
  }
}

TEST_CASE("errors: reserved fields, and what a function does not use") {
  Expect({
      {"reserved", kSumming, [](Trial& t) { t.sum.value.reserved = 1; }, ETALON_UNSUPPORTED, "args.reserved"},
      {"reserved", kMerging, [](Trial& t) { t.merge_states.value.reserved = -1; }, ETALON_UNSUPPORTED, "args.reserved"},
      {"v of scores", kScoring, [](Trial& t) { t.args.value.v = &t.v; }, ETALON_BAD_VALUE, "args.v"},
      {"lse of scores", kScoring, [](Trial& t) { t.args.value.lse = &t.lse; }, ETALON_BAD_VALUE, "args.lse"},
      {"out of states", kStating, [](Trial& t) { t.args.value.out = &t.out; }, ETALON_BAD_VALUE, "args.out"},
      {"lse of states", kStating, [](Trial& t) { t.args.value.lse = &t.lse; }, ETALON_BAD_VALUE, "args.lse"},
      {"sinks", kScoring | kStating, [](Trial& t) { t.args.value.sinks = &t.sinks; }, ETALON_BAD_VALUE, "args.sinks"},
      {"q_starts", kScoring | kStating, [](Trial& t) { t.args.value.q_starts = t.q_starts; }, ETALON_BAD_VALUE,
       "args.q_starts"},
      {"kv_starts", kScoring | kStating, [](Trial& t) { t.args.value.kv_starts = t.kv_starts; }, ETALON_BAD_VALUE,
       "args.kv_starts"},
      {"two sources", kScoring | kStating, [](Trial& t) { t.desc.value.num_sources = 2; }, ETALON_BAD_VALUE,
       "desc.num_sources"},
      {"sinks", kScoring | kStating, [](Trial& t) { t.desc.value.options = ETALON_OPTION_SINKS; }, ETALON_BAD_VALUE,
       "desc.options"},
  });
}

struct Lengths {
  Functions functions;
  int64_t* (*q_offset)(Trial&);
};
const Lengths kLengths[] = {
    {kWithArgs, [](Trial& t) { return &t.args.value.q_offset; }},
    {kSoftmax, [](Trial& t) { return &t.softmax.value.q_offset; }},
    {kSumming, [](Trial& t) { return &t.sum.value.q_offset; }},
};

TEST_CASE("errors: lengths out of range") {
  for (const Lengths& lengths : kLengths) {
    for (int64_t wrong : {int64_t{-1}, kQLen + 1, INT64_MIN, INT64_MAX}) {
      Expect("q_lens", lengths.functions, [&](Trial& t) { t.q_lens[1] = wrong; }, ETALON_BAD_VALUE, "args.q_lens[1]");
    }
    for (int64_t wrong : {int64_t{-1}, kKvLen + 1, INT64_MIN, INT64_MAX}) {
      Expect(
          "kv_lens", lengths.functions, [&](Trial& t) { t.kv_lens[0] = wrong; }, ETALON_BAD_VALUE, "args.kv_lens[0]");
    }
    Expect("all", lengths.functions, [](Trial& t) { t.q_lens[1] = kQLen, t.kv_lens[1] = kKvLen; }, ETALON_OK, "");
    Expect("none", lengths.functions, [](Trial& t) { t.q_lens[0] = t.kv_lens[0] = 0; }, ETALON_OK, "");
  }
}

TEST_CASE("errors: positions out of range") {
  for (const Lengths& lengths : kLengths) {
    for (int64_t wrong : {kLargest + 1, -kLargest - 1, INT64_MIN, INT64_MAX}) {
      Expect(
          "q_offset", lengths.functions, [&](Trial& t) { *lengths.q_offset(t) = wrong; }, ETALON_BAD_VALUE,
          "args.q_offset");
      const Spoil one = [&](Trial& t) { *lengths.q_offset(t) = 0, t.q_offsets[1] = wrong; };
      Expect("q_offsets", lengths.functions, one, ETALON_BAD_VALUE, "args.q_offsets[1]");
      const Spoil sum = [&](Trial& t) {
        *lengths.q_offset(t) = wrong > 0 ? kLargest : -kLargest, t.q_offsets[0] = wrong;
      };
      Expect("their sum", lengths.functions, sum, ETALON_BAD_VALUE, "args.q_offsets[0]");
    }
    for (int64_t far : {kLargest, -kLargest}) {
      const Spoil alone = [&](Trial& t) { *lengths.q_offset(t) = far, t.q_offsets[0] = t.q_offsets[1] = 0; };
      Expect("far", lengths.functions, alone, ETALON_OK, "");
      const int64_t farther = far > 0 ? INT64_MIN : INT64_MAX;  // far + farther is as far on the other side
      const Spoil back = [&](Trial& t) {
        *lengths.q_offset(t) = far;
        t.q_offsets[0] = -far, t.q_offsets[1] = farther;
      };
      Expect("far and back", lengths.functions, back, ETALON_OK, "");
    }
  }
}

struct Sized {
  Functions functions;
  const char* field;
  size_t size;
  unsigned char* (*descriptor)(Trial&);
  size_t first_size = size;  // of the first version
};
template <typename Descriptor>
unsigned char* BytesOf(Roomy<Descriptor>* descriptor) {
  return reinterpret_cast<unsigned char*>(descriptor);
}
const Sized kSized[] = {
    {kWithDesc, "desc.struct_size", sizeof(etalon_attention_desc), [](Trial& t) { return BytesOf(&t.desc); }},
    {kWithArgs, "args.struct_size", sizeof(etalon_attention_args), [](Trial& t) { return BytesOf(&t.args); },
     offsetof(etalon_attention_args, kv_firsts)},
    {kFused, "args.more_sources[0]->struct_size", sizeof(etalon_key_source),
     [](Trial& t) {
       if (t.args.value.more_sources == nullptr) AddSource(&t);
       return BytesOf(&t.source);
     },
     offsetof(etalon_key_source, places)},
    {kPreparing, "args.struct_size", sizeof(etalon_mask_args), [](Trial& t) { return BytesOf(&t.mask_args); }},
    {kSoftmax, "args.struct_size", sizeof(etalon_softmax_args), [](Trial& t) { return BytesOf(&t.softmax); }},
    {kSumming, "args.struct_size", sizeof(etalon_weighted_sum_args), [](Trial& t) { return BytesOf(&t.sum); }},
    {kMerge, "args.struct_size", sizeof(etalon_merge_args), [](Trial& t) { return BytesOf(&t.merge); }},
    {kMerging, "args.struct_size", sizeof(etalon_merge_states_args), [](Trial& t) { return BytesOf(&t.merge_states); }},
    {kPlanInfo, "info.struct_size", sizeof(etalon_plan_info), [](Trial& t) { return BytesOf(&t.info); }},
};
void SetSize(unsigned char* descriptor, size_t size) { *reinterpret_cast<size_t*>(descriptor) = size; }

TEST_CASE("errors: struct_size") {
  constexpr size_t kRoom = sizeof(Roomy<etalon_attention_desc>);
  for (const Sized& sized : kSized) {
    for (size_t wrong : {size_t{0}, size_t{1}, sized.first_size - 8, sized.first_size - 1, kRoom + 1, SIZE_MAX}) {
      Expect(
          "size " + std::to_string(wrong), sized.functions, [&](Trial& t) { SetSize(sized.descriptor(t), wrong); },
          ETALON_BAD_STRUCT_SIZE, sized.field);
    }
    Expect(
        "the first", sized.functions, [&](Trial& t) { SetSize(sized.descriptor(t), sized.first_size); }, ETALON_OK, "");
    for (size_t larger : {sized.size + 1, sized.size + 8, kRoom}) {
      Expect("zeros beyond", sized.functions, [&](Trial& t) { SetSize(sized.descriptor(t), larger); }, ETALON_OK, "");
      for (size_t set : {sized.size, larger - 1}) {
        const Spoil spoil = [&](Trial& t) { SetSize(sized.descriptor(t), larger), sized.descriptor(t)[set] = 1; };
        Expect("a field beyond", sized.functions, spoil, ETALON_UNSUPPORTED, sized.field);
      }
      if (larger == kRoom) continue;
      const Spoil after = [&](Trial& t) { SetSize(sized.descriptor(t), larger), sized.descriptor(t)[larger] = 1; };
      Expect("memory after it", sized.functions, after, ETALON_OK, "");
    }
  }
}

// Sets desc.target or args.target.
void SetTarget(Trial& t, const char* name) {
  t.desc.value.target = t.softmax.value.target = t.sum.value.target = t.merge.value.target =
      t.merge_states.value.target = name;
}

void ExpectOfTarget(const char* name, etalon_status status) {
  const Spoil spoil = [&](Trial& t) { SetTarget(t, name); };
  Expect(name, kWithDesc, spoil, status, status == ETALON_OK ? "" : "desc.target");
  Expect(name, kWithTarget & ~kWithDesc, spoil, status, status == ETALON_OK ? "" : "args.target");
}

TEST_CASE("errors: kernel tables") {
  for (const char* name : {"", "no-such-table", "SCALAR", "scalar ", "scala"})
    ExpectOfTarget(name, ETALON_UNKNOWN_TARGET);
  ExpectOfTarget(std::string(1000, 'x').c_str(), ETALON_UNKNOWN_TARGET);
  for (int32_t i = 0; i < etalon_num_targets(); ++i) {
    etalon_target target;
    REQUIRE(etalon_get_target(i, &target) == ETALON_OK);
    CAPTURE(std::string(target.name));
    ExpectOfTarget(target.name, target.missing == 0 ? ETALON_OK : ETALON_TARGET_UNAVAILABLE);
  }
}

TEST_CASE("errors: kernel tables named by the environment") {
  const auto set = [](const char* name) { return [name](Trial&) { setenv("ETALON_TARGET", name, 1); }; };
  const auto expect = [&](const char* name, etalon_status status) {
    Expect(name, kWithTarget, set(name), status, status == ETALON_OK ? "" : "ETALON_TARGET");
  };
  expect("no-such-table", ETALON_UNKNOWN_TARGET);
  expect("", ETALON_OK);
  for (int32_t i = 0; i < etalon_num_targets(); ++i) {
    etalon_target target;
    REQUIRE(etalon_get_target(i, &target) == ETALON_OK);
    expect(target.name, target.missing == 0 ? ETALON_OK : ETALON_TARGET_UNAVAILABLE);
  }
  const Spoil named = [](Trial& t) { SetTarget(t, "scalar"), setenv("ETALON_TARGET", "no-such-table", 1); };
  Expect("a name goes before the environment", kWithTarget, named, ETALON_OK, "");
  Expect("a plan has its table already", kPlanned, set("no-such-table"), ETALON_OK, "");
}

}  // namespace
}  // namespace etalon::test
