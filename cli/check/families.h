// families.h: the inputs that kernels are measured on. Each family is one way in which attention can be hard; all of
// them come from integer code, or from the layers that are shipped, and are the same on every machine.
#ifndef ETALON_CLI_CHECK_FAMILIES_H_
#define ETALON_CLI_CHECK_FAMILIES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "lib/base/types.h"
#include "tests/support/kernel_case.h"

namespace etalon::cli {

enum class Family { kOrdinary, kLargeLogits, kLong, kNearTie, kSubnormal, kWideExponent, kReal };

constexpr Family kFamilies[] = {Family::kOrdinary,  Family::kLargeLogits,  Family::kLong, Family::kNearTie,
                                Family::kSubnormal, Family::kWideExponent, Family::kReal};

const char* FamilyName(Family family);         // "large-logit"
const char* FamilyDescription(Family family);  // one line for reports

// Query rows that see all keys of the one source, with the scale that the library takes by itself, as `etalon attend`
// would. A family may be several of them.
struct FamilyCase {
  test::AttentionCase attention;
  std::vector<int64_t> positions;  // [rows]: row r stands here where the mask is causal, below num_keys
};

// q, k and v are stored as `type`. False, with *error: the layers cannot be read, or no bound is known for them.
bool MakeFamily(Family family, DType type, std::vector<FamilyCase>* cases, std::string* error);

}  // namespace etalon::cli

#endif  // ETALON_CLI_CHECK_FAMILIES_H_
