#include "cli/problem.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "cli/widen.h"

namespace etalon::cli {
namespace {

float NumberAt(ElementKind type, const unsigned char* data) {
  if (type == ElementKind::kF16) {
    uint16_t half;
    std::memcpy(&half, data, sizeof half);
    return FromHalf(half);
  }
  float number;
  std::memcpy(&number, data, sizeof number);
  return number;
}

// Of the one that counts for all.
int64_t IndexIn(int64_t size, int64_t index) { return size == 1 ? 0 : index; }

// 1 of what is not given.
int64_t Size(const Array& array, int64_t Array::* size) { return IsGiven(array) ? array.*size : 1; }

// From sequence to sequence.
bool SegmentsDiffer(const Problem& p) { return static_cast<int64_t>(p.options.q_segments.size()) > p.q.len; }

}  // namespace

RowOptions::Line RowOptions::LineOf(const Array& a, int64_t batch, int64_t q_head, int64_t row) {
  if (!IsGiven(a)) return {};
  const int64_t line = (IndexIn(a.batch, batch) * a.heads + IndexIn(a.heads, q_head)) * a.len + IndexIn(a.len, row);
  const int64_t element = static_cast<int64_t>(ElementKindBytes(a.type));
  return {a.type, a.bytes.data() + line * a.dim * element, a.dim == 1 ? 0 : element};
}

RowOptions::RowOptions(const Problem& p, int64_t batch, int64_t q_head, int64_t row)
    : bias_(LineOf(p.options.bias, batch, q_head, row)), mask_(LineOf(p.options.mask, batch, q_head, row)) {
  if (p.options.q_segments.empty()) return;
  const int64_t sequence = SegmentsDiffer(p) ? batch : 0;
  segment_ = p.options.q_segments[static_cast<size_t>(sequence * p.q.len + row)];
  kv_segments_ = p.options.kv_segments.data() + sequence * p.k.len;
}

float RowOptions::Bias(int64_t key) const {
  return bias_.data == nullptr ? 0.0f : NumberAt(bias_.type, bias_.data + key * bias_.step_bytes);
}

bool RowOptions::Allowed(int64_t key) const {
  if (kv_segments_ != nullptr && kv_segments_[key] != segment_) return false;
  return mask_.data == nullptr || mask_.data[key * mask_.step_bytes] != 0;
}

bool RowOptions::Shows(int64_t key) const { return Allowed(key) && Bias(key) != -HUGE_VALF; }

float HeadValue(const Array& a, int64_t batch, int64_t q_head) {
  const int64_t index = IndexIn(a.batch, batch) * a.heads + IndexIn(a.heads, q_head);
  return NumberAt(a.type, a.bytes.data() + index * static_cast<int64_t>(ElementKindBytes(a.type)));
}

int64_t VisiblePairs(const Problem& p, Rows rows) {
  const ScoreOptions& o = p.options;
  if (!IsGiven(o.bias) && !IsGiven(o.mask) && o.q_segments.empty()) {
    return p.q.batch * p.q.heads * VisiblePairs(p.mask, rows.first, rows.last, p.k.len);
  }
  // Where all heads are hidden alike one of them is enough.
  const int64_t batch =
      SegmentsDiffer(p) ? p.q.batch : std::max(Size(o.bias, &Array::batch), Size(o.mask, &Array::batch));
  const int64_t heads = std::max(Size(o.bias, &Array::heads), Size(o.mask, &Array::heads));
  int64_t pairs = 0;
  for (int64_t b = 0; b < batch; ++b) {
    for (int64_t h = 0; h < heads; ++h) {
      for (int64_t i = rows.first; i < rows.last; ++i) {
        const RowOptions row(p, b, h, i);
        const KeySpan seen = VisibleKeys(p.mask, i, p.k.len);
        for (int64_t t = seen.first; t < seen.last; ++t) pairs += row.Shows(t) ? 1 : 0;
      }
    }
  }
  return pairs * (p.q.batch / batch) * (p.q.heads / heads);
}

Array JoinedMask(const Problem& p, Rows rows) {
  Array joined = {ElementKind::kFlag, 1, Size(p.options.mask, &Array::heads), rows.last - rows.first, p.k.len, {}};
  joined.batch = SegmentsDiffer(p) ? p.q.batch : Size(p.options.mask, &Array::batch);
  for (int64_t b = 0; b < joined.batch; ++b) {
    for (int64_t h = 0; h < joined.heads; ++h) {
      for (int64_t i = rows.first; i < rows.last; ++i) {
        const RowOptions row(p, b, h, i);
        for (int64_t t = 0; t < p.k.len; ++t) joined.bytes.push_back(row.Allowed(t) ? 1 : 0);
      }
    }
  }
  return joined;
}

double Flop(const Problem& p, int64_t visible_pairs) {
  return 2.0 * static_cast<double>(visible_pairs) * static_cast<double>(p.q.dim + p.v.dim);
}

}  // namespace etalon::cli
