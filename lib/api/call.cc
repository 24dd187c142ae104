#include "lib/api/call.h"

namespace etalon {
namespace {

// *size is 0 and may be filled from the tensor, or it is the tensor's already.
etalon_status Settle(const CheckedTensor& tensor, int place, const char* member, Sizes sizes, int64_t* size,
                     etalon_error* error) {
  if (*size == 0 && sizes == Sizes::kFromTensors) *size = tensor.shape[place];
  if (*size == tensor.shape[place]) return ETALON_OK;
  return Fail(error, ETALON_BAD_SHAPE, tensor.Shape(place),
              {"is ", tensor.shape[place], ", but ", Field{"desc", member}, " is ", *size});
}

// A size of the call that must not be above one of the descriptor's, and what it was read from.
struct Extent {
  int64_t size;
  Field field;
  const char* verb = "is ";
};
constexpr char kLongest[] = "has a sequence of ";  // of starts

etalon_status SettleMaximum(const Extent& extent, const char* member, Sizes sizes, int64_t* maximum,
                            etalon_error* error) {
  if (*maximum == 0 && sizes == Sizes::kFromTensors) *maximum = extent.size;
  if (extent.size <= *maximum) return ETALON_OK;
  return Fail(error, ETALON_BAD_SHAPE, extent.field,
              {extent.verb, extent.size, ", above ", Field{"desc", member}, ", which is ", *maximum});
}

etalon_status SettleType(const CheckedTensor& tensor, int32_t caller, const char* member, Sizes sizes, int32_t* dtype,
                         etalon_error* error) {
  if (*dtype == 0 && sizes == Sizes::kFromTensors) *dtype = caller;
  if (*dtype == caller) return ETALON_OK;
  return Fail(error, ETALON_BAD_DTYPE, {tensor.name, "dtype"},
              {"is ", caller, ", but ", Field{"desc", member}, " is ", *dtype});
}

Uses UsesOf(Function function) { return {function != Function::kScores, function == Function::kAttention}; }

// ------------------------------------------------------------------------------------------------- what a call brings

struct Option {
  uint32_t bit;
  const char* name;
  const char* member;
};
constexpr Option kOptions[] = {
    {ETALON_OPTION_ALIBI, "ETALON_OPTION_ALIBI", "slopes"},
    {ETALON_OPTION_BIAS, "ETALON_OPTION_BIAS", "bias"},
    {ETALON_OPTION_MASK, "ETALON_OPTION_MASK", "mask"},
    {ETALON_OPTION_SINKS, "ETALON_OPTION_SINKS", "sinks"},
};

uint32_t OptionsOfSource(const etalon_key_source& source) {
  uint32_t options = 0;
  if (source.bias != nullptr) options |= ETALON_OPTION_BIAS;
  if (source.mask != nullptr || source.prepared_mask != nullptr) options |= ETALON_OPTION_MASK;
  return options;
}

// The argument that brings an option which nobody has named.
Field FieldOfOption(const Option& option, const etalon_key_source* sources, int64_t num_sources) {
  for (int64_t i = 0; i < num_sources; ++i) {
    if ((OptionsOfSource(sources[i]) & option.bit) == 0) continue;
    const bool prepared = option.bit == ETALON_OPTION_MASK && sources[i].mask == nullptr;
    return {NamesOfSource(i).object, prepared ? "prepared_mask" : option.member};
  }
  return {"args", option.member};
}

// The arguments bring what the descriptor names, and nothing else.
etalon_status CheckOptions(const etalon_attention_args& args, const etalon_key_source* sources, int64_t num_sources,
                           Sizes sizes, uint32_t* options, etalon_error* error) {
  uint32_t given = 0;
  if (args.slopes != nullptr) given |= ETALON_OPTION_ALIBI;
  if (args.sinks != nullptr) given |= ETALON_OPTION_SINKS;
  for (int64_t i = 0; i < num_sources; ++i) given |= OptionsOfSource(sources[i]);
  if (*options == 0 && sizes == Sizes::kFromTensors) *options = given;
  const Field named = {"desc", "options"};
  for (const Option& option : kOptions) {
    if ((given & ~*options & option.bit) != 0) {
      return Fail(error, ETALON_BAD_VALUE, FieldOfOption(option, sources, num_sources),
                  {"is set, but ", named, " does not name ", option.name});
    }
  }
  for (const Option& option : kOptions) {
    if ((*options & ~given & option.bit) != 0 && option.bit != ETALON_OPTION_ALIBI) {  // which has slopes of its own
      return Fail(error, ETALON_NULL_POINTER, {"args", option.member},
                  {"is NULL, but ", named, " names ", option.name});
    }
  }
  return ETALON_OK;
}

// --------------------------------------------------------------------------------------------------------- the batch

// Sequences of the call, ragged or not.
etalon_status CountSequences(const etalon_attention_args& args, const etalon_key_source* sources, Function function,
                             Call* call, etalon_error* error) {
  const Field field = {"args", "num_sequences"};
  call->ragged = args.q_starts != nullptr;
  for (int64_t i = 0; i < call->num_sources; ++i) call->ragged |= sources[i].kv_starts != nullptr;
  if (function != Function::kAttention) {
    ETALON_CHECK(CheckUnused(args.q_starts, {"args", "q_starts"}, error));
    ETALON_CHECK(CheckUnused(args.kv_starts, {"args", "kv_starts"}, error));
  }
  if (args.num_sequences < 0 || args.num_sequences > kLargestSize) {
    return Fail(error, ETALON_BAD_VALUE, field, {"is ", args.num_sequences, ", must be 0 ... ", kLargestSize});
  }
  if (!call->ragged && args.num_sequences != 0) {
    return Fail(error, ETALON_BAD_VALUE, field,
                {"is ", args.num_sequences, ", but neither q_starts nor kv_starts says where sequences lie"});
  }
  if (call->ragged && args.num_sequences == 0 && !call->q.empty) {
    return Fail(error, ETALON_BAD_VALUE, field, {"is 0, but q_starts or kv_starts is set, and q has rows"});
  }
  call->queries.batch = call->ragged ? args.num_sequences : call->q.shape[0];
  return ETALON_OK;
}

// The first dimension of q or k: the sequences of the call, or 1 of all that are named by `starts`.
etalon_status CheckBatch(const CheckedTensor& tensor, const int64_t* starts, const Field& starts_field,
                         const etalon_attention_args& args, const Call& call, etalon_error* error) {
  if (starts != nullptr) {
    if (tensor.shape[0] == 1) return ETALON_OK;
    return Fail(error, ETALON_BAD_SHAPE, tensor.Shape(0),
                {"is ", tensor.shape[0], ", must be 1: ", starts_field, " is set"});
  }
  if (tensor.shape[0] == call.queries.batch) return ETALON_OK;
  if (!call.ragged) return CheckSameSize(tensor, 0, call.q, 0, error);
  return Fail(error, ETALON_BAD_SHAPE, tensor.Shape(0),
              {"is ", tensor.shape[0], ", but ", Field{"args", "num_sequences"}, " is ", args.num_sequences});
}

etalon_status ReadTensors(const etalon_attention_args& args, const etalon_key_source* sources, Function function,
                          Depth depth, Call* call, etalon_error* error) {
  const Role input = depth == Depth::kShapes ? Role::kShape : Role::kInput;
  const Role output = depth == Depth::kShapes ? Role::kShape : Role::kOutput;
  const bool values = UsesOf(function).values;
  ETALON_CHECK(CheckTensor(args.q, "args.q", 4, Types::kAny, input, &call->q, error));
  ETALON_CHECK(CountSequences(args, sources, function, call, error));
  ETALON_CHECK(CheckBatch(call->q, args.q_starts, {"args", "q_starts"}, args, *call, error));
  for (int64_t i = 0; i < call->num_sources; ++i) {
    const SourceNames& names = NamesOfSource(i);
    SourceCall* source = &call->sources[i];
    ETALON_CHECK(CheckKeys(sources[i], names, call->q, input, source, error));
    const Field starts = {names.object, "kv_starts"};
    if (!source->places.paged()) {
      ETALON_CHECK(CheckBatch(source->k, sources[i].kv_starts, starts, args, *call, error));
    }
    ETALON_CHECK(CheckValues(sources[i], names, values, input, source, error));
    if (i > 0) ETALON_CHECK(CheckLikeFirst(*source, call->sources[0], values, error));
  }
  for (CheckedTensor* tensor : {&call->out, &call->lse, &call->sinks}) tensor->name = nullptr;
  if (function != Function::kAttention) {
    ETALON_CHECK(CheckUnused(args.lse, {"args", "lse"}, error));
    ETALON_CHECK(CheckUnused(args.sinks, {"args", "sinks"}, error));
  }
  if (function == Function::kBlockStates) return CheckUnused(args.out, {"args", "out"}, error);
  if (function == Function::kScores) {
    ETALON_CHECK(CheckTensor(args.out, "args.out", 4, Types::kF32, output, &call->out, error));
    ETALON_CHECK(CheckSameShape(call->out, call->q, 3, error));
    // Of pages and rings the lengths say how many keys there are: ReadSequences.
    return call->sources[0].places.any ? ETALON_OK : CheckSameSize(call->out, 3, call->sources[0].k, 2, error);
  }
  ETALON_CHECK(CheckTensor(args.out, "args.out", 4, Types::kAny, output, &call->out, error));
  ETALON_CHECK(CheckSameShape(call->out, call->q, 3, error));
  ETALON_CHECK(CheckSameSize(call->out, 3, call->sources[0].v, 3, error));
  ETALON_CHECK(CheckOptionalTensor(args.lse, "args.lse", 3, Types::kF32, output, &call->lse, error));
  return call->lse.name == nullptr ? ETALON_OK : CheckSameShape(call->lse, call->q, 3, error);
}

// A number for each query head: [batch, num_q_heads], each size that or 1.
etalon_status ReadOfHeads(const etalon_tensor* caller, const char* name, const Call& call, Depth depth,
                          CheckedTensor* tensor, etalon_error* error) {
  const Role role = depth == Depth::kShapes ? Role::kShape : Role::kInput;
  ETALON_CHECK(CheckOptionalTensor(caller, name, 2, Types::kAny, role, tensor, error));
  return caller == nullptr ? ETALON_OK : CheckOfHeads(*tensor, call.queries.batch, call.q.shape[1], error);
}

// Everything whose shape depends on how long the sequences are.
etalon_status ReadSequences(const etalon_attention_args& args, const etalon_key_source* sources, Depth depth,
                            Call* call, etalon_error* error) {
  const Role role = depth == Depth::kShapes ? Role::kShape : Role::kInput;
  ETALON_CHECK(CheckQueries(args.q_starts, args.q_lens, call->queries.batch, call->q.shape[2], &call->queries, error));
  for (int64_t i = 0; i < call->num_sources; ++i) {
    ETALON_CHECK(CheckSourceSequences(sources[i], NamesOfSource(i), call->queries, &call->sources[i], error));
  }
  for (int64_t i = 0; i < call->num_sources; ++i) {
    ETALON_CHECK(CheckSourceMasks(sources[i], NamesOfSource(i), call->queries, call->q.shape[1], role,
                                  &call->sources[i], error));
  }
  ETALON_CHECK(ReadOfHeads(args.slopes, "args.slopes", *call, depth, &call->slopes, error));
  return ReadOfHeads(args.sinks, "args.sinks", *call, depth, &call->sinks, error);
}

// That the rows of a call can be counted. The memory of outputs sees to most of it, but a query comes without, and
// outputs may be empty where there are no keys.
etalon_status CheckRows(const CheckedTensor& q, etalon_error* error) {
  int64_t rows = q.empty ? 0 : 1;
  for (int place = 0; place < 3; ++place) {
    if (__builtin_mul_overflow(rows, q.shape[place], &rows)) {
      return Fail(error, ETALON_OVERFLOW, q.Shape(place), {"is ", q.shape[place], ": the rows do not fit 64 bits"});
    }
  }
  return ETALON_OK;
}

}  // namespace

etalon_status ReadDesc(const etalon_attention_desc* caller, Function function, etalon_attention_desc* desc,
                       etalon_error* error) {
  ETALON_CHECK(CopyDescriptor(caller, "desc", desc, sizeof *desc, kFirstSizeOfDesc, error));
  ETALON_CHECK(CheckDesc(*desc, UsesOf(function), error));
  if (function == Function::kAttention) return ETALON_OK;
  if (desc->num_sources > 1) {
    return Fail(error, ETALON_BAD_VALUE, {"desc", "num_sources"},
                {"is ", desc->num_sources, ", must be 0 or 1: this function takes one source"});
  }
  if (!HasOption(*desc, ETALON_OPTION_SINKS)) return ETALON_OK;
  return Fail(error, ETALON_BAD_VALUE, {"desc", "options"}, {"names ETALON_OPTION_SINKS: this function takes none"});
}

etalon_status ReadArgs(const etalon_attention_args* caller, Function function, Sizes sizes, Depth depth,
                       etalon_attention_desc* desc, Call* call, etalon_error* error) {
  etalon_attention_args args;
  ETALON_CHECK(CopyDescriptor(caller, "args", &args, sizeof args, kFirstSizeOfArgs, error));
  etalon_key_source sources[kMostSources];
  call->num_sources = desc->num_sources == 0 ? 1 : desc->num_sources;
  ETALON_CHECK(CopySources(args, *desc, call->num_sources, sources, error));
  ETALON_CHECK(ReadTensors(args, sources, function, depth, call, error));
  ETALON_CHECK(CheckRows(call->q, error));
  ETALON_CHECK(CheckOptions(args, sources, call->num_sources, sizes, &desc->options, error));

  const CheckedTensor &k = call->sources[0].k, &v = call->sources[0].v;
  ETALON_CHECK(Settle(call->q, 1, "num_q_heads", sizes, &desc->num_q_heads, error));
  ETALON_CHECK(Settle(k, 1, "num_kv_heads", sizes, &desc->num_kv_heads, error));
  ETALON_CHECK(Settle(call->q, 3, "head_dim", sizes, &desc->head_dim, error));
  ETALON_CHECK(SettleType(call->q, args.q->dtype, "q_dtype", sizes, &desc->q_dtype, error));
  ETALON_CHECK(SettleType(k, args.k->dtype, "k_dtype", sizes, &desc->k_dtype, error));
  const Uses uses = UsesOf(function);
  if (uses.values) {
    ETALON_CHECK(Settle(v, 3, "value_dim", sizes, &desc->value_dim, error));
    ETALON_CHECK(SettleType(v, args.v->dtype, "v_dtype", sizes, &desc->v_dtype, error));
  }
  if (uses.out) ETALON_CHECK(SettleType(call->out, args.out->dtype, "out_dtype", sizes, &desc->out_dtype, error));

  ETALON_CHECK(ReadSequences(args, sources, depth, call, error));
  if (function == Function::kScores && call->out.shape[3] != call->sources[0].sequences.kv_len) {
    return Fail(
        error, ETALON_BAD_SHAPE, call->out.Shape(3),
        {"is ", call->out.shape[3], ", but the longest of args.kv_lens is ", call->sources[0].sequences.kv_len});
  }
  Extent batch = {call->queries.batch, call->q.Shape(0)}, q_len = {call->queries.q_len, call->q.Shape(2)};
  if (call->ragged) batch.field = {"args", "num_sequences"};
  if (args.q_starts != nullptr) q_len = {call->queries.q_len, {"args", "q_starts"}, kLongest};
  Extent kv_len = {-1, {}};  // the longest of all
  for (int64_t i = 0; i < call->num_sources; ++i) {
    const SourceCall& source = call->sources[i];
    if (source.sequences.kv_len <= kv_len.size) continue;
    kv_len = {source.sequences.kv_len, source.k.Shape(2)};
    if (sources[i].kv_starts == nullptr && !source.places.any) continue;
    kv_len.field = {NamesOfSource(i).object, source.places.any ? "kv_lens" : "kv_starts"};
    kv_len.verb = kLongest;
  }
  ETALON_CHECK(SettleMaximum(batch, "max_batch", sizes, &desc->max_batch, error));
  ETALON_CHECK(SettleMaximum(q_len, "max_q_len", sizes, &desc->max_q_len, error));
  return SettleMaximum(kv_len, "max_kv_len", sizes, &desc->max_kv_len, error);
}

void FillProblem(const etalon_attention_desc& desc, const Call& call, AttentionProblem* problem) {
  const int64_t group = desc.num_q_heads / desc.num_kv_heads;
  problem->tiles = {call.queries.batch, desc.num_kv_heads, group, call.queries.q_len, false};
  problem->tiles.q_starts = call.queries.q_starts;
  problem->tiles.tile_rows = ChooseTileRows(problem->tiles, desc.max_workers);
  problem->num_sources = call.num_sources;
  for (int64_t i = 0; i < call.num_sources; ++i) FillProblem(call.sources[i], &problem->sources[i]);
  problem->head_dim = static_cast<size_t>(desc.head_dim);
  problem->value_dim = call.sources[0].v.name == nullptr ? 0 : static_cast<size_t>(desc.value_dim);
  problem->q = call.q.View();
  problem->out = call.out.MutableView();
  problem->lse = call.lse.MutableView();
  problem->scale = ScaleOf(desc);
  problem->softcap = IsZero(desc.softcap) ? 0.0f : desc.softcap;
  problem->alibi = HasOption(desc, ETALON_OPTION_ALIBI);
  problem->slopes = call.slopes.View();
  problem->standard_slopes = nullptr;
  problem->sinks = call.sinks.View();
}

void Touches(const Call& call, Memory* memory) {
  memory->Reads(call.q);
  memory->Reads(call.slopes);
  memory->Reads(call.sinks);
  memory->Reads(call.queries);
  for (int64_t i = 0; i < call.num_sources; ++i) Touches(call.sources[i], memory);
  memory->Writes(call.out);
  memory->Writes(call.lse);
}

bool HasOption(const etalon_attention_desc& desc, uint32_t option) { return (desc.options & option) != 0; }

float ScaleOf(const etalon_attention_desc& desc) {
  return IsZero(desc.scale) ? DefaultScale(static_cast<size_t>(desc.head_dim)) : desc.scale;
}

int32_t WorkersOf(int32_t max_workers) { return max_workers == 0 ? 1 : max_workers; }

}  // namespace etalon

extern "C" float etalon_default_scale(int64_t head_dim) {
  return etalon::DefaultScale(static_cast<size_t>(head_dim < 1 ? 1 : head_dim));
}
