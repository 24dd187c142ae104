// Key sources, where their sequences lie, and what is shaped by how long these are.
#include "tests/fuzz/judge_parts.h"

namespace etalon::fuzz {
namespace {

// The block of the descriptor that a pointer names, or null.
const Block* SourceAt(const Call& call, uintptr_t pointer) {
  for (const Block* block : call.sources) {
    if (reinterpret_cast<uintptr_t>(block->data()) == pointer) return block;
  }
  return nullptr;
}

void ReadMoreSources(const Call& call, int count, Judged* judged) {
  const uintptr_t more = judged->Arg<uintptr_t>(offsetof(etalon_attention_args, more_sources));
  if (count == 1) {
    if (more != 0) judged->faults.Must(ETALON_BAD_VALUE);
    return;
  }
  if (more == 0) return judged->faults.Must(ETALON_NULL_POINTER);
  if (more % sizeof(void*) != 0) return judged->faults.Must(ETALON_MISALIGNED);
  const size_t bytes = static_cast<size_t>(count - 1) * sizeof(void*);
  const Block* pointers = call.arena.Find(more, more + bytes);
  if (pointers == nullptr || static_cast<size_t>(count - 1) > call.sources.size()) {
    judged->arrays_exist = false;
    return;
  }
  judged->num_sources = count;
  for (int i = 1; i < count; ++i) {
    uintptr_t pointer;
    std::memcpy(&pointer, reinterpret_cast<const void*>(more + static_cast<size_t>(i - 1) * sizeof(void*)),
                sizeof pointer);
    if (pointer == 0) {
      judged->faults.Must(ETALON_NULL_POINTER);
      continue;
    }
    const Block* block = SourceAt(call, pointer);
    if (block == nullptr) {
      judged->arrays_exist = false;
      continue;
    }
    Source* source = &judged->sources[i];
    source->readable = ReadDescriptor(*block, sizeof source->args, sizeof source->args, &source->args, &judged->faults);
  }
}

bool InRange(int64_t number, Wide most) { return number >= 0 && number <= most; }

// `count` + 1 numbers that never descend, within 0 ... rows. False if the sequences are unknown.
bool JudgeStarts(const int64_t* starts, int64_t count, int64_t rows, int64_t* longest, Judged* judged) {
  *longest = 0;
  for (int64_t i = 0; i <= count; ++i) {
    if (!InRange(starts[i], rows) || (i > 0 && starts[i] < starts[i - 1])) {
      judged->faults.Must(ETALON_BAD_VALUE);
      return false;
    }
    if (i > 0 && starts[i] - starts[i - 1] > *longest) *longest = starts[i] - starts[i - 1];
  }
  return true;
}

void JudgeBatch(const Call& call, Judged* judged) {
  Faults* faults = &judged->faults;
  Sizes* sizes = &judged->sizes;
  bool ragged = judged->queries.q_starts != nullptr;
  for (const Source& source : judged->sources) ragged = ragged || source.args.kv_starts != nullptr;
  const int64_t told = judged->Arg<int64_t>(offsetof(etalon_attention_args, num_sequences));
  if (!InRange(told, kLargest) || (!ragged && told != 0)) faults->Must(ETALON_BAD_VALUE);
  if (ragged && told == 0) faults->May(ETALON_BAD_VALUE);  // unless q has no rows
  int64_t& batch = (*sizes)[kBatch];
  batch = !ragged ? (*sizes)[kQBatch] : InRange(told, kLargest) ? told : 0;
  if (judged->wanted[0] && (*sizes)[kQBatch] != (judged->queries.q_starts != nullptr ? 1 : batch)) {
    faults->Must(ETALON_BAD_SHAPE);
  }
  for (int i = 0; i < judged->num_sources; ++i) {
    if (!judged->sources[i].readable || !judged->Wants(call, "k", i)) continue;
    const int64_t want = judged->sources[i].args.kv_starts != nullptr ? 1 : batch;
    if (sizes->Of(i, kKvBatch) != want) faults->Must(ETALON_BAD_SHAPE);
  }
}

// Of every sequence. All arrays can be read.
void JudgeNumbers(const Source& source, int64_t batch, Judged* judged) {
  const etalon_key_source& a = source.args;
  Faults* faults = &judged->faults;
  if (a.q_offset > kLargest || a.q_offset < -kLargest) faults->Must(ETALON_BAD_VALUE);
  const bool any = a.q_offsets != nullptr || a.kv_lens != nullptr || a.kv_firsts != nullptr || a.prefix_lens != nullptr;
  for (int64_t b = 0; any && b < batch; ++b) {
    if (source.Offset(b) > kLargest || source.Offset(b) < -kLargest) faults->Must(ETALON_BAD_VALUE);
    if (!InRange(source.End(b), source.Rows(b))) faults->Must(ETALON_BAD_VALUE);
    if (!InRange(source.First(b), source.End(b))) faults->Must(ETALON_BAD_VALUE);
    if (a.prefix_lens != nullptr && !InRange(a.prefix_lens[b], kLargest)) faults->Must(ETALON_BAD_VALUE);
  }
}

// A prepared mask was made for a call of that shape.
void JudgePrepared(const Call& call, Source* source, int64_t kv_len, Judged* judged) {
  const uintptr_t pointer = reinterpret_cast<uintptr_t>(source->args.prepared_mask);
  Faults* faults = &judged->faults;
  if (pointer == 0) return;
  if (source->args.mask != nullptr) faults->Must(ETALON_UNSUPPORTED);
  if (pointer % 8 != 0) return faults->Must(ETALON_MISALIGNED);
  const PreparedMask* found = nullptr;
  for (const PreparedMask& mask : call.masks) {
    if (reinterpret_cast<uintptr_t>(mask.block->data()) == pointer && mask.intact) found = &mask;
  }
  if (found == nullptr) {
    faults->Must(ETALON_BAD_VALUE);
    if (call.arena.Find(pointer, pointer + sizeof(uint64_t)) == nullptr) judged->arrays_exist = false;
    return;
  }
  const DenseMask& made_for = found->dense;
  const Sizes& sizes = judged->sizes;
  const bool fits = (made_for.batch == sizes[kBatch] || made_for.batch == 1) &&
                    (made_for.num_heads == sizes[kQHeads] || made_for.num_heads == 1) &&
                    made_for.q_len == sizes[kQLen] && made_for.kv_len == kv_len;
  if (!fits) return faults->Must(ETALON_BAD_SHAPE);
  source->mask = found;
}

}  // namespace

bool JudgeArray(const Call& call, const int64_t* array, Wide count, Judged* judged) {
  if (array == nullptr) return true;
  const uintptr_t first = reinterpret_cast<uintptr_t>(array);
  const Wide last = first + count * 8;
  if (first % 8 != 0) judged->faults.Must(ETALON_MISALIGNED);
  if (last > UINTPTR_MAX) judged->faults.Must(ETALON_OVERFLOW);
  if (first % 8 != 0 || last > UINTPTR_MAX) return false;
  if (call.arena.Find(first, static_cast<uintptr_t>(last)) == nullptr) judged->arrays_exist = false;
  return judged->arrays_exist;
}

void ReadSources(const Call& call, Judged* judged) {
  const FunctionInfo& info = *call.info;
  etalon_key_source* first = &judged->sources[0].args;
  judged->sources[0].readable = true;
  judged->queries.q_lens = judged->Arg<const int64_t*>(info.q_lens);
  if (!info.has_desc) {
    first->left = judged->Arg<int64_t>(info.left);
    first->right = judged->Arg<int64_t>(info.right);
    first->q_offset = judged->Arg<int64_t>(info.q_offset);
    first->q_offsets = judged->Arg<const int64_t*>(info.q_offsets);
    first->kv_lens = judged->Arg<const int64_t*>(info.kv_lens);
    return;
  }
  const etalon_attention_args a = judged->Arg<etalon_attention_args>(0);
  *first = {0,
            a.k,
            a.v,
            judged->desc.left,
            judged->desc.right,
            a.q_offset,
            a.q_offsets,
            a.kv_lens,
            a.kv_firsts,
            a.kv_starts,
            a.prefix_lens,
            a.bias,
            a.mask,
            a.prepared_mask,
            a.places};
  if (!IsWholeAttention(call.function)) {
    first->kv_starts = nullptr;  // which must not be there
    return ReadMoreSources(call, 1, judged);
  }
  judged->queries.q_starts = a.q_starts;
  const int32_t count = judged->desc.num_sources;
  ReadMoreSources(call, count >= 1 && count <= ETALON_MAX_SOURCES ? count : 1, judged);
}

void JudgeSequences(const Call& call, Judged* judged) {
  Faults* faults = &judged->faults;
  Sizes* sizes = &judged->sizes;
  Queries* queries = &judged->queries;
  const bool has_desc = call.info->has_desc;
  if (has_desc) JudgeBatch(call, judged);
  const int64_t batch = (*sizes)[kBatch];
  bool known = JudgeArray(call, queries->q_starts, Wide{batch} + 1, judged);
  known &= JudgeArray(call, queries->q_lens, batch, judged);
  for (const Source& source : judged->sources) {
    const etalon_key_source& a = source.args;
    known &= JudgeArray(call, a.kv_starts, Wide{batch} + 1, judged);
    for (const int64_t* array : {a.q_offsets, a.kv_lens, a.kv_firsts, a.prefix_lens}) {
      known &= JudgeArray(call, array, batch, judged);
    }
  }
  queries->q_len = (*sizes)[has_desc ? kQRows : kQLen];
  if (known && queries->q_starts != nullptr) {
    known &= JudgeStarts(queries->q_starts, batch, (*sizes)[kQRows], &queries->q_len, judged);
  }
  (*sizes)[kQLen] = queries->q_len;
  for (int i = 0; i < judged->num_sources; ++i) {
    Source* source = &judged->sources[i];
    source->kv_len = sizes->Of(i, has_desc ? kKvRows : kKvLen);
    const int64_t* starts = source->args.kv_starts;
    if (known && starts != nullptr) known &= JudgeStarts(starts, batch, source->kv_len, &source->kv_len, judged);
    sizes->Of(i, kKvLen) = source->kv_len;
  }
  judged->lengths_known = known;
  if (!known) {
    faults->May(ETALON_BAD_SHAPE);  // of what is shaped by the lengths
    faults->May(ETALON_BAD_VALUE);
    return;
  }
  for (int64_t b = 0; queries->q_lens != nullptr && b < batch; ++b) {
    if (!InRange(queries->q_lens[b], queries->Rows(b))) faults->Must(ETALON_BAD_VALUE);
  }
  for (int i = 0; i < judged->num_sources; ++i) {
    Source* source = &judged->sources[i];
    if (!source->readable) continue;
    JudgeNumbers(*source, batch, judged);
    JudgePrepared(call, source, source->kv_len, judged);
  }
}

}  // namespace etalon::fuzz
