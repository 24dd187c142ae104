#include "lib/attention/prepare_mask.h"

#include <cstring>

#include "arch/visible.h"
#include "lib/base/parallel.h"
#include "lib/base/workspace.h"

namespace etalon {
namespace {

constexpr int64_t kWordColumns = 64;

int64_t NumEntries(const PreparedMask& m) { return m.batch * m.num_heads * m.entries_of_head; }

// ------------------------------------------------------------------------------------------------------ dense rows

// The entries of a dense mask, one a row.
struct DenseRows {
  const MaskInput& input;

  int64_t NumWords() const { return DivideUp(input.kv_len, kWordColumns); }

  const uint8_t* Row(int64_t entry) const {
    const int64_t query = entry % input.q_len, group = entry / input.q_len;
    return static_cast<const uint8_t*>(input.dense.rows.Row(group / input.num_heads, group % input.num_heads, query));
  }

  bool OneColumn() const { return input.dense.mask_type == MaskType::kBytes && input.dense.column_stride_bytes == 0; }

  // Bit i of it: whether column 64 word + i is visible.
  uint64_t Word(const uint8_t* row, int64_t word) const {
    const int64_t first = word * kWordColumns, columns = Smaller(kWordColumns, input.kv_len - first);
    if (input.dense.mask_type == MaskType::kBits) {
      const uint64_t bits = BitsOfBits(row, first, columns);
      return columns == kWordColumns ? bits : bits & ((uint64_t{1} << columns) - 1);
    }
    if (OneColumn()) return *row == 0 ? 0 : ~uint64_t{0} >> (kWordColumns - columns);
    return BitsOfBytes(row + first, columns);
  }

  bool SameAsBefore(int64_t entry) const {
    const uint8_t *row = Row(entry), *before = Row(entry - 1);
    if (row == before || input.kv_len == 0) return true;  // a stride of 0, or no memory
    if (OneColumn()) return (*row == 0) == (*before == 0);
    for (int64_t w = NumWords(); w-- > 0;) {  // masks differ at their ends more often than at the start
      if (Word(row, w) != Word(before, w)) return false;
    }
    return true;
  }

  template <typename Visitor>
  void VisitRuns(int64_t entry, Visitor* visitor) const {
    const uint8_t* row = Row(entry);
    if (OneColumn()) {
      if (input.kv_len > 0 && *row != 0) visitor->Run({0, input.kv_len});
      return;
    }
    uint64_t before = 0;  // 1 while a run is open
    int64_t first = 0;
    for (int64_t w = 0; w < NumWords(); ++w) {
      const uint64_t bits = Word(row, w);
      uint64_t edges = bits ^ (bits << 1 | before);
      for (; edges != 0; edges &= edges - 1) {
        const int64_t column = w * kWordColumns + __builtin_ctzll(edges);
        before ^= 1;
        if (before != 0) {
          first = column;
        } else {
          visitor->Run({first, column});
        }
      }
    }
    if (before != 0) visitor->Run({first, input.kv_len});
  }
};

// ----------------------------------------------------------------------------------------------------------- blocks

// The entries of a mask of blocks, one a query block.
struct BlockRows {
  const MaskInput& input;

  int64_t NumBlocks(int64_t entry) const { return input.block_starts[entry + 1] - input.block_starts[entry]; }
  const int64_t* Blocks(int64_t entry) const { return input.blocks + input.block_starts[entry]; }

  bool SameAsBefore(int64_t entry) const {
    const int64_t n = NumBlocks(entry);
    if (n != NumBlocks(entry - 1)) return false;
    for (int64_t i = 0; i < n; ++i) {
      if (Blocks(entry)[i] != Blocks(entry - 1)[i]) return false;
    }
    return true;
  }

