#include "tests/fuzz/functions.h"

namespace etalon::fuzz {
namespace {

const std::vector<Size> kQueryRows = {kBatch, kQHeads, kQLen};
const std::vector<Size> kResults = {kBatch, kQHeads, kQLen, kValueDim};
const std::vector<Size> kColumns = {kBatch, kQHeads, kQLen, kKvLen};
const std::vector<Size> kOfHeads = {kBatch, kQHeads};
// As they lie in tensors that may be ragged.
const std::vector<Size> kQueries = {kQBatch, kQHeads, kQRows, kHeadDim};
const std::vector<Size> kKeys = {kKvBatch, kKvHeads, kKvRows, kHeadDim};
const std::vector<Size> kValues = {kKvBatch, kKvHeads, kKvRows, kValueDim};
const std::vector<Size> kOut = {kQBatch, kQHeads, kQRows, kValueDim};
const std::vector<Size> kLse = {kQBatch, kQHeads, kQRows};
const std::vector<Size> kScoresOut = {kQBatch, kQHeads, kQRows, kKvRows};

Slot Input(const char* name, size_t offset, Types types, const std::vector<Size>& shape) {
  return {name, offset, Holder::kArgs, 0, false, false, types, false, shape};
}
Slot Output(const char* name, size_t offset, Types types, const std::vector<Size>& shape) {
  return {name, offset, Holder::kArgs, 0, true, false, types, false, shape};
}
Slot OptionalOutput(const char* name, size_t offset, const std::vector<Size>& shape) {
  return {name, offset, Holder::kArgs, 0, true, true, Types::kF32, false, shape};
}
Slot Option(const char* name, size_t offset, Types types, const std::vector<Size>& shape) {
  return {name, offset, Holder::kArgs, 0, false, true, types, true, shape};
}

std::vector<Slot> States(bool output, const std::vector<Size>& rows) {
  std::vector<Size> sums = rows;
  sums.push_back(kBlocks);
  std::vector<Slot> slots = {
      {"m", offsetof(etalon_states, m), Holder::kStates, 0, output, false, Types::kF32, false, sums},
      {"l", offsetof(etalon_states, l), Holder::kStates, 0, output, false, Types::kF32, false, sums}};
  sums.push_back(kValueDim);
  slots.push_back({"o", offsetof(etalon_states, o), Holder::kStates, 0, output, false, Types::kF32, false, sums});
  return slots;
}

FunctionInfo Nothing(const char* name, size_t args_bytes) {
  FunctionInfo info = {};
  info.name = name;
  info.args_bytes = info.first_args_bytes = args_bytes;
  info.left = info.right = info.q_offset = info.q_offsets = info.q_lens = info.kv_lens = kNowhere;
  info.target = info.max_workers = info.reserved = info.states = kNowhere;
  return info;
}

FunctionInfo OfAttentionArgs(const char* name) {
  using Args = etalon_attention_args;
  FunctionInfo info = Nothing(name, sizeof(Args));
  info.has_desc = true;
  info.has_workspace = true;
  info.first_args_bytes = offsetof(Args, kv_firsts);
  info.plain = {Input("q", offsetof(Args, q), Types::kAny, kQueries),
                Input("k", offsetof(Args, k), Types::kAny, kKeys)};
  info.option = {Option("slopes", offsetof(Args, slopes), Types::kAny, kOfHeads),
                 Option("bias", offsetof(Args, bias), Types::kBias, kColumns),
                 Option("mask", offsetof(Args, mask), Types::kMask, kColumns)};
  info.q_offset = offsetof(Args, q_offset);
  info.q_offsets = offsetof(Args, q_offsets);
  info.q_lens = offsetof(Args, q_lens);
  info.kv_lens = offsetof(Args, kv_lens);
  return info;
}

FunctionInfo Attention(const char* name) {
  using Args = etalon_attention_args;
  FunctionInfo info = OfAttentionArgs(name);
  info.plain.push_back(Input("v", offsetof(Args, v), Types::kAny, kValues));
  info.plain.push_back(Output("out", offsetof(Args, out), Types::kAny, kOut));
  info.plain.push_back(OptionalOutput("lse", offsetof(Args, lse), kLse));
  info.option.push_back(Option("sinks", offsetof(Args, sinks), Types::kAny, kOfHeads));
  return info;
}

// What functions of one step do not take, beside those that only some of them do not.
void LeaveOut(FunctionInfo* info) {
  using Args = etalon_attention_args;
  for (size_t offset :
       {offsetof(Args, lse), offsetof(Args, sinks), offsetof(Args, q_starts), offsetof(Args, kv_starts)}) {
    info->absent.push_back({offset, ETALON_BAD_VALUE});
  }
}

FunctionInfo Scores() {
  using Args = etalon_attention_args;
  FunctionInfo info = OfAttentionArgs("scores");
  info.plain.push_back(Output("out", offsetof(Args, out), Types::kF32, kScoresOut));
  info.absent = {{offsetof(Args, v), ETALON_BAD_VALUE}};
  LeaveOut(&info);
  return info;
}

FunctionInfo BlockStates() {
  using Args = etalon_attention_args;
  FunctionInfo info = OfAttentionArgs("block_states");
  info.plain.push_back(Input("v", offsetof(Args, v), Types::kAny, kValues));
  for (const Slot& slot : States(true, kLse)) info.plain.push_back(slot);
  info.absent = {{offsetof(Args, out), ETALON_BAD_VALUE}};
  LeaveOut(&info);
  return info;
}

FunctionInfo Softmax() {
  using Args = etalon_softmax_args;
  FunctionInfo info = Nothing("softmax", sizeof(Args));
  info.plain = {Input("scores", offsetof(Args, scores), Types::kF32, kColumns),
                Output("weights", offsetof(Args, weights), Types::kF32, kColumns),
                OptionalOutput("lse", offsetof(Args, lse), kQueryRows)};
  info.option = {Option("mask", offsetof(Args, mask), Types::kBool, kColumns)};
  info.left = offsetof(Args, left);
  info.right = offsetof(Args, right);
  info.q_offset = offsetof(Args, q_offset);
  info.q_offsets = offsetof(Args, q_offsets);
  info.q_lens = offsetof(Args, q_lens);
  info.kv_lens = offsetof(Args, kv_lens);
  info.target = offsetof(Args, target);
  return info;
}

FunctionInfo WeightedSum() {
  using Args = etalon_weighted_sum_args;
  FunctionInfo info = Nothing("weighted_sum", sizeof(Args));
  info.has_workspace = true;
  info.plain = {Input("weights", offsetof(Args, weights), Types::kF32, kColumns),
                Input("v", offsetof(Args, v), Types::kAny, {kBatch, kKvHeads, kKvLen, kValueDim}),
                Output("out", offsetof(Args, out), Types::kAny, kResults)};
  info.option = {Option("mask", offsetof(Args, mask), Types::kBool, kColumns)};
  info.left = offsetof(Args, left);
  info.right = offsetof(Args, right);
  info.q_offset = offsetof(Args, q_offset);
  info.q_offsets = offsetof(Args, q_offsets);
  info.q_lens = offsetof(Args, q_lens);
  info.kv_lens = offsetof(Args, kv_lens);
  info.target = offsetof(Args, target);
  info.max_workers = offsetof(Args, max_workers);
  info.reserved = offsetof(Args, reserved);
  return info;
}

FunctionInfo Merge() {
  using Args = etalon_merge_args;
  FunctionInfo info = Nothing("merge", sizeof(Args));
  info.plain = {Input("out1", offsetof(Args, out1), Types::kAny, kResults),
                Input("lse1", offsetof(Args, lse1), Types::kF32, kQueryRows),
                Input("out2", offsetof(Args, out2), Types::kAny, kResults),
                Input("lse2", offsetof(Args, lse2), Types::kF32, kQueryRows),
                Output("out", offsetof(Args, out), Types::kAny, kResults),
                OptionalOutput("lse", offsetof(Args, lse), kQueryRows)};
  info.target = offsetof(Args, target);
  return info;
}

FunctionInfo MergeStates() {
  using Args = etalon_merge_states_args;
  FunctionInfo info = Nothing("merge_states", sizeof(Args));
  info.has_workspace = true;
  info.plain = States(false, kQueryRows);
  info.plain.push_back(Output("out", offsetof(Args, out), Types::kAny, kResults));
  info.plain.push_back(OptionalOutput("lse", offsetof(Args, lse), kQueryRows));
  info.option = {Option("sinks", offsetof(Args, sinks), Types::kAny, kOfHeads)};
  info.target = offsetof(Args, target);
  info.max_workers = offsetof(Args, max_workers);
  info.reserved = offsetof(Args, reserved);
  info.states = offsetof(Args, states);
  return info;
}

FunctionInfo MaskPrepare() {
  using Args = etalon_mask_args;
  FunctionInfo info = Nothing("mask_prepare", sizeof(Args));
  info.has_workspace = true;  // as which the memory of the mask is passed
  info.option = {Option("mask", offsetof(Args, mask), Types::kMask, kColumns)};
  return info;
}

}  // namespace

const SourceArray kSourceArrays[kNumSourceArrays] = {
    {"q_offsets", offsetof(etalon_attention_args, q_offsets), offsetof(etalon_key_source, q_offsets), 0},
    {"kv_lens", offsetof(etalon_attention_args, kv_lens), offsetof(etalon_key_source, kv_lens), 0},
    {"kv_firsts", offsetof(etalon_attention_args, kv_firsts), offsetof(etalon_key_source, kv_firsts), 0},
    {"kv_starts", offsetof(etalon_attention_args, kv_starts), offsetof(etalon_key_source, kv_starts), 1},
    {"prefix_lens", offsetof(etalon_attention_args, prefix_lens), offsetof(etalon_key_source, prefix_lens), 0}};

std::string Slot::FullName() const {
  return source == 0 ? name : "more_sources[" + std::to_string(source - 1) + "]." + name;
}

const FunctionInfo& InfoOf(Function function) {
  static const FunctionInfo infos[kNumFunctions] = {Attention("attention"), Attention("begin, run"),
                                                    Attention("execute"),   Scores(),
                                                    BlockStates(),          Softmax(),
                                                    WeightedSum(),          Merge(),
                                                    MergeStates(),          MaskPrepare()};
  return infos[function];
}

std::vector<Slot> SlotsOf(Function function, int num_sources) {
  using Source = etalon_key_source;
  std::vector<Slot> slots = InfoOf(function).plain;
  for (const Slot& slot : InfoOf(function).option) slots.push_back(slot);
  for (int source = 1; source < num_sources; ++source) {
    const Slot own[] = {Input("k", offsetof(Source, k), Types::kAny, kKeys),
                        Input("v", offsetof(Source, v), Types::kAny, kValues),
                        Option("bias", offsetof(Source, bias), Types::kBias, kColumns),
                        Option("mask", offsetof(Source, mask), Types::kMask, kColumns)};
    for (Slot slot : own) {
      slot.holder = Holder::kSource;
      slot.source = source;
      slots.push_back(slot);
    }
  }
  return slots;
}

}  // namespace etalon::fuzz
