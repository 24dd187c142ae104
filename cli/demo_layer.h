// demo_layer.h: what `etalon demo` finds out about one layer.
#ifndef ETALON_CLI_DEMO_LAYER_H_
#define ETALON_CLI_DEMO_LAYER_H_

#include <cstdint>
#include <string>
#include <vector>

#include "cli/engine.h"
#include "cli/fnv.h"
#include "cli/layer.h"
#include "cli/reference.h"
#include "cli/report.h"
#include "cli/speed.h"

namespace etalon::cli {

constexpr int64_t kReferenceRows = 32;  // of each head, for the error

// Another table's output beside the chosen one's.
struct OtherTable {
  std::string name;
  std::vector<Rows> rows;
  uint64_t hash = kFnvStart;
  uint64_t chosen_hash = kFnvStart;  // of the same rows
  bool same_bits = true;
};

struct LayerReport {
  const Layer* layer;
  int64_t visible_pairs = 0;  // of all heads
  SideBySide one_thread;
  int runs = 0;          // on all threads
  double seconds = 0.0;  // median
  double gflops = 0.0;
  Accuracy accuracy;
  Accuracy plain_accuracy;  // of the plain loop, on the rows that it ran
  uint64_t hash = 0;
  std::vector<OtherTable> others;
  bool ok = true;
};

// On the chosen one of the tables, compared with all others that are available.
LayerReport RunLayer(const Layer& layer, const std::vector<TableState>& tables, int threads, Progress* progress);

// How many units of work RunLayer finishes in all.
double LayerWork(const std::vector<TableState>& tables);

// Rows that the comparison of a slow table is limited to: `pieces` runs of `size` rows, spread from the first row to
// the last, without overlap; all rows as one run if the pieces would cover them.
std::vector<Rows> SpreadRuns(int64_t len, int64_t size, int64_t pieces);

// The given rows of every head of an output [heads, len, dim].
std::vector<float> TakeRows(const std::vector<float>& out, int64_t heads, int64_t len, int64_t dim, Rows rows);

}  // namespace etalon::cli

#endif  // ETALON_CLI_DEMO_LAYER_H_
