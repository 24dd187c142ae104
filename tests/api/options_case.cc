#include "tests/api/options_case.h"

#include <algorithm>
#include <cstring>

#include "tests/support/reference.h"
#include "tests/support/tolerance.h"

namespace etalon::test {
namespace {

int64_t NumberOr(const std::vector<int64_t>& numbers, int64_t b, int64_t otherwise) {
  return numbers.empty() ? otherwise : numbers[static_cast<size_t>(b)];
}

int64_t Begin(const std::vector<int64_t>& starts, int64_t b) { return NumberOr(starts, b, 0); }

int64_t Step(const std::vector<int64_t>& starts, int64_t b, int64_t otherwise) {
  return starts.empty() ? otherwise : starts[static_cast<size_t>(b) + 1] - starts[static_cast<size_t>(b)];
}

// The place of an element in an array of that shape, sizes of 1 counting for all.
int64_t PlaceIn(const Shape& shape, const Shape& index) {
  int64_t place = 0;
  for (size_t d = 0; d < shape.size(); ++d) place = place * shape[d] + (shape[d] == 1 ? 0 : index[d]);
  return place;
}

int64_t PositionOf(const SourceCase& s, int64_t b, int64_t i) { return i + s.q_offset + NumberOr(s.q_offsets, b, 0); }

// Of a head of a sequence, among all rows of q, out and lse.
int64_t FirstRowOf(const OptionsCase& c, int64_t b, int64_t h) {
  return ((c.q_starts.empty() ? b : 0) * c.num_q_heads + h) * c.q_len + Begin(c.q_starts, b);
}

}  // namespace

int64_t OptionArray::At(const Shape& index) const { return PlaceIn(shape, index); }

bool MaskCase::Shows(int64_t b, int64_t h, int64_t i, int64_t column) const {
  return form == MaskKind::kNone || shows[static_cast<size_t>(PlaceIn(shape, {b, h, i, column}))] != 0;
}

int64_t OptionsCase::QLen(int64_t b) const { return Step(q_starts, b, q_len); }
int64_t OptionsCase::Columns(size_t source, int64_t b) const {
  return Step(sources[source].kv_starts, b, sources[source].kv_len);
}
int64_t OptionsCase::First(size_t source, int64_t b) const { return NumberOr(sources[source].kv_firsts, b, 0); }
int64_t OptionsCase::End(size_t source, int64_t b) const {
  return NumberOr(sources[source].kv_lens, b, Columns(source, b));
}
int64_t OptionsCase::LongestQ() const {
  if (q_starts.empty()) return q_len;
  int64_t longest = 0;
  for (int64_t b = 0; b < batch; ++b) longest = std::max(longest, QLen(b));
  return longest;
}
int64_t OptionsCase::LongestKv(size_t source) const {
  if (sources[source].kv_starts.empty()) return sources[source].kv_len;
  int64_t longest = 0;
  for (int64_t b = 0; b < batch; ++b) longest = std::max(longest, Columns(source, b));
  return longest;
}

std::string Describe(const OptionsCase& c) {
  std::string text =
      "batch " + std::to_string(c.batch) + " heads " + std::to_string(c.num_q_heads) + "/" +
      std::to_string(c.num_kv_heads) + " q_len " + std::to_string(c.q_len) + (c.q_starts.empty() ? "" : " ragged") +
      (c.q_lens.empty() ? "" : " q_lens") + " dims " + std::to_string(c.head_dim) + " " + std::to_string(c.value_dim) +
      (c.softcap > 0 ? " softcap" : "") + (c.alibi ? " alibi" : "") +
      (c.alibi && c.slopes.shape.empty() ? " of standard slopes" : "") + (c.sinks.shape.empty() ? "" : " sinks");
  const char* const forms[] = {"", " bool", " bits", " prepared bool", " prepared bits", " segments", " blocks"};
  for (const SourceCase& s : c.sources) {
    text += "; keys " + std::to_string(s.kv_len) + " left " + std::to_string(s.left) + " right " +
            std::to_string(s.right) + " offset " + std::to_string(s.q_offset) + (s.kv_starts.empty() ? "" : " ragged") +
            (s.kv_lens.empty() ? "" : " kv_lens") + (s.kv_firsts.empty() ? "" : " kv_firsts") +
            (s.prefix_lens.empty() ? "" : " prefix_lens") + (s.bias.shape.empty() ? "" : " bias") +
            forms[static_cast<int>(s.mask.form)];
    if (s.places.page_len > 0) text += " pages of " + std::to_string(s.places.page_len);
    if (s.places.ring_len > 0) {
      text += " ring of " + std::to_string(s.places.ring_keep) + " + " + std::to_string(s.places.ring_len);
    }
  }
  return text;
}

OptionsCase FromCase(const ApiCase& a) {
  OptionsCase c;
  c.batch = a.size.batch;
  c.num_q_heads = a.size.num_q_heads;
  c.num_kv_heads = a.size.num_kv_heads;
  c.head_dim = a.size.head_dim;
  c.value_dim = a.size.value_dim;
  c.q_len = a.size.q_len;
  c.q = a.q;
  c.out_type = a.out_type;
  c.scale = a.scale;
  c.q_lens = a.q_lens;
  SourceCase s;
  s.kv_len = a.size.kv_len;
  s.k = a.k;
  s.v = a.v;
  s.left = a.left;
  s.right = a.right;
  s.q_offset = a.q_offset;
  s.q_offsets = a.q_offsets;
  s.kv_lens = a.kv_lens;
  c.sources.push_back(s);
  return c;
}

bool Sees(const OptionsCase& c, size_t source, int64_t b, int64_t h, int64_t i, int64_t position) {
  if (!SeesByGeometry(c, source, b, i, position)) return false;
  const SourceCase& s = c.sources[source];
  const bool is_kept = position < s.places.ring_keep || position >= c.End(source, b) - s.places.ring_len;
  if (s.places.ring_len > 0 && !is_kept) return false;
  return s.mask.Shows(b, h, i, position + c.First(source, b));
}

bool SeesByGeometry(const OptionsCase& c, size_t source, int64_t b, int64_t i, int64_t position) {
  const SourceCase& s = c.sources[source];
  if (i >= NumberOr(c.q_lens, b, c.QLen(b))) return false;
  const int64_t column = position + c.First(source, b);
  if (position < 0 || column >= c.End(source, b)) return false;
  const int64_t distance = position - PositionOf(s, b, i);
  if (s.left >= 0 && distance < -s.left) return false;
  return s.right < 0 || distance <= s.right || position < NumberOr(s.prefix_lens, b, 0);
}

// -------------------------------------------------------------------------------------------------- what must come out

namespace {

float SlopeOf(const OptionsCase& c, int64_t b, int64_t h) {
  if (!c.alibi) return 0.0f;
  if (!c.slopes.shape.empty()) return c.slopes.values[c.slopes.At({b, h})];
  std::vector<float> slopes(static_cast<size_t>(c.num_q_heads));
  REQUIRE(etalon_alibi_slopes(c.num_q_heads, slopes.data(), nullptr) == ETALON_OK);
  return slopes[static_cast<size_t>(h)];
}

}  // namespace

AttentionCase HeadCase(const OptionsCase& c, int64_t b, int64_t h) {
  const int64_t kv_head = h / (c.num_q_heads / c.num_kv_heads);
  AttentionCase head;
  head.rows = c.QLen(b);
  head.head_dim = c.head_dim;
  head.value_dim = c.value_dim;
  head.scale = c.scale == 0.0f ? ScaleOf(c.head_dim) : c.scale;
  head.softcap = c.softcap;
  head.out_type = c.out_type;
  head.q = Slice(c.q, FirstRowOf(c, b, h) * c.head_dim, head.rows * c.head_dim);
  for (int64_t i = 0; i < head.rows; ++i) {
    head.q_pos.push_back(i);
    if (c.alibi) head.slopes.push_back(SlopeOf(c, b, h));
    if (!c.sinks.shape.empty()) head.sinks.push_back(c.sinks.values[c.sinks.At({b, h})]);
  }
  for (size_t n = 0; n < c.sources.size(); ++n) {
    const SourceCase& s = c.sources[n];
    SourceData keys;
    const int64_t first = c.First(n, b);
    const int64_t row =
        ((s.kv_starts.empty() ? b : 0) * c.num_kv_heads + kv_head) * s.kv_len + Begin(s.kv_starts, b) + first;
    keys.num_keys = c.End(n, b) - first;
    keys.k = Slice(s.k, row * c.head_dim, keys.num_keys * c.head_dim);
    keys.v = Slice(s.v, row * c.value_dim, keys.num_keys * c.value_dim);
    keys.q_shift = PositionOf(s, b, 0);
    if (!s.bias.shape.empty()) keys.bias = Array(s.bias.values.type(), head.rows * keys.num_keys);
    for (int64_t i = 0; i < head.rows; ++i) {
      for (int64_t t = 0; t < keys.num_keys; ++t) {
        keys.mask.push_back(Sees(c, n, b, h, i, t) ? 1 : 0);
        if (s.bias.shape.empty()) continue;
        keys.bias.SetWord(i * keys.num_keys + t, s.bias.values.Word(s.bias.At({b, h, i, first + t})));
      }
    }
    head.sources.push_back(std::move(keys));
  }
  return head;
}

AttentionResult Expected(const OptionsCase& c) {
  const Shape rows = c.RowsShape();
  AttentionResult all = {Unwritten(c.out_type, With(rows, c.value_dim)), Floats(Unwritten(DType::kF32, rows))};
  for (int64_t b = 0; b < c.batch; ++b) {
    for (int64_t h = 0; h < c.num_q_heads && c.QLen(b) > 0; ++h) {
      const AttentionResult head = RunAttend(FastDefinition(), HeadCase(c, b, h));
      const int64_t row = FirstRowOf(c, b, h);
      std::memcpy(all.out.at(row * c.value_dim), head.out.data(),
                  static_cast<size_t>(head.out.size()) * ElementSize(c.out_type));
      std::copy(head.lse.begin(), head.lse.end(), all.lse.begin() + row);
    }
  }
  return all;
}

std::string AccuracyReport(const OptionsCase& c, const AttentionResult& got) {
  for (int64_t b = 0; b < c.batch; ++b) {
    for (int64_t h = 0; h < c.num_q_heads && c.QLen(b) > 0; ++h) {
      const TrueAttention exact = AttentionInF64(HeadCase(c, b, h));
      const int64_t row = FirstRowOf(c, b, h), rows = c.QLen(b);
      const std::vector<float> lse(got.lse.begin() + row, got.lse.begin() + row + rows);
      // Of the hundreds of millions of outputs that an hour draws some are four times as far off as field cases may be,
      // and ALiBi and biases may cancel a large product.
      const std::string report =
          ErrorReport(TrueValues(Slice(got.out, row * c.value_dim, rows * c.value_dim)), exact.out,
                      [&](size_t i) {
                        const size_t r = i / static_cast<size_t>(c.value_dim);
                        return 4 * OutTolerance(exact.max_score[r], exact.max_value[r], c.out_type, exact.out[i]);
                      }) +
          ErrorReport(TrueValues(lse), exact.lse,
                      [&](size_t r) { return LseTolerance(exact.lse[r]) + 1e-6 * exact.max_score[r]; });
      if (!report.empty()) return "sequence " + std::to_string(b) + " head " + std::to_string(h) + ": " + report;
    }
  }
  return "";
}

Array ExpectedScores(const OptionsCase& c) {
  const int64_t kv_len = c.sources[0].kv_len;
  Array all(DType::kF32,
            std::vector<float>(static_cast<size_t>(c.batch * c.num_q_heads * c.q_len * kv_len), -HUGE_VALF));
  for (int64_t b = 0; b < c.batch; ++b) {
    for (int64_t h = 0; h < c.num_q_heads && c.q_len > 0; ++h) {
      const AttentionCase head = HeadCase(c, b, h);
      const int64_t num_keys = head.sources[0].num_keys, first = c.First(0, b);
      if (num_keys == 0) continue;
      const std::vector<float> s = RunScores(FastDefinition(), head);
      for (int64_t i = 0; i < head.rows; ++i) {
        std::memcpy(all.at((FirstRowOf(c, b, h) + i) * kv_len + first), s.data() + i * num_keys,
                    static_cast<size_t>(num_keys) * sizeof(float));
      }
    }
  }
  return all;
}

OptionsCase WithForm(OptionsCase c, MaskKind form) {
  for (SourceCase& s : c.sources) {
    if (s.mask.form == MaskKind::kNone) continue;
    s.mask.form = form;
    if (form != MaskKind::kBits && form != MaskKind::kPreparedBits) continue;
    REQUIRE((s.mask.shape[3] != 1 || s.mask.shows.size() == 1));  // bits have no column that counts for all
  }
  return c;
}

}  // namespace etalon::test
