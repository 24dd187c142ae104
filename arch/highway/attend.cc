// The fused pass: which of its two forms a tile takes. Nothing else depends on the choice.
#include "arch/highway/attend.h"

#include "arch/highway/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "arch/highway/attend.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "arch/highway/stages.h"

HWY_BEFORE_NAMESPACE();
namespace etalon {
namespace HWY_NAMESPACE {
#if ETALON_HIGHWAY_EXACT

void Attend(const AttendArgs& args) { AttendPrefill({args, nullptr, 0, 0}); }

void BlockStates(const BlockStatesArgs& args) {
  AttendPrefill({args.tile, &args.states, args.first_block, args.last_block});
}

size_t ScratchBytes(size_t head_dim, size_t value_dim) { return PrefillScratchBytes(head_dim, value_dim); }

#endif  // ETALON_HIGHWAY_EXACT
}  // namespace HWY_NAMESPACE
}  // namespace etalon
HWY_AFTER_NAMESPACE();
