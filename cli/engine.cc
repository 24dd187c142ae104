#include "cli/engine.h"

#include <cstdlib>
#include <etalon/etalon.hpp>
#include <etalon/thread_pool.hpp>
#include <fstream>
#include <stdexcept>

#include "cli/text.h"

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the bytes of .npy files are used as they are");

namespace etalon::cli {
namespace {

std::vector<std::string> FeatureNames(uint64_t features) {
  std::vector<std::string> names;
  for (int bit = 0; bit < 64; ++bit) {
    const uint64_t one = features & (uint64_t{1} << bit);
    const char* name = one == 0 ? nullptr : etalon_cpu_feature_name(one);
    if (name != nullptr) names.push_back(name);
  }
  return names;
}

// Rows first ... last - 1 of every head.
Tensor ViewOf(const Array& array, Rows rows) {
  const ElementType type = array.type == ElementKind::kF16 ? ElementType::kF16 : ElementType::kF32;
  const int64_t element = static_cast<int64_t>(etalon_dtype_bytes(static_cast<int32_t>(type)));
  const int64_t row = array.dim * element;
  return Tensor(array.bytes.data() + rows.first * row, type, {array.heads, rows.last - rows.first, array.dim},
                {array.len * row, row, element});
}

// The library counts positions; a row's own position is not part of left and right.
void SetMask(const Mask& mask, etalon_attention_desc* desc) {
  if (mask.kind != MaskKind::kNone) desc->right = 0;
  if (mask.kind == MaskKind::kWindow) desc->left = mask.window - 1;
}

// The table that the library takes if none is named; empty if it has none to take, and *status says why.
std::string DefaultTable(Status* status) {
  AttentionDesc desc;
  desc.num_q_heads = desc.num_kv_heads = desc.head_dim = desc.value_dim = 1;
  desc.q_dtype = desc.k_dtype = desc.v_dtype = desc.out_dtype = ETALON_F32;
  Plan plan;
  PlanInfo info;
  *status = plan.Init(desc);
  return status->ok() && plan.GetInfo(nullptr, &info).ok() ? info.target : "";
}

}  // namespace

std::string LibraryVersion() { return etalon_version(); }
int ArithmeticVersion() { return etalon_arithmetic_version(); }

std::string CpuName() {
  std::ifstream file("/proc/cpuinfo");
  std::string line;
  while (std::getline(file, line)) {
    const size_t colon = line.find(": ");
    if (line.rfind("model name", 0) == 0 && colon != std::string::npos) return Printable(line.substr(colon + 2));
  }
  return "unknown";  // not Linux, or an architecture whose kernel gives no name
}

std::vector<std::string> CpuFeatureNames() { return FeatureNames(etalon_cpu_features()); }

int UsableCpus() { return etalon_default_threads(); }

std::vector<TableState> Tables(std::string* error) {
  error->clear();
  const char* variable = std::getenv("ETALON_TARGET");
  const std::string forced = variable == nullptr ? "" : variable;
  Status status;
  const std::string chosen = DefaultTable(&status);

  std::vector<TableState> states;
  std::vector<std::string> names;
  for (int32_t i = 0; i < etalon_num_targets(); ++i) {
    etalon_target target;
    if (etalon_get_target(i, &target) != ETALON_OK) continue;
    TableState state;
    state.name = target.name;
    state.backend = state.name.substr(0, state.name.find('-'));
    state.available = target.missing == 0;
    state.chosen = state.name == chosen;
    if (!state.available) {
      state.reason = "this CPU or system lacks " + Join(FeatureNames(target.missing), " ");
    } else if (state.chosen) {
      state.reason = forced.empty() ? "the last one available" : "named by ETALON_TARGET";
    } else {
      state.reason = chosen.empty()   ? "not asked for"
                     : forced.empty() ? chosen + " is preferred"
                                      : "ETALON_TARGET names another";
    }
    states.push_back(state);
    names.push_back(state.name + (state.available ? "" : " (not available: " + state.reason + ")"));
  }
  if (!status.ok()) {
    const std::string list = "; tables of this build: " + Join(names, ", ");
    if (forced.empty()) {
      *error = "no kernel table can run on this CPU" + list;
    } else {
      *error = "ETALON_TARGET=" + Printable(forced, 60) +
               (status.code() == ETALON_UNKNOWN_TARGET ? ": no such kernel table" : ": this table cannot run here") +
               list;
    }
  }
  return states;
}

const char* ElementKindName(ElementKind type) { return type == ElementKind::kF16 ? "f16" : "f32"; }

float DefaultScaleOf(int64_t head_dim) { return etalon_default_scale(head_dim); }

std::vector<float> Attend(const std::string& table, const Problem& problem, Rows rows, int threads) {
  const int64_t num_rows = rows.last - rows.first;
  std::vector<float> out(static_cast<size_t>(problem.q.heads * num_rows * problem.v.dim));
  const ThreadPool pool(threads);

  AttentionDesc desc;
  desc.scale = problem.scale;
  desc.target = table.c_str();
  desc.max_workers = pool.threads();
  SetMask(problem.mask, &desc);
  const Tensor q = ViewOf(problem.q, rows);
  const Tensor k = ViewOf(problem.k, {0, problem.k.len});
  const Tensor v = ViewOf(problem.v, {0, problem.v.len});
  const Tensor result(out.data(), {problem.q.heads, num_rows, problem.v.dim});
  AttentionArgs args;
  args.q = &q;
  args.k = &k;
  args.v = &v;
  args.out = &result;
  args.q_offset = rows.first;
  WorkspaceMemory memory;
  const Status status = Attention(desc, args, &memory, pool.parallel());
  if (!status.ok()) throw std::runtime_error(std::string("attention was refused: ") + status.text());
  return out;
}

}  // namespace etalon::cli
