// New keys and values into a cache.
#include "lib/attention/append.h"

#include "lib/api/places.h"
#include "lib/api/primitives.h"
#include "lib/base/parallel.h"

namespace etalon {
namespace {

constexpr PlacesNames kPlacesNames = {"args", "args.places"};

struct AppendWork {
  const Kernels& kernels;
  const AppendProblem& problem;

  static void Run(void* arg, int64_t first, int64_t last, int32_t) {
    const AppendWork& work = *static_cast<const AppendWork*>(arg);
    for (int64_t task = first; task < last; ++task) AppendHead(work.kernels.table, work.problem, task);
  }
};

struct AppendCall {
  CheckedTensor new_k, new_v, k, v;
  CheckedPlaces places;
  Hull kv_lens, new_lens;
};

etalon_status ReadTensors(const etalon_kv_append_args& args, AppendCall* call, etalon_error* error) {
  ETALON_CHECK(CheckTensor(args.new_k, "args.new_k", 4, Types::kAny, Role::kInput, &call->new_k, error));
  ETALON_CHECK(CheckHeads(call->new_k, call->new_k, error));
  ETALON_CHECK(CheckHeadDim(call->new_k, 3, error));
  ETALON_CHECK(CheckTensor(args.new_v, "args.new_v", 4, Types::kAny, Role::kInput, &call->new_v, error));
  ETALON_CHECK(CheckSameShape(call->new_v, call->new_k, 3, error));
  ETALON_CHECK(CheckHeadDim(call->new_v, 3, error));
  ETALON_CHECK(CheckPlaces(args.places, kPlacesNames, &call->places, error));
  ETALON_CHECK(CheckTensor(args.k, "args.k", 4, Types::kAny, Role::kOutput, &call->k, error));
  if (!call->places.paged()) ETALON_CHECK(CheckSameSize(call->k, 0, call->new_k, 0, error));
  ETALON_CHECK(CheckSameSize(call->k, 1, call->new_k, 1, error));
  ETALON_CHECK(CheckSameSize(call->k, 3, call->new_k, 3, error));
  ETALON_CHECK(CheckTensor(args.v, "args.v", 4, Types::kAny, Role::kOutput, &call->v, error));
  ETALON_CHECK(CheckSameShape(call->v, call->k, 3, error));
  return CheckSameSize(call->v, 3, call->new_v, 3, error);
}

// That each sequence has room for its new tokens, and pages for them.
etalon_status CheckRoom(const etalon_kv_append_args& args, AppendCall* call, etalon_error* error) {
  const int64_t batch = call->new_k.shape[0], new_len = call->new_k.shape[2];
  ETALON_CHECK(CheckArray(args.kv_lens, batch, {"args", "kv_lens"}, &call->kv_lens, error));
  ETALON_CHECK(CheckArray(args.new_lens, batch, {"args", "new_lens"}, &call->new_lens, error));
  int64_t most;
  ETALON_CHECK(CheckCapacity(kPlacesNames, call->k, batch, &call->places, &most, error));
  const KeyPlaces places = PlacesOf(call->places, call->k);
  for (int64_t b = 0; b < batch; ++b) {
    int64_t length = 0, more = new_len;
    if (args.kv_lens != nullptr) {
      length = args.kv_lens[b];
      ETALON_CHECK(CheckLength(length, kLargestSize, {"args", "kv_lens", b}, error));
    }
    if (args.new_lens != nullptr) {
      more = args.new_lens[b];
      ETALON_CHECK(CheckLength(more, new_len, {"args", "new_lens", b}, error));
    }
    if (length > most || more > most - length) {
      return Fail(
          error, ETALON_CACHE_FULL, {"args", "kv_lens", b},
          {"is ", length, ", and ", more, " more tokens do not fit the ", most, " that a sequence has room for"});
    }
    const NewPositions p = PositionsOfAppend(places, length, more);
    ETALON_CHECK(CheckPagesOf(kPlacesNames, call->k, call->places, b, {p.first, p.kept_last}, error));
    ETALON_CHECK(CheckPagesOf(kPlacesNames, call->k, call->places, b, {p.ring_first, p.last}, error));
  }
  return ETALON_OK;
}

void Touches(const AppendCall& call, Memory* memory) {
  memory->Reads(call.new_k);
  memory->Reads(call.new_v);
  memory->Reads({"args", "kv_lens"}, call.kv_lens);
  memory->Reads({"args", "new_lens"}, call.new_lens);
  memory->Reads({"args", "places.page_table"}, call.places.table);
  if (AreInterleaved(call.k, call.v)) {
    memory->Writes({"args", "k and args.v"}, HullOf(call.k.hull, call.v.hull));
    return;
  }
  memory->Writes(call.k);
  memory->Writes(call.v);
}

}  // namespace
}  // namespace etalon

extern "C" etalon_status etalon_kv_append(const etalon_kv_append_args* caller, const etalon_parallel* parallel,
                                          etalon_error* error) {
  using namespace etalon;  // NOLINT: one function
  etalon_kv_append_args args;
  ETALON_CHECK(CopyDescriptor(caller, "args", &args, sizeof args, kFirstSizeOfAppendArgs, error));
  AppendCall call;
  ETALON_CHECK(ReadTensors(args, &call, error));
  ETALON_CHECK(CheckRoom(args, &call, error));
  Kernels kernels;
  ETALON_CHECK(ChooseKernels(args.target, "args", 0, 0, 0, 0, &kernels, error));
  Memory memory;
  Touches(call, &memory);
  AppendProblem problem = {};
  problem.batch = call.new_k.shape[0];
  problem.heads = call.new_k.shape[1];
  problem.new_len = call.new_k.shape[2];
  problem.rows[0] = {call.new_k.View(), call.k.MutableView(), static_cast<size_t>(call.k.shape[3])};
  problem.rows[1] = {call.new_v.View(), call.v.MutableView(), static_cast<size_t>(call.v.shape[3])};
  problem.places = PlacesOf(call.places, call.k);
  problem.pages_stride = call.places.page_table_stride;
  problem.kv_lens = args.kv_lens;
  problem.new_lens = args.new_lens;
  AppendWork work = {kernels, problem};
  Runner runner;
  ETALON_CHECK(CheckRunner(kernels, &memory, nullptr, parallel, &runner, error));
  return RunTasks(runner, {AppendWork::Run, &work, NumAppendTasks(problem)}, error);
}
