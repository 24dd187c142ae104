// device_rows.h: the rows of `etalon bench`: few, short, and the same for every kernel table, to compare devices by.
#ifndef ETALON_BENCH_SUBJECTS_DEVICE_ROWS_H_
#define ETALON_BENCH_SUBJECTS_DEVICE_ROWS_H_

#include <functional>
#include <string>
#include <vector>

#include "bench/support/subject.h"

namespace etalon::bench {

struct DeviceRow {
  // What is computed, type, mask, then sizes: "prefill f32 causal g4 h8 n1024 d128" has eight query heads in groups of
  // four, "decode f16 g1 h8 kv32768 d128 DRAM" also says where its data lies. All work can be counted from the name.
  std::string name;
  double flop = 0;   // of one run; 0 = this is not what it is judged by
  double bytes = 0;  // read and written
  int threads = 1;
  std::function<Subject(const std::string& target, const Sizes& sizes)> make;
};

// Names and work are those of rows that are made with the same `sizes`.
std::vector<DeviceRow> DeviceRows(const Sizes& sizes);

// How long one run would take, from a run on a thirty-second of the lengths: to know it of a table that is too slow to
// try. Of fast tables it tells too much, since short lengths are not their best.
double EstimateRun(const DeviceRow& row, const std::string& target, const Sizes& sizes);

}  // namespace etalon::bench

#endif  // ETALON_BENCH_SUBJECTS_DEVICE_ROWS_H_
