// Masked row softmax and logsumexp. Numerics: masked softmax primitive.
//
// Three passes over the span of a row: the maximum; p = exp(s - maximum) and their sum; w = p / sum. A row with a
// visible NaN or +inf is known after the first pass and then needs no arithmetic, so that the other passes are about
// numbers alone: a key that is not visible is a score of -inf, whose p, weight and share of the sum are +0 anyway.
//
// The second pass is the long one, and it is bound by the arithmetic. So it carries the others along, for other rows:
// the first pass of the row that follows and the third of an earlier one. What they add is mostly loads and stores,
// which find their ports free, and memory is read and written evenly instead of in bursts. Whatever waits for the end
// of a chain (sums, logarithms, factors) is put off until the chain has ended.
//
// Vectors start at multiples of 16 keys, as the partial sums do. Where the span ends inside such a group, the group is
// copied out, with -inf for the keys beyond.
#include "arch/highway/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "arch/highway/softmax.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "arch/highway/math-inl.h"
#include "arch/highway/stages.h"

HWY_BEFORE_NAMESPACE();
namespace etalon {
namespace HWY_NAMESPACE {
#if ETALON_HIGHWAY_EXACT
namespace {

constexpr int64_t kGroup = 16;  // strided partial sums of a chunk
constexpr int64_t kStep = kLanes;
constexpr int64_t kGroupVectors = kGroup / kStep;
constexpr int64_t kTogetherVectors = 4;  // whose exponentials are computed step by step
constexpr int64_t kTogether = kTogetherVectors * kStep;

// --- Masks ---

// The kinds of masks. At(j) is the mask that begins j keys later; Scores() and Weights() hide those of a vector that
// are not visible.
struct NoMask {
  HWY_INLINE NoMask At(int64_t) const { return {}; }
  HWY_INLINE VF Scores(VF s) const { return s; }
  HWY_INLINE VF Weights(VF p) const { return p; }
};

struct ByteMask {
  const uint8_t* byte;
  HWY_INLINE ByteMask At(int64_t j) const { return {byte + j}; }
  HWY_INLINE MF IsHidden() const {
    const hn::Rebind<uint8_t, DF> d8;
    const DU du;
    return hn::RebindMask(DF(), hn::Eq(hn::PromoteTo(du, hn::LoadU(d8, byte)), hn::Zero(du)));
  }
  HWY_INLINE VF Scores(VF s) const { return hn::IfThenElse(IsHidden(), NegativeInfinities(), s); }
  HWY_INLINE VF Weights(VF p) const { return hn::IfThenZeroElse(IsHidden(), p); }
};

struct StridedMask {
  const uint8_t* byte;
  int64_t stride;
  HWY_INLINE StridedMask At(int64_t j) const { return {byte + j * stride, stride}; }
  struct Gathered {
    uint8_t byte[kStep];
  };
  HWY_INLINE Gathered Gather() const {
    Gathered gathered;
    for (int64_t i = 0; i < kStep; ++i) gathered.byte[i] = byte[i * stride];
    return gathered;
  }
  HWY_INLINE VF Scores(VF s) const { return ByteMask{Gather().byte}.Scores(s); }
  HWY_INLINE VF Weights(VF p) const { return ByteMask{Gather().byte}.Weights(p); }
};

NoMask MaskOf(const SoftmaxRow&, int64_t, NoMask) { return {}; }
ByteMask MaskOf(const SoftmaxRow& row, int64_t, ByteMask) { return {row.mask}; }
StridedMask MaskOf(const SoftmaxRow& row, int64_t stride, StridedMask) { return {row.mask, stride}; }

// --- Groups ---

// The span of a row: first ... begin - 1 and end ... last - 1 are parts of a group, begin ... end - 1 whole ones.
struct Groups {
  int64_t first;
  int64_t begin;
  int64_t end;
  int64_t last;
};

HWY_INLINE int64_t Smaller(int64_t a, int64_t b) { return a < b ? a : b; }
HWY_INLINE int64_t RoundDown(int64_t j, int64_t multiple) { return j - j % multiple; }
HWY_INLINE int64_t RoundUp(int64_t j, int64_t multiple) { return RoundDown(j + multiple - 1, multiple); }

Groups GroupsOf(Span span) {
  if (span.first >= span.last) return {0, 0, 0, 0};
  const int64_t begin = Smaller(RoundUp(span.first, kGroup), span.last);
  const int64_t down = RoundDown(span.last, kGroup);
  return {span.first, begin, down > begin ? down : begin, span.last};
}

bool IsShown(const SoftmaxRow& row, int64_t mask_stride_bytes, int64_t j) {
  return row.mask == nullptr || row.mask[j * mask_stride_bytes] != 0;
}

// The group of the keys from ... to - 1, a part of it, with -inf for all others.
struct Part {
  float s[kGroup];
};
HWY_NOINLINE void CopyPart(const SoftmaxRow& row, int64_t mask_stride_bytes, int64_t from, int64_t to, Part* part) {
  for (float& s : part->s) s = NegativeInfinity();
  float* s = part->s + from % kGroup;
  for (int64_t j = from; j < to; ++j, ++s) {
    if (IsShown(row, mask_stride_bytes, j)) *s = row.s[j];
  }
}

// --- First pass: the maximum ---

struct Seen {
  VF max;  // of numbers; useless beside a NaN
  MF nan;
};

HWY_INLINE Seen Nothing() { return {NegativeInfinities(), hn::MaskFalse(DF())}; }

HWY_INLINE Seen Both(const Seen& a, const Seen& b) { return {MaxOf(a.max, b.max), hn::Or(a.nan, b.nan)}; }

template <class Mask>
HWY_INLINE Seen SeeGroup(const float* s, const Mask& mask, Seen seen) {
  VF x[kGroupVectors];
  HWY_UNROLL(4)
  for (int64_t i = 0; i < kGroupVectors; ++i) {
    x[i] = mask.At(i * kStep).Scores(hn::LoadU(DF(), s + i * kStep));
  }
  if constexpr (kGroupVectors == 1) return {MaxOf(seen.max, x[0]), hn::Or(seen.nan, hn::IsNaN(x[0]))};
  HWY_UNROLL(2)
  for (int64_t i = 0; i + 1 < kGroupVectors; i += 2) {
    seen = {MaxOf(seen.max, MaxOf(x[i], x[i + 1])), hn::Or(seen.nan, hn::IsEitherNaN(x[i], x[i + 1]))};
  }
  return seen;
}

HWY_NOINLINE void SeePart(const SoftmaxRow& row, int64_t mask_stride_bytes, int64_t from, int64_t to, Seen* seen) {
  Part part;
  CopyPart(row, mask_stride_bytes, from, to, &part);
  *seen = SeeGroup(part.s, NoMask(), *seen);
}

// Whole groups, four maxima at once.
template <class Mask>
HWY_INLINE Seen SeeGroups(const float* s, const Mask& mask, int64_t begin, int64_t end) {
  Seen a = Nothing(), b = Nothing(), c = Nothing(), d = Nothing();
  int64_t j = begin;
  for (; j + 4 * kGroup <= end; j += 4 * kGroup) {
    a = SeeGroup(s + j, mask.At(j), a);
    b = SeeGroup(s + j + kGroup, mask.At(j + kGroup), b);
    c = SeeGroup(s + j + 2 * kGroup, mask.At(j + 2 * kGroup), c);
    d = SeeGroup(s + j + 3 * kGroup, mask.At(j + 3 * kGroup), d);
  }
  for (; j < end; j += kGroup) a = SeeGroup(s + j, mask.At(j), a);
  return Both(Both(a, b), Both(c, d));
}

// The largest visible score: -inf if nothing is visible, NaN if the row is.
HWY_INLINE float MaxOrNaN(const Seen& seen) {
  const DF d;
  const float max = hn::ReduceMax(d, seen.max);
  return hn::AllFalse(d, seen.nan) && max < Infinity() ? max : FromBits(kCanonicalNaN);  // inf - inf is NaN
}

// --- Third pass: weights ---

HWY_INLINE void ScaleGroup(float* w, VF factor) {
  HWY_UNROLL(4)
  for (int64_t i = 0; i < kGroupVectors; ++i) {
    hn::StoreU(hn::Mul(hn::LoadU(DF(), w + i * kStep), factor), DF(), w + i * kStep);
  }
}

HWY_NOINLINE void ScaleGroups(float* w, int64_t begin, int64_t end, float factor) {
  const VF factors = hn::Set(DF(), factor);
  for (int64_t j = begin; j < end; j += kGroup) ScaleGroup(w + j, factors);
}

HWY_NOINLINE void ScalePart(float* w, int64_t from, int64_t to, float factor) {
  for (int64_t j = from; j < to; ++j) w[j] *= factor;
}

// --- Second pass: exponentials and their sum ---

// Partial sum r of the chunk is lane r % kStep of vector r / kStep.
struct Partials {
  VF sum[kGroupVectors];
};

HWY_INLINE Partials Zeros() {
  Partials partials;
  HWY_UNROLL(4)
  for (VF& sum : partials.sum) sum = hn::Zero(DF());
  return partials;
}

template <class V>
HWY_INLINE float SumOfHalves(V sum) {
  using D = hn::DFromV<V>;
  if constexpr (hn::MaxLanes(D()) == 1) {
    return hn::GetLane(sum);
  } else {
    const hn::Half<D> half;
    return SumOfHalves(hn::Add(hn::LowerHalf(half, sum), hn::UpperHalf(half, sum)));
  }
}

// The tree 8, 4, 2, 1: each step adds the upper half of what is left to the lower one.
HWY_INLINE float Sum(Partials partials) {
  HWY_UNROLL(2)
  for (int64_t half = kGroupVectors / 2; half > 0; half /= 2) {
    HWY_UNROLL(2)
    for (int64_t i = 0; i < half; ++i) partials.sum[i] = hn::Add(partials.sum[i], partials.sum[i + half]);
  }
  return SumOfHalves(partials.sum[0]);
}

// The sum of a row so far. Trees are long chains of which each waits for exponentials: they are put off until many can
// be computed at once, those at the end of a row until the next row is under way.
struct RowSum {
  static constexpr int64_t kWaiting = 8;
  float l;
  int64_t count;
  Partials waiting[kWaiting];
};

HWY_INLINE void SumUp(RowSum* sum) {
  for (int64_t i = 0; i < sum->count; ++i) sum->l += Sum(sum->waiting[i]);
  sum->count = 0;
}

// Chunks come in order. One of which nothing is visible adds +0 and is not felt.
HWY_INLINE void AddChunk(const Partials& partials, RowSum* sum) {
  sum->waiting[sum->count] = partials;
  if (++sum->count == RowSum::kWaiting) SumUp(sum);
}

template <int64_t kVectors, class Mask>
HWY_INLINE Partials ExpVectors(const float* s, const Mask& mask, float* p, VF minus_max, Partials partials) {
  VF x[kVectors];
  HWY_UNROLL(8)
  for (int64_t i = 0; i < kVectors; ++i) x[i] = hn::Add(hn::LoadU(DF(), s + i * kStep), minus_max);
  ExpOfNumbers(x);
  HWY_UNROLL(8)
  for (int64_t i = 0; i < kVectors; ++i) {
    x[i] = mask.At(i * kStep).Weights(x[i]);
    partials.sum[i % kGroupVectors] = hn::Add(partials.sum[i % kGroupVectors], x[i]);
    hn::StoreU(x[i], DF(), p + i * kStep);
  }
  return partials;
}

template <class Mask>
HWY_INLINE Partials ExpGroup(const float* s, const Mask& mask, float* p, VF minus_max, Partials partials) {
  return ExpVectors<kGroupVectors>(s, mask, p, minus_max, partials);
}

HWY_NOINLINE void ExpPart(const SoftmaxRow& row, int64_t mask_stride_bytes, int64_t from, int64_t to, VF minus_max,
                          Partials* partials) {
  Part part;
  CopyPart(row, mask_stride_bytes, from, to, &part);
  *partials = ExpGroup(part.s, NoMask(), part.s, minus_max, *partials);
  const float* p = part.s + from % kGroup;
  for (int64_t j = from; j < to; ++j, ++p) row.w[j] = *p;
}

// Keys of three rows that are worked on together, the same number of each.
template <class Mask>
struct Together {
  const float* s;  // of the row whose exponentials are computed
  float* p;
  Mask mask;
  const float* next;  // to be seen
  Mask next_mask;
  float* last;  // to be scaled
};

// n keys from the start of a chunk on, n a multiple of kChunk.
template <bool kSee, bool kScale, class Mask>
HWY_NOINLINE void ExpChunks(const Together<Mask>& keys, int64_t n, float row_max, RowSum* sum, Seen* seen,
                            float factor) {
  const DF d;
  const VF minus_max = hn::Set(d, -row_max);
  const VF factors = hn::Set(d, factor);
  // One by one: a copy in vectors would have to wait for the stores of the single parts.
  const float* const s = keys.s;
  float* const p = keys.p;
  const Mask mask = keys.mask;
  const float* const next_s = keys.next;
  const Mask next_mask = keys.next_mask;
  float* const last = keys.last;
  Seen next = Nothing();
  for (int64_t chunk = 0; chunk < n; chunk += kChunk) {
    Partials partials = Zeros();
    for (int64_t j = chunk; j < chunk + kChunk; j += kTogether) {
      HWY_UNROLL(4)
      for (int64_t g = j; g < j + kTogether; g += kGroup) {
        if constexpr (kSee) next = SeeGroup(next_s + g, next_mask.At(g), next);
        if constexpr (kScale) ScaleGroup(last + g, factors);
      }
      partials = ExpVectors<kTogetherVectors>(s + j, mask.At(j), p + j, minus_max, partials);
    }
    AddChunk(partials, sum);
  }
  if constexpr (kSee) *seen = Both(*seen, next);
}

// Whole groups begin ... end - 1 of one chunk.
template <class Mask>
HWY_NOINLINE void ExpGroups(const SoftmaxRow& row, const Mask& mask, int64_t begin, int64_t end, VF minus_max,
                            Partials* partials) {
  Partials sums = *partials;
  for (int64_t j = begin; j < end; j += kGroup) sums = ExpGroup(row.s + j, mask.At(j), row.w + j, minus_max, sums);
  *partials = sums;
}

// --- Rows ---

// What remains to be done for a row: its whole groups from `begin` on.
struct Rest {
  int64_t begin;
  int64_t end;
};

struct ToScale {
  float* w;
  Rest rest;
  float factor;
};

// The row that is seen while another one is computed.
template <class Mask>
struct ToSee {
  const float* s;
  Mask mask;
  Rest rest;
  Seen seen;
};

HWY_INLINE int64_t WholeChunks(const Rest& rest) { return RoundDown(rest.end - rest.begin, kChunk); }

// Whole chunks of a row, with as much of the other two as there is.
template <class Mask>
void ExpOfWholeChunks(const SoftmaxRow& row, const Mask& mask, Rest chunks, float max, RowSum* sum, ToSee<Mask>* next,
                      ToScale* last) {
  while (chunks.begin < chunks.end) {
    const int64_t see = WholeChunks(next->rest), scale = WholeChunks(last->rest);
    int64_t n = chunks.end - chunks.begin;
    if (see > 0) n = Smaller(n, see);
    if (scale > 0) n = Smaller(n, scale);
    const Together<Mask> at = {row.s + chunks.begin,
                               row.w + chunks.begin,
                               mask.At(chunks.begin),
                               next->s + next->rest.begin,
                               next->mask.At(next->rest.begin),
                               last->w + last->rest.begin};
    const auto exp_chunks = see > 0 ? (scale > 0 ? ExpChunks<true, true, Mask> : ExpChunks<true, false, Mask>)
                                    : (scale > 0 ? ExpChunks<false, true, Mask> : ExpChunks<false, false, Mask>);
    exp_chunks(at, n, max, sum, &next->seen, last->factor);
    chunks.begin += n;
    if (see > 0) next->rest.begin += n;
    if (scale > 0) last->rest.begin += n;
  }
}

// Writes p to w.
template <class Mask>
HWY_INLINE void Exponentials(const SoftmaxRow& row, const Groups& groups, int64_t mask_stride_bytes, float max,
                             RowSum* sum, ToSee<Mask>* next, ToScale* last) {
  const Mask mask = MaskOf(row, mask_stride_bytes, Mask());
  const VF minus_max = hn::Set(DF(), -max);
  sum->l = 0.0f;
  sum->count = 0;
  Partials partials = Zeros();
  if (groups.first < groups.begin) ExpPart(row, mask_stride_bytes, groups.first, groups.begin, minus_max, &partials);
  const int64_t boundary = RoundUp(groups.begin, kChunk);  // the first chunk begins or ends here
  int64_t end = Smaller(boundary, groups.end);
  if (groups.begin < end) ExpGroups(row, mask, groups.begin, end, minus_max, &partials);
  if (end == boundary) {
    if (groups.first < boundary) AddChunk(partials, sum);
    partials = Zeros();
    end = boundary + RoundDown(groups.end - boundary, kChunk);
    ExpOfWholeChunks(row, mask, {boundary, end}, max, sum, next, last);
    if (end < groups.end) ExpGroups(row, mask, end, groups.end, minus_max, &partials);
  }
  if (groups.end < groups.last) ExpPart(row, mask_stride_bytes, groups.end, groups.last, minus_max, &partials);
  if (end < groups.last || end % kChunk != 0) AddChunk(partials, sum);
}

HWY_INLINE void FillZeros(float* w, int64_t first, int64_t last) {
  if (first >= last) return;  // compilers call memset for any number
  for (int64_t j = first; j < last; ++j) w[j] = 0.0f;
}

HWY_NOINLINE void WriteNaNRow(const SoftmaxRow& row, const Groups& groups, int64_t mask_stride_bytes) {
  for (int64_t j = groups.first; j < groups.last; ++j) {
    const bool visible = IsShown(row, mask_stride_bytes, j) && row.s[j] != NegativeInfinity();
    row.w[j] = visible ? FromBits(kCanonicalNaN) : 0.0f;
  }
  if (row.lse != nullptr) *row.lse = FromBits(kCanonicalNaN);
}

void WriteEmptyRow(const SoftmaxRow& row, const Groups& groups) {
  FillZeros(row.w, groups.first, groups.last);
  if (row.lse != nullptr) *row.lse = NegativeInfinity();
}

// A row on its way through the passes.
template <class Mask>
struct RowInWork {
  Groups groups;
  ToSee<Mask> see;
};

template <class Mask>
HWY_INLINE void Begin(const SoftmaxRow& row, int64_t mask_stride_bytes, RowInWork<Mask>* work) {
  work->groups = GroupsOf(row.span);
  work->see.s = row.s;
  work->see.mask = MaskOf(row, mask_stride_bytes, Mask());
  work->see.rest = {work->groups.begin, work->groups.end};
  work->see.seen = Nothing();
}

// What its predecessor did not see of a row.
template <class Mask>
HWY_INLINE float FinishSeeing(const SoftmaxRow& row, int64_t mask_stride_bytes, RowInWork<Mask>* work) {
  const Groups& groups = work->groups;
  ToSee<Mask>* see = &work->see;
  if (see->rest.begin < see->rest.end) {
    see->seen = Both(see->seen, SeeGroups(see->s, see->mask, see->rest.begin, see->rest.end));
  }
  if (groups.first < groups.begin) SeePart(row, mask_stride_bytes, groups.first, groups.begin, &see->seen);
  if (groups.end < groups.last) SeePart(row, mask_stride_bytes, groups.end, groups.last, &see->seen);
  return MaxOrNaN(see->seen);
}

HWY_INLINE void FinishScaling(const ToScale& last) {
  if (last.rest.begin < last.rest.end) ScaleGroups(last.w, last.rest.begin, last.rest.end, last.factor);
}

// Rows whose lse are not written yet: a vector of logarithms costs what one costs.
struct LseQueue {
  float max[kLanes];
  float l[kLanes];
  float* lse[kLanes];
  size_t count;
};

HWY_NOINLINE void WriteLse(LseQueue* queue) {
  const DF d;
  float lse[kLanes];
  hn::StoreU(hn::Add(hn::LoadU(d, queue->max), Log(hn::LoadU(d, queue->l))), d, lse);
  for (size_t i = 0; i < queue->count; ++i) *queue->lse[i] = lse[i];
  queue->count = 0;
}

HWY_INLINE void Push(float max, float l, float* lse, LseQueue* queue) {
  queue->max[queue->count] = max;
  queue->l[queue->count] = l;
  queue->lse[queue->count] = lse;
  if (++queue->count == kLanes) WriteLse(queue);
}

// A row whose exponentials are computed.
struct Computed {
  const SoftmaxRow* row;  // null once its sum is known
  Groups groups;
  float max;
  RowSum sum;
  ToScale scale;
};

// While a row is computed, the one before it waits for its sum, and the one before that is scaled.
struct Unfinished {
  Computed rows[3];
  size_t next;  // of rows
  LseQueue lse;
};

void Settle(Computed* computed, LseQueue* lse) {
  if (computed->row == nullptr) return;
  SumUp(&computed->sum);
  const float l = computed->sum.l;
  const float factor = 1.0f / l;
  const Groups& groups = computed->groups;
  float* w = computed->row->w;
  computed->scale = {w, {groups.begin, groups.end}, factor};
  if (groups.first < groups.begin) ScalePart(w, groups.first, groups.begin, factor);
  if (groups.end < groups.last) ScalePart(w, groups.end, groups.last, factor);
  if (computed->row->lse != nullptr) Push(computed->max, l, computed->row->lse, lse);
  computed->row = nullptr;
}

HWY_INLINE void Start(Unfinished* unfinished) {
  for (Computed& computed : unfinished->rows) {
    computed.row = nullptr;
    computed.scale = {};
  }
  unfinished->next = 0;
  unfinished->lse.count = 0;
  for (float& l : unfinished->lse.l) l = 1.0f;  // has a logarithm
  for (float& max : unfinished->lse.max) max = 0.0f;
}

HWY_NOINLINE void Finish(Unfinished* unfinished) {
  for (Computed& computed : unfinished->rows) {
    Settle(&computed, &unfinished->lse);
    FinishScaling(computed.scale);
  }
  if (unfinished->lse.count > 0) WriteLse(&unfinished->lse);
}

template <class Mask>
HWY_INLINE void Compute(const SoftmaxRow& row, const Groups& groups, int64_t mask_stride_bytes, float max,
                        ToSee<Mask>* next, Unfinished* unfinished) {
  const size_t at = unfinished->next;
  Computed* computed = &unfinished->rows[at];
  Computed* oldest = &unfinished->rows[at == 2 ? 0 : at + 1];
  Computed* before = &unfinished->rows[at == 0 ? 2 : at - 1];
  Exponentials(row, groups, mask_stride_bytes, max, &computed->sum, next, &oldest->scale);
  FinishScaling(oldest->scale);
  oldest->scale.rest = {0, 0};
  Settle(before, &unfinished->lse);
  computed->row = &row;
  computed->groups = groups;
  computed->max = max;
  unfinished->next = at == 2 ? 0 : at + 1;
}

template <class Mask>
HWY_INLINE void SoftmaxOfRow(const SoftmaxRow& row, const SoftmaxArgs& args, RowInWork<Mask>* work, ToSee<Mask>* next,
                             Unfinished* unfinished) {
  const int64_t stride = args.mask_stride_bytes;
  const Groups& groups = work->groups;
  const float max = FinishSeeing(row, stride, work);
  FillZeros(row.w, 0, groups.first);
  FillZeros(row.w, groups.last, args.num_keys);
  if (max != max) return WriteNaNRow(row, groups, stride);
  if (max == NegativeInfinity()) return WriteEmptyRow(row, groups);
  Compute(row, groups, stride, max, next, unfinished);
}

// Rows begin ... end - 1, whose masks are all of one kind.
template <class Mask>
HWY_NOINLINE void SoftmaxOfRows(const SoftmaxArgs& args, size_t begin, size_t end) {
  Unfinished unfinished;
  Start(&unfinished);
  RowInWork<Mask> work[2];
  Begin(args.rows[begin], args.mask_stride_bytes, &work[begin % 2]);
  for (size_t r = begin; r < end; ++r) {
    RowInWork<Mask>* next = &work[(r + 1) % 2];
    Begin(r + 1 < end ? args.rows[r + 1] : SoftmaxRow{}, args.mask_stride_bytes, next);
    SoftmaxOfRow(args.rows[r], args, &work[r % 2], &next->see, &unfinished);
  }
  Finish(&unfinished);
}

}  // namespace

void Softmax(const SoftmaxArgs& args) {
  for (size_t r = 0; r < args.num_rows;) {
    const bool masked = args.rows[r].mask != nullptr;
    size_t end = r + 1;
    while (end < args.num_rows && (args.rows[end].mask != nullptr) == masked) ++end;
    const auto softmax = !masked                       ? SoftmaxOfRows<NoMask>
                         : args.mask_stride_bytes == 1 ? SoftmaxOfRows<ByteMask>
                                                       : SoftmaxOfRows<StridedMask>;
    softmax(args, r, end);
    r = end;
  }
}

#endif  // ETALON_HIGHWAY_EXACT
}  // namespace HWY_NAMESPACE
}  // namespace etalon
HWY_AFTER_NAMESPACE();
