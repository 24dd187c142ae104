#include "lib/attention/sequences.h"

#include "arch/visible.h"
#include "lib/base/parallel.h"

namespace etalon {
namespace {

Geometry GeometryOf(const Sequences& s, int64_t batch) {
  Geometry geometry;
  geometry.q_offset = s.q_offsets == nullptr ? s.q_offset : AddSaturated(s.q_offset, s.q_offsets[batch]);
  geometry.left = s.left;
  geometry.right = s.right;
  geometry.prefix = s.prefix_lens == nullptr ? 0 : s.prefix_lens[batch];
  return geometry;
}

bool IsEmpty(const Span& span) { return span.first >= span.last; }

Span Intersection(const Span& a, const Span& b) { return {Larger(a.first, b.first), Smaller(a.last, b.last)}; }

// `seen` cut down to what a ring still has.
void CutToRing(const RingRuns& ring, Seen* seen) {
  const Span &kept = ring.of[0], &last = ring.of[1];
  Span* span = &seen->span;
  if (span->first >= kept.last) span->first = Larger(span->first, last.first);
  if (span->last <= last.first) span->last = Smaller(span->last, kept.last);
  seen->both_runs = kept.last < last.first && span->first < kept.last && last.first < span->last;
}

// `seen` (of positions) cut down to what the row of the mask (of columns) shows.
void CutToMask(const MaskRow& row, int64_t first_column, Seen* seen) {
  Span columns = {seen->span.first + first_column, seen->span.last + first_column};
  columns = Intersection(columns, row.hull);
  if (!IsEmpty(columns) && row.runs != nullptr) {
    const int64_t first = RunAt(row.runs, row.num_runs, columns.first);
    int64_t last = RunAt(row.runs, row.num_runs, columns.last - 1);
    if (last < row.num_runs && row.runs[last].first < columns.last) ++last;
    if (first == last) {
      *seen = {};
      return;
    }
    columns = Intersection(columns, {row.runs[first].first, row.runs[last - 1].last});
    seen->runs = last - first == 1 ? nullptr : row.runs + first;
    seen->num_runs = last - first == 1 ? 0 : last - first;
  }
  if (IsEmpty(columns)) {
    *seen = {};
    return;
  }
  seen->span = {columns.first - first_column, columns.last - first_column};
  seen->bits = row.bits;
}

}  // namespace

int64_t FirstKeyRow(const Sequences& s, int64_t batch) {
  return (s.kv_starts == nullptr ? 0 : s.kv_starts[batch]) + FirstColumn(s, batch);
}

int64_t NumKeys(const Sequences& s, int64_t batch) {
  int64_t end = s.kv_len;
  if (s.kv_starts != nullptr) end = s.kv_starts[batch + 1] - s.kv_starts[batch];
  if (s.kv_lens != nullptr) end = s.kv_lens[batch];
  return end - FirstColumn(s, batch);
}

int64_t FirstColumn(const Sequences& s, int64_t batch) { return s.kv_firsts == nullptr ? 0 : s.kv_firsts[batch]; }

int64_t PositionOf(const Sequences& s, int64_t batch, int64_t query) {
  return RowPosition(GeometryOf(s, batch), query);
}

RingRuns RunsOfRing(const Sequences& s, int64_t batch) {
  const int64_t end = NumKeys(s, batch);
  return {{{0, Smaller(s.ring_keep, end)}, {Larger(s.ring_keep, end - s.ring_len), end}}};
}

bool RingHasGap(const Sequences& s) { return s.ring_len > 0 && s.ring_keep > 0; }

Span SlotsInUse(const Sequences& s, int64_t batch, int64_t q_len) {
  if (s.q_lens != nullptr) q_len = Smaller(q_len, s.q_lens[batch]);
  if (q_len == 0) return {0, 0};
  const Geometry geometry = GeometryOf(s, batch);
  const int64_t num_keys = NumKeys(s, batch);
  // Neither end of a row's span is ever before that of the row before.
  const Span seen = {VisibleSpan(geometry, 0, 0, num_keys).first, VisibleSpan(geometry, q_len - 1, 0, num_keys).last};
  if (IsEmpty(seen)) return {0, 0};
  return s.ring_len == 0 ? seen : Span{0, Smaller(num_keys, s.ring_keep + s.ring_len)};
}

bool SequencesAreAlike(const Sequences& s) {
  return s.q_lens == nullptr && s.kv_lens == nullptr && s.q_offsets == nullptr && s.kv_firsts == nullptr &&
         s.kv_starts == nullptr && s.prefix_lens == nullptr;
}

Seen SeenBy(const Sequences& s, int64_t batch, int64_t head, int64_t query) {
  Seen seen = {};
  if (s.q_lens != nullptr && query >= s.q_lens[batch]) return seen;
  seen.span = VisibleSpan(GeometryOf(s, batch), query, 0, NumKeys(s, batch));
  if (s.ring_len > 0) CutToRing(RunsOfRing(s, batch), &seen);
  if (s.mask == nullptr || IsEmpty(seen.span)) return seen;
  CutToMask(RowOfMask(*s.mask, batch, head, query), FirstColumn(s, batch), &seen);
  return seen;
}

Span SpanOfTile(const RowTiles& t, const Tile& tile, const Sequences& s) {
  Span all = {0, 0};
  // After q_len rows the queries repeat for the next head, which sees the same unless a mask has heads.
  const int64_t q_len = QLen(t, tile.batch);
  const bool by_head = s.mask != nullptr && s.mask->num_heads > 1;
  TileRow row = RowOf(t, tile, 0);
  for (int64_t r = 0; r < tile.num_rows && (by_head || r < q_len); ++r, row = NextRow(t, tile, row)) {
    const Span one = SeenBy(s, tile.batch, row.head, row.query).span;
    if (IsEmpty(one)) continue;
    if (IsEmpty(all)) {
      all = one;
      continue;
    }
    if (one.first < all.first) all.first = one.first;
    if (one.last > all.last) all.last = one.last;
  }
  return all;
}

}  // namespace etalon
