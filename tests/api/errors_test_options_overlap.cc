// What options bring shares no byte with what a call writes.
#include <doctest/doctest.h>

#include <cstring>

#include "tests/api/errors_trial.h"

namespace etalon::test {
namespace {

// Every tensor, array and mask that options bring, one after the other on the first bytes of an output.
TEST_CASE("errors: options that share bytes with an output") {
  struct Part {
    const char* field;
    Functions functions;
    void (*move)(Trial&, unsigned char* to);
  };
  const auto copy = [](Trial&, unsigned char* to, const int64_t* numbers, size_t bytes) {
    std::memcpy(to, numbers, bytes);
    return reinterpret_cast<const int64_t*>(to);
  };
  static const auto moved = copy;
  const Part parts[] = {
      {"args.slopes", kFused | kScoring, [](Trial& t, unsigned char* to) { t.slopes.data = to; }},
      {"args.bias", kFused | kScoring, [](Trial& t, unsigned char* to) { t.bias.data = to; }},
      {"args.mask", kFused | kScoring | kSoftmax | kSumming, [](Trial& t, unsigned char* to) { t.mask.data = to; }},
      {"args.sinks", kFused | kMerging, [](Trial& t, unsigned char* to) { t.sinks.data = to; }},
      {"args.kv_firsts", kFused | kScoring,
       [](Trial& t, unsigned char* to) { t.args.value.kv_firsts = moved(t, to, t.kv_firsts, sizeof t.kv_firsts); }},
      {"args.prefix_lens", kFused | kScoring,
       [](Trial& t, unsigned char* to) {
         t.args.value.prefix_lens = moved(t, to, t.prefix_lens, sizeof t.prefix_lens);
       }},
  };
  for (const Part& part : parts) {
    for (bool workspace : {false, true}) {
      const Functions functions = part.functions & kComputing & (workspace ? kWithWorkspace : kAll);
      const Spoil spoil = [&](Trial& t) {
        AddOptions(&t);
        etalon_tensor& out = t.function == kSoftmax ? t.weights : (t.function & kScoring) != 0 ? t.scores : t.out;
        part.move(t, static_cast<unsigned char*>(workspace ? t.workspace.data : out.data));
      };
      for (Functions function = 1; function < kEnd; function <<= 1) {
        if ((functions & function) == 0) continue;
        const char* out = function == kSoftmax ? "args.weights" : "args.out";
        Expect(part.field, function, spoil, ETALON_OVERLAP, workspace ? "workspace.data" : out);
        static Trial trial;
        Prepare(function, &trial);
        spoil(trial);
        etalon_error error;
        CHECK(Call(&trial, &error) == ETALON_OVERLAP);
        CHECK(std::string(error.text).find(std::string("shares memory with ") + part.field) != std::string::npos);
      }
    }
  }
  constexpr Functions kWriting = kAttention | kBegin | kExecute;
  const auto source_in = [](void (*move)(Trial&)) {
    return [move](Trial& t) {
      AddSource(&t);
      move(t);
    };
  };
  Expect("k of a source", kWriting, source_in([](Trial& t) { t.k2.data = t.workspace.data; }), ETALON_OVERLAP,
         "workspace.data");
  Expect("v of a source", kWriting, source_in([](Trial& t) { t.v2.data = t.out.data; }), ETALON_OVERLAP, "args.out");
  Expect("lengths of a source", kWriting, source_in([](Trial& t) {
           std::memcpy(t.workspace.data, t.kv_lens, sizeof t.kv_lens);
           t.source.value.kv_lens = static_cast<const int64_t*>(t.workspace.data);
         }),
         ETALON_OVERLAP, "workspace.data");
  Expect(
      "starts", kWriting,
      [](Trial& t) {
        MakeRagged(&t);
        std::memcpy(t.workspace.data, t.q_starts, sizeof t.q_starts);
        t.args.value.q_starts = static_cast<const int64_t*>(t.workspace.data);
      },
      ETALON_OVERLAP, "workspace.data");
  Expect(
      "starts of keys", kWriting,
      [](Trial& t) {
        MakeRagged(&t);
        std::memcpy(t.workspace.data, t.kv_starts, sizeof t.kv_starts);
        t.args.value.kv_starts = static_cast<const int64_t*>(t.workspace.data);
      },
      ETALON_OVERLAP, "workspace.data");
  Expect("a prepared mask", kWriting | kScores | kBlockStates,
         WithPrepared([](Trial& t) { t.workspace.data = Slot(20) + 64; }), ETALON_OVERLAP, "workspace.data");
}

// What a call reads may lie in one memory, with everything that options bring too.
TEST_CASE("errors: inputs of options may share memory") {
  Expect(
      "all of it", kWithArgs,
      [](Trial& t) {
        t.slopes.data = t.bias.data = t.mask.data = t.sinks.data = t.q.data;
        AddOptions(&t);
      },
      ETALON_OK, "");
}

// All that the largest call brings is compared: nothing is left out for want of room.
TEST_CASE("errors: eight sources with everything") {
  static Trial trial;
  static etalon_key_source sources[ETALON_MAX_SOURCES - 1];
  static const etalon_key_source* pointers[ETALON_MAX_SOURCES - 1];
  for (bool overlap : {false, true}) {
    Prepare(kBegin, &trial);
    MakeRagged(&trial);
    trial.slopes = PackedTensor(trial.slopes.data, ETALON_F32, {kQHeads});
    trial.mask = PackedTensor(trial.mask.data, ETALON_BOOL, {1, 1});
    trial.bias = PackedTensor(trial.bias.data, ETALON_F32, {1, 1});
    AddOptions(&trial);
    for (int i = 0; i < ETALON_MAX_SOURCES - 1; ++i) {
      etalon_key_source& s = sources[i];
      REQUIRE(etalon_key_source_init(&s, sizeof s) == ETALON_OK);
      s.k = &trial.k;
      s.v = &trial.v;
      s.q_offsets = trial.q_offsets;
      s.kv_lens = trial.kv_lens;
      s.kv_firsts = trial.kv_firsts;
      s.kv_starts = trial.kv_starts;
      s.prefix_lens = trial.prefix_lens;
      s.bias = &trial.bias;
      s.mask = &trial.mask;
      pointers[i] = &s;
    }
    trial.desc.value.num_sources = ETALON_MAX_SOURCES;
    trial.args.value.more_sources = pointers;
    Replan(&trial), FitWorkspace(&trial);
    static etalon_tensor last;
    last = trial.bias;
    last.data = trial.workspace.data;
    if (overlap) sources[ETALON_MAX_SOURCES - 2].bias = &last;
    etalon_error error;
    CHECK(Call(&trial, &error) == (overlap ? ETALON_OVERLAP : ETALON_OK));
    if (overlap) {
      CHECK(std::string(error.text) == "workspace.data shares memory with args.more_sources[6]->bias");
    }
  }
}

}  // namespace
}  // namespace etalon::test
