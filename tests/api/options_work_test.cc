// The work that options leave: what plan info counts, and the memory that nobody touches.
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <set>

#include "lib/attention/prepared_mask.h"
#include "tests/api/options_call.h"

namespace etalon::test {
namespace {

struct Work {
  int64_t key_tiles = 0, keys = 0;
};

// What a row may see of a source, as far as a count knows: with a mask kept as runs its keys, else one span.
std::vector<Span> SpansOfRow(const OptionsCase& geometry, const OptionsCase& c, size_t n, bool runs, int64_t b,
                             int64_t h, int64_t i) {
  const MaskCase& mask = c.sources[n].mask;
  const std::vector<int64_t>& firsts = c.sources[n].kv_firsts;
  const int64_t first = firsts.empty() ? 0 : firsts[static_cast<size_t>(b)], columns = c.LongestKv(n);
  const bool prepared = mask.form >= MaskKind::kPreparedBool;
  int64_t low = 0, high = columns;  // columns between the first and the last that the mask shows
  if (prepared) {
    while (low < high && !mask.Shows(b, h, i, low)) ++low;
    while (high > low && !mask.Shows(b, h, i, high - 1)) --high;
  }
  std::vector<Span> spans;
  for (int64_t t = 0; t < columns; ++t) {
    const bool inside = t + first >= low && t + first < high && Sees(geometry, n, b, h, i, t);
    if (!inside || (runs && !mask.Shows(b, h, i, t + first))) continue;
    if (!spans.empty() && spans.back().last == t) {
      ++spans.back().last;
    } else {
      spans.push_back({t, t + 1});
    }
  }
  return spans;
}

// The header's words: tiles of tile_rows rows of a group, and the chunks of 128 keys of which one of them may see a
// key; without a prepared mask or a ring that keeps keys, of which the smallest span that holds what they see has one.
Work CountWork(const OptionsCase& c, const OptionsCall& call, int64_t tile_rows) {
  OptionsCase geometry = c;
  for (SourceCase& s : geometry.sources) s.mask = {};
  const int64_t group = c.num_q_heads / c.num_kv_heads;
  Work work;
  for (size_t n = 0; n < c.sources.size(); ++n) {
    const etalon_mask* mask = call.sources[n].mask->prepared();
    const bool runs = mask != nullptr && reinterpret_cast<const PreparedMask*>(mask)->runs != 0;
    for (int64_t b = 0; b < c.batch; ++b) {
      const int64_t q_len = c.QLen(b), rows = group * q_len;
      for (int64_t n_of_tile = 0; n_of_tile < c.num_kv_heads; ++n_of_tile) {
        for (int64_t from = 0; from < rows; from += tile_rows) {
          std::set<int64_t> keys, chunks;
          for (int64_t r = from; r < std::min(rows, from + tile_rows); ++r) {
            for (const Span& span : SpansOfRow(geometry, c, n, runs, b, n_of_tile * group + r / q_len, r % q_len)) {
              for (int64_t t = span.first; t < span.last; ++t) keys.insert(t);
            }
          }
          if (keys.empty()) continue;
          if (mask == nullptr && c.sources[n].places.ring_keep == 0) {
            for (int64_t t = *keys.begin(); t < *keys.rbegin(); ++t) keys.insert(t);
          }
          for (int64_t t : keys) chunks.insert(t / 128);
          work.keys += static_cast<int64_t>(keys.size());
          work.key_tiles += static_cast<int64_t>(chunks.size());
        }
      }
    }
  }
  return work;
}

TEST_CASE("options: plan info counts like a walk over every row") {
  const KernelTable table = Tables().front();  // counts are not the table's
  int64_t prepared = 0;
  for (uint64_t seed = 1; seed <= 150; ++seed) {
    const OptionsCase c = RandomOptions(seed);
    const OptionsCall call(c, table);
    const int32_t workers = static_cast<int32_t>(1 + seed % 5);
    const etalon_plan_info info = call.Info(workers);
    const Work work = CountWork(c, call, info.tile_rows);
    const int64_t key_bytes = c.head_dim * static_cast<int64_t>(ElementSize(c.sources[0].k.type())) +
                              c.value_dim * static_cast<int64_t>(ElementSize(c.sources[0].v.type()));
    INFO("seed ", seed, " workers ", workers, ": ", Describe(c));
    CHECK(info.key_tiles == work.key_tiles);
    CHECK(info.bytes_read == work.keys * key_bytes);
    for (const OptionsCall::Source& source : call.sources) prepared += source.mask->prepared() != nullptr ? 1 : 0;
  }
  CHECK(prepared > 50);
}

// The same for sizes over which only the rows can be walked: prefixes, padding, rings and ragged batches, without
// masks.
TEST_CASE("options: plan info counts the spans of long sequences") {
  const KernelTable table = Tables().front();
  Random random(21);
  for (int round = 0; round < 120; ++round) {
    OptionsCase c;
    c.batch = 1 + random.Below(3);
    c.num_kv_heads = 1 + random.Below(2);
    c.num_q_heads = c.num_kv_heads * (1 + random.Below(random.Below(3) == 0 ? 40 : 4));
    c.q_len = 1 + random.Below(round % 2 == 0 ? 1500 : 100);
    c.sources.resize(static_cast<size_t>(1 + random.Below(2)));
    const auto any = [&] { return random.Below(round % 3 == 0 ? 100 : 1600); };
    if (round % 4 == 1) {
      for (int64_t b = 0; b <= c.batch; ++b) c.q_starts.push_back(b == 0 ? 0 : c.q_starts.back() + random.Below(600));
      c.q_len = c.q_starts.back();
    }
    c.q = Array(DType::kF32, c.QueryBatches() * c.num_q_heads * c.q_len);
    for (SourceCase& s : c.sources) {
      s.kv_len = any();
      s.k = s.v = Array(DType::kF32, c.batch * c.num_kv_heads * s.kv_len);
      s.left = random.Below(3) == 0 ? -1 : any();
      s.right = random.Below(4) == 0 ? -1 : any();
      s.q_offset = any() - any();
      for (int64_t b = 0; b < c.batch; ++b) {
        if (round % 5 < 4) s.prefix_lens.push_back(any());
        if (round % 5 > 2) s.kv_lens.push_back(random.Below(s.kv_len + 1));
        if (round % 5 == 3) s.kv_firsts.push_back(random.Below(s.kv_lens.back() + 1));
      }
      if (round % 5 == 4) {
        s.kv_lens[0] = s.kv_len;
        s.places.ring_len = 1 + any();
      }
    }
    const OptionsCall call(c, table);
    const etalon_plan_info info = call.Info(static_cast<int32_t>(1 + random.Below(9)));
    Work work;
    for (const SourceCase& s : c.sources) {
      for (size_t b = 0; b < static_cast<size_t>(c.batch); ++b) {
        const int64_t q_len = c.QLen(static_cast<int64_t>(b)), rows = c.num_q_heads / c.num_kv_heads * q_len;
        const int64_t keys = (s.kv_lens.empty() ? s.kv_len : s.kv_lens[b]) - (s.kv_firsts.empty() ? 0 : s.kv_firsts[b]);
        for (int64_t from = 0; from < rows; from += info.tile_rows) {
          int64_t low = keys, high = 0;
          for (int64_t r = from; r < std::min(rows, from + info.tile_rows); ++r) {
            const int64_t position = r % q_len + s.q_offset, prefix = s.prefix_lens.empty() ? 0 : s.prefix_lens[b];
            const int64_t lost = s.places.ring_len == 0 ? 0 : std::max<int64_t>(0, keys - s.places.ring_len);
            const int64_t first = s.left < 0 ? lost : std::max<int64_t>(lost, position - s.left);
            const int64_t last = s.right < 0 ? keys : std::min(keys, std::max(position + s.right + 1, prefix));
            if (first >= last) continue;
            low = std::min(low, first);
            high = std::max(high, last);
          }
          if (low >= high) continue;
          work.keys += c.num_kv_heads * (high - low);
          work.key_tiles += c.num_kv_heads * ((high - 1) / 128 - low / 128 + 1);
        }
      }
    }
    INFO("round ", round, ": ", Describe(c));
    CHECK(info.key_tiles == work.key_tiles);
    CHECK(info.bytes_read == work.keys * 8);
  }
}

// As many tasks as a call begins, and splits wherever several tasks are the parts of a tile.
TEST_CASE("options: plan info knows the tasks") {
  const KernelTable table = Tables().front();
  int64_t splits = 0;
  for (uint64_t seed = 1; seed <= 150; ++seed) {
    const OptionsCase c = RandomOptions(seed);
    const OptionsCall call(c, table);
    const int32_t workers = static_cast<int32_t>(1 + seed % 12);
    etalon_attention_desc desc = call.PlanDesc();
    desc.max_workers = workers;
    etalon_plan plan;
    REQUIRE(etalon_plan_init(&plan, &desc, nullptr) == ETALON_OK);
    GuardBuffer memory(etalon_plan_workspace_bytes(&plan), Guard::kAbove, 0);
    const etalon_workspace workspace = {memory.data(), memory.bytes()};
    int64_t num_tasks = -1;
    REQUIRE(etalon_begin(&plan, &call.args, &workspace, &num_tasks, nullptr) == ETALON_OK);
    const etalon_plan_info info = call.Info(workers);
    INFO("seed ", seed, " workers ", workers, ": ", Describe(c));
    CHECK(info.num_tasks == num_tasks);
    splits += info.key_splits > 1 ? 1 : 0;
  }
  CHECK(splits > 20);
}

// ---------------------------------------------------------------------------------------------- memory between runs

constexpr int64_t kChunks = 16, kKeys = kChunks * 128, kDim = 8;

// k or v [kKeys, kDim], f32, of which each chunk of 128 keys is a page.
class PagedKeys {
 public:
  explicit PagedKeys(uint64_t seed)
      : page_(static_cast<size_t>(sysconf(_SC_PAGESIZE))), bytes_(page_ * static_cast<size_t>(kChunks)) {
    void* all = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    REQUIRE(all != MAP_FAILED);
    data_ = static_cast<unsigned char*>(all);
    REQUIRE(page_ % 128 == 0);
    REQUIRE(page_ / 128 >= static_cast<size_t>(kDim) * sizeof(float));
    const int64_t shape[] = {kKeys, kDim};
    REQUIRE(etalon_tensor_init(&tensor, data_, ETALON_F32, 2, shape, nullptr) == ETALON_OK);
    tensor.stride_bytes[0] = static_cast<int64_t>(page_ / 128);
    Random random(seed);
    for (int64_t t = 0; t < kKeys; ++t) {
      for (int64_t i = 0; i < kDim; ++i) {
        const float x = random.Normal();
        std::memcpy(data_ + t * tensor.stride_bytes[0] + i * 4, &x, sizeof x);
      }
    }
  }
  ~PagedKeys() { munmap(data_, bytes_); }
  PagedKeys(const PagedKeys&) = delete;

