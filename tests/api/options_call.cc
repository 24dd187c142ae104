#include "tests/api/options_call.h"

#include <algorithm>
#include <cstring>

#include "tests/api/primitive_calls.h"

namespace etalon::test {
namespace {

std::unique_ptr<GuardedTensor> Guarded(const Array& values, const Shape& shape, const Layout& layout = Packed) {
  Place place;
  place.layout = layout;
  return std::make_unique<GuardedTensor>(values, shape, place);
}

}  // namespace

OptionsCall::OptionsCall(const OptionsCase& c, const KernelTable& table)
    : q(Guarded(c.q, With(c.RowsShape(), c.head_dim))),
      out(Guarded(Unwritten(c.out_type, With(c.RowsShape(), c.value_dim)), With(c.RowsShape(), c.value_dim))),
      lse(Guarded(Unwritten(DType::kF32, c.RowsShape()), c.RowsShape())),
      case_(c) {
  REQUIRE(etalon_attention_desc_init(&desc, sizeof desc) == ETALON_OK);
  REQUIRE(etalon_attention_args_init(&args, sizeof args) == ETALON_OK);
  if (!c.slopes.shape.empty()) slopes = Guarded(c.slopes.values, c.slopes.shape, AnyLayout(c, 1));
  if (!c.sinks.shape.empty()) sinks = Guarded(c.sinks.values, c.sinks.shape, AnyLayout(c, 2));
  for (size_t n = 0; n < c.sources.size(); ++n) {
    const SourceCase& s = case_.sources[n];
    const Shape keys = {c.KeyBatches(n), c.num_kv_heads, s.kv_len};
    Source source;
    if (s.places.any()) {
      source.scattered = std::make_unique<ScatteredKeys>(Scatter(c, n));
      ScatteredKeys* scattered = source.scattered.get();
      source.k = std::move(scattered->k);
      source.v = std::move(scattered->v);
      if (!scattered->page_table.empty()) scattered->places.page_table = scattered->page_table.data();
    } else {
      source.k = Guarded(s.k, With(keys, c.head_dim));
      source.v = Guarded(s.v, With(keys, c.value_dim));
    }
    if (!s.bias.shape.empty()) source.bias = Guarded(s.bias.values, s.bias.shape, AnyLayout(c, n + 1));
    source.mask = std::make_unique<GuardedMask>(c, n);
    etalon_key_source& caller = source.caller;
    REQUIRE(etalon_key_source_init(&caller, sizeof caller) == ETALON_OK);
    caller.k = source.k->get();
    caller.v = source.v->get();
    caller.left = s.left;
    caller.right = s.right;
    caller.q_offset = s.q_offset;
    caller.q_offsets = OrNull(s.q_offsets);
    caller.kv_lens = OrNull(s.kv_lens);
    caller.kv_firsts = OrNull(s.kv_firsts);
    caller.kv_starts = OrNull(s.kv_starts);
    caller.prefix_lens = OrNull(s.prefix_lens);
    caller.bias = source.bias == nullptr ? nullptr : source.bias->get();
    caller.mask = source.mask->tensor();
    caller.prepared_mask = source.mask->prepared();
    caller.places = source.scattered == nullptr ? nullptr : &source.scattered->places;
    sources.push_back(std::move(source));
  }
  desc.left = sources[0].caller.left;
  desc.right = sources[0].caller.right;
  desc.scale = c.scale;
  desc.softcap = c.softcap;
  desc.num_sources = static_cast<int32_t>(sources.size());
  desc.target = table.name;
  if (c.alibi && slopes == nullptr) desc.options = PlanDesc().options;
  const etalon_key_source& first = sources[0].caller;
  args.q = q->get();
  args.k = first.k;
  args.v = first.v;
  args.out = out->get();
  args.lse = lse->get();
  args.q_offset = first.q_offset;
  args.q_offsets = first.q_offsets;
  args.q_lens = OrNull(case_.q_lens);
  args.kv_lens = first.kv_lens;
  args.slopes = slopes == nullptr ? nullptr : slopes->get();
  args.bias = first.bias;
  args.mask = first.mask;
  args.sinks = sinks == nullptr ? nullptr : sinks->get();
  args.kv_firsts = first.kv_firsts;
  args.prefix_lens = first.prefix_lens;
  args.q_starts = OrNull(case_.q_starts);
  args.kv_starts = first.kv_starts;
  args.prepared_mask = first.prepared_mask;
  args.places = first.places;
  bool ragged = args.q_starts != nullptr;
  for (const Source& source : sources) ragged |= source.caller.kv_starts != nullptr;
  args.num_sequences = ragged ? c.batch : 0;
  for (size_t n = 1; n < sources.size(); ++n) more_.push_back(&sources[n].caller);
  args.more_sources = more_.empty() ? nullptr : more_.data();
}

etalon_attention_desc OptionsCall::PlanDesc() const {
  const OptionsCase& c = case_;
  etalon_attention_desc full = desc;
  full.num_q_heads = c.num_q_heads;
  full.num_kv_heads = c.num_kv_heads;
  full.head_dim = c.head_dim;
  full.value_dim = c.value_dim;
  full.max_batch = c.batch;
  full.max_q_len = c.LongestQ();
  for (size_t n = 0; n < sources.size(); ++n) full.max_kv_len = std::max(full.max_kv_len, c.LongestKv(n));
  full.q_dtype = q->tensor.dtype;
  full.k_dtype = sources[0].k->tensor.dtype;
  full.v_dtype = sources[0].v->tensor.dtype;
  full.out_dtype = out->tensor.dtype;
  full.options = 0;
  if (c.alibi) full.options |= ETALON_OPTION_ALIBI;
  if (sinks != nullptr) full.options |= ETALON_OPTION_SINKS;
  for (const Source& source : sources) {
    if (source.bias != nullptr) full.options |= ETALON_OPTION_BIAS;
    if (source.mask->tensor() != nullptr || source.mask->prepared() != nullptr) full.options |= ETALON_OPTION_MASK;
  }
  return full;
}

etalon_status OptionsCall::Run(const How& how, etalon_error* error) {
  desc.max_workers = how.workers;
  return RunForm(desc, PlanDesc(), args, how, error);
}

AttentionResult OptionsCall::Result() const { return {out->Values(), Floats(lse->Values())}; }

std::string OptionsCall::Damage() const {
  std::string damage;
  const auto look = [&](const std::unique_ptr<GuardedTensor>& tensor, const std::string& name) {
    if (tensor != nullptr && !tensor->Intact()) damage += name + " was written to; ";
  };
  look(q, "q");
  look(slopes, "slopes");
  look(sinks, "sinks");
  for (const Source& source : sources) {
    look(source.k, "k");
    look(source.v, "v");
    look(source.bias, "bias");
    if (!source.mask->Intact()) damage += "mask was written to; ";
  }
  if (!out->GapsIntact()) damage += "memory around out was written to; ";
  if (!lse->GapsIntact()) damage += "memory around lse was written to; ";
  return damage;
}

etalon_plan_info OptionsCall::Info(int32_t workers) const {
  etalon_attention_desc full = PlanDesc();
  full.max_workers = workers;
  etalon_plan plan;
  etalon_plan_info info;
  REQUIRE(etalon_plan_init(&plan, &full, nullptr) == ETALON_OK);
  REQUIRE(etalon_plan_info_init(&info, sizeof info) == ETALON_OK);
  REQUIRE(etalon_plan_get_info(&plan, &args, &info, nullptr) == ETALON_OK);
  return info;
}

void OptionsCall::Forget() {
  const auto spoil = [](auto* object) { std::memset(static_cast<void*>(object), 0xEE, sizeof *object); };
  const auto spoil_numbers = [](std::vector<int64_t>* numbers) { std::fill(numbers->begin(), numbers->end(), -1); };
  spoil(&desc);
  spoil(&args);
  for (const std::unique_ptr<GuardedTensor>* tensor : {&q, &out, &lse, &slopes, &sinks}) {
    if (*tensor != nullptr) spoil(&(*tensor)->tensor);
  }
  spoil_numbers(&case_.q_starts);
  spoil_numbers(&case_.q_lens);
  for (size_t n = 0; n < sources.size(); ++n) {
    Source& source = sources[n];
    spoil(&source.caller);
    for (const std::unique_ptr<GuardedTensor>* tensor : {&source.k, &source.v, &source.bias}) {
      if (*tensor != nullptr) spoil(&(*tensor)->tensor);
    }
    source.mask->Forget();
    if (source.scattered != nullptr) spoil(&source.scattered->places);
    SourceCase& s = case_.sources[n];
    for (std::vector<int64_t>* numbers : {&s.q_offsets, &s.kv_lens, &s.kv_firsts, &s.kv_starts, &s.prefix_lens}) {
      spoil_numbers(numbers);
    }
  }
  std::fill(more_.begin(), more_.end(), nullptr);
}

AttentionResult Run(const OptionsCase& c, const KernelTable& table, const How& how) {
  OptionsCall call(c, table);
  etalon_error error;
  const etalon_status status = call.Run(how, &error);
  CHECK_MESSAGE(status == ETALON_OK, std::string(error.text));
  CHECK(call.Damage() == "");
  return call.Result();
}

AttentionResult RunEveryForm(const OptionsCase& c, const KernelTable& table) {
  const AttentionResult got = Run(c, table);
  for (const How& how : EveryForm()) {
    INFO(Describe(how));
    CHECK(Difference(Run(c, table, how), got) == "");
  }
  return got;
}

namespace {

// measure(&bytes, &error), then run(workspace, parallel, &error) in exactly these bytes.
template <typename Measure, typename Function>
void RunIn(const How& how, Measure measure, Function run) {
  etalon_error error;
  size_t bytes = 0;
  etalon_status status = measure(&bytes, &error);
  CHECK_MESSAGE(status == ETALON_OK, std::string(error.text));
  GuardBuffer memory(bytes, how.guard, 0, how.fill);
  const etalon_workspace workspace = {memory.data(), bytes};
  const Loop loop(how.loop, how.workers, how.seed);
  status = run(&workspace, loop.get(), &error);
  CHECK_MESSAGE(status == ETALON_OK, std::string(error.text));
  CHECK(memory.Intact());
}

}  // namespace

Array CallScores(const OptionsCase& c, const KernelTable& table, const How& how) {
  OptionsCall call(c, table);
  const Shape shape = With(c.RowsShape(), c.sources[0].kv_len);
  const GuardedTensor scores(Unwritten(DType::kF32, shape), shape);
  call.desc.max_workers = how.workers;
  call.args.v = call.args.lse = nullptr;
  call.args.out = scores.get();
  RunIn(
      how,
      [&](size_t* bytes, etalon_error* error) {
        return etalon_scores_workspace_bytes(&call.desc, &call.args, bytes, error);
      },
      [&](const etalon_workspace* workspace, const etalon_parallel* parallel, etalon_error* error) {
        return etalon_scores(&call.desc, &call.args, workspace, parallel, error);
      });
  CHECK(call.Damage() == "");
  CHECK(scores.GapsIntact());
  return scores.Values();
}

AttentionResult CallByStates(const OptionsCase& c, const KernelTable& table, const How& how) {
  OptionsCall call(c, table);
  const etalon_tensor* sinks = call.args.sinks;
  call.desc.max_workers = how.workers;
  call.desc.options &= ~static_cast<uint32_t>(ETALON_OPTION_SINKS);
  call.args.out = call.args.lse = call.args.sinks = nullptr;
  const int64_t blocks = etalon_num_blocks(c.sources[0].kv_len);
  const GuardedStates states({c.batch, c.num_q_heads, c.num_kv_heads, c.q_len, 0, c.head_dim, c.value_dim}, blocks,
                             blocks + 1);
  RunIn(
      how,
      [&](size_t* bytes, etalon_error* error) {
        return etalon_block_states_workspace_bytes(&call.desc, &call.args, bytes, error);
      },
      [&](const etalon_workspace* workspace, const etalon_parallel* parallel, etalon_error* error) {
        return etalon_block_states(&call.desc, &call.args, states.get(), workspace, parallel, error);
      });
  etalon_merge_states_args merge;
  REQUIRE(etalon_merge_states_args_init(&merge, sizeof merge) == ETALON_OK);
  merge.states = states.get();
  merge.out = call.out->get();
  merge.lse = call.lse->get();
  merge.sinks = sinks;
  merge.target = table.name;
  merge.max_workers = how.workers;
  RunIn(
      how,
      [&](size_t* bytes, etalon_error* error) { return etalon_merge_states_workspace_bytes(&merge, bytes, error); },
      [&](const etalon_workspace* workspace, const etalon_parallel* parallel, etalon_error* error) {
        return etalon_merge_states(&merge, workspace, parallel, error);
      });
  CHECK(call.Damage() == "");
  return call.Result();
}

}  // namespace etalon::test
