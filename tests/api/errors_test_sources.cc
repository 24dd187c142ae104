// Padding and prefixes, ragged batches, and further sources of keys.
#include <doctest/doctest.h>

#include <cstring>

#include "tests/api/errors_trial.h"

namespace etalon::test {
namespace {

TEST_CASE("errors: padding on the left and prefixes") {
  for (int64_t wrong : {int64_t{-1}, INT64_MIN, kKvLen, INT64_MAX}) {
    Expect(
        "kv_firsts", kWithArgs, [&](Trial& t) { t.kv_firsts[1] = wrong, AddOptions(&t); }, ETALON_BAD_VALUE,
        "args.kv_firsts[1]");
  }
  Expect("all", kWithArgs, [](Trial& t) { t.kv_firsts[1] = t.kv_lens[1], AddOptions(&t); }, ETALON_OK, "");
  for (int64_t wrong : {int64_t{-1}, INT64_MIN, kLargest + 1, INT64_MAX}) {
    Expect(
        "prefix_lens", kWithArgs, [&](Trial& t) { t.prefix_lens[0] = wrong, AddOptions(&t); }, ETALON_BAD_VALUE,
        "args.prefix_lens[0]");
  }
  Expect("long", kWithArgs, [](Trial& t) { t.prefix_lens[0] = kLargest, AddOptions(&t); }, ETALON_OK, "");
  const auto at = [](const int64_t* etalon_attention_args::* member, uintptr_t address) {
    return [member, address](Trial& t) { t.args.value.*member = reinterpret_cast<const int64_t*>(address); };
  };
  const uintptr_t free = reinterpret_cast<uintptr_t>(FreeMemory());
  using Args = etalon_attention_args;
  Expect("misaligned", kWithArgs, at(&Args::kv_firsts, free + 4), ETALON_MISALIGNED, "args.kv_firsts");
  Expect("misaligned", kWithArgs, at(&Args::prefix_lens, free + 4), ETALON_MISALIGNED, "args.prefix_lens");
  Expect("far", kWithArgs, at(&Args::kv_firsts, UINTPTR_MAX - 7), ETALON_OVERFLOW, "args.kv_firsts");
  Expect("far", kWithArgs, at(&Args::prefix_lens, UINTPTR_MAX - 7), ETALON_OVERFLOW, "args.prefix_lens");
}

TEST_CASE("errors: ragged batches") {
  Expect(
      WithRagged,
      {
          {"fewer sequences", kFused, [](Trial& t) { t.args.value.num_sequences = 1; }, ETALON_OK, ""},
          {"none", kFused, [](Trial& t) { t.args.value.num_sequences = 0; }, ETALON_BAD_VALUE, "args.num_sequences"},
          {"less than none", kFused, [](Trial& t) { t.args.value.num_sequences = -1; }, ETALON_BAD_VALUE,
           "args.num_sequences"},
          {"too many", kFused, [](Trial& t) { t.args.value.num_sequences = INT64_MAX; }, ETALON_BAD_VALUE,
           "args.num_sequences"},
          {"more than the plan's", kPlanned,
           [](Trial& t) {
             t.args.value.num_sequences = 3;
             t.args.value.q_starts = t.args.value.kv_starts = t.block_starts;  // four numbers, the last of the next
             t.block_starts[2] = 3, t.blocks[0] = 4;
             t.args.value.q_lens = t.args.value.kv_lens = t.args.value.q_offsets = nullptr;
           },
           ETALON_BAD_SHAPE, "args.num_sequences"},
          {"q not ragged", kFused, [](Trial& t) { t.args.value.q_starts = nullptr; }, ETALON_BAD_SHAPE,
           "args.q.shape[0]"},
          {"k not ragged", kFused, [](Trial& t) { t.args.value.kv_starts = nullptr; }, ETALON_BAD_SHAPE,
           "args.k.shape[0]"},
          {"neither", kFused, [](Trial& t) { t.args.value.q_starts = t.args.value.kv_starts = nullptr; },
           ETALON_BAD_VALUE, "args.num_sequences"},
          {"a batch of q", kFused, [](Trial& t) { t.q.shape[0] = 2; }, ETALON_BAD_SHAPE, "args.q.shape[0]"},
          {"a batch of k", kFused, [](Trial& t) { t.k.shape[0] = 2; }, ETALON_BAD_SHAPE, "args.k.shape[0]"},
          {"below 0", kFused, [](Trial& t) { t.q_starts[0] = -1; }, ETALON_BAD_VALUE, "args.q_starts[0]"},
          {"beyond the rows", kFused, [](Trial& t) { t.q_starts[2] = 2 * kQLen + 1; }, ETALON_BAD_VALUE,
           "args.q_starts[2]"},
          {"not ascending", kFused, [](Trial& t) { t.q_starts[1] = 2 * kQLen, t.q_starts[2] = kQLen; },
           ETALON_BAD_VALUE, "args.q_starts[2]"},
          {"below 0", kFused, [](Trial& t) { t.kv_starts[0] = INT64_MIN; }, ETALON_BAD_VALUE, "args.kv_starts[0]"},
          {"beyond the rows", kFused, [](Trial& t) { t.kv_starts[2] = 2 * kKvLen + 1; }, ETALON_BAD_VALUE,
           "args.kv_starts[2]"},
          {"not ascending", kFused, [](Trial& t) { t.kv_starts[0] = kKvLen + 1; }, ETALON_BAD_VALUE,
           "args.kv_starts[1]"},
          {"gaps", kFused, [](Trial& t) { t.q_starts[0] = 1, t.q_lens[0] = 2, t.q_starts[2] = 5, t.q_lens[1] = 2; },
           ETALON_OK, ""},
          {"longer than its sequence", kFused, [](Trial& t) { t.q_starts[1] = 2; }, ETALON_BAD_VALUE, "args.q_lens[0]"},
          {"longer than its sequence", kFused, [](Trial& t) { t.kv_starts[1] = 6; }, ETALON_BAD_VALUE,
           "args.kv_lens[0]"},
          {"misaligned", kFused,
           [](Trial& t) { t.args.value.q_starts = reinterpret_cast<const int64_t*>(FreeMemory() + 4); },
           ETALON_MISALIGNED, "args.q_starts"},
          {"misaligned", kFused,
           [](Trial& t) { t.args.value.kv_starts = reinterpret_cast<const int64_t*>(FreeMemory() + 4); },
           ETALON_MISALIGNED, "args.kv_starts"},
          {"far", kFused, [](Trial& t) { t.args.value.q_starts = reinterpret_cast<const int64_t*>(UINTPTR_MAX - 15); },
           ETALON_OVERFLOW, "args.q_starts"},
          {"q longer than the plan's", kPlanned,
           [](Trial& t) {
             t.q_starts[1] = 2 * kQLen;
             t.q_lens[1] = 0;
           },
           ETALON_BAD_SHAPE, "args.q_starts"},
          {"k longer than the plan's", kPlanned,
           [](Trial& t) {
             t.kv_starts[1] = 2 * kKvLen;
             t.kv_lens[1] = 0;
           },
           ETALON_BAD_SHAPE, "args.kv_starts"},
      });
  static Trial trial;
  Prepare(kBegin, &trial);
  WithRagged([](Trial& t) { t.q_starts[1] = 2 * kQLen, t.q_lens[1] = 0; })(trial);
  etalon_error error;
  CHECK(Call(&trial, &error) == ETALON_BAD_SHAPE);
  CHECK(std::string(error.text) == "args.q_starts has a sequence of 6, above desc.max_q_len, which is 3");
}

// Each alone: q in one tensor against caches of their own, and the other way round.
TEST_CASE("errors: half a ragged batch") {
  const auto half = [](bool q) {
    return [q](Trial& t) {
      const Trial whole = t;
      MakeRagged(&t);
      if (q) {
        t.k = whole.k, t.v = whole.v;
        t.args.value.kv_starts = nullptr;
      } else {
        t.q = whole.q, t.out = whole.out, t.lse = whole.lse;
        t.args.value.q_starts = nullptr;
      }
    };
  };
  Expect("q", kFused, half(true), ETALON_OK, "");
  Expect("k", kFused, half(false), ETALON_OK, "");
  const auto other_batch = [&](bool q) { return [half, q](Trial& t) { half(q)(t), t.args.value.num_sequences = 1; }; };
  Expect("of another number", kFused, other_batch(true), ETALON_BAD_SHAPE, "args.k.shape[0]");
  Expect("of another number", kFused, other_batch(false), ETALON_BAD_SHAPE, "args.q.shape[0]");
}

// --------------------------------------------------------------------------------------------------------- sources

TEST_CASE("errors: further sources") {
  Expect(
      WithSource,
      {
          {"not named", kFused, [](Trial& t) { t.desc.value.num_sources = 0, Replan(&t); }, ETALON_BAD_VALUE,
           "args.more_sources"},
          {"not given", kFused, [](Trial& t) { t.args.value.more_sources = nullptr; }, ETALON_NULL_POINTER,
           "args.more_sources"},
          {"misaligned", kFused,
           [](Trial& t) {
             t.args.value.more_sources = reinterpret_cast<const etalon_key_source* const*>(FreeMemory() + 4);
           },
           ETALON_MISALIGNED, "args.more_sources"},
          {"NULL", kFused, [](Trial& t) { t.more_sources[0] = nullptr; }, ETALON_NULL_POINTER, "args.more_sources[0]"},
          {"no k", kFused, [](Trial& t) { t.source.value.k = nullptr; }, ETALON_NULL_POINTER,
           "args.more_sources[0]->k"},
          {"no v", kFused, [](Trial& t) { t.source.value.v = nullptr; }, ETALON_NULL_POINTER,
           "args.more_sources[0]->v"},
          {"rank", kFused, [](Trial& t) { t.k2.rank = 1; }, ETALON_BAD_RANK, "args.more_sources[0]->k.rank"},
          {"stride", kAttention | kBegin | kExecute, [](Trial& t) { t.v2.stride_bytes[2] += 1; }, ETALON_BAD_STRIDE,
           "args.more_sources[0]->v.stride_bytes[2]"},
          {"heads", kFused, [](Trial& t) { t.k2.shape[1] = t.v2.shape[1] = 1; }, ETALON_BAD_SHAPE,
           "args.more_sources[0]->k.shape[1]"},
          {"batch", kFused, [](Trial& t) { t.k2.shape[0] = 1; }, ETALON_BAD_SHAPE, "args.more_sources[0]->k.shape[0]"},
          {"head_dim", kFused, [](Trial& t) { --t.k2.shape[3]; }, ETALON_BAD_SHAPE, "args.more_sources[0]->k.shape[3]"},
          {"value_dim", kFused, [](Trial& t) { --t.v2.shape[3]; }, ETALON_BAD_SHAPE,
           "args.more_sources[0]->v.shape[3]"},
          {"keys of v", kFused, [](Trial& t) { --t.v2.shape[2]; }, ETALON_BAD_SHAPE,
           "args.more_sources[0]->v.shape[2]"},
          {"type of k", kFused, [](Trial& t) { t.k2.dtype = ETALON_BF16; }, ETALON_BAD_DTYPE,
           "args.more_sources[0]->k.dtype"},
          {"type of v", kFused, [](Trial& t) { t.v2.dtype = ETALON_F16; }, ETALON_BAD_DTYPE,
           "args.more_sources[0]->v.dtype"},
          {"offset", kFused, [](Trial& t) { t.source.value.q_offset = kLargest + 1; }, ETALON_BAD_VALUE,
           "args.more_sources[0]->q_offset"},
          {"offsets", kFused,
           [](Trial& t) {
             t.source.value.q_offsets = t.q_offsets;
             t.args.value.q_offsets = nullptr;
             t.q_offsets[1] = INT64_MIN;
           },
           ETALON_BAD_VALUE, "args.more_sources[0]->q_offsets[1]"},
          {"lengths", kFused,
           [](Trial& t) {
             t.source.value.kv_lens = t.kv_firsts;
             t.kv_firsts[1] = kKvLen + 3;
           },
           ETALON_BAD_VALUE, "args.more_sources[0]->kv_lens[1]"},
          {"padding", kFused,
           [](Trial& t) {
             t.source.value.kv_firsts = t.kv_firsts;
             t.kv_firsts[0] = kKvLen + 3;
           },
           ETALON_BAD_VALUE, "args.more_sources[0]->kv_firsts[0]"},
          {"prefix", kFused,
           [](Trial& t) {
             t.source.value.prefix_lens = t.prefix_lens;
             t.prefix_lens[1] = -5;
           },
           ETALON_BAD_VALUE, "args.more_sources[0]->prefix_lens[1]"},
          {"ragged, of no number", kFused, [](Trial& t) { t.source.value.kv_starts = t.kv_starts; }, ETALON_BAD_VALUE,
           "args.num_sequences"},
          {"ragged, but a batch", kFused,
           [](Trial& t) {
             t.args.value.num_sequences = kBatch;
             t.source.value.kv_starts = t.kv_starts;
           },
           ETALON_BAD_SHAPE, "args.more_sources[0]->k.shape[0]"},
          {"longer than the plan's", kPlanned, [](Trial& t) { t.desc.value.max_kv_len = kKvLen, Replan(&t); },
           ETALON_BAD_SHAPE, "args.more_sources[0]->k.shape[2]"},
          {"mask", kOneCall, [](Trial& t) { t.source.value.mask = &t.mask; }, ETALON_BAD_SHAPE,
           "args.more_sources[0]->mask.shape[3]"},
          {"mask of the wrong type", kOneCall, [](Trial& t) { t.source.value.mask = &t.bias; }, ETALON_BAD_DTYPE,
           "args.more_sources[0]->mask.dtype"},
          {"arrays", kFused,
           [](Trial& t) { t.source.value.kv_lens = reinterpret_cast<const int64_t*>(FreeMemory() + 4); },
           ETALON_MISALIGNED, "args.more_sources[0]->kv_lens"},
      });
  static Trial trial;
  Prepare(kBegin, &trial);
  AddSource(&trial);
  trial.source.value.kv_lens = trial.kv_firsts;
  trial.kv_firsts[1] = 10;
  etalon_error error;
  CHECK(Call(&trial, &error) == ETALON_BAD_VALUE);
  CHECK(std::string(error.text) == "args.more_sources[0]->kv_lens[1] is 10, must be 0 ... 9");
}

}  // namespace
}  // namespace etalon::test