  void Protect(int64_t chunk) { REQUIRE(mprotect(data_ + static_cast<size_t>(chunk) * page_, page_, PROT_NONE) == 0); }

  etalon_tensor tensor;

 private:
  size_t page_, bytes_;
  unsigned char* data_;
};

// Rows of q that see every other of some chunks, by blocks; the others lie in pages that fault.
TEST_CASE("options: keys between the runs of a prepared mask are never touched") {
  const bool seen[kChunks] = {false, true,  false, false, true, true,  false, true,
                              false, false, false, false, true, false, true,  false};
  std::vector<int64_t> blocks;
  for (int64_t chunk = 0; chunk < kChunks; ++chunk) {
    if (seen[chunk]) blocks.push_back(chunk);
  }
  for (const KernelTable& table : Tables()) {
    for (int64_t q_len : {1, 3, 40, 200}) {
      for (int32_t workers : {1, 4, 30}) {
        PagedKeys k(1), v(2);
        const Shape shape = {q_len, kDim};
        GuardedTensor q(F32(Ramp(3, 1, q_len * kDim)), shape), out(Unwritten(DType::kF32, shape), shape);
        GuardedTensor expected(Unwritten(DType::kF32, shape), shape);

        etalon_attention_desc desc;
        etalon_attention_args args;
        REQUIRE(etalon_attention_desc_init(&desc, sizeof desc) == ETALON_OK);
        REQUIRE(etalon_attention_args_init(&args, sizeof args) == ETALON_OK);
        desc.max_workers = workers;
        desc.target = table.name;
        args.q = q.get();
        args.k = &k.tensor;
        args.v = &v.tensor;
        const auto run = [&] {
          size_t bytes = 0;
          etalon_error error;
          const Loop loop(Loop::Kind::kShuffled, workers);
          REQUIRE(etalon_attention_workspace_bytes(&desc, &args, &bytes, &error) == ETALON_OK);
          GuardBuffer memory(bytes, Guard::kAbove, 0);
          const etalon_workspace workspace = {memory.data(), bytes};
          REQUIRE(etalon_attention(&desc, &args, &workspace, loop.get(), &error) == ETALON_OK);
        };

        std::vector<uint8_t> shows(static_cast<size_t>(kKeys));
        for (int64_t t = 0; t < kKeys; ++t) shows[static_cast<size_t>(t)] = seen[t / 128] ? 1 : 0;
        const int64_t mask_shape[] = {1, kKeys};
        etalon_tensor mask;
        REQUIRE(etalon_tensor_init(&mask, shows.data(), ETALON_BOOL, 2, mask_shape, nullptr) == ETALON_OK);
        args.mask = &mask;
        args.out = expected.get();
        run();

        const std::vector<int64_t> starts = {0, static_cast<int64_t>(blocks.size())};
        etalon_mask_args mask_args;
        REQUIRE(etalon_mask_args_init(&mask_args, sizeof mask_args) == ETALON_OK);
        mask_args.batch = mask_args.num_heads = 1;
        mask_args.q_len = q_len;
        mask_args.kv_len = kKeys;
        mask_args.q_block = q_len;
        mask_args.kv_block = 128;
        mask_args.block_starts = starts.data();
        mask_args.blocks = blocks.data();
        size_t bytes = 0;
        REQUIRE(etalon_mask_bytes(&mask_args, &bytes, nullptr) == ETALON_OK);
        GuardBuffer memory(bytes, Guard::kAbove, 0);
        const etalon_workspace mask_memory = {memory.data(), bytes};
        REQUIRE(etalon_mask_prepare(&mask_args, &mask_memory, &args.prepared_mask, nullptr) == ETALON_OK);
        args.mask = nullptr;
        args.out = out.get();
        for (int64_t chunk = 0; chunk < kChunks; ++chunk) {
          if (seen[chunk]) continue;
          k.Protect(chunk);
          v.Protect(chunk);
        }
        run();
        INFO(std::string(table.name), " q_len ", q_len, " workers ", workers);
        CHECK(Difference(out.Values(), expected.Values()) == "");
      }
    }
  }
}

}  // namespace
}  // namespace etalon::test
