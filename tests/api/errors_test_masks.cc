// Prepared masks: in calls, and what they are made of.
#include <doctest/doctest.h>

#include <cstring>

#include "tests/api/errors_trial.h"

namespace etalon::test {
namespace {

TEST_CASE("errors: a prepared mask in a call") {
  Expect(WithPrepared,
         {
             {"beside a dense one", kWithArgs, [](Trial& t) { t.args.value.mask = &t.mask; }, ETALON_UNSUPPORTED,
              "args.prepared_mask"},
             {"misaligned", kWithArgs,
              [](Trial& t) { t.args.value.prepared_mask = reinterpret_cast<const etalon_mask*>(Slot(20) + 4); },
              ETALON_MISALIGNED, "args.prepared_mask"},
             {"other memory", kWithArgs,
              [](Trial& t) { t.args.value.prepared_mask = reinterpret_cast<const etalon_mask*>(Slot(0)); },
              ETALON_BAD_VALUE, "args.prepared_mask"},
             {"of other queries", kWithArgs,
              [](Trial& t) {
                t.mask_args.value.q_len = kQLen - 1;
                t.mask.shape[2] = 1;
                PrepareMask(&t);
              },
              ETALON_BAD_SHAPE, "args.prepared_mask"},
             {"of one query", kWithArgs,
              [](Trial& t) {
                t.mask_args.value.q_len = 1;
                t.mask.shape[2] = 1;
                PrepareMask(&t);
              },
              ETALON_BAD_SHAPE, "args.prepared_mask"},
             {"of other keys", kWithArgs,
              [](Trial& t) {
                t.mask_args.value.kv_len = kKvLen + 1;
                t.mask.shape[3] = 1;
                PrepareMask(&t);
              },
              ETALON_BAD_SHAPE, "args.prepared_mask"},
             {"of other heads", kWithArgs,
              [](Trial& t) {
                t.mask_args.value.num_heads = 2;
                t.mask.shape[1] = 1;
                PrepareMask(&t);
              },
              ETALON_BAD_SHAPE, "args.prepared_mask"},
             {"of other sequences", kWithArgs,
              [](Trial& t) {
                t.mask_args.value.batch = 3;
                t.mask.shape[0] = 1;
                PrepareMask(&t);
              },
              ETALON_BAD_SHAPE, "args.prepared_mask"},
             {"for all heads and sequences", kWithArgs,
              [](Trial& t) {
                t.mask_args.value.batch = t.mask_args.value.num_heads = 1;
                t.mask.shape[0] = t.mask.shape[1] = 1;
                PrepareMask(&t);
              },
              ETALON_OK, ""},
         });
}

TEST_CASE("errors: what a mask is prepared from") {
  const auto segments = [](Trial& t) {
    etalon_mask_args& p = t.mask_args.value;
    p.mask = nullptr;
    p.num_heads = 1;
    p.q_segments = t.q_segments;
    p.kv_segments = t.kv_segments;
    FitWorkspace(&t);
  };
  const auto blocks = [](Trial& t) {
    etalon_mask_args& p = t.mask_args.value;
    p.mask = nullptr;
    p.num_heads = 1;
    p.q_block = 10;
    p.kv_block = 3;
    p.block_starts = t.block_starts;  // 0, 2, 3
    p.blocks = t.blocks;              // 0, 2; 1
    FitWorkspace(&t);
  };
  using Change = void (*)(Trial&);
  const auto after = [](auto first, Change second) {
    return [first, second](Trial& t) {
      first(t);
      second(t);
    };
  };
  const auto expect = [&](const char* what, auto first, Change second, etalon_status status, const char* field) {
    Expect(what, kPreparing, after(first, second), status, field);
  };
  const auto dense = [](Trial&) {};
  const Change nothing = [](Trial&) {};
  expect("segments", segments, nothing, ETALON_OK, "");
  expect("blocks", blocks, nothing, ETALON_OK, "");

  expect("no way", dense, [](Trial& t) { t.mask_args.value.mask = nullptr; }, ETALON_BAD_VALUE, "args");
  expect("two ways", segments, [](Trial& t) { t.mask_args.value.mask = &t.mask; }, ETALON_BAD_VALUE, "args");
  expect("two ways", blocks, [](Trial& t) { t.mask_args.value.q_segments = t.q_segments; }, ETALON_BAD_VALUE, "args");
  expect("a bit of another", dense, [](Trial& t) { t.mask_args.value.kv_block = 3; }, ETALON_BAD_VALUE, "args");
  expect("a bit of another", dense, [](Trial& t) { t.mask_args.value.blocks = t.blocks; }, ETALON_BAD_VALUE, "args");

  expect("negative", dense, [](Trial& t) { t.mask_args.value.batch = -1; }, ETALON_BAD_SHAPE, "args.batch");
  expect("negative", dense, [](Trial& t) { t.mask_args.value.kv_len = INT64_MIN; }, ETALON_BAD_SHAPE, "args.kv_len");
  expect("huge", dense, [](Trial& t) { t.mask_args.value.q_len = kLargest + 1; }, ETALON_OVERFLOW, "args.q_len");
  expect("no heads", dense, [](Trial& t) { t.mask_args.value.num_heads = 0; }, ETALON_NO_HEADS, "args.num_heads");
  expect(
      "huge", dense,
      [](Trial& t) {
        t.mask_args.value.batch = t.mask_args.value.q_len = kLargest;
        t.mask.shape[0] = t.mask.shape[2] = 1;
      },
      ETALON_OVERFLOW, "args");

  expect("dtype", dense, [](Trial& t) { t.mask_args.value.mask = &t.bias; }, ETALON_BAD_DTYPE, "args.mask.dtype");
  expect("batch", dense, [](Trial& t) { ++t.mask_args.value.batch; }, ETALON_BAD_SHAPE, "args.mask.shape[0]");
  expect("heads", dense, [](Trial& t) { ++t.mask_args.value.num_heads; }, ETALON_BAD_SHAPE, "args.mask.shape[1]");
  expect("queries", dense, [](Trial& t) { ++t.mask_args.value.q_len; }, ETALON_BAD_SHAPE, "args.mask.shape[2]");
  expect("keys", dense, [](Trial& t) { ++t.mask_args.value.kv_len; }, ETALON_BAD_SHAPE, "args.mask.shape[3]");
  expect("NULL", dense, [](Trial& t) { t.mask.data = nullptr; }, ETALON_NULL_POINTER, "args.mask.data");

  expect("heads", segments, [](Trial& t) { t.mask_args.value.num_heads = 2; }, ETALON_BAD_SHAPE, "args.num_heads");
  expect(
      "NULL", segments, [](Trial& t) { t.mask_args.value.q_segments = nullptr; }, ETALON_NULL_POINTER,
      "args.q_segments");
  expect(
      "NULL", segments, [](Trial& t) { t.mask_args.value.kv_segments = nullptr; }, ETALON_NULL_POINTER,
      "args.kv_segments");
  expect(
      "misaligned", segments,
      [](Trial& t) { t.mask_args.value.q_segments = reinterpret_cast<const int64_t*>(FreeMemory() + 4); },
      ETALON_MISALIGNED, "args.q_segments");
  expect(
      "far", segments,
      [](Trial& t) { t.mask_args.value.kv_segments = reinterpret_cast<const int64_t*>(UINTPTR_MAX - 7); },
      ETALON_OVERFLOW, "args.kv_segments");
  expect(
      "too many", segments, [](Trial& t) { t.mask_args.value.batch = kLargest; }, ETALON_OVERFLOW, "args.q_segments");

  expect(
      "no starts", blocks, [](Trial& t) { t.mask_args.value.block_starts = nullptr; }, ETALON_NULL_POINTER,
      "args.block_starts");
  expect("no blocks", blocks, [](Trial& t) { t.mask_args.value.blocks = nullptr; }, ETALON_NULL_POINTER, "args.blocks");
  expect(
      "none at all", blocks,
      [](Trial& t) {
        t.mask_args.value.blocks = nullptr;
        t.block_starts[1] = t.block_starts[2] = 0;
      },
      ETALON_OK, "");
  expect(
      "misaligned", blocks,
      [](Trial& t) { t.mask_args.value.blocks = reinterpret_cast<const int64_t*>(FreeMemory() + 4); },
      ETALON_MISALIGNED, "args.blocks");
  expect("q_block", blocks, [](Trial& t) { t.mask_args.value.q_block = 0; }, ETALON_BAD_VALUE, "args.q_block");
  expect("kv_block", blocks, [](Trial& t) { t.mask_args.value.kv_block = -1; }, ETALON_BAD_VALUE, "args.kv_block");
  expect("start", blocks, [](Trial& t) { t.block_starts[0] = 1; }, ETALON_BAD_VALUE, "args.block_starts[0]");
  expect("starts", blocks, [](Trial& t) { t.block_starts[1] = 4; }, ETALON_BAD_VALUE, "args.block_starts[2]");
  expect("block", blocks, [](Trial& t) { t.blocks[1] = 3; }, ETALON_BAD_VALUE, "args.blocks[1]");
  expect("block", blocks, [](Trial& t) { t.blocks[2] = -1; }, ETALON_BAD_VALUE, "args.blocks[2]");
  expect("twice", blocks, [](Trial& t) { t.blocks[0] = 2; }, ETALON_BAD_VALUE, "args.blocks[1]");
  expect("descending", blocks, [](Trial& t) { t.blocks[0] = 2, t.blocks[1] = 1; }, ETALON_BAD_VALUE, "args.blocks[1]");
  expect("no keys", blocks, [](Trial& t) { t.mask_args.value.kv_len = 0; }, ETALON_BAD_VALUE, "args.blocks[0]");
  expect(
      "large blocks", blocks,
      [](Trial& t) {
        t.mask_args.value.q_block = t.mask_args.value.kv_block = INT64_MAX;
        t.block_starts[1] = t.block_starts[2] = 1;
      },
      ETALON_OK, "");
}

TEST_CASE("errors: the memory of a prepared mask") {
  Expect("NULL data", kMaskPrepare, [](Trial& t) { t.workspace.data = nullptr; }, ETALON_NULL_POINTER, "memory.data");
  Expect(
      "a byte too small", kMaskPrepare, [](Trial& t) { --t.workspace.bytes; }, ETALON_SMALL_WORKSPACE, "memory.bytes");
  Expect("larger", kMaskPrepare, [](Trial& t) { t.workspace.bytes += 100; }, ETALON_OK, "");
  Expect(
      "misaligned", kMaskPrepare, [](Trial& t) { t.workspace.data = static_cast<char*>(t.workspace.data) + 8; },
      ETALON_MISALIGNED, "memory.data");
  Expect(
      "beyond the end", kMaskPrepare, [](Trial& t) { t.workspace.data = reinterpret_cast<void*>(UINTPTR_MAX - 63); },
      ETALON_OVERFLOW, "memory.bytes");
  Expect(
      "on the mask", kMaskPrepare, [](Trial& t) { t.workspace.data = Slot(16) + 1536; }, ETALON_OVERLAP, "memory.data");
  Expect(
      "on segments", kMaskPrepare,
      [](Trial& t) {
        std::memcpy(FreeMemory(), t.q_segments, sizeof t.q_segments);
        t.mask_args.value.mask = nullptr;
        t.mask_args.value.num_heads = 1;
        t.mask_args.value.q_segments = reinterpret_cast<const int64_t*>(FreeMemory());
        t.mask_args.value.kv_segments = t.kv_segments;
        FitWorkspace(&t);
        t.workspace.data = FreeMemory();
      },
      ETALON_OVERLAP, "memory.data");
}

}  // namespace
}  // namespace etalon::test
