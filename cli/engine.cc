#include "cli/engine.h"

#include <atomic>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <new>
#include <system_error>
#include <thread>
#if defined(__linux__)
#include <sched.h>
#endif

#include "arch/cpu.h"
#include "arch/dispatch.h"
#include "cli/text.h"
#include "lib/attention/attention.h"
#include "lib/base/arithmetic.h"
#include "lib/base/workspace.h"

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the bytes of .npy files are used as they are");

namespace etalon::cli {
namespace {

std::vector<std::string> FeatureNames(CpuFeatures features) {
  std::vector<std::string> names;
  for (int bit = 0; bit < 64; ++bit) {
    const CpuFeatures one = features & (CpuFeatures{1} << bit);
    const char* name = one == 0 ? nullptr : CpuFeatureName(one);
    if (name != nullptr) names.push_back(name);
  }
  return names;
}

DType TypeOf(const Array& array) { return array.type == ElementType::kF16 ? DType::kF16 : DType::kF32; }

TensorView ViewOf(const Array& array, int64_t first_row) {
  TensorView view;
  view.type = TypeOf(array);
  view.row_stride_bytes = array.dim * static_cast<int64_t>(ElementSize(view.type));
  view.head_stride_bytes = array.len * view.row_stride_bytes;
  view.batch_stride_bytes = array.heads * view.head_stride_bytes;
  view.data = array.bytes.data() + first_row * view.row_stride_bytes;
  return view;
}

// The library counts positions; a row's own position is not part of left and right.
Geometry GeometryOf(const Mask& mask, int64_t first_row) {
  Geometry geometry;
  geometry.q_offset = first_row;
  if (mask.kind != MaskKind::kNone) geometry.right = 0;
  if (mask.kind == MaskKind::kWindow) geometry.left = mask.window - 1;
  return geometry;
}

struct Free {
  void operator()(void* memory) const { std::free(memory); }
};
using Scratch = std::unique_ptr<void, Free>;

Scratch MakeScratch(size_t bytes) {
  const size_t rounded = (bytes / kWorkspaceAlignment + 1) * kWorkspaceAlignment;
  Scratch scratch(std::aligned_alloc(kWorkspaceAlignment, rounded));
  if (scratch == nullptr) throw std::bad_alloc();
  return scratch;
}

// Calls work(worker) on this thread and on up to threads - 1 new ones. If the system grants fewer, fewer do it.
template <typename Work>
void OnThreads(int threads, const Work& work) {
  std::vector<std::thread> others;
  others.reserve(static_cast<size_t>(threads - 1));
  try {
    for (int worker = 1; worker < threads; ++worker) others.emplace_back(work, worker);
  } catch (const std::system_error&) {
  }
  work(0);
  for (std::thread& thread : others) thread.join();
}

}  // namespace

std::string LibraryVersion() { return ETALON_CLI_VERSION; }
int ArithmeticVersion() { return static_cast<int>(kArithmeticVersion); }

std::string CpuName() {
  std::ifstream file("/proc/cpuinfo");
  std::string line;
  while (std::getline(file, line)) {
    const size_t colon = line.find(": ");
    if (line.rfind("model name", 0) == 0 && colon != std::string::npos) return Printable(line.substr(colon + 2));
  }
  return "unknown";  // not Linux, or an architecture whose kernel gives no name
}

std::vector<std::string> CpuFeatureNames() { return FeatureNames(DetectCpu()); }

int UsableCpus() {
#if defined(__linux__)
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) == 0 && CPU_COUNT(&set) > 0) return CPU_COUNT(&set);
#endif
  const unsigned count = std::thread::hardware_concurrency();
  return count == 0 ? 1 : static_cast<int>(count);
}

std::vector<TableState> Tables(std::string* error) {
  error->clear();
  const char* variable = std::getenv("ETALON_TARGET");
  const std::string forced = variable == nullptr ? "" : variable;
  KernelTable table = {};
  const TableChoice choice = ChooseDefaultTable(&table);
  const std::string chosen = choice == TableChoice::kOk ? table.name : "";

  std::vector<TableState> states;
  std::vector<std::string> names;
  for (size_t i = 0; i < NumTables(); ++i) {
    const TableInfo info = GetTableInfo(i);
    TableState state;
    state.name = info.name;
    state.backend = state.name.substr(0, state.name.find('-'));
    state.available = info.available;
    state.chosen = state.name == chosen;
    if (!info.available) {
      state.reason = "this CPU or system lacks " + Join(FeatureNames(info.missing), " ");
    } else if (state.chosen) {
      state.reason = forced.empty() ? "the last one available" : "named by ETALON_TARGET";
    } else {
      state.reason = chosen.empty()   ? "not asked for"
                     : forced.empty() ? chosen + " is preferred"
                                      : "ETALON_TARGET names another";
    }
    states.push_back(state);
    names.push_back(state.name + (info.available ? "" : " (not available: " + state.reason + ")"));
  }
  if (choice != TableChoice::kOk) {
    const std::string list = "; tables of this build: " + Join(names, ", ");
    if (forced.empty()) {
      *error = "no kernel table can run on this CPU" + list;
    } else {
      *error = "ETALON_TARGET=" + Printable(forced, 60) +
               (choice == TableChoice::kUnknownName ? ": no such kernel table" : ": this table cannot run here") + list;
    }
  }
  return states;
}

const char* ElementTypeName(ElementType type) { return type == ElementType::kF16 ? "f16" : "f32"; }

float DefaultScaleOf(int64_t head_dim) { return DefaultScale(static_cast<size_t>(head_dim)); }

std::vector<float> Attend(const std::string& table_name, const Problem& problem, Rows rows, int threads) {
  const int64_t num_rows = rows.last - rows.first;
  const int64_t row_bytes = problem.v.dim * static_cast<int64_t>(sizeof(float));
  std::vector<float> out(static_cast<size_t>(problem.q.heads * num_rows * problem.v.dim));

  KernelTable table;
  if (ChooseTable(table_name.c_str(), &table) != TableChoice::kOk) return out;  // excluded by the contract
  AttentionProblem p = {};
  p.batch = 1;
  p.num_q_heads = problem.q.heads;
  p.num_kv_heads = problem.k.heads;
  p.q_len = num_rows;
  p.kv_len = problem.k.len;
  p.head_dim = static_cast<size_t>(problem.q.dim);
  p.value_dim = static_cast<size_t>(problem.v.dim);
  p.q = ViewOf(problem.q, rows.first);
  p.k = ViewOf(problem.k, 0);
  p.v = ViewOf(problem.v, 0);
  p.out.data = out.data();
  p.out.type = DType::kF32;
  p.out.row_stride_bytes = row_bytes;
  p.out.head_stride_bytes = num_rows * row_bytes;
  p.out.batch_stride_bytes = problem.q.heads * num_rows * row_bytes;
  p.scale = problem.scale;
  p.geometry = GeometryOf(problem.mask, rows.first);

  // Scratch is made before any thread runs: an exception on another thread would end the program.
  std::vector<Scratch> scratch;
  for (int i = 0; i < threads; ++i) scratch.push_back(MakeScratch(AttentionScratchBytes(table, p)));
  const int64_t count = NumAttentionTasks(p);
  std::atomic<int64_t> next{0};
  OnThreads(threads, [&](int worker) {
    for (int64_t task = next++; task < count; task = next++) {
      RunAttention(table, p, {task, task + 1}, scratch[static_cast<size_t>(worker)].get());
    }
  });
  return out;
}

}  // namespace etalon::cli
