// Slopes, bias, masks and sinks: what is refused of them, and that none is ignored or forgotten.
#include <doctest/doctest.h>

#include <cstring>

#include "tests/api/errors_trial.h"

namespace etalon::test {
namespace {

constexpr Functions kOptional = kWithArgs | kSoftmax | kSumming | kMerging;
constexpr Functions kMasked = kWithArgs | kSoftmax | kSumming;

TEST_CASE("errors: valid calls with every option") {
  Expect("options", kOptional, WithOptions(nullptr), ETALON_OK, "");
  Expect("a source", kFused, WithSource(nullptr), ETALON_OK, "");
  Expect("a ragged batch", kFused, WithRagged(nullptr), ETALON_OK, "");
  Expect("a prepared mask", kWithArgs, WithPrepared(nullptr), ETALON_OK, "");
  Expect(
      "all of it", kFused, [](Trial& t) { AddOptions(&t), AddSource(&t), MakeRagged(&t), PrepareMask(&t); }, ETALON_OK,
      "");
}

// -------------------------------------------------------------------------------------------------- the descriptor's
// say

TEST_CASE("errors: options that the descriptor does not name, and named ones that are not there") {
  struct Named {
    uint32_t bit;
    const char* field;
    void (*set)(Trial&);
  };
  const Named named[] = {
      {ETALON_OPTION_ALIBI, "args.slopes", [](Trial& t) { t.args.value.slopes = &t.slopes; }},
      {ETALON_OPTION_BIAS, "args.bias", [](Trial& t) { t.args.value.bias = &t.bias; }},
      {ETALON_OPTION_MASK, "args.mask", [](Trial& t) { t.args.value.mask = &t.mask; }},
      {ETALON_OPTION_SINKS, "args.sinks", [](Trial& t) { t.args.value.sinks = &t.sinks; }},
  };
  for (const Named& option : named) {
    const Functions functions = kFused | (option.bit == ETALON_OPTION_SINKS ? 0 : kScoring | kStating);
    Expect("as args", functions & ~kPlanned, [&](Trial& t) { option.set(t), FitWorkspace(&t); }, ETALON_OK, "");
    Expect("not named", functions & kPlanned, option.set, ETALON_BAD_VALUE, option.field);
    for (uint32_t other = 1; other <= ETALON_OPTION_SINKS; other *= 2) {
      const bool sinks = other == ETALON_OPTION_SINKS;
      const Spoil spoil = [&](Trial& t) {
        t.desc.value.options = other;
        Replan(&t), FitWorkspace(&t);
        option.set(t);
      };
      if (other == option.bit) {
        Expect("named", functions, [&](Trial& t) { spoil(t), FitWorkspace(&t); }, ETALON_OK, "");
      } else {
        Expect("another is named", functions & (sinks ? kFused : kAll), spoil, ETALON_BAD_VALUE, option.field);
      }
    }
    const Spoil missing = [&](Trial& t) {
      t.desc.value.options = option.bit;
      Replan(&t), FitWorkspace(&t);
    };
    const bool standard = option.bit == ETALON_OPTION_ALIBI;
    Expect("missing", functions, missing, standard ? ETALON_OK : ETALON_NULL_POINTER, standard ? "" : option.field);
  }
  Expect(
      "bias of another source", kOneCall, [](Trial& t) { AddSource(&t), t.source.value.bias = &t.bias; },
      ETALON_BAD_SHAPE, "args.more_sources[0]->bias.shape[3]");
}

TEST_CASE("errors: options of another source that nobody has named") {
  const auto with = [](void (*spoil)(Trial&)) { return WithSource(spoil); };
  Expect("bias", kPlanned, with([](Trial& t) { t.source.value.bias = &t.bias; }), ETALON_BAD_VALUE,
         "args.more_sources[0]->bias");
  Expect("mask", kPlanned, with([](Trial& t) { t.source.value.mask = &t.mask; }), ETALON_BAD_VALUE,
         "args.more_sources[0]->mask");
  Expect("prepared mask", kPlanned, with([](Trial& t) {
           PrepareMask(&t);
           t.source.value.prepared_mask = t.args.value.prepared_mask;
           t.args.value.prepared_mask = nullptr;
         }),
         ETALON_BAD_VALUE, "args.more_sources[0]->prepared_mask");
}

// --------------------------------------------------------------------------------------------------- tensors of
// options

struct OptionArgument {
  Functions functions;
  const char* name;
  etalon_tensor Trial::* tensor;
  int rank;
  bool mask;
};
const OptionArgument kArguments[] = {
    {kWithArgs, "args.slopes", &Trial::slopes, 2, false},
    {kWithArgs, "args.bias", &Trial::bias, 4, false},
    {kMasked, "args.mask", &Trial::mask, 4, true},
    {kFused | kMerging, "args.sinks", &Trial::sinks, 2, false},
};

int64_t ElementBytes(const etalon_tensor& tensor) { return static_cast<int64_t>(etalon_dtype_bytes(tensor.dtype)); }

void ExpectOfOption(const std::string& what, const OptionArgument& argument, Functions functions,
                    const std::function<void(etalon_tensor&)>& change, etalon_status status,
                    const std::string& member) {
  const Spoil spoil = [&](Trial& t) { AddOptions(&t), change(t.*argument.tensor); };
  const std::string field = status == ETALON_OK ? "" : std::string(argument.name) + member;
  Expect(what, argument.functions & functions, spoil, status, field);
}

TEST_CASE("errors: tensors of options by themselves") {
  using T = etalon_tensor;
  for (const OptionArgument& argument : kArguments) {
    const auto expect = [&](const char* what, Functions functions, const std::function<void(T&)>& change,
                            etalon_status status, const std::string& member) {
      ExpectOfOption(what, argument, functions, change, status, member);
    };
    for (int32_t rank : {argument.rank == 2 ? 0 : 1, argument.rank + 1}) {
      expect("rank", kAll, [&](T& t) { t.rank = rank; }, ETALON_BAD_RANK, ".rank");
    }
    for (int32_t dtype : {0, 6, -1}) {
      expect("dtype", kAll, [&](T& t) { t.dtype = dtype; }, ETALON_BAD_DTYPE, ".dtype");
    }
    expect(
        "the other kind", kAll, [&](T& t) { t.dtype = argument.mask ? ETALON_F32 : ETALON_BOOL; }, ETALON_BAD_DTYPE,
        ".dtype");
    if (!argument.mask) expect("bits", kAll, [](T& t) { t.dtype = ETALON_BITS; }, ETALON_BAD_DTYPE, ".dtype");
    expect("reserved", kAll, [](T& t) { t.reserved[3] = 1; }, ETALON_UNSUPPORTED, ".reserved");
    expect("negative", kAll, [](T& t) { t.shape[0] = -1; }, ETALON_BAD_SHAPE, ".shape[0]");
    expect("huge", kAll, [](T& t) { t.shape[1] = kLargest + 1; }, ETALON_OVERFLOW, ".shape[1]");
    for (int i = 0; i < argument.rank; ++i) {
      const std::string place = "[" + std::to_string(i) + "]";
      expect("one too many", kAll, [&](T& t) { ++t.shape[i]; }, ETALON_BAD_SHAPE, ".shape" + place);
      expect(
          "one too few", kAll, [&](T& t) { t.shape[i] = t.shape[i] == 2 ? 3 : t.shape[i] - 1; }, ETALON_BAD_SHAPE,
          ".shape" + place);
      expect("one for all", kAll, [&](T& t) { t.shape[i] = 1; }, ETALON_OK, "");
      const bool innermost = i == argument.rank - 1;
      if (!argument.mask) {
        expect(
            "odd stride", kComputing, [&](T& t) { t.stride_bytes[i] += 1; }, ETALON_BAD_STRIDE,
            ".stride_bytes" + place);
      }
      const bool repeats = !innermost || argument.rank == 4;  // bias and mask may stand still along the keys
      expect(
          "stride 0", kComputing, [&](T& t) { t.stride_bytes[i] = 0; }, repeats ? ETALON_OK : ETALON_BAD_STRIDE,
          ".stride_bytes" + place);
      if (!innermost) continue;
      for (int64_t factor : {2, -1}) {
        expect(
            "innermost", kComputing, [&](T& t) { t.stride_bytes[i] = factor * ElementBytes(t); }, ETALON_BAD_STRIDE,
            ".stride_bytes" + place);
      }
    }
    expect("NULL", kComputing, [](T& t) { t.data = nullptr; }, ETALON_NULL_POINTER, ".data");
    expect("NULL", kAll & ~kComputing, [](T& t) { t.data = nullptr; }, ETALON_OK, "");
    if (!argument.mask) {
      expect(
          "misaligned", kComputing, [](T& t) { t.data = static_cast<char*>(t.data) + 1; }, ETALON_MISALIGNED, ".data");
    }
    expect(
        "beyond the end", kComputing, [](T& t) { t.data = reinterpret_cast<void*>(UINTPTR_MAX - 7); }, ETALON_OVERFLOW,
        "");
    expect(
        "far", kComputing, [](T& t) { t.stride_bytes[0] = INT64_MAX - ElementBytes(t) + 1; }, ETALON_OVERFLOW,
        ".stride_bytes[0]");
    expect(
        "backwards", kComputing,
        [](T& t) {
          t.data = static_cast<char*>(t.data) + t.stride_bytes[0] * (t.shape[0] - 1);
          t.stride_bytes[0] = -t.stride_bytes[0];
        },
        ETALON_OK, "");
  }
  for (int32_t dtype : {ETALON_F32, ETALON_F16, ETALON_BF16}) {
    const Spoil retype = [&](Trial& t) {
      t.slopes = PackedTensor(t.slopes.data, dtype, {kQHeads});
      t.sinks = PackedTensor(t.sinks.data, dtype, {kQHeads});
      t.bias = PackedTensor(t.bias.data, dtype, {kKvLen > 1 ? kQLen : 1, kKvLen});
      AddOptions(&t);
    };
    Expect("any type, few dimensions", kWithArgs | kMerging, retype, ETALON_OK, "");
  }
}

TEST_CASE("errors: masks of bits") {
  const auto bits = [](Trial& t) {
    t.mask = PackedTensor(t.mask.data, ETALON_BITS, {kBatch, kQHeads, kQLen, (kKvLen + 7) / 8});
  };
  Expect("bits", kWithArgs, [&](Trial& t) { bits(t), AddOptions(&t); }, ETALON_OK, "");
  Expect(
      "bits", kSoftmax | kSumming, [&](Trial& t) { bits(t), AddOptions(&t); }, ETALON_UNSUPPORTED, "args.mask.dtype");
  Expect("bits", kPreparing, bits, ETALON_OK, "");
  for (int64_t size : {0, 2, 7}) {
    Expect(
        "a byte for each key", kWithArgs, [&](Trial& t) { bits(t), t.mask.shape[3] = size, AddOptions(&t); },
        ETALON_BAD_SHAPE, "args.mask.shape[3]");
    Expect(
        "a byte for each key", kPreparing, [&](Trial& t) { bits(t), t.mask.shape[3] = size; }, ETALON_BAD_SHAPE,
        "args.mask.shape[3]");
  }
  // Of 9 keys there are two bytes; one would not count for all, nor may they stand still.
  const auto two = [](Trial& t) {
    t.k.shape[2] = t.v.shape[2] = 9;
    t.k.stride_bytes[2] = t.v.stride_bytes[2] = 0;
    t.desc.value.max_kv_len = 9;
    t.mask = PackedTensor(t.mask.data, ETALON_BITS, {1, 1, 1, 2});
    Replan(&t);
    t.args.value.mask = &t.mask;
    FitWorkspace(&t);
  };
  Expect("two bytes", kOneCall, two, ETALON_OK, "");
  Expect(
      "one for all", kOneCall, [&](Trial& t) { two(t), t.mask.shape[3] = 1; }, ETALON_BAD_SHAPE, "args.mask.shape[3]");
  Expect(
      "stride 0", kAttention, [&](Trial& t) { two(t), t.mask.stride_bytes[3] = 0; }, ETALON_BAD_STRIDE,
      "args.mask.stride_bytes[3]");
}

}  // namespace
}  // namespace etalon::test
