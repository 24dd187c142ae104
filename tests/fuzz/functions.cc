#include "tests/fuzz/functions.h"

namespace etalon::fuzz {
namespace {

const std::vector<Size> kQueryRows = {kBatch, kQHeads, kQLen};
const std::vector<Size> kQueries = {kBatch, kQHeads, kQLen, kHeadDim};
const std::vector<Size> kKeys = {kBatch, kKvHeads, kKvLen, kHeadDim};
const std::vector<Size> kValues = {kBatch, kKvHeads, kKvLen, kValueDim};
const std::vector<Size> kResults = {kBatch, kQHeads, kQLen, kValueDim};
const std::vector<Size> kRowsOfKeys = {kBatch, kQHeads, kQLen, kKvLen};
const std::vector<Size> kStateRows = {kBatch, kQHeads, kQLen, kBlocks};
const std::vector<Size> kStateSums = {kBatch, kQHeads, kQLen, kBlocks, kValueDim};

constexpr bool kAnyType = false, kF32 = true;

Slot Input(const char* name, size_t offset, bool f32, const std::vector<Size>& shape) {
  return {name, offset, false, false, false, f32, shape};
}
Slot Output(const char* name, size_t offset, bool f32, const std::vector<Size>& shape) {
  return {name, offset, false, true, false, f32, shape};
}
Slot Optional(const char* name, size_t offset) { return {name, offset, false, true, true, kF32, kQueryRows}; }

std::vector<Slot> States(bool output) {
  return {{"m", offsetof(etalon_states, m), true, output, false, kF32, kStateRows},
          {"l", offsetof(etalon_states, l), true, output, false, kF32, kStateRows},
          {"o", offsetof(etalon_states, o), true, output, false, kF32, kStateSums}};
}

FunctionInfo OfAttentionArgs(const char* name) {
  using Args = etalon_attention_args;
  FunctionInfo info = {};
  info.name = name;
  info.has_desc = true;
  info.has_workspace = true;
  info.args_bytes = sizeof(Args);
  info.slots = {Input("q", offsetof(Args, q), kAnyType, kQueries), Input("k", offsetof(Args, k), kAnyType, kKeys)};
  info.absent = {{offsetof(Args, slopes), ETALON_UNSUPPORTED},
                 {offsetof(Args, bias), ETALON_UNSUPPORTED},
                 {offsetof(Args, mask), ETALON_UNSUPPORTED},
                 {offsetof(Args, sinks), ETALON_UNSUPPORTED}};
  info.left = info.right = info.target = info.max_workers = info.reserved = info.states = kNowhere;
  info.q_offset = offsetof(Args, q_offset);
  info.q_offsets = offsetof(Args, q_offsets);
  info.q_lens = offsetof(Args, q_lens);
  info.kv_lens = offsetof(Args, kv_lens);
  return info;
}

FunctionInfo Attention(const char* name) {
  using Args = etalon_attention_args;
  FunctionInfo info = OfAttentionArgs(name);
  info.slots.push_back(Input("v", offsetof(Args, v), kAnyType, kValues));
  info.slots.push_back(Output("out", offsetof(Args, out), kAnyType, kResults));
  info.slots.push_back(Optional("lse", offsetof(Args, lse)));
  return info;
}

FunctionInfo Scores() {
  using Args = etalon_attention_args;
  FunctionInfo info = OfAttentionArgs("scores");
  info.slots.push_back(Output("out", offsetof(Args, out), kF32, kRowsOfKeys));
  info.absent.push_back({offsetof(Args, v), ETALON_BAD_VALUE});
  info.absent.push_back({offsetof(Args, lse), ETALON_BAD_VALUE});
  return info;
}

FunctionInfo BlockStates() {
  using Args = etalon_attention_args;
  FunctionInfo info = OfAttentionArgs("block_states");
  info.slots.push_back(Input("v", offsetof(Args, v), kAnyType, kValues));
  for (const Slot& slot : States(true)) info.slots.push_back(slot);
  info.absent.push_back({offsetof(Args, out), ETALON_BAD_VALUE});
  info.absent.push_back({offsetof(Args, lse), ETALON_BAD_VALUE});
  return info;
}

FunctionInfo Softmax() {
  using Args = etalon_softmax_args;
  return {"softmax",
          false,
          false,
          sizeof(Args),
          {Input("scores", offsetof(Args, scores), kF32, kRowsOfKeys),
           Output("weights", offsetof(Args, weights), kF32, kRowsOfKeys), Optional("lse", offsetof(Args, lse))},
          {{offsetof(Args, mask), ETALON_UNSUPPORTED}},
          offsetof(Args, left),
          offsetof(Args, right),
          offsetof(Args, q_offset),
          offsetof(Args, q_offsets),
          offsetof(Args, q_lens),
          offsetof(Args, kv_lens),
          offsetof(Args, target),
          kNowhere,
          kNowhere,
          kNowhere};
}

FunctionInfo WeightedSum() {
  using Args = etalon_weighted_sum_args;
  return {"weighted_sum",
          false,
          true,
          sizeof(Args),
          {Input("weights", offsetof(Args, weights), kF32, kRowsOfKeys),
           Input("v", offsetof(Args, v), kAnyType, kValues), Output("out", offsetof(Args, out), kAnyType, kResults)},
          {{offsetof(Args, mask), ETALON_UNSUPPORTED}},
          offsetof(Args, left),
          offsetof(Args, right),
          offsetof(Args, q_offset),
          offsetof(Args, q_offsets),
          offsetof(Args, q_lens),
          offsetof(Args, kv_lens),
          offsetof(Args, target),
          offsetof(Args, max_workers),
          offsetof(Args, reserved),
          kNowhere};
}

FunctionInfo Merge() {
  using Args = etalon_merge_args;
  FunctionInfo info = {};
  info.name = "merge";
  info.args_bytes = sizeof(Args);
  info.slots = {
      Input("out1", offsetof(Args, out1), kAnyType, kResults), Input("lse1", offsetof(Args, lse1), kF32, kQueryRows),
      Input("out2", offsetof(Args, out2), kAnyType, kResults), Input("lse2", offsetof(Args, lse2), kF32, kQueryRows),
      Output("out", offsetof(Args, out), kAnyType, kResults),  Optional("lse", offsetof(Args, lse))};
  info.left = info.right = info.q_offset = info.q_offsets = info.q_lens = info.kv_lens = kNowhere;
  info.max_workers = info.reserved = info.states = kNowhere;
  info.target = offsetof(Args, target);
  return info;
}

FunctionInfo MergeStates() {
  using Args = etalon_merge_states_args;
  FunctionInfo info = {};
  info.name = "merge_states";
  info.has_workspace = true;
  info.args_bytes = sizeof(Args);
  info.slots = States(false);
  info.slots.push_back(Output("out", offsetof(Args, out), kAnyType, kResults));
  info.slots.push_back(Optional("lse", offsetof(Args, lse)));
  info.absent = {{offsetof(Args, sinks), ETALON_UNSUPPORTED}};
  info.left = info.right = info.q_offset = info.q_offsets = info.q_lens = info.kv_lens = kNowhere;
  info.target = offsetof(Args, target);
  info.max_workers = offsetof(Args, max_workers);
  info.reserved = offsetof(Args, reserved);
  info.states = offsetof(Args, states);
  return info;
}

}  // namespace

const FunctionInfo& InfoOf(Function function) {
  static const FunctionInfo infos[kNumFunctions] = {Attention("attention"), Attention("begin, run"),
                                                    Attention("execute"),   Scores(),
                                                    BlockStates(),          Softmax(),
                                                    WeightedSum(),          Merge(),
                                                    MergeStates()};
  return infos[function];
}

}  // namespace etalon::fuzz
