// What rows see, as the kernels work it out: bits of a chunk, and where to go on; and that kernels stay away from the
// memory of chunks that nobody sees.
#include "arch/visible.h"

#include <doctest/doctest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "lib/base/arithmetic.h"
#include "tests/kernels/kernel_test.h"
#include "tests/support/guard_buffer.h"
#include "tests/support/targets.h"

namespace etalon::test {
namespace {

bool Bit(const VisibleBits& bits, int64_t i) { return (bits.word[i / 64] >> i % 64 & 1) != 0; }

TEST_CASE("bits of bytes and of packed bits, at every offset and length, reading nothing beside them") {
  Random random(1);
  for (int64_t first = 0; first < 16; ++first) {
    for (int64_t count = 1; count <= 64; ++count) {
      INFO("first ", first, " count ", count);
      GuardBuffer bytes(static_cast<size_t>(count), Guard::kAbove);
      for (int64_t i = 0; i < count; ++i) {
        const int64_t x = random.Below(3) == 0 ? 0 : random.Below(256);
        bytes.data()[i] = static_cast<unsigned char>(x);
      }
      const uint64_t of_bytes = BitsOfBytes(bytes.data(), count);
      for (int64_t i = 0; i < 64; ++i) CHECK((of_bytes >> i & 1) == (i < count && bytes.data()[i] != 0 ? 1 : 0));

      GuardBuffer packed(static_cast<size_t>((first + count + 7) / 8), Guard::kAbove);
      for (size_t i = 0; i < packed.bytes(); ++i) packed.data()[i] = static_cast<unsigned char>(random.Below(256));
      const uint64_t of_bits = BitsOfBits(packed.data(), first, count);
      for (int64_t i = 0; i < count; ++i) {
        CHECK((of_bits >> i & 1) == (packed.data()[(first + i) / 8] >> (first + i) % 8 & 1u));
      }
    }
  }
}

struct Row {
  KeySource source = {};
  RowKeys keys = {};
  std::vector<uint8_t> mask;
  std::vector<Span> runs;

  bool Sees(int64_t position) const {
    if (position < keys.span.first || position >= keys.span.last) return false;
    const int64_t column = position - source.base + source.first_column;
    if (keys.mask != nullptr && source.mask_type == MaskType::kBytes &&
        mask[static_cast<size_t>(column * source.mask_stride_bytes)] == 0) {
      return false;
    }
    if (keys.mask != nullptr && source.mask_type == MaskType::kBits &&
        (mask[static_cast<size_t>(column / 8)] >> column % 8 & 1) == 0) {
      return false;
    }
    if (keys.runs == nullptr) return true;
    for (const Span& run : runs) {
      if (run.first <= column && column < run.last) return true;
    }
    return false;
  }
};

void Draw(Random* random, Row* row) {
  row->source.base = random->Below(2) * random->Below(1000);
  row->source.num_keys = 1 + random->Below(700);
  row->source.first_column = random->Below(3) * random->Below(100);
  const int64_t end = row->source.base + row->source.num_keys;
  const int64_t a = row->source.base + random->Below(row->source.num_keys + 1);
  const int64_t b = row->source.base + random->Below(row->source.num_keys + 1);
  row->keys.span = random->Below(2) == 0 ? Span{row->source.base, end} : Span{a, b};  // may be empty, or reversed
  const int64_t kind = random->Below(4), columns = row->source.first_column + row->source.num_keys;
  if (kind == 1 || kind == 2) {
    row->source.mask_type = kind == 1 ? MaskType::kBytes : MaskType::kBits;
    row->source.mask_stride_bytes = random->Below(3);
    row->mask.resize(static_cast<size_t>(columns * 2));
    for (uint8_t& m : row->mask) m = random->Below(2) == 0 ? 0 : static_cast<uint8_t>(random->Below(256));
    row->keys.mask = row->mask.data();
  }
  if (random->Below(2) == 0) {
    const int64_t longest = 1 + random->Below(200);
    for (int64_t at = random->Below(longest); at < columns + 50;) {
      row->runs.push_back({at, at + 1 + random->Below(longest)});
      at = row->runs.back().last + 1 + random->Below(longest);
    }
    row->runs.reserve(1);
    row->keys.runs = row->runs.data();
    row->keys.num_runs = static_cast<int64_t>(row->runs.size());
  }
}

TEST_CASE("what a row sees of a chunk, and the next position that spans and runs show") {
  for (uint64_t seed = 0; seed < 3000; ++seed) {
    Random random(seed);
    Row row;
    Draw(&random, &row);
    INFO("seed ", seed);
    const int64_t first = row.source.base + random.Below(row.source.num_keys);
    const Span chunk = {first, Smaller(first + 1 + random.Below(128), row.source.base + row.source.num_keys)};
    const VisibleBits bits = VisibleOf(row.keys, row.source, chunk);
    int64_t lowest = 128, highest = 0;
    for (int64_t i = 0; i < 128; ++i) {
      const bool sees = first + i < chunk.last && row.Sees(first + i);
      REQUIRE(Bit(bits, i) == sees);
      if (!sees) continue;
      lowest = Smaller(lowest, i);
      highest = i + 1;
    }
    CHECK(FirstBit(bits) == lowest);
    CHECK(LastBit(bits) == highest);
    if (SeesAll(row.keys, chunk)) CHECK(highest - lowest == chunk.last - chunk.first);

    Row unmasked = row;
    unmasked.keys.mask = nullptr;
    int64_t next = first;
    while (next < row.keys.span.last && !unmasked.Sees(next)) ++next;
    const int64_t found = NextVisible(row.keys, row.source, first);
    if (next < row.keys.span.last) CHECK(found == next);
    if (next >= row.keys.span.last) CHECK(found >= row.keys.span.last);
  }
}

// Keys and values of which some chunks fault when they are touched.
class Chunks {
 public:
  Chunks(int64_t num_chunks, int64_t dim) : bytes_(static_cast<size_t>(num_chunks * kChunk * dim) * sizeof(float)) {
    void* memory = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    REQUIRE(memory != MAP_FAILED);
    data_ = static_cast<float*>(memory);
    chunk_bytes_ = bytes_ / static_cast<size_t>(num_chunks);
    REQUIRE(chunk_bytes_ % static_cast<size_t>(sysconf(_SC_PAGESIZE)) == 0);
  }
  ~Chunks() { munmap(data_, bytes_); }
  Chunks(const Chunks&) = delete;

