// etalon_mask_bytes and etalon_mask_prepare. What is in a prepared mask is nobody's business: it is judged by what
// etalon_scores shows through it.
#include <cmath>

#include "tests/fuzz/runner.h"

namespace etalon::fuzz {
namespace {

constexpr Wide kMostWork = 400000;
constexpr int64_t kMostToLookAt = 200000;

class MaskRunner : public Runner {
 public:
  using Runner::Runner;

  // False if the mask was refused, or not even tried.
  bool Run() {
    RememberAll();
    Judged judged = JudgeCall(*call_, Depth::kMemory, nullptr);
    Judged memory = judged;
    JudgeMemory(*call_, nullptr, 0, &memory);
    const bool readable = memory.memory_exists && judged.work <= kMostWork;
    if (!memory.arrays_exist || (judged.faults.must == 0 && !readable)) return false;
    if (call_->null_result) judged.faults.Must(ETALON_NULL_POINTER);
    call_->has_parallel = call_->query_without_memory = false;  // serial, and the mask is read
    if (Query(judged.faults, &bytes_) != ETALON_OK) bytes_ = 4096;
    MakeWorkspace(bytes_);
    const bool right = judged.faults.must == 0;
    const etalon_mask_args& a = judged.mask;
    const bool rows = a.batch > 0 && a.num_heads > 0 && a.q_len > 0;
    Wide elements = rows ? 1 : 0;
    for (Wide size : {Wide{a.batch}, Wide{a.num_heads}, Wide{a.q_len}, a.kv_len + Wide{1}}) {
      if (elements <= kMostToLookAt) elements *= size;
    }
    can_look_ = right && elements <= kMostToLookAt;
    if (can_look_) dense_ = ShownBy(*call_, judged);
    Compute("mask_prepare", judged, bytes_, [this](etalon_error* error) { return Prepare(error); });
    return prepared_;
  }

  // Where it is not needed where it was made, nor from what.
  void LookAt() {
    if (!can_look_) return;
    Block* copy = call_->arena.Add("copy of the mask", bytes_);
    std::memcpy(copy->data(), workspace_.data, bytes_);
    for (const auto& block : call_->arena.blocks()) {
      if (block.get() != copy) std::memset(block->data(), 0xEE, block->size());
    }
    Look(reinterpret_cast<const etalon_mask*>(copy->data()), dense_.batch == 1 ? 2 : dense_.batch,
         dense_.num_heads == 1 ? 2 : dense_.num_heads);
  }

  // A copy in the memory of a call.
  PreparedMask CopyTo(Arena* arena) const {
    PreparedMask mask;
    mask.block = arena->Add("prepared mask", bytes_);
    std::memcpy(mask.block->data(), workspace_.data, bytes_);
    mask.bytes = bytes_;
    mask.runs = call_->tensors[call_->SlotOf("mask")] == nullptr;
    mask.dense = dense_;
    return mask;
  }

 private:
  etalon_status Prepare(etalon_error* error) {
    const etalon_mask* const untouched = reinterpret_cast<const etalon_mask*>(this);
    const etalon_mask* mask = untouched;
    const etalon_status status =
        etalon_mask_prepare(ArgsAs<etalon_mask_args>(), Workspace(), call_->null_result ? nullptr : &mask, error);
    prepared_ = status == ETALON_OK;
    if (mask != (prepared_ ? workspace_.data : untouched)) Wrong("mask_prepare has told a wrong place");
    for (size_t i = bytes_; prepared_ && i < workspace_.bytes; ++i) {
      const unsigned char* byte = static_cast<const unsigned char*>(workspace_.data) + i;
      if (*byte != *workspace_block_->before(reinterpret_cast<uintptr_t>(byte))) Wrong("mask_prepare has written more");
    }
    return status;
  }

  // Through scores of 0.
  void Look(const etalon_mask* mask, int64_t batch, int64_t heads) const {
    const int64_t q_len = dense_.q_len, kv_len = dense_.kv_len;
    if (batch == 0 || q_len == 0) return;
    float zero = 0;
    std::vector<float> scores(static_cast<size_t>(batch * heads * q_len * kv_len), 1.0f);
    etalon_tensor q = {&zero, ETALON_F32, 4, {batch, heads, q_len, 1}, {}, {}};
    etalon_tensor k = {&zero, ETALON_F32, 4, {batch, 1, kv_len, 1}, {}, {}};
    etalon_tensor out;
    const int64_t shape[] = {batch, heads, q_len, kv_len};
    etalon_attention_desc desc;
    etalon_attention_args args;
    if (etalon_tensor_init(&out, scores.data(), ETALON_F32, 4, shape, nullptr) != ETALON_OK ||
        etalon_attention_desc_init(&desc, sizeof desc) != ETALON_OK ||
        etalon_attention_args_init(&args, sizeof args) != ETALON_OK) {
      Wrong("no scores of a mask");
    }
    args.q = &q;
    args.k = &k;
    args.out = &out;
    args.prepared_mask = mask;
    size_t bytes = 0;
    etalon_error error;
    if (etalon_scores_workspace_bytes(&desc, &args, &bytes, &error) != ETALON_OK) Wrong(error.text);
    Block memory("workspace of scores", bytes, 0);
    const etalon_workspace workspace = {memory.data(), bytes};
    if (etalon_scores(&desc, &args, &workspace, nullptr, &error) != ETALON_OK) Wrong(error.text);
    size_t at = 0;
    for (int64_t b = 0; b < batch; ++b) {
      for (int64_t h = 0; h < heads; ++h) {
        for (int64_t i = 0; i < q_len; ++i) {
          for (int64_t t = 0; t < kv_len; ++t, ++at) {
            if (scores[at] == (dense_.Shows(b, h, i, t) ? 0.0f : -HUGE_VALF)) continue;
            Wrong("the prepared mask is wrong for sequence " + std::to_string(b) + ", head " + std::to_string(h) +
                  ", query " + std::to_string(i) + ", key " + std::to_string(t));
          }
        }
      }
    }
  }

  size_t bytes_ = 0;
  bool prepared_ = false;
  bool can_look_ = false;
  DenseMask dense_;
};

}  // namespace

void RunMask(Call* call) {
  MaskRunner runner(call);
  if (runner.Run()) runner.LookAt();
}

void PrepareMasks(Call* call) {
  for (const Call::Unprepared& unprepared : call->unprepared) {
    MaskRunner runner(unprepared.mask.get());
    if (!runner.Run()) Stop("the fuzzer has made a wrong mask");
    call->masks.push_back(runner.CopyTo(&call->arena));
    const size_t offset = unprepared.source == 0 ? offsetof(etalon_attention_args, prepared_mask)
                                                 : offsetof(etalon_key_source, prepared_mask);
    call->HolderOf(unprepared.source)->Put(offset, call->masks.back().block->data());
  }
}

}  // namespace etalon::fuzz