  template <typename Visitor>
  void VisitRuns(int64_t entry, Visitor* visitor) const {
    const int64_t n = NumBlocks(entry);
    for (int64_t i = 0; i < n;) {
      const int64_t first = Blocks(entry)[i] * input.kv_block;
      int64_t block = Blocks(entry)[i++];
      for (; i < n && Blocks(entry)[i] == block + 1; ++i) ++block;
      const int64_t start = block * input.kv_block;
      visitor->Run({first, start + Smaller(input.kv_block, input.kv_len - start)});
    }
  }
};

// ------------------------------------------------------------------------------------- lists of runs, entry by entry

struct RunCounter {
  int64_t runs = 0;
  void Run(const Span&) { ++runs; }
};

struct RunWriter {
  Span* runs;
  int64_t count = 0;
  void Run(const Span& run) { runs[count++] = run; }
};

// Runs of all entries; what an entry has in common with the one before is there once.
template <typename Rows>
int64_t CountRuns(const Rows& rows, int64_t entries) {
  RunCounter counter;
  for (int64_t n = 0; n < entries; ++n) {
    if (n == 0 || !rows.SameAsBefore(n)) rows.VisitRuns(n, &counter);
  }
  return counter.runs;
}

MaskEntry EntryOf(const Span* runs, int64_t first, int64_t last) {
  if (first == last) return {{0, 0}, 0, 0};
  return {{runs[first].first, runs[last - 1].last}, first, last - first};
}

template <typename Rows>
void WriteRuns(const Rows& rows, int64_t num_entries, MaskEntry* entries, Span* runs) {
  RunWriter writer = {runs};
  for (int64_t n = 0; n < num_entries; ++n) {
    if (n > 0 && rows.SameAsBefore(n)) {
      entries[n] = entries[n - 1];
      continue;
    }
    const int64_t first = writer.count;
    rows.VisitRuns(n, &writer);
    entries[n] = EntryOf(runs, first, writer.count);
  }
}

// Notes the first and the last column that is visible.
struct HullWriter {
  Span hull = {0, 0};
  void Run(const Span& run) {
    if (hull.first >= hull.last) hull.first = run.first;
    hull.last = run.last;
  }
};

void WriteBits(const DenseRows& rows, const PreparedMask& mask, MaskEntry* entries, uint8_t* bits) {
  for (int64_t n = 0; n < NumEntries(mask); ++n, bits += mask.row_bytes) {
    HullWriter hull;
    rows.VisitRuns(n, &hull);
    entries[n] = {hull.hull, 0, 0};
    const uint8_t* row = rows.Row(n);
    for (int64_t w = 0; w < rows.NumWords(); ++w) {
      const uint64_t word = rows.Word(row, w);
      for (int i = 0; i < 8; ++i) bits[8 * w + i] = static_cast<uint8_t>(word >> (8 * i));
    }
  }
}

// --------------------------------------------------------------------------------------------------------- segments

// Runs of equal numbers in the keys of one sequence.
template <typename Visitor>
void VisitSegments(const int64_t* segments, int64_t kv_len, Visitor* visitor) {
  for (int64_t first = 0; first < kv_len;) {
    int64_t last = first + 1;
    while (last < kv_len && segments[last] == segments[first]) ++last;
    visitor->Run({first, last});
    first = last;
  }
}

// The runs of a sequence in the order of their numbers, and among equal ones of their place. A run's number is that of
// its first key.
class SegmentRuns {
 public:
  SegmentRuns(const int64_t* segments, Span* runs, int64_t num_runs)
      : segments_(segments), runs_(runs), num_runs_(num_runs) {}

  // Heap sort: in place, and never slow.
  void Sort() {
    bool sorted = true;
    for (int64_t i = 1; i < num_runs_ && sorted; ++i) sorted = Before(runs_[i - 1], runs_[i]);
    if (sorted) return;
    for (int64_t root = num_runs_ / 2; root-- > 0;) SiftDown(root, num_runs_);
    for (int64_t end = num_runs_; end-- > 1;) {
      Swap(0, end);
      SiftDown(0, end);
    }
  }

