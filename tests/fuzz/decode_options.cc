#include <algorithm>

#include "tests/fuzz/decode.h"

namespace etalon::fuzz {
namespace {

constexpr int64_t kMostMaskWork = 60000;  // elements of a prepared mask
constexpr int kNoMask = -1;

class OptionDecoder {
 public:
  OptionDecoder(Bytes* in, const Rows& rows, TensorDecoder* tensors, Call* call)
      : in_(in), tensors_(tensors), call_(call), sizes_(call->sizes), rows_(rows) {}

  void Decode() {
    switch (call_->function) {
      case kSoftmax:
      case kWeightedSum:
        if (in_->OneIn(3)) Columns("mask", 0, ETALON_BOOL);
        return;
      case kMergeStates:
        if (in_->OneIn(3)) OfHeads("sinks");
        return;
      case kMerge:
        return;
      default:
        return Attention();
    }
  }

 private:
  void Attention() {
    etalon_attention_desc* desc = reinterpret_cast<etalon_attention_desc*>(call_->desc->data());
    const float softcap = in_->Pick({0.0f, 0.0f, 0.0f, 0.0f, 1.5f, 30.0f, 50.0f, 0x1p-140f, 0x1p100f, 0x1p-20f});
    if (softcap != 0) desc->softcap = softcap;
    const bool whole = IsWholeAttention(call_->function);
    const int64_t slopes = in_->Pick<int64_t>({0, 0, 0, 0, 1, 2, 2});
    if (slopes > 0) options_ |= ETALON_OPTION_ALIBI;
    if (slopes == 2) OfHeads("slopes");
    if (in_->OneIn(4) && whole) {
      OfHeads("sinks");
      options_ |= ETALON_OPTION_SINKS;
    }
    OfSource(0, rows_.kv);
    const int64_t more = in_->Pick<int64_t>({0, 0, 0, 0, 0, 1, 1, 2, 3, ETALON_MAX_SOURCES - 1});
    if (whole && more > 0) MoreSources(static_cast<int>(more), desc);
    // As they are; 0 is as the arguments have it, but that standard slopes must be named.
    const bool names = IsPlanned(call_->function) || slopes == 1 || in_->OneIn(3);
    desc->options = names ? options_ : 0;
    if (in_->OneIn(5)) ShortenArgs();
  }

  // Slopes or sinks: a number for each query head, or some of them.
  void OfHeads(const char* name) {
    const int32_t dtype = 1 + static_cast<int32_t>(in_->Below(3));
    const int64_t batch = in_->OneIn(2) ? sizes_[kBatch] : 1;
    const int64_t heads = in_->OneIn(4) ? 1 : sizes_[kQHeads];
    tensors_->Add(call_->SlotOf(name), dtype, {batch, heads});
  }

  // A bias or a mask; every size may be 1 instead.
  void Columns(const char* name, int source, int32_t dtype) {
    const int64_t keys = sizes_.Of(source, kKvLen);
    if (dtype == ETALON_BITS && keys > kMostMaskWork) dtype = ETALON_BOOL;  // which may repeat one element
    std::vector<int64_t> shape;
    for (Size size : {kBatch, kQHeads, kQLen}) shape.push_back(in_->OneIn(3) ? 1 : sizes_[size]);
    if (dtype == ETALON_BITS) {
      shape.push_back(keys / 8 + (keys % 8 != 0 ? 1 : 0));
    } else {
      shape.push_back(in_->OneIn(6) ? 1 : keys);
    }
    tensors_->Add(call_->SlotOf(name, source), dtype, shape);
  }

  // Padding, prefix, bias and masks of a source whose sequences end at `ends`.
  void OfSource(int source, const std::vector<int64_t>& rows) {
    const std::vector<int64_t> ends = EndsOf(source, rows);
    Block* holder = call_->HolderOf(source);
    if (in_->OneIn(5)) DecodeLengths(in_, ends, holder, OffsetOf(source, 2), "kv_firsts", call_);
    if (in_->OneIn(5)) {
      const std::vector<int64_t> most(ends.size(), sizes_.Of(source, kKvLen) + 2);
      DecodeLengths(in_, most, holder, OffsetOf(source, 4), "prefix_lens", call_);
    }
    if (in_->OneIn(4)) {
      const int32_t dtype = 1 + static_cast<int32_t>(in_->Below(3));
      Columns("bias", source, dtype);
      options_ |= ETALON_OPTION_BIAS;
    }
    const int none = kNoMask;
    const int mask = in_->Pick({none, none, none, none, none, 0, 1, 2, 3, 4, 5});
    if (mask == 0 || mask == 1) Columns("mask", source, mask == 0 ? ETALON_BOOL : ETALON_BITS);
    if (mask > 1 && !Prepared(source, static_cast<MaskWay>(mask - 2))) return;
    if (mask != none) options_ |= ETALON_OPTION_MASK;
  }

  // A mask that is yet to be prepared. False if it would be too large.
  bool Prepared(int source, MaskWay way) {
    auto mask = std::make_unique<Call>();
    mask->function = kMaskPrepare;
    mask->info = &InfoOf(kMaskPrepare);
    mask->slots = SlotsOf(kMaskPrepare, 1);
    mask->tensors.resize(mask->slots.size());
    mask->sizes[kBatch] = in_->OneIn(3) ? 1 : sizes_[kBatch];
    mask->sizes[kQHeads] = in_->OneIn(2) ? sizes_[kQHeads] : 1;
    mask->sizes[kQLen] = sizes_[kQLen];
    mask->sizes[kKvLen] = sizes_.Of(source, kKvLen);
    int64_t work = mask->sizes[kBatch] * mask->sizes[kQHeads];
    for (Size size : {kQLen, kKvLen}) {
      if (mask->sizes[size] > kMostMaskWork) return false;
      work *= mask->sizes[size];
    }
    if (work > kMostMaskWork) return false;
    DecodeMask(in_, way, mask.get());
    call_->unprepared.push_back({source, std::move(mask)});
    const size_t offset =
        source == 0 ? offsetof(etalon_attention_args, prepared_mask) : offsetof(etalon_key_source, prepared_mask);
    call_->HolderOf(source)->Put(offset, ~uintptr_t{0});  // for now
    return true;
  }

