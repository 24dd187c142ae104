// The fused pass: which of its two forms a tile takes. Nothing else depends on the choice.
#include "arch/highway/attend.h"

#include "arch/highway/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "arch/highway/attend.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "arch/highway/math-inl.h"
#include "arch/highway/stages.h"

HWY_BEFORE_NAMESPACE();
namespace etalon {
namespace HWY_NAMESPACE {
#if ETALON_HIGHWAY_EXACT

static_assert(kLeastRowsInLanes <= kMostDecodeRows + 1, "each number of rows has its form");

static void AttendEither(const AttendJob& job) {
  return job.args.num_rows < kLeastRowsInLanes ? AttendDecode(job) : AttendPrefill(job);
}

void Attend(const AttendArgs& args) { AttendEither({args, nullptr, 0, 0}); }

void BlockStates(const BlockStatesArgs& args) {
  AttendEither({args.tile, &args.states, args.first_block, args.last_block});
}

size_t ScratchBytes(size_t head_dim, size_t value_dim) {
  size_t most = 0;
  for (const size_t bytes :
       {PrefillScratchBytes(head_dim, value_dim), DecodeScratchBytes(head_dim, value_dim), FoldScratchBytes(value_dim),
        ScoresScratchBytes(head_dim), WeightedSumScratchBytes(value_dim)}) {
    if (bytes > most) most = bytes;
  }
  return most;
}

#endif  // ETALON_HIGHWAY_EXACT
}  // namespace HWY_NAMESPACE
}  // namespace etalon
HWY_AFTER_NAMESPACE();
