// Descriptors, what a call brings beside its tensors, and all of a call.
#include <cmath>

#include "tests/fuzz/judge_parts.h"

namespace etalon::fuzz {
namespace {

constexpr int32_t kManyWorkers = 1 << 10;
constexpr uint32_t kKnownOptions = ETALON_OPTION_ALIBI | ETALON_OPTION_BIAS | ETALON_OPTION_MASK | ETALON_OPTION_SINKS;

void JudgeWorkers(int32_t max_workers, Faults* faults) {
  if (max_workers < 0) faults->Must(ETALON_BAD_VALUE);
  if (max_workers > kManyWorkers) {
    faults->May(ETALON_BAD_VALUE);
    faults->May(ETALON_OVERFLOW);
  }
}

void JudgeTarget(const char* target, Faults* faults) {
  if (target == nullptr) return;
  for (int32_t i = 0; i < etalon_num_targets(); ++i) {
    etalon_target known;
    if (etalon_get_target(i, &known) != ETALON_OK || std::strcmp(known.name, target) != 0) continue;
    if (known.missing != 0) faults->Must(ETALON_TARGET_UNAVAILABLE);
    return;
  }
  faults->Must(ETALON_UNKNOWN_TARGET);
}

// The arguments bring what the descriptor names, and nothing else. Without a plan, naming nothing is "as args".
void JudgeOptions(const Call& call, bool planned, Judged* judged) {
  const etalon_attention_args args = judged->Arg<etalon_attention_args>(0);
  uint32_t given = 0;
  if (args.slopes != nullptr) given |= ETALON_OPTION_ALIBI;
  if (args.sinks != nullptr && IsWholeAttention(call.function)) given |= ETALON_OPTION_SINKS;
  for (const Source& source : judged->sources) {
    if (source.args.bias != nullptr) given |= ETALON_OPTION_BIAS;
    if (source.args.mask != nullptr || source.args.prepared_mask != nullptr) given |= ETALON_OPTION_MASK;
  }
  const uint32_t named = judged->desc.options;
  if (named == 0 && !planned) return;
  if ((given & ~named) != 0) judged->faults.Must(ETALON_BAD_VALUE);
  const uint32_t has_default = ETALON_OPTION_ALIBI;
  if ((named & kKnownOptions & ~given & ~has_default) != 0) judged->faults.Must(ETALON_NULL_POINTER);
}

void JudgeAgainstDesc(const Call& call, bool planned, Judged* judged) {
  const etalon_attention_desc& d = judged->desc;
  const Sizes& sizes = judged->sizes;
  const auto settle = [&](int64_t of_desc, Size size) {
    if (of_desc < 0) return;  // which is a fault of the descriptor, not of a tensor
    if ((planned || of_desc != 0) && of_desc != sizes[size]) judged->faults.Must(ETALON_BAD_SHAPE);
  };
  const auto settle_most = [&](int64_t most, int64_t size) {
    if ((planned || most != 0) && size > most) judged->faults.Must(ETALON_BAD_SHAPE);
    if (size > kLargeSize) judged->faults.May(ETALON_OVERFLOW);
  };
  const auto settle_type = [&](int32_t of_desc, size_t slot) {
    if (!judged->wanted[slot] || (of_desc != 0 && !IsNumber(of_desc))) return;
    if ((planned || of_desc != 0) && of_desc != judged->tensors[slot].dtype) judged->faults.Must(ETALON_BAD_DTYPE);
  };
  if (!judged->wanted[0] || !judged->wanted[1]) return;
  settle(d.num_q_heads, kQHeads);
  settle(d.num_kv_heads, kKvHeads);
  settle(d.head_dim, kHeadDim);
  settle_type(d.q_dtype, 0);
  settle_type(d.k_dtype, 1);
  settle_most(d.max_batch, sizes[kBatch]);
  settle_most(d.max_q_len, sizes[kQLen]);
  for (int i = 0; i < judged->num_sources; ++i) settle_most(d.max_kv_len, sizes.Of(i, kKvLen));
  if (call.function == kScores || !judged->wanted[2]) return;
  settle(d.value_dim, kValueDim);
  settle_type(d.v_dtype, 2);
  if (call.function != kBlockStates) settle_type(d.out_dtype, 3);
}

}  // namespace

bool ReadDescriptor(const Block& block, size_t first, size_t size, void* ours, Faults* faults) {
  const size_t struct_size = block.Get<size_t>();
  if (struct_size < first || struct_size > 4096) {
    faults->Must(ETALON_BAD_STRUCT_SIZE);
    return false;
  }
  for (size_t i = size; i < struct_size; ++i) {
    if (block.data()[i] != 0) faults->Must(ETALON_UNSUPPORTED);
  }
  std::memset(ours, 0, size);
  std::memcpy(ours, block.data(), struct_size < size ? struct_size : size);
  return true;
}

std::string Faults::Disagrees(etalon_status status) const {
  if (status == ETALON_OK && must == 0) return "";
  if (status != ETALON_OK && status > 0 && status < 32 && ((must | may) >> status & 1) != 0) return "";
  std::string text = std::string("the answer is ") + etalon_status_name(status) + ", but";
  text += must == 0 ? " nothing is wrong" : " these are wrong:";
  for (int i = 1; i < 32; ++i) {
    if ((must >> i & 1) != 0) text += std::string(" ") + etalon_status_name(i);
  }
  return text;
}

Faults JudgeDesc(const Call& call, bool planned) {
  Faults faults;
  etalon_attention_desc d;
  if (call.null_desc) {
    faults.Must(ETALON_NULL_POINTER);
    return faults;
  }
  if (!ReadDescriptor(*call.desc, sizeof d, sizeof d, &d, &faults)) return faults;
  for (int64_t size : {d.max_batch, d.max_q_len, d.max_kv_len}) {
    if (size < 0) faults.Must(ETALON_BAD_SHAPE);
    if (size > kLargest) faults.Must(ETALON_OVERFLOW);
    if (size > kLargeSize) faults.May(ETALON_OVERFLOW);
  }
  if (!std::isfinite(d.scale)) faults.Must(ETALON_BAD_VALUE);
  if (!std::isfinite(d.softcap) || d.softcap < 0) faults.Must(ETALON_BAD_VALUE);
  if (d.math != ETALON_MATH_EXACT) faults.Must(d.math == ETALON_MATH_FAST ? ETALON_UNSUPPORTED : ETALON_BAD_VALUE);
  if ((d.options & ~kKnownOptions) != 0) faults.Must(ETALON_UNSUPPORTED);
  const bool whole = IsWholeAttention(call.function);
  if (d.num_sources < 0 || d.num_sources > (whole ? ETALON_MAX_SOURCES : 1)) faults.Must(ETALON_BAD_VALUE);
  if (!whole && (d.options & ETALON_OPTION_SINKS) != 0) faults.Must(ETALON_BAD_VALUE);
  JudgeWorkers(d.max_workers, &faults);
  JudgeTarget(d.target, &faults);
  // Without a plan, 0 is "as args".
  for (int64_t heads : {d.num_q_heads, d.num_kv_heads}) {
    if (heads < 0) faults.Must(ETALON_BAD_SHAPE);
    if (heads == 0 && planned) faults.Must(ETALON_NO_HEADS);
    if (heads > kLargeSize) faults.May(ETALON_OVERFLOW);
  }
  if (d.num_q_heads > 0 && d.num_kv_heads > 0 && d.num_q_heads % d.num_kv_heads != 0) faults.Must(ETALON_BAD_HEADS);
  const auto judge_dim = [&](int64_t dim) {
    if (dim < 0 || (dim == 0 && planned)) faults.Must(ETALON_BAD_HEAD_DIM);
    if (dim > kLargeSize) faults.May(ETALON_OVERFLOW);
  };
  const auto judge_type = [&](int32_t dtype) {
    if (!IsNumber(dtype) && (dtype != 0 || planned)) faults.Must(ETALON_BAD_DTYPE);
  };
  judge_dim(d.head_dim);
  judge_type(d.q_dtype);
  judge_type(d.k_dtype);
  if (call.function == kScores) return faults;
  judge_dim(d.value_dim);
  judge_type(d.v_dtype);
  if (call.function != kBlockStates) judge_type(d.out_dtype);
  return faults;
}

Judged JudgeCall(const Call& call, Depth depth, const etalon_attention_desc* plan_desc) {
  Judged judged(call);
  const FunctionInfo& info = *call.info;
  if (plan_desc != nullptr) {
    judged.desc = *plan_desc;
  } else if (info.has_desc) {
    judged.faults.Add(JudgeDesc(call, false));
    Faults again;
    const size_t size = sizeof judged.desc;
    if (call.null_desc || !ReadDescriptor(*call.desc, size, size, &judged.desc, &again)) return judged;
  }
  if (call.null_args) judged.faults.Must(ETALON_NULL_POINTER);
  if (call.null_args ||
      !ReadDescriptor(*call.args, info.first_args_bytes, info.args_bytes, judged.args, &judged.faults)) {
    return judged;
  }
  if (call.function == kMaskPrepare) {
    JudgeMask(call, depth, &judged);
    return judged;
  }
  const bool reads_states = !(call.function == kBlockStates && depth == Depth::kShapes);
  if (call.null_states && reads_states) judged.faults.Must(ETALON_NULL_POINTER);
  for (const Absent& absent : info.absent) {
    if (judged.Arg<const void*>(absent.offset) != nullptr) judged.faults.Must(absent.status);
  }
  if (info.reserved != kNowhere && judged.Arg<int32_t>(info.reserved) != 0) judged.faults.Must(ETALON_UNSUPPORTED);
  if (info.max_workers != kNowhere) JudgeWorkers(judged.Arg<int32_t>(info.max_workers), &judged.faults);
  if (info.target != kNowhere) JudgeTarget(judged.Arg<const char*>(info.target), &judged.faults);
  if (info.HasSequences()) ReadSources(call, &judged);
  JudgeTensors(call, depth, &judged);
  if (info.HasSequences()) JudgeSequences(call, &judged);
  for (size_t i = 0; i < call.slots.size(); ++i) {
    if (call.slots[i].broadcast && judged.lengths_known) JudgeBroadcast(call, i, &judged);
  }
  if (info.has_desc) {
    JudgeOptions(call, plan_desc != nullptr, &judged);
    JudgeAgainstDesc(call, plan_desc != nullptr, &judged);
  }
  if (call.function == kBlockStates && judged.wanted[1] && judged.wanted[3] &&
      judged.sizes[kBlocks] != (judged.sizes[kKvRows] + Wide{511}) / 512) {
    judged.faults.Must(ETALON_BAD_SHAPE);
  }
  // Rows must be countable, though a query may come before they have memory.
  const Elements& q = judged.tensors[0];
  const Wide rows = Wide{q.shape[0]} * q.shape[1];
  if (info.has_desc && judged.wanted[0] && !q.empty && (rows > INT64_MAX || rows * q.shape[2] > INT64_MAX)) {
    judged.faults.Must(ETALON_OVERFLOW);
  }
  const bool strides = depth == Depth::kMemory && !judged.faults.Has(ETALON_BAD_SHAPE);
  if (strides && (call.function == kMergeStates || call.function == kBlockStates)) JudgeSpacing(call, &judged);
  const Sizes& s = judged.sizes;
  Wide keys = 1;
  for (int i = 0; i < judged.num_sources; ++i) keys += s.Of(i, kKvLen);
  if (call.function == kMergeStates) keys = s[kBlocks] + Wide{1};
  // Sizes are below 2^63 and may not be multiplied all at once.
  judged.work = 1;
  for (Wide factor : {Wide{s[kBatch]}, Wide{s[kQHeads]}, Wide{s[kQLen]}, keys, Wide{s[kHeadDim]} + s[kValueDim]}) {
    if (judged.work < (Wide{1} << 60)) judged.work *= factor;
  }
  return judged;
}

int32_t MaxWorkersOf(const Call& call, const Judged& judged) {
  if (!call.info->has_desc && call.info->max_workers == kNowhere) return 0;
  const int32_t most = call.info->has_desc ? judged.desc.max_workers : judged.Arg<int32_t>(call.info->max_workers);
  return most == 0 ? 1 : most;
}

}  // namespace etalon::fuzz
