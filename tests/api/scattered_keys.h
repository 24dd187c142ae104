// scattered_keys.h: the keys and values of a source in the places that its PlacesCase names. Rows that are nobody's
// hold NaN, and entries of the page table that may not be looked at hold rubbish.
#ifndef ETALON_TESTS_API_SCATTERED_KEYS_H_
#define ETALON_TESTS_API_SCATTERED_KEYS_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "tests/api/options_case.h"

namespace etalon::test {

struct ScatteredKeys {
  std::unique_ptr<GuardedTensor> k, v;
  std::vector<int32_t> page_table;
  etalon_kv_places places;  // its page table is to be set where this has come to rest
};
ScatteredKeys Scatter(const OptionsCase& c, size_t source);

}  // namespace etalon::test

#endif  // ETALON_TESTS_API_SCATTERED_KEYS_H_
