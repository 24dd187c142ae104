// Calls with options at random.
#include <algorithm>

#include "tests/api/options_case.h"

namespace etalon::test {
namespace {

// Ascending from `first` to at most `last`, with sequences of no row among them.
std::vector<int64_t> RandomStarts(Random* random, int64_t batch, int64_t rows) {
  std::vector<int64_t> starts;
  for (int64_t b = 0; b <= batch; ++b) starts.push_back(random->Below(rows + 1));
  std::sort(starts.begin(), starts.end());
  if (random->Below(3) > 0) starts.front() = 0;
  if (random->Below(3) > 0) starts.back() = rows;
  return starts;
}

Shape RandomShape(Random* random, Shape full) {
  for (int64_t& size : full) {
    if (random->Below(3) == 0) size = 1;
  }
  return full;
}

DType RandomType(Random* random) { return static_cast<DType>(random->Below(3)); }

OptionArray RandomNumbers(Random* random, const Shape& shape, float factor) {
  OptionArray option;
  option.shape = shape;
  const DType type = RandomType(random);
  option.values = Array(type, random->Normals(Count(shape), factor));
  return option;
}

// Runs of either kind, of mixed lengths.
std::vector<uint8_t> RandomShows(Random* random, int64_t count) {
  std::vector<uint8_t> shows(static_cast<size_t>(count));
  const int64_t most = random->Below(3) == 0 ? 3 : random->Below(2) == 0 ? 40 : 300;
  for (size_t i = 0; i < shows.size();) {
    const uint8_t value = static_cast<uint8_t>(random->Below(2) == 0 ? 0 : 1 + random->Below(255));
    for (int64_t n = 1 + random->Below(most); n > 0 && i < shows.size(); --n) shows[i++] = value;
  }
  return shows;
}

void RandomSegments(Random* random, int64_t batch, int64_t q_len, int64_t kv_len, MaskCase* mask) {
  const int64_t documents = 1 + random->Below(5);
  const bool in_order = random->Below(2) == 0;
  const auto numbers = [&](int64_t n) {
    std::vector<int64_t> all;
    int64_t number = in_order ? 0 : random->Below(documents);
    for (int64_t i = 0; i < n; ++i) {
      if (random->Below(1 + n / 4) == 0) number = in_order ? number + 1 : random->Below(documents) - 2;
      all.push_back(number);
    }
    return all;
  };
  mask->shape = {batch, 1, q_len, kv_len};
  for (int64_t b = 0; b < batch; ++b) {
    const std::vector<int64_t> q = numbers(q_len), kv = numbers(kv_len);
    mask->q_segments.insert(mask->q_segments.end(), q.begin(), q.end());
    mask->kv_segments.insert(mask->kv_segments.end(), kv.begin(), kv.end());
    for (int64_t i = 0; i < q_len; ++i) {
      for (int64_t t = 0; t < kv_len; ++t) {
        mask->shows.push_back(q[static_cast<size_t>(i)] == kv[static_cast<size_t>(t)] ? 1 : 0);
      }
    }
  }
}

void RandomBlocks(Random* random, const Shape& groups, int64_t q_len, int64_t kv_len, MaskCase* mask) {
  mask->q_block = 1 + random->Below(random->Below(2) == 0 ? 5 : 40);
  mask->kv_block = 1 + random->Below(random->Below(2) == 0 ? 9 : 200);
  mask->shape = {groups[0], groups[1], q_len, kv_len};
  mask->block_starts.push_back(0);
  for (int64_t group = 0; group < groups[0] * groups[1]; ++group) {
    for (int64_t first = 0; first < q_len; first += mask->q_block) {
      std::vector<uint8_t> row(static_cast<size_t>(kv_len));
      const int64_t often = 1 + random->Below(4);
      for (int64_t block = 0; block * mask->kv_block < kv_len; ++block) {
        if (random->Below(often) > 0) continue;
        mask->blocks.push_back(block);
        for (int64_t t = 0; t < mask->kv_block; ++t) {
          const int64_t column = block * mask->kv_block + t;
          if (column < kv_len) row[static_cast<size_t>(column)] = 1;
        }
      }
      mask->block_starts.push_back(static_cast<int64_t>(mask->blocks.size()));
      for (int64_t i = first; i < std::min(q_len, first + mask->q_block); ++i) {
        mask->shows.insert(mask->shows.end(), row.begin(), row.end());
      }
    }
  }
}

// Pages, a ring, or both; kv_lens is there.
void RandomPlaces(Random* random, SourceCase* s) {
  PlacesCase* p = &s->places;
  const int64_t form = random->Below(3), sizes[] = {1, 2, 3, 7, 16, 64, 128, 129, 512};
  if (form != 1) p->page_len = sizes[random->Below(9)];
  if (form != 0) {
    p->ring_len = 1 + random->Below(random->Below(2) == 0 ? 20 : 400);
    p->ring_keep = random->Below(2) == 0 ? 0 : random->Below(20);
  }
  p->spare = random->Below(3);
  p->seed = random->Next();
}

// Geometry, lengths, bias and mask of the source, whose kv_len is set.
void RandomSource(Random* random, size_t n, OptionsCase* c) {
  SourceCase& s = c->sources[n];
  const auto chance = [&](int64_t of) { return random->Below(of) == 0; };
  if (chance(2)) s.right = random->Below(30);
  if (chance(3)) s.left = random->Below(2) == 0 ? random->Below(40) : random->Below(600);
  if (chance(2)) s.q_offset = random->Below(s.kv_len + 20) - 10;
  for (int64_t b = 0; b < c->batch; ++b) {
    const int64_t columns = c->Columns(n, b);
    if (n % 2 == 0 && b == 0 && chance(3)) s.q_offsets.resize(static_cast<size_t>(c->batch));
    if (b == 0 && (s.places.any() || chance(3))) s.kv_lens.resize(static_cast<size_t>(c->batch));
    if (b == 0 && !s.places.any() && chance(3)) s.kv_firsts.resize(static_cast<size_t>(c->batch));
    if (b == 0 && chance(3)) s.prefix_lens.resize(static_cast<size_t>(c->batch));
    const size_t at = static_cast<size_t>(b);
    if (!s.q_offsets.empty()) s.q_offsets[at] = random->Below(50) - 25;
    if (!s.kv_lens.empty()) s.kv_lens[at] = s.places.any() && b == 0 ? columns : random->Below(columns + 1);
    if (!s.kv_firsts.empty()) s.kv_firsts[at] = random->Below(std::min<int64_t>(200, c->End(n, b)) + 1);
    if (!s.prefix_lens.empty()) s.prefix_lens[at] = chance(4) ? 0 : random->Below(s.kv_len + 20);
  }
  const int64_t q_len = c->LongestQ(), kv_len = c->LongestKv(n);
  const Shape full = {c->batch, c->num_q_heads, q_len, kv_len};
  if (chance(3)) {
    s.bias = RandomNumbers(random, RandomShape(random, full), 1.0f);
    for (int64_t i = 0; i < s.bias.values.size(); ++i) {
      if (chance(9))
        s.bias.values.SetWord(i, s.bias.values.type() == DType::kF32   ? 0xFF800000u
                                 : s.bias.values.type() == DType::kF16 ? 0xFC00u
                                                                       : 0xFF80u);
    }
  }
  const MaskKind forms[] = {MaskKind::kNone,         MaskKind::kNone,         MaskKind::kBool,     MaskKind::kBits,
                            MaskKind::kPreparedBool, MaskKind::kPreparedBits, MaskKind::kSegments, MaskKind::kBlocks};
  s.mask.form = forms[random->Below(s.places.ring_keep > 0 ? 4 : 8)];  // a ring with a gap takes no prepared mask
  const Shape some = RandomShape(random, full);
  switch (s.mask.form) {
    case MaskKind::kNone:
      break;
    case MaskKind::kSegments:
      RandomSegments(random, some[0], q_len, kv_len, &s.mask);
      break;
    case MaskKind::kBlocks:
      RandomBlocks(random, some, q_len, kv_len, &s.mask);
      break;
    default:
      s.mask.shape = some;
      if (s.mask.form == MaskKind::kBits || s.mask.form == MaskKind::kPreparedBits) s.mask.shape[3] = kv_len;
      s.mask.shows = RandomShows(random, Count(s.mask.shape));
  }
}

// Keys and values that no row of their head sees hold NaN: nobody may look at them.
void PoisonUnseen(size_t n, OptionsCase* c) {
  SourceCase& s = c->sources[n];
  const int64_t group = c->num_q_heads / c->num_kv_heads;
  std::vector<bool> seen(static_cast<size_t>(c->KeyBatches(n) * c->num_kv_heads * s.kv_len));
  for (int64_t b = 0; b < c->batch; ++b) {
    for (int64_t h = 0; h < c->num_q_heads; ++h) {
      const int64_t first = c->First(n, b);
      const int64_t row = ((s.kv_starts.empty() ? b : 0) * c->num_kv_heads + h / group) * s.kv_len +
                          (s.kv_starts.empty() ? 0 : s.kv_starts[static_cast<size_t>(b)]) + first;
      for (int64_t t = 0; t < c->End(n, b) - first; ++t) {
        for (int64_t i = 0; i < c->QLen(b) && !seen[static_cast<size_t>(row + t)]; ++i) {
          if (Sees(*c, n, b, h, i, t)) seen[static_cast<size_t>(row + t)] = true;
        }
      }
    }
  }
  for (size_t row = 0; row < seen.size(); ++row) {
    if (seen[row]) continue;
    const int64_t r = static_cast<int64_t>(row);
    for (int64_t i = 0; i < c->head_dim; ++i) s.k.SetWord(r * c->head_dim + i, 0xFFFFFFFFu);
    for (int64_t i = 0; i < c->value_dim; ++i) s.v.SetWord(r * c->value_dim + i, 0xFFFFFFFFu);
  }
}

}  // namespace

OptionsCase RandomOptions(uint64_t seed) {
  Random random(seed);
  const auto chance = [&](int64_t of) { return random.Below(of) == 0; };
  OptionsCase c;
  c.batch = 1 + random.Below(3);
  c.num_kv_heads = 1 + random.Below(2);
  c.num_q_heads = c.num_kv_heads * (1 + random.Below(3));
  c.head_dim = 1 + random.Below(chance(4) ? 40 : 4);
  c.value_dim = 1 + random.Below(chance(4) ? 40 : 4);
  c.q_len = chance(3) ? 1 : 1 + random.Below(chance(3) ? 150 : 20);
  if (chance(3)) c.q_starts = RandomStarts(&random, c.batch, c.q_len);
  for (int64_t b = 0; b < c.batch && chance(b == 0 ? 4 : 1); ++b) c.q_lens.push_back(random.Below(c.QLen(b) + 1));
  c.q = Array{RandomType(&random), random.Normals(c.QueryBatches() * c.num_q_heads * c.q_len * c.head_dim)};
  c.out_type = RandomType(&random);
  if (chance(3)) c.softcap = 1.0f + 0.25f * static_cast<float>(random.Below(20));
  c.alibi = chance(3);
  if (c.alibi && chance(2)) c.slopes = RandomNumbers(&random, RandomShape(&random, {c.batch, c.num_q_heads}), 0.1f);
  if (chance(3)) c.sinks = RandomNumbers(&random, RandomShape(&random, {c.batch, c.num_q_heads}), 2.0f);
  c.sources.resize(chance(3) ? static_cast<size_t>(2 + random.Below(chance(3) ? 7 : 2)) : 1);
  const DType k_type = RandomType(&random), v_type = RandomType(&random);
  for (size_t n = 0; n < c.sources.size(); ++n) {
    SourceCase& s = c.sources[n];
    s.kv_len = chance(9) ? 0 : 1 + random.Below(chance(3) ? 1300 : chance(2) ? 300 : 20);
    if (chance(3)) RandomPlaces(&random, &s);
    if (!s.places.any() && chance(3)) s.kv_starts = RandomStarts(&random, c.batch, s.kv_len);
    const int64_t rows = c.KeyBatches(n) * c.num_kv_heads * s.kv_len;
    s.k = Array{k_type, random.Normals(rows * c.head_dim)};
    s.v = Array{v_type, random.Normals(rows * c.value_dim)};
    RandomSource(&random, n, &c);
    if (chance(2)) PoisonUnseen(n, &c);
  }
  return c;
}

}  // namespace etalon::test
