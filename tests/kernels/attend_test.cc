// The fused pass, block states and fold of every table.
#include <doctest/doctest.h>

#include <cmath>
#include <string>

#include "tests/kernels/kernel_test.h"
#include "tests/kernels/order_model.h"
#include "tests/support/reference.h"
#include "tests/support/targets.h"
#include "tests/support/tolerance.h"

namespace etalon::test {
namespace {

void CheckAll(const KernelTable& table, const AttentionCase& c, bool accuracy) {
  const AttentionResult got = RunAttend(table, c);
  CHECK(Difference(got, ModelAttention(c)) == "");
  CHECK(NotCanonicalOut(got) == "");
  const StatesResult states = RunBlockStates(table, c);
  CHECK(Difference(states, ModelStates(c)) == "");
  CHECK(Difference(RunFold(table, c, states), got) == "");
  if (!accuracy) return;
  const TrueAttention exact = AttentionInF64(c);
  CHECK(OutReport(got, exact) == "");
  CHECK(LseReport(got.lse, exact.lse) == "");
}

TEST_CASE("attend: every tail of head_dim, value_dim and keys; equal to block states, then fold") {
  const std::vector<int64_t>& sizes = TailSizes();
  for (const KernelTable& table : Tables()) {
    for (size_t i = 0; i < sizes.size(); ++i) {
      for (size_t step : {3, 8}) {
        const int64_t num_keys = sizes[i];
        const int64_t head_dim = sizes[(i * 3 + step) % sizes.size()],
                      value_dim = sizes[(i * 5 + step * 2) % sizes.size()];
        const uint64_t seed = i * 100 + step;
        Random random(seed);
        const auto type = [&] { return static_cast<DType>(random.Below(3)); };
        AttentionCase c = PlainCase{Array{type(), random.Normals(2 * head_dim, 2.0f)},
                                    Array{type(), random.Normals(num_keys * head_dim)},
                                    Array{type(), random.Normals(num_keys * value_dim)},
                                    head_dim,
                                    value_dim,
                                    ScaleOf(head_dim)};
        c.out_type = type();
        INFO(std::string(table.name), " seed ", seed, " ", Describe(c));
        CheckAll(table, c, true);
      }
    }
  }
}

TEST_CASE("attend: many rows in one tile") {
  for (const KernelTable& table : Tables()) {
    for (int64_t rows : TailSizes()) {
      Random random(static_cast<uint64_t>(rows));
      AttentionCase c = PlainCase{Array{DType::kF32, random.Normals(rows * 5)},
                                  Array{DType::kF16, random.Normals(20 * 5)},
                                  Array{DType::kBF16, random.Normals(20 * 3)},
                                  5,
                                  3,
                                  ScaleOf(5)};
      for (int64_t r = 0; r < rows; ++r) c.sources[0].spans.push_back({0, 1 + r % 20});
      INFO(std::string(table.name), " ", Describe(c));
      CheckAll(table, c, true);
    }
  }
}

TEST_CASE("attend: all options together") {
  for (const KernelTable& table : Tables()) {
    for (uint64_t seed = 1000; seed < 1120; ++seed) {
      RandomOptions options;
      options.specials = seed % 4 == 3;
      options.max_dim = 80;
      const AttentionCase c = RandomAttention(seed, options);
      INFO(std::string(table.name), " seed ", seed, " ", Describe(c));
      CheckAll(table, c, !options.specials);
    }
  }
}

// Equal scores make every weight 1 and every exp exact, so out is a plain sum of the values in the order of chunks and
// blocks, which the next lines write down without any function of the library.
TEST_CASE("attend: chunks of 128 and blocks of 512 lie on the grid of positions") {
  for (const KernelTable& table : Tables()) {
    for (int64_t base : {0, 1, 100, 500, 512, 1337}) {
      constexpr int64_t kKeys = 1500;
      Random random(static_cast<uint64_t>(base));
      const std::vector<float> v = random.Normals(kKeys);
      AttentionCase c = PlainCase(F32({0.0f}), Array(DType::kF32, kKeys), Array(DType::kF32, v), 1, 1, 1.0f);
      c.sources[0].base = base;
      float total = 0, block = 0, chunk = 0;
      for (int64_t i = 0; i < kKeys; ++i) {
        const int64_t next = base + i + 1;
        const bool end = i + 1 == kKeys;
        chunk += v[static_cast<size_t>(i)];
        if (next % 128 != 0 && !end) continue;
        block += chunk;
        chunk = 0;
        if (next % 512 != 0 && !end) continue;
        total += block;
        block = 0;
      }
      INFO(std::string(table.name), " base ", base);
      CHECK(Difference(RunAttend(table, c).out, Array(DType::kF32, std::vector<float>{total / 1500.0f})) == "");
    }
  }
}

TEST_CASE("attend: equal scores, values -2^-149, -0, -0 give +0") {
  AttentionCase c = PlainCase(F32({0.0f}), Array(DType::kF32, 3), F32({-0x1p-149f, -0.0f, -0.0f}), 1, 1, 1.0f);
  for (const KernelTable& table : Tables()) {
    INFO(std::string(table.name));
    CHECK(RunAttend(table, c).out.Word(0) == 0);
  }
}

TEST_CASE("block states: zeros are written as +0") {
  // exp(-1) times the smallest negative number rounds to -0.
  AttentionCase c = PlainCase(F32({1.0f}), F32({0.0f, -1.0f}), F32({-0.0f, -0x1p-149f}), 1, 1, 1.0f);
  for (const KernelTable& table : Tables()) {
    INFO(std::string(table.name));
    CHECK(Bits(RunBlockStates(table, c).o[0]) == 0);
    CHECK(RunAttend(table, c).out.Word(0) == 0);
  }
}

TEST_CASE("block states: empty where the row sees no key or there is none; an empty range writes nothing") {
  const float q = 0, k = 0, v[] = {1, 2, 4}, none = -HUGE_VALF, mark = 7;
  QueryRow rows[2] = {};
  for (QueryRow& row : rows) row.q = &q;
  RowKeys keys[2] = {};
  keys[0].span = {512, 515};
  keys[1].span = {700, 0};
  const KeySource source = {&k, v, 0, 4, DType::kF32, DType::kF32, 512, 3, DType::kF32, 0, 0, MaskType::kBytes, 0, {}};
  for (const KernelTable& table : Tables()) {
    const ScratchMemory scratch(table, 1, 1);
    std::vector<float> m(8, mark), l = m, o = m;
    BlockStatesArgs args = {};
    args.tile = {rows, 2, &source, 1, keys, 1, 1, {DType::kF32, 1.0f, 0.0f, false}, DType::kF32, false, scratch.get()};
    args.states = {m.data(), l.data(), o.data(), 4};
    const auto run = [&](int64_t first_block, int64_t last_block) {
      args.first_block = first_block;
      args.last_block = last_block;
      InEnvironment([&] { table.block_states(args); });
    };
    INFO(std::string(table.name));
    run(1, 1);
    run(2, 0);
    CHECK(m == std::vector<float>(8, mark));
    CHECK(l == m);
    CHECK(o == m);
    run(0, 3);
    CHECK(m == std::vector<float>{none, 0, none, mark, none, none, none, mark});
    CHECK(l == std::vector<float>{0, 3, 0, mark, 0, 0, 0, mark});
    CHECK(o == std::vector<float>{0, 7, 0, mark, 0, 0, 0, mark});
  }
}

TEST_CASE("attend: a negative number that narrows to zero gives +0") {
  for (const KernelTable& table : Tables()) {
    for (DType type : {DType::kF16, DType::kBF16}) {
      AttentionCase c =
          PlainCase(F32({0.0f}), Array(DType::kF32, 1), F32({type == DType::kF16 ? -1e-9f : -0x1p-149f}), 1, 1, 1.0f);
      c.out_type = type;
      INFO(std::string(table.name), " type ", static_cast<int>(type));
      CHECK(RunAttend(table, c).out.Word(0) == 0);
    }
  }
}

TEST_CASE("attend: what a row does not see is not felt by it, whatever it holds") {
  const float poisons[] = {NAN, HUGE_VALF, -HUGE_VALF, 1e30f};
  for (const KernelTable& table : Tables()) {
    for (uint64_t seed = 2000; seed < 2050; ++seed) {
      RandomOptions options;
      options.max_dim = 33;
      const AttentionCase c = RandomAttention(seed, options);
      INFO(std::string(table.name), " seed ", seed, " ", Describe(c));
      const AttentionResult before = RunAttend(table, c);
      for (int64_t row = 0; row < c.rows; ++row) {
        AttentionCase poisoned = c;
        for (SourceData& s : poisoned.sources) {
          for (int64_t i = 0; i < s.num_keys; ++i) {
            if (Allows(s, row, i)) continue;
            const Array poison(s.k.type(), std::vector<float>{poisons[i % 4]}),
                poison_v(s.v.type(), std::vector<float>{poisons[(i + 1) % 4]});
            for (int64_t d = 0; d < c.head_dim; ++d) s.k.SetWord(i * c.head_dim + d, poison.Word(0));
            for (int64_t d = 0; d < c.value_dim; ++d) s.v.SetWord(i * c.value_dim + d, poison_v.Word(0));
            const int64_t at = row * s.num_keys + i;
            if (s.bias.size() > 0 && s.bias[at] != -HUGE_VALF) {
              s.bias.SetWord(at, Array(s.bias.type(), std::vector<float>{NAN}).Word(0));
            }
          }
        }
        const AttentionResult after = RunAttend(table, poisoned);
        const int64_t at = row * c.value_dim;
        INFO("row ", row);
        CHECK(Difference(Slice(after.out, at, c.value_dim), Slice(before.out, at, c.value_dim)) == "");
        CHECK(Bits(after.lse[static_cast<size_t>(row)]) == Bits(before.lse[static_cast<size_t>(row)]));
      }
    }
  }
}

TEST_CASE("attend: a NaN is felt by the rows that see it alone; in values by its channel alone, even with weight 0") {
  for (const KernelTable& table : Tables()) {
    for (int64_t num_keys : {5, 130, 600}) {
      for (int64_t value_dim : {1, 7, 17, 64}) {
        const int64_t head_dim = 3, rows = 4;
        Random random(static_cast<uint64_t>(num_keys * 100 + value_dim));
        AttentionCase c = PlainCase{Array{DType::kF32, random.Normals(rows * head_dim)},
                                    Array{DType::kF32, random.Normals(num_keys * head_dim)},
                                    Array{DType::kF32, random.Normals(num_keys * value_dim)},
                                    head_dim,
                                    value_dim,
                                    1.0f};
        SourceData& s = c.sources[0];
        const int64_t key = num_keys - 2, row = 2;
        s.spans = {{0, num_keys}, {0, key}, {0, num_keys}, {key + 1, num_keys}};  // rows 0 and 2 see the key
        s.bias = Array(DType::kF32, rows * num_keys);
        const uint32_t low = Bits(-1e4f);
        s.bias.SetWord(key, low);  // row 0 gives it the weight 0
        const AttentionResult before = RunAttend(table, c);
        INFO(std::string(table.name), " ", Describe(c));

        AttentionCase bad = c;
        bad.sources[0].v.SetWord(key * value_dim + value_dim / 2, 0xFFC00001u);
        AttentionResult expected = before;
        expected.out.SetWord(value_dim / 2, kCanonicalNaN);
        expected.out.SetWord(row * value_dim + value_dim / 2, kCanonicalNaN);
        CHECK(Difference(RunAttend(table, bad), expected) == "");

        bad = c;
        bad.sources[0].k.SetWord(key * head_dim, 0xFF800001u);
        expected = before;
        for (int64_t r : {int64_t{0}, row}) {
          for (int64_t d = 0; d < value_dim; ++d) expected.out.SetWord(r * value_dim + d, kCanonicalNaN);
          expected.lse[static_cast<size_t>(r)] = FromBits(kCanonicalNaN);
        }
        CHECK(Difference(RunAttend(table, bad), expected) == "");

        bad = c;
        bad.q.SetWord(row * head_dim + 1, 0x7F800001u);
        expected = before;
        for (int64_t d = 0; d < value_dim; ++d) expected.out.SetWord(row * value_dim + d, kCanonicalNaN);
        expected.lse[static_cast<size_t>(row)] = FromBits(kCanonicalNaN);
        CHECK(Difference(RunAttend(table, bad), expected) == "");
        bad.sources[0].spans[static_cast<size_t>(row)] = {5, 5};  // an empty row does not look at its query
        const AttentionResult empty = RunAttend(table, bad);
        CHECK(Difference(Slice(empty.out, row * value_dim, value_dim), Array(DType::kF32, value_dim)) == "");
        CHECK(empty.lse[static_cast<size_t>(row)] == -HUGE_VALF);
      }
    }
  }
}

TEST_CASE("attend: no sources, empty sources, and sinks over them") {
  for (const KernelTable& table : Tables()) {
    AttentionCase c = PlainCase(F32({1.0f, 2.0f, 3.0f}), Array(DType::kF32, 0), Array(DType::kF32, 0), 1, 5, 1.0f);
    for (int sources = 0; sources < 3; ++sources) {
      c.sources.resize(static_cast<size_t>(sources), c.sources.empty() ? SourceData() : c.sources[0]);
      INFO(std::string(table.name), " sources ", sources);
      c.sinks.clear();
      AttentionResult got = RunAttend(table, c);
      CHECK(Difference(got, {Array(DType::kF32, 15), {-HUGE_VALF, -HUGE_VALF, -HUGE_VALF}}) == "");
      c.sinks = {-3.5f, -HUGE_VALF, 100.0f};
      got = RunAttend(table, c);
      CHECK(Difference(got, {Array(DType::kF32, 15), {-3.5f, -HUGE_VALF, 100.0f}}) == "");
      CHECK(Difference(RunFold(table, c, RunBlockStates(table, c)), got) == "");
    }
  }
}

TEST_CASE("attend: strides, unaligned pointers, lse absent, nothing written outside; states and fold too") {
  for (const KernelTable& table : Tables()) {
    for (uint64_t seed = 3000; seed < 3040; ++seed) {
      RandomOptions options;
      options.max_dim = 80;
      AttentionCase c = RandomAttention(seed, options);
      c.sources.resize(1);
      SourceData& s = c.sources[0];
      if (s.num_keys == 0) continue;
      s.bias = Array();
      s.mask.clear();
      const int64_t k_element = static_cast<int64_t>(ElementSize(s.k.type())),
                    v_element = static_cast<int64_t>(ElementSize(s.v.type()));
      int64_t k_stride = (c.head_dim + 1) * k_element, v_stride = (c.value_dim + 3) * v_element;
      if (seed % 4 == 1) k_stride = -k_stride;
      if (seed % 4 == 2) v_stride = -v_stride;
      if (seed % 4 == 3) {
        v_stride = 0;
        for (int64_t i = c.value_dim; i < s.v.size(); ++i) s.v.SetWord(i, s.v.Word(i % c.value_dim));
      }
      const AttentionResult expected = RunAttend(table, c);
      const StatesResult expected_states = RunBlockStates(table, c);
      const int64_t q_element = static_cast<int64_t>(ElementSize(c.q.type())),
                    out_element = static_cast<int64_t>(ElementSize(c.out_type));
      const int64_t q_stride = -(c.head_dim + 5) * q_element, out_stride = (c.value_dim + 7) * out_element;
      const Strided q(c.q, c.rows, q_stride), k(s.k, s.num_keys, k_stride), v(s.v, s.num_keys, v_stride);
      Strided out(c.rows, c.value_dim * out_element, out_stride, out_element);
      std::vector<float> lse(static_cast<size_t>(c.rows), 7.0f);
      std::vector<QueryRow> rows;
      std::vector<RowKeys> keys;
      for (int64_t r = 0; r < c.rows; ++r) {
        const size_t i = static_cast<size_t>(r);
        rows.push_back({static_cast<const unsigned char*>(q.data()) + r * q_stride,
                        c.slopes.empty() ? 0.0f : c.slopes[i], c.sinks.empty() ? 0.0f : c.sinks[i],
                        static_cast<unsigned char*>(out.data()) + r * out_stride, r % 2 == 1 ? nullptr : &lse[i]});
        RowKeys row_keys = {};
        row_keys.span = s.spans.empty() ? Span{s.base, s.base + s.num_keys} : s.spans[i];
        row_keys.position = c.q_pos.empty() ? 0 : c.q_pos[i];
        keys.push_back(row_keys);
      }
      const KeySource source = {k.data(),   v.data(),    k_stride, v_stride, s.k.type(),       s.v.type(), s.base,
                                s.num_keys, DType::kF32, 0,        0,        MaskType::kBytes, 0,          {}};
      const ScratchMemory scratch(table, c.head_dim, c.value_dim);
      AttendArgs args = {};
      args.rows = rows.data();
      args.num_rows = rows.size();
      args.sources = &source;
      args.num_sources = 1;
      args.keys = keys.data();
      args.head_dim = static_cast<size_t>(c.head_dim);
      args.value_dim = static_cast<size_t>(c.value_dim);
      args.options = {c.q.type(), c.scale, c.softcap, !c.slopes.empty()};
      args.out_type = c.out_type;
      args.sinks = !c.sinks.empty();
      args.scratch = scratch.get();
      INFO(std::string(table.name), " seed ", seed, " ", Describe(c));
      InEnvironment([&] { table.attend(args); });
      CHECK(Difference(out.Packed(c.out_type), expected.out) == "");
      CHECK(out.Intact());
      for (size_t r = 0; r < lse.size(); ++r) CHECK(lse[r] == (r % 2 == 1 ? 7.0f : expected.lse[r]));

      // States of the blocks one by one, into rows that are further apart than they need to be.
      const int64_t blocks = expected_states.per_row, stride = blocks + 2;
      Strided m(c.rows, blocks * 4, stride * 4, 4), l(c.rows, blocks * 4, stride * 4, 4);
      Strided o(c.rows, blocks * c.value_dim * 4, stride * c.value_dim * 4, 4);
      for (int64_t b = 0; b < blocks; ++b) {
        BlockStatesArgs part = {};
        part.tile = args;
        part.first_block = s.base / 512 + b;
        part.last_block = part.first_block + 1;
        part.states = {static_cast<float*>(m.data()) + b, static_cast<float*>(l.data()) + b,
                       static_cast<float*>(o.data()) + b * c.value_dim, stride};
        InEnvironment([&] { table.block_states(part); });
      }
      CHECK(Difference(m.Packed(DType::kF32), Array(DType::kF32, expected_states.m)) == "");
      CHECK(Difference(l.Packed(DType::kF32), Array(DType::kF32, expected_states.l)) == "");
      CHECK(Difference(o.Packed(DType::kF32), Array(DType::kF32, expected_states.o)) == "");
      CHECK((m.Intact() && l.Intact() && o.Intact()));
      Strided again(c.rows, c.value_dim * out_element, out_stride, out_element);
      for (int64_t r = 0; r < c.rows; ++r)
        rows[static_cast<size_t>(r)].out = static_cast<unsigned char*>(again.data()) + r * out_stride;
      FoldArgs fold = {};
      fold.rows = rows.data();
      fold.num_rows = rows.size();
      fold.states = {static_cast<float*>(m.data()), static_cast<float*>(l.data()), static_cast<float*>(o.data()),
                     stride};
      fold.num_states = blocks;
      fold.value_dim = static_cast<size_t>(c.value_dim);
      fold.out_type = c.out_type;
      fold.sinks = !c.sinks.empty();
      fold.scratch = scratch.get();
      InEnvironment([&] { table.fold(fold); });
      CHECK(Difference(again.Packed(c.out_type), expected.out) == "");
      CHECK((again.Intact() && m.Intact() && l.Intact() && o.Intact()));
    }
  }
}

}  // namespace
}  // namespace etalon::test