  // The first run whose number is not below.
  int64_t FirstFrom(int64_t number) const {
    int64_t low = 0, high = num_runs_;
    while (low < high) {
      const int64_t middle = low + (high - low) / 2;
      if (NumberOf(runs_[middle]) < number) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    return low;
  }
  int64_t FirstBeyond(int64_t number) const { return number == INT64_MAX ? num_runs_ : FirstFrom(number + 1); }

 private:
  int64_t NumberOf(const Span& run) const { return segments_[run.first]; }
  bool Before(const Span& a, const Span& b) const {
    const int64_t of_a = NumberOf(a), of_b = NumberOf(b);
    return of_a < of_b || (of_a == of_b && a.first < b.first);
  }
  void Swap(int64_t a, int64_t b) {
    const Span run = runs_[a];
    runs_[a] = runs_[b];
    runs_[b] = run;
  }
  void SiftDown(int64_t root, int64_t end) {
    for (int64_t child; (child = 2 * root + 1) < end; root = child) {
      if (child + 1 < end && Before(runs_[child], runs_[child + 1])) ++child;
      if (!Before(runs_[root], runs_[child])) return;
      Swap(root, child);
    }
  }

  const int64_t* segments_;
  Span* runs_;
  int64_t num_runs_;
};

int64_t CountSegments(const MaskInput& input) {
  RunCounter counter;
  for (int64_t b = 0; b < input.batch; ++b) {
    VisitSegments(input.kv_segments + b * input.kv_len, input.kv_len, &counter);
  }
  return counter.runs;
}

void WriteSegments(const MaskInput& input, MaskEntry* entries, Span* runs) {
  RunWriter writer = {runs};
  for (int64_t b = 0; b < input.batch; ++b) {
    const int64_t* numbers = input.kv_segments + b * input.kv_len;
    const int64_t base = writer.count;
    VisitSegments(numbers, input.kv_len, &writer);
    SegmentRuns sorted(numbers, runs + base, writer.count - base);
    sorted.Sort();
    const int64_t* q = input.q_segments + b * input.q_len;
    for (int64_t i = 0; i < input.q_len; ++i, ++entries) {
      if (i > 0 && q[i] == q[i - 1]) {
        *entries = entries[-1];
      } else {
        *entries = EntryOf(runs, base + sorted.FirstFrom(q[i]), base + sorted.FirstBeyond(q[i]));
      }
    }
  }
}

}  // namespace

bool LayOutMask(const MaskInput& input, PreparedMask* mask) {
  *mask = {};
  mask->magic = kMaskMagic;
  mask->batch = input.batch;
  mask->num_heads = input.num_heads;
  mask->q_len = input.q_len;
  mask->kv_len = input.kv_len;
  mask->q_block = input.q_block;
  mask->entries_of_head = DivideUp(input.q_len, input.q_block);
  int64_t heads, entries;
  if (__builtin_mul_overflow(input.batch, input.num_heads, &heads) ||
      __builtin_mul_overflow(heads, mask->entries_of_head, &entries)) {
    return false;
  }
  bool fits = true;
  size_t size = 0;
  ReserveBytes(&size, sizeof *mask);
  mask->entries = ReserveArray(&size, entries, sizeof(MaskEntry), &fits);
  if (!fits) return false;  // nobody waits for the runs of so many
  const bool dense = input.way == MaskWay::kDense;
  const int64_t num_runs = dense                             ? CountRuns(DenseRows{input}, entries)
                           : input.way == MaskWay::kSegments ? CountSegments(input)
                                                             : CountRuns(BlockRows{input}, entries);
  const int64_t row_bytes = DivideUp(input.kv_len, kWordColumns) * static_cast<int64_t>(sizeof(uint64_t));
  int64_t run_bytes, bits_bytes;
  if (__builtin_mul_overflow(num_runs, static_cast<int64_t>(sizeof(Span)), &run_bytes)) return false;
  if (__builtin_mul_overflow(entries, row_bytes, &bits_bytes)) bits_bytes = INT64_MAX;
  if (dense && bits_bytes < run_bytes) {
    mask->row_bytes = row_bytes;
    mask->bits = ReserveArray(&size, bits_bytes, 1, &fits);
  } else {
    mask->runs = ReserveArray(&size, run_bytes, 1, &fits);
  }
  mask->bytes = size;
  return fits;
}

void WriteMask(const MaskInput& input, const PreparedMask& mask, void* memory) {
  std::memset(memory, 0, static_cast<size_t>(mask.bytes));  // gaps too: it may be kept in a file
  MaskEntry* entries = At<MaskEntry>(memory, mask.entries);
  Span* runs = At<Span>(memory, mask.runs);
  if (mask.bits != 0) {
    WriteBits({input}, mask, entries, At<uint8_t>(memory, mask.bits));
  } else if (input.way == MaskWay::kDense) {
    WriteRuns(DenseRows{input}, NumEntries(mask), entries, runs);
  } else if (input.way == MaskWay::kSegments) {
    WriteSegments(input, entries, runs);
  } else {
    WriteRuns(BlockRows{input}, NumEntries(mask), entries, runs);
  }
  std::memcpy(memory, &mask, sizeof mask);
}

}  // namespace etalon
