// ulp_histogram.h: how many results are how far off, in units of the last place of f32.
#ifndef ETALON_CLI_CHECK_ULP_HISTOGRAM_H_
#define ETALON_CLI_CHECK_ULP_HISTOGRAM_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

namespace etalon::cli {

// Distance between the f32 neighbours of x.
double Ulp(double x);

class UlpHistogram {
 public:
  // Bucket 0 is no error at all; bucket i ends at kLimits[i], which belongs to it; the last has no end and also holds
  // what is not a number.
  static constexpr std::array<double, 11> kLimits = {0.0, 0.125, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0};
  static constexpr size_t kBuckets = kLimits.size() + 1;

  static std::string Name(size_t bucket);  // "0", "1/8", "64", "more"

  void Add(double ulp) { ++counts_[BucketOf(ulp)]; }

  const std::array<int64_t, kBuckets>& counts() const { return counts_; }
  int64_t total() const;
  size_t used() const;  // buckets up to the last one that holds something
  double Share(size_t bucket) const;

 private:
  static size_t BucketOf(double ulp);

  std::array<int64_t, kBuckets> counts_ = {};
};

}  // namespace etalon::cli

#endif  // ETALON_CLI_CHECK_ULP_HISTOGRAM_H_
