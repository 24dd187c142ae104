#include "lib/api/source.h"

#include "lib/base/parallel.h"

namespace etalon {
namespace {

#define ETALON_MORE_SOURCE(pointer) \
  {pointer, pointer "->k", pointer "->v", pointer "->bias", pointer "->mask", pointer "->places"}
constexpr SourceNames kSourceNames[] = {
    {"args", "args.k", "args.v", "args.bias", "args.mask", "args.places"},
    ETALON_MORE_SOURCE("args.more_sources[0]"),
    ETALON_MORE_SOURCE("args.more_sources[1]"),
    ETALON_MORE_SOURCE("args.more_sources[2]"),
    ETALON_MORE_SOURCE("args.more_sources[3]"),
    ETALON_MORE_SOURCE("args.more_sources[4]"),
    ETALON_MORE_SOURCE("args.more_sources[5]"),
    ETALON_MORE_SOURCE("args.more_sources[6]"),
};
#undef ETALON_MORE_SOURCE
static_assert(sizeof kSourceNames / sizeof kSourceNames[0] == ETALON_MAX_SOURCES, "every source has a name");
static_assert(kMostSources == ETALON_MAX_SOURCES, "what is public and what is kept agree");

PlacesNames PlacesNamesOf(const SourceNames& names) { return {names.object, names.places}; }

etalon_status CheckSameType(const CheckedTensor& tensor, const CheckedTensor& first, etalon_error* error) {
  if (tensor.dtype == first.dtype) return ETALON_OK;
  return Fail(error, ETALON_BAD_DTYPE, {tensor.name, "dtype"},
              {"is ", tensor.dtype, ", but ", Field{first.name, "dtype"}, " is ", first.dtype});
}

}  // namespace

const SourceNames& NamesOfSource(int64_t source) { return kSourceNames[source]; }

etalon_status CopySources(const etalon_attention_args& args, const etalon_attention_desc& desc, int64_t num_sources,
                          etalon_key_source* sources, etalon_error* error) {
  sources[0] = {sizeof *sources,  args.k,         args.v,       desc.left,          desc.right,
                args.q_offset,    args.q_offsets, args.kv_lens, args.kv_firsts,     args.kv_starts,
                args.prefix_lens, args.bias,      args.mask,    args.prepared_mask, args.places};
  const Field more = {"args", "more_sources"};
  if (num_sources == 1) {
    if (args.more_sources == nullptr) return ETALON_OK;
    return Fail(error, ETALON_BAD_VALUE, more,
                {"is set, but ", Field{"desc", "num_sources"}, " is ", desc.num_sources});
  }
  if (args.more_sources == nullptr) {
    return Fail(error, ETALON_NULL_POINTER, more,
                {"is NULL, but ", Field{"desc", "num_sources"}, " is ", desc.num_sources});
  }
  if (reinterpret_cast<uintptr_t>(args.more_sources) % alignof(etalon_key_source*) != 0) {
    return Fail(error, ETALON_MISALIGNED, more, {"is not aligned to its elements"});
  }
  for (int64_t i = 1; i < num_sources; ++i) {
    ETALON_CHECK(CopyDescriptor(args.more_sources[i - 1], NamesOfSource(i).object, &sources[i], sizeof sources[i],
                                kFirstSizeOfKeySource, error));
  }
  return ETALON_OK;
}

etalon_status CheckKeys(const etalon_key_source& caller, const SourceNames& names, const CheckedTensor& q, Role role,
                        SourceCall* source, etalon_error* error) {
  ETALON_CHECK(CheckTensor(caller.k, names.k, 4, Types::kAny, role, &source->k, error));
  ETALON_CHECK(CheckHeads(q, source->k, error));
  ETALON_CHECK(CheckHeadDim(q, 3, error));
  ETALON_CHECK(CheckPlaces(caller.places, PlacesNamesOf(names), &source->places, error));
  return CheckSameSize(source->k, 3, q, 3, error);
}

etalon_status CheckValues(const etalon_key_source& caller, const SourceNames& names, bool values, Role role,
                          SourceCall* source, etalon_error* error) {
  source->v.name = nullptr;
  if (!values) return CheckUnused(caller.v, {names.object, "v"}, error);
  ETALON_CHECK(CheckTensor(caller.v, names.v, 4, Types::kAny, role, &source->v, error));
  ETALON_CHECK(CheckSameShape(source->v, source->k, 3, error));
  return CheckHeadDim(source->v, 3, error);
}

etalon_status CheckLikeFirst(const SourceCall& source, const SourceCall& first, bool values, etalon_error* error) {
  ETALON_CHECK(CheckSameSize(source.k, 1, first.k, 1, error));
  ETALON_CHECK(CheckSameType(source.k, first.k, error));
  if (!values) return ETALON_OK;
  ETALON_CHECK(CheckSameSize(source.v, 3, first.v, 3, error));
  return CheckSameType(source.v, first.v, error);
}

etalon_status CheckSourceSequences(const etalon_key_source& caller, const SourceNames& names, const Queries& queries,
                                   SourceCall* source, etalon_error* error) {
  const CallerSequences sequences = {names.object,     caller.left,      caller.right,
                                     caller.q_offset,  caller.q_offsets, caller.kv_lens,
                                     caller.kv_firsts, caller.kv_starts, caller.prefix_lens};
  const PlacesNames of_places = PlacesNamesOf(names);
  CheckedPlaces* places = &source->places;
  ETALON_CHECK(CheckSequencesOfPlaces(sequences, of_places, *places, error));
  int64_t most;
  ETALON_CHECK(CheckCapacity(of_places, source->k, queries.batch, places, &most, error));
  ETALON_CHECK(CheckSequences(sequences, queries, most, &source->sequences, &source->hulls, error));
  if (!places->any) return ETALON_OK;
  Sequences* s = &source->sequences;
  s->ring_keep = places->ring_keep;
  s->ring_len = places->ring_len;
  s->kv_len = 0;
  for (int64_t b = 0; b < queries.batch; ++b) s->kv_len = Larger(s->kv_len, s->kv_lens[b]);
  return CheckPages(of_places, source->k, queries, *s, *places, error);
}

etalon_status CheckSourceMasks(const etalon_key_source& caller, const SourceNames& names, const Queries& queries,
                               int64_t num_q_heads, Role role, SourceCall* source, etalon_error* error) {
  const ColumnsShape shape = {queries.batch, num_q_heads, queries.q_len, source->sequences.kv_len};
  ETALON_CHECK(CheckOptionalTensor(caller.bias, names.bias, 4, Types::kBias, role, &source->bias, error));
  if (caller.bias != nullptr) ETALON_CHECK(CheckColumns(source->bias, shape, error));
  ETALON_CHECK(CheckOptionalTensor(caller.mask, names.mask, 4, Types::kMask, role, &source->mask, error));
  if (caller.mask != nullptr) ETALON_CHECK(CheckColumns(source->mask, shape, error));
  const Field prepared = {names.object, "prepared_mask"};
  if (caller.mask != nullptr && caller.prepared_mask != nullptr) {
    return Fail(error, ETALON_UNSUPPORTED, prepared,
                {"is set beside ", names.mask, ": prepare a mask that hides what either of them does"});
  }
  if (caller.prepared_mask != nullptr && source->places.ring_keep > 0) {
    return Fail(error, ETALON_UNSUPPORTED, prepared,
                {"is set, but ", Field{names.places, "ring_keep"}, " is ", source->places.ring_keep});
  }
  return CheckPreparedMask(caller.prepared_mask, prepared, shape, &source->sequences.mask, &source->prepared_mask,
                           error);
}

void FillProblem(const SourceCall& source, SourceProblem* problem) {
  problem->sequences = source.sequences;
  problem->k = source.k.View();
  problem->v = source.v.View();
  problem->places = PlacesOf(source.places, source.k);
  problem->places.k_page_stride_bytes = problem->k.batch_stride_bytes;
  problem->places.v_page_stride_bytes = problem->v.batch_stride_bytes;
  problem->pages_stride = source.places.page_table_stride;
  problem->bias = source.bias.Columns();
  problem->mask = source.mask.Columns();
}

void Touches(const SourceCall& source, Memory* memory) {
  for (const CheckedTensor* tensor : {&source.k, &source.v, &source.bias, &source.mask}) memory->Reads(*tensor);
  memory->Reads(source.hulls);
  memory->Reads({source.hulls.object, "prepared_mask"}, source.prepared_mask);
  memory->Reads({source.hulls.object, "places.page_table"}, source.places.table);
}

}  // namespace etalon