  void MoreSources(int count, etalon_attention_desc* desc) {
    desc->num_sources = count + 1;
    call_->slots = SlotsOf(call_->function, count + 1);
    call_->tensors.resize(call_->slots.size());
    call_->more_sources = call_->arena.Add("more_sources", static_cast<size_t>(count) * sizeof(void*));
    call_->args->Put(offsetof(etalon_attention_args, more_sources), call_->more_sources->data());
    for (int source = 1; source <= count; ++source) {
      call_->sources.push_back(NewDescriptor(in_, "a key source", etalon_key_source_init, call_));
      call_->more_sources->Put(static_cast<size_t>(source - 1) * sizeof(void*), call_->sources.back()->data());
    }
    for (int source = 1; source <= count; ++source) {
      AnotherSource(source, count);
      // What bounds the keys of the first source bounds all.
      const int64_t keys = sizes_.Of(source, kKvLen);
      const bool bounds = desc->max_kv_len != 0 || IsPlanned(call_->function);
      if (bounds) desc->max_kv_len = std::max(desc->max_kv_len, keys);
    }
  }

  void AnotherSource(int source, int count) {
    Block* holder = call_->HolderOf(source);
    const int64_t batch = sizes_[kBatch];
    int64_t rows = in_->OneIn(6) ? DecodeLongLength(in_) : DecodeLength(in_);
    const int64_t of_key =
        batch * sizes_[kQHeads] * std::min(sizes_[kQLen], kMostDecodedWork) * (sizes_[kHeadDim] + sizes_[kValueDim]);
    const int64_t most = std::max<int64_t>(kMostDecodedWork / count / std::max<int64_t>(of_key, 1), 1);
    if (rows > most) rows = 1 + rows % most;
    std::vector<int64_t> of_sequences(static_cast<size_t>(batch), rows);
    const bool ragged = in_->OneIn(4);
    int64_t kv_len = rows;
    if (ragged) {
      of_sequences = DecodeStarts(in_, rows, holder, offsetof(etalon_key_source, kv_starts), "kv_starts", call_);
      kv_len = batch == 0 ? 0 : *std::max_element(of_sequences.begin(), of_sequences.end());
      call_->args->Put(offsetof(etalon_attention_args, num_sequences), batch);
    }
    sizes_.Of(source, kKvRows) = rows;
    sizes_.Of(source, kKvBatch) = ragged ? 1 : batch;
    sizes_.Of(source, kKvLen) = kv_len;
    for (const char* name : {"k", "v"}) {
      const int32_t dtype = TensorOf(*call_, call_->SlotOf(name))->dtype;
      const int64_t width = sizes_[*name == 'k' ? kHeadDim : kValueDim];
      tensors_->Add(call_->SlotOf(name, source), dtype, {sizes_.Of(source, kKvBatch), sizes_[kKvHeads], rows, width});
    }
    holder->Put(offsetof(etalon_key_source, left), DecodeReach(in_, kv_len));
    holder->Put(offsetof(etalon_key_source, right), DecodeReach(in_, kv_len));
    const int64_t offset = DecodeOffset(in_, sizes_[kQLen], kv_len);
    holder->Put(offsetof(etalon_key_source, q_offset), offset);
    if (in_->OneIn(4)) DecodeOffsets(in_, offset, holder, OffsetOf(source, 0), "q_offsets", call_);
    if (in_->OneIn(4)) DecodeLengths(in_, of_sequences, holder, OffsetOf(source, 1), "kv_lens", call_);
    OfSource(source, of_sequences);
  }

  size_t OffsetOf(int source, int array) const {
    return source == 0 ? kSourceArrays[array].in_args : kSourceArrays[array].in_source;
  }

  // kv_lens, or all rows.
  std::vector<int64_t> EndsOf(int source, const std::vector<int64_t>& rows) const {
    const int64_t* lens = call_->HolderOf(source)->Get<const int64_t*>(OffsetOf(source, 1));
    return lens == nullptr ? rows : std::vector<int64_t>(lens, lens + rows.size());
  }

  // As an older caller would pass them, if nothing that he does not know is set.
  void ShortenArgs() {
    const size_t first = call_->info->first_args_bytes;
    size_t size = std::min(call_->args->size(), call_->info->args_bytes);
    while (size > first && call_->args->Get<uint64_t>(size - 8) == 0) size -= 8;
    size += 8 * static_cast<size_t>(in_->Below(static_cast<int64_t>((call_->info->args_bytes - size) / 8 + 1)));
    Block* old = call_->args;
    call_->args = call_->arena.Add("args", size);
    std::memcpy(call_->args->data(), old->data(), size);
    call_->args->Put(0, size);
    for (ArrayBlock& array : call_->arrays) {
      if (array.holder == old) array.holder = call_->args;
    }
  }

  Bytes* in_;
  TensorDecoder* tensors_;
  Call* call_;
  Sizes& sizes_;
  const Rows& rows_;
  uint32_t options_ = 0;
};

}  // namespace

void DecodeOptions(Bytes* in, const Rows& rows, TensorDecoder* tensors, Call* call) {
  OptionDecoder(in, rows, tensors, call).Decode();
}

}  // namespace etalon::fuzz
