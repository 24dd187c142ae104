// What a call writes shares no byte with anything else, except where it is said to be computed in place.
#include <doctest/doctest.h>

#include <cstring>

#include "tests/api/errors_trial.h"

namespace etalon::test {
namespace {

// Something that a call reads or writes.
struct Region {
  std::string name;
  void** data;
  size_t bytes;
  size_t alignment;
  bool output;
  bool array;  // of lengths, whose contents are checked too
};

void AddArrays(const int64_t** q_offsets, const int64_t** q_lens, const int64_t** kv_lens,
               std::vector<Region>* regions) {
  const char* const names[] = {"args.q_offsets", "args.q_lens", "args.kv_lens"};
  const int64_t** const arrays[] = {q_offsets, q_lens, kv_lens};
  for (int i = 0; i < 3; ++i) {
    void** data = reinterpret_cast<void**>(const_cast<int64_t**>(arrays[i]));
    regions->push_back({names[i], data, kBatch * sizeof(int64_t), alignof(int64_t), false, true});
  }
}

std::vector<Region> RegionsOf(Trial* t) {
  std::vector<Region> regions;
  for (const Argument& argument : Arguments()) {
    if ((argument.functions & t->function) == 0) continue;
    etalon_tensor& tensor = t->*argument.tensor;
    size_t bytes = etalon_dtype_bytes(tensor.dtype);
    const size_t element = bytes;
    for (int i = 0; i < tensor.rank; ++i) bytes *= static_cast<size_t>(tensor.shape[i]);
    regions.push_back({argument.name, &tensor.data, bytes, element, argument.output, false});
  }
  if ((t->function & kWithArgs) != 0) {
    AddArrays(&t->args.value.q_offsets, &t->args.value.q_lens, &t->args.value.kv_lens, &regions);
  } else if (t->function == kSoftmax) {
    AddArrays(&t->softmax.value.q_offsets, &t->softmax.value.q_lens, &t->softmax.value.kv_lens, &regions);
  } else if (t->function == kWeightedSum) {
    AddArrays(&t->sum.value.q_offsets, &t->sum.value.q_lens, &t->sum.value.kv_lens, &regions);
  }
  if ((t->function & kWithWorkspace) != 0) {
    regions.push_back({"workspace.data", &t->workspace.data, t->workspace.bytes, 64, true, false});
  }
  return regions;
}

// Puts `moved` at `place`; an array of lengths takes its contents along.
void Move(const Region& moved, unsigned char* place) {
  if (moved.array) std::memcpy(place, *moved.data, moved.bytes);
  *moved.data = place;
}

// The one that can be put on bytes of the other: the less aligned one, and arrays, whose home is not in the memory.
bool SecondMoves(const Region& first, const Region& second) {
  if (first.array != second.array) return second.array;
  return second.alignment <= first.alignment;
}

// How two regions are put on each other.
enum How { kSameStart, kAcrossStart, kAcrossEnd, kAfter, kHowEnd };

void PutTogether(Trial* trial, size_t i, size_t j, How how) {
  const std::vector<Region> regions = RegionsOf(trial);
  const Region* still = &regions[i];
  const Region* moved = &regions[j];
  if (!SecondMoves(*still, *moved)) std::swap(still, moved);
  unsigned char* start = static_cast<unsigned char*>(*still->data);
  const size_t step = moved->alignment;
  switch (how) {
    case kSameStart:
      return Move(*moved, start);
    case kAcrossStart:  // the last bytes of the moved one are the first of the other
      return Move(*moved, start - (moved->bytes - 1) / step * step);
    case kAcrossEnd:  // the first bytes of the moved one are the last of the other
      return Move(*moved, start + (still->bytes - 1) / step * step);
    default:  // nothing is shared
      return Move(*moved, start + (still->bytes + step - 1) / step * step);
  }
}

bool MayBeInPlace(Functions function, const std::string& input, const std::string& output) {
  if (function == kSoftmax) return input == "args.scores" && output == "args.weights";
  return function == kMerge && (input == output + "1" || input == output + "2");
}

TEST_CASE("errors: an output that shares bytes with anything else") {
  static Trial trial;
  for (Functions function = 1; function < kEnd; function <<= 1) {
    if ((function & kComputing) == 0) continue;
    Prepare(function, &trial);
    const std::vector<Region> regions = RegionsOf(&trial);
    for (size_t i = 0; i < regions.size(); ++i) {
      for (size_t j = i + 1; j < regions.size(); ++j) {
        if (!regions[i].output && !regions[j].output) continue;
        for (int how = 0; how < kHowEnd; ++how) {
          const std::string what = regions[i].name + " and " + regions[j].name + ", " + std::to_string(how);
          CAPTURE(what);
          const auto spoil = [&](Trial& t) { PutTogether(&t, i, j, static_cast<How>(how)); };
          if (how == kAfter) {
            Expect(what, function, spoil, ETALON_OK, "");
            continue;
          }
          etalon_error error;
          Prepare(function, &trial);
          spoil(trial);
          const etalon_status status = Call(&trial, &error);
          if (how == kSameStart && MayBeInPlace(function, regions[i].name, regions[j].name)) {
            CHECK(status == ETALON_OK);
            continue;
          }
          CHECK(status == ETALON_OVERLAP);
          const std::string field = error.field;
          // Of two outputs, either may be named.
          CHECK(((regions[i].output && field == regions[i].name) || (regions[j].output && field == regions[j].name)));
          CHECK(std::string(error.text).find(regions[i].name) != std::string::npos);
          CHECK(std::string(error.text).find(regions[j].name) != std::string::npos);
          Expect(what, function, spoil, ETALON_OVERLAP, field);
        }
      }
    }
  }
}

// The same memory is not enough: each element must be on itself.
TEST_CASE("errors: in place means the same layout") {
  Expect({
      {"weights on scores", kSoftmax, [](Trial& t) { t.weights.data = t.scores.data; }, ETALON_OK, ""},
      {"the very same tensor", kSoftmax, [](Trial& t) { t.softmax.value.weights = &t.scores; }, ETALON_OK, ""},
      {"other strides", kSoftmax,
       [](Trial& t) {
         t.weights.data = t.scores.data;
         t.weights.stride_bytes[0] += 4;
       },
       ETALON_OVERLAP, "args.weights"},
      {"lse on scores", kSoftmax, [](Trial& t) { t.lse.data = t.scores.data; }, ETALON_OVERLAP, "args.lse"},
      {"lse on both", kSoftmax, [](Trial& t) { t.lse.data = t.weights.data = t.scores.data; }, ETALON_OVERLAP,
       "args.weights"},
      {"out on out1", kMerge, [](Trial& t) { t.out.data = t.out1.data; }, ETALON_OK, ""},
      {"out on out2, lse on lse2", kMerge, [](Trial& t) { t.out.data = t.out2.data, t.lse.data = t.lse2.data; },
       ETALON_OK, ""},
      {"out on out1, lse on lse2", kMerge, [](Trial& t) { t.out.data = t.out1.data, t.lse.data = t.lse2.data; },
       ETALON_OK, ""},
      {"out on out1, which is out2", kMerge, [](Trial& t) { t.out.data = t.out2.data = t.out1.data; }, ETALON_OK, ""},
      {"out on out1, whose end is in out2", kMerge,
       [](Trial& t) {
         t.out.data = t.out1.data;
         t.out2.data = static_cast<char*>(t.out1.data) + 2;
       },
       ETALON_OVERLAP, "args.out"},
      {"out with other strides", kMerge,
       [](Trial& t) {
         t.out.data = t.out1.data;
         t.out.stride_bytes[0] += 2;
       },
       ETALON_OVERLAP, "args.out"},
      {"lse with other strides", kMerge,
       [](Trial& t) {
         t.lse.data = t.lse1.data;
         t.lse.stride_bytes[1] += 4, t.lse.stride_bytes[0] += 16;
       },
       ETALON_OVERLAP, "args.lse"},
      {"lse on out1", kMerge, [](Trial& t) { t.lse.data = t.out1.data; }, ETALON_OVERLAP, "args.lse"},
      {"out on lse1", kMerge, [](Trial& t) { t.out.data = t.lse1.data; }, ETALON_OVERLAP, "args.out"},
  });
}

TEST_CASE("errors: inputs may share memory") {
  Expect({
      {"k and v", kWithArgs & ~kScoring, [](Trial& t) { t.v.data = t.k.data; }, ETALON_OK, ""},
      {"q and k", kWithArgs, [](Trial& t) { t.k.data = t.q.data; }, ETALON_OK, ""},
      {"all lengths", kWithArgs, [](Trial& t) { t.args.value.q_offsets = t.args.value.kv_lens = t.q_lens; }, ETALON_OK,
       ""},
      {"both sides", kMerge, [](Trial& t) { t.out2.data = t.out1.data, t.lse2.data = t.lse1.data; }, ETALON_OK, ""},
      {"m and l", kMerging, [](Trial& t) { t.l.data = t.m.data; }, ETALON_OK, ""},
  });
}

// The structs of a call are read before anything is written, so they may lie where it writes.
TEST_CASE("errors: structs in the workspace") {
  const Spoil inside = [](Trial& t) {
    unsigned char* at = static_cast<unsigned char*>(t.workspace.data);
    std::memcpy(at, &t.workspace, sizeof t.workspace);
    std::memcpy(at + 64, &t.parallel, sizeof t.parallel);
    t.pass.workspace = reinterpret_cast<const etalon_workspace*>(at);
    t.pass.parallel = reinterpret_cast<const etalon_parallel*>(at + 64);
  };
  Expect("workspace and parallel", kWithWorkspace, inside, ETALON_OK, "");
}

// Nothing is there, so nothing is shared: wherever it points.
TEST_CASE("errors: tensors of no elements overlap nothing") {
  Expect({
      {"no queries", kFused,
       [](Trial& t) {
         t.q.shape[2] = t.out.shape[2] = t.lse.shape[2] = 0;
         t.q_lens[0] = t.q_lens[1] = 0;
         t.out.data = t.lse.data = t.q.data = t.k.data;
       },
       ETALON_OK, ""},
      {"lengths of no sequences", kFused,
       [](Trial& t) {
         for (etalon_tensor* tensor : {&t.q, &t.k, &t.v, &t.out, &t.lse}) tensor->shape[0] = 0;
         t.args.value.q_lens = reinterpret_cast<const int64_t*>(static_cast<char*>(t.workspace.data) + 64);
       },
       ETALON_OK, ""},
      {"no keys", kSoftmax,
       [](Trial& t) {
         t.scores.shape[3] = t.weights.shape[3] = 0;
         t.kv_lens[0] = t.kv_lens[1] = 0;
         t.weights.data = t.scores.data = t.lse.data;
       },
       ETALON_OK, ""},
  });
}

}  // namespace
}  // namespace etalon::test