  void Fill(Random* random) {
    for (size_t i = 0; i < bytes_ / sizeof(float); ++i) data_[i] = random->Normal();
  }
  void Forbid(int64_t chunk) {
    REQUIRE(mprotect(reinterpret_cast<unsigned char*>(data_) + static_cast<size_t>(chunk) * chunk_bytes_, chunk_bytes_,
                     PROT_NONE) == 0);
  }
  const float* data() const { return data_; }

 private:
  size_t bytes_, chunk_bytes_;
  float* data_;
};

TEST_CASE("chunks that no row of a tile sees are not read, whatever hides them") {
  constexpr int64_t kChunks = 12, kDim = 128, kKeys = kChunks * kChunk;
  Random random(7);
  Chunks k(kChunks, kDim), v(kChunks, kDim);
  k.Fill(&random);
  v.Fill(&random);
  for (int64_t chunk : {1, 2, 5, 6, 7, 8, 10}) {
    k.Forbid(chunk);
    v.Forbid(chunk);
  }
  std::vector<uint8_t> bytes(kKeys), bits(kKeys / 8);
  std::vector<Span> runs = {{0, 100}, {kChunk * 3, kChunk * 4 + 1}, {kChunk * 9 + 17, kChunk * 9 + 18}};
  runs.push_back({kChunk * 11 + 1, kKeys});
  for (const Span& run : runs) {
    for (int64_t i = run.first; i < run.last; ++i) {
      bytes[static_cast<size_t>(i)] = 1;
      bits[static_cast<size_t>(i / 8)] |= static_cast<uint8_t>(1 << i % 8);
    }
  }
  for (const KernelTable& table : Tables()) {
    for (size_t rows : {size_t{1}, size_t{5}, size_t{20}, size_t{128}}) {
      INFO(std::string(table.name), " rows ", rows);
      const std::vector<float> q = random.Normals(static_cast<int64_t>(rows) * kDim);
      std::vector<std::vector<float>> results;
      for (int form = 0; form < 3; ++form) {
        std::vector<float> out(rows * kDim), lse(rows), m(rows * 3), l(rows * 3), o(rows * 3 * kDim);
        std::vector<float> s(rows * kKeys);
        KeySource source = {};
        source.k = k.data();
        source.v = v.data();
        source.k_stride_bytes = source.v_stride_bytes = kDim * 4;
        source.num_keys = kKeys;
        source.mask_stride_bytes = 1;
        source.mask_type = form == 1 ? MaskType::kBits : MaskType::kBytes;
        std::vector<QueryRow> query(rows);
        std::vector<RowKeys> keys(rows);
        for (size_t r = 0; r < rows; ++r) {
          query[r] = {q.data() + r * kDim, 0, 0, out.data() + r * kDim, &lse[r]};
          keys[r].span = {0, kKeys};
          if (form < 2) keys[r].mask = form == 1 ? bits.data() : bytes.data();
          if (form == 2) keys[r].runs = runs.data();
          if (form == 2) keys[r].num_runs = static_cast<int64_t>(runs.size());
        }
        const ScratchMemory scratch(table, kDim, kDim);
        AttendArgs args = {query.data(), rows,  &source,      1, keys.data(), kDim, kDim, {DType::kF32, 0.1f, 0, false},
                           DType::kF32,  false, scratch.get()};
        InEnvironment([&] { table.attend(args); });
        const BlockStatesArgs states = {args, 0, 3, {m.data(), l.data(), o.data(), 3}};
        InEnvironment([&] { table.block_states(states); });
        const ScoresArgs scores = {query.data(), rows,     keys.data(), &source,      kDim,
                                   args.options, s.data(), kKeys,       scratch.get()};
        InEnvironment([&] { table.scores(scores); });
        for (const std::vector<float>* part : {&lse, &m, &l, &o, &s}) out.insert(out.end(), part->begin(), part->end());
        results.push_back(out);
      }
      CHECK(Difference(results[1], results[0]) == "");
      CHECK(Difference(results[2], results[0]) == "");
    }
  }
}

}  // namespace
}  // namespace etalon::test
