#include "cli/check/ulp_histogram.h"

#include <algorithm>
#include <cmath>

#include "cli/text.h"

namespace etalon::cli {

double Ulp(double x) {
  if (x == 0.0 || !std::isfinite(x)) return 0x1p-149;
  return std::ldexp(1.0, std::max(std::ilogb(x) - 23, -149));
}

std::string UlpHistogram::Name(size_t bucket) {
  if (bucket == kLimits.size()) return "more";
  const double limit = kLimits[bucket];
  return limit > 0.0 && limit < 1.0 ? "1/" + Fixed(1.0 / limit, 0) : Fixed(limit, 0);
}

int64_t UlpHistogram::total() const {
  int64_t sum = 0;
  for (const int64_t count : counts_) sum += count;
  return sum;
}

size_t UlpHistogram::used() const {
  size_t buckets = kBuckets;
  while (buckets > 0 && counts_[buckets - 1] == 0) --buckets;
  return buckets;
}

double UlpHistogram::Share(size_t bucket) const {
  const int64_t all = total();
  return all == 0 ? 0.0 : static_cast<double>(counts_[bucket]) / static_cast<double>(all);
}

size_t UlpHistogram::BucketOf(double ulp) {
  size_t bucket = 0;
  while (bucket < kLimits.size() && !(ulp <= kLimits[bucket])) ++bucket;  // of a NaN no limit is true
  return bucket;
}

}  // namespace etalon::cli
