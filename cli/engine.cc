#include "cli/engine.h"

#include <atomic>
#include <cstdlib>
#include <deque>
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

ElementType TypeOf(ElementKind kind) {
  return kind == ElementKind::kF16   ? ElementType::kF16
         : kind == ElementKind::kF32 ? ElementType::kF32
                                     : ElementType::kBool;
}

// Rows first ... last - 1 of every head.
Tensor ViewOf(const Array& array, Rows rows) {
  const int64_t element = static_cast<int64_t>(ElementKindBytes(array.type));
  const int64_t row = array.dim * element;
  return Tensor(array.bytes.data() + rows.first * row, TypeOf(array.type),
                {array.batch, array.heads, rows.last - rows.first, array.dim},
                {array.heads * array.len * row, array.len * row, row, element});
}

// The same of an array whose len may be 1 and then counts for all rows.
Tensor OptionView(const Array& array, Rows rows) { return ViewOf(array, array.len == 1 ? Rows{0, 1} : rows); }

// Slopes or sinks: [batch, heads].
Tensor HeadsView(const Array& array) {
  return Tensor(array.bytes.data(), TypeOf(array.type), {array.batch, array.heads});
}

void Require(const Status& status) {
  if (!status.ok()) throw std::runtime_error(std::string("attention was refused: ") + status.text());
}

// The table that the library takes for this name, or by itself if that is empty; empty if it has none to take, and
// *status says why.
std::string ChosenTable(const std::string& named, Status* status) {
  AttentionDesc desc;
  desc.num_q_heads = desc.num_kv_heads = desc.head_dim = desc.value_dim = 1;
  desc.q_dtype = desc.k_dtype = desc.v_dtype = desc.out_dtype = ETALON_F32;
  if (!named.empty()) desc.target = named.c_str();
  Plan plan;
  PlanInfo info;
  *status = plan.Init(desc);
  return status->ok() && plan.GetInfo(nullptr, &info).ok() ? info.target : "";
}

std::string ListOf(const std::vector<TableState>& tables) {
  std::vector<std::string> names;
  for (const TableState& table : tables) {
    names.push_back(table.name + (table.available ? "" : " (not available: " + table.reason + ")"));
  }
  return "; tables of this build: " + Join(names, ", ");
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

std::vector<TableState> Tables(std::string* error, const std::string& named) {
  error->clear();
  const char* variable = std::getenv("ETALON_TARGET");
  const std::string forced = !named.empty() ? named : variable == nullptr ? "" : variable;
  const std::string by = named.empty() ? "ETALON_TARGET" : "--target";
  Status status;
  const std::string chosen = ChosenTable(named, &status);

  std::vector<TableState> states;
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
      state.reason = forced.empty() ? "preferred to all that can run here" : "named by " + by;
    } else {
      state.reason = chosen.empty()   ? "not asked for"
                     : forced.empty() ? chosen + " is preferred"
                                      : by + " names another";
    }
    states.push_back(state);
  }
  if (!status.ok() && forced.empty()) {
    *error = "no kernel table can run on this CPU" + ListOf(states);
  } else if (!status.ok()) {
    *error = RefusalOf(by + "=" + Printable(forced, 60), status.code() != ETALON_UNKNOWN_TARGET, states);
  }
  return states;
}

std::string ChosenOf(const std::vector<TableState>& tables) {
  for (const TableState& table : tables) {
    if (table.chosen) return table.name;
  }
  return "";
}

std::string RefusalOf(const std::string& asked, bool known, const std::vector<TableState>& tables) {
  return asked + (known ? ": this table cannot run here" : ": no such kernel table") + ListOf(tables);
}

float DefaultScaleOf(int64_t head_dim) { return etalon_default_scale(head_dim); }

struct PlannedAttention::Parts {
  explicit Parts(int threads) : pool(threads) {}

  // Where args may point to.
  const Tensor* Keep(const Tensor& tensor) {
    tensors.push_back(tensor);
    return &tensors.back();
  }
  void SetOptions(const Problem& problem, Rows rows, AttentionDesc* desc);
  void PrepareSegments(const Problem& problem, Rows rows);

  Array out_data;
  std::vector<float> lse_data;
  std::deque<Tensor> tensors;
  std::vector<int64_t> prefix_lens;
  Array joined_mask;
  AttentionArgs args;
  Plan plan;
  MaskMemory segments_mask;
  WorkspaceMemory memory;
  ThreadPool pool;
};

void PlannedAttention::Parts::SetOptions(const Problem& problem, Rows rows, AttentionDesc* desc) {
  const ScoreOptions& o = problem.options;
  desc->softcap = o.softcap;
  if (o.alibi) {
    desc->options |= ETALON_OPTION_ALIBI;
    if (IsGiven(o.slopes)) args.slopes = Keep(HeadsView(o.slopes));
  }
  if (IsGiven(o.bias)) {
    desc->options |= ETALON_OPTION_BIAS;
    args.bias = Keep(OptionView(o.bias, rows));
  }
  const bool segments = !o.q_segments.empty();
  if (IsGiven(o.mask) || segments) desc->options |= ETALON_OPTION_MASK;
  if (IsGiven(o.mask) && segments) {  // a call takes one of them
    joined_mask = JoinedMask(problem, rows);
    args.mask = Keep(ViewOf(joined_mask, {0, joined_mask.len}));
  } else if (IsGiven(o.mask)) {
    args.mask = Keep(OptionView(o.mask, rows));
  } else if (segments) {
    PrepareSegments(problem, rows);
  }
  if (IsGiven(o.sinks)) {
    desc->options |= ETALON_OPTION_SINKS;
    args.sinks = Keep(HeadsView(o.sinks));
  }
  if (problem.mask.prefix > 0) {
    prefix_lens.assign(static_cast<size_t>(problem.q.batch), problem.mask.prefix);
    args.prefix_lens = prefix_lens.data();
  }
}

void PlannedAttention::Parts::PrepareSegments(const Problem& problem, Rows rows) {
  const ScoreOptions& o = problem.options;
  const int64_t q_len = problem.q.len;
  const int64_t sequences = static_cast<int64_t>(o.q_segments.size()) / q_len;
  std::vector<int64_t> q_segments;
  for (int64_t b = 0; b < sequences; ++b) {
    const auto first = o.q_segments.begin() + b * q_len;
    q_segments.insert(q_segments.end(), first + rows.first, first + rows.last);
  }
  MaskDesc desc;
  desc.batch = sequences;
  desc.num_heads = 1;
  desc.q_len = rows.last - rows.first;
  desc.kv_len = problem.k.len;
  desc.q_segments = q_segments.data();
  desc.kv_segments = o.kv_segments.data();
  Require(segments_mask.Prepare(desc));
  args.prepared_mask = segments_mask.get();
}

PlannedAttention::PlannedAttention(const std::string& table, const Problem& problem, Rows rows, int threads,
                                   ElementKind out_type)
    : parts_(std::make_unique<Parts>(threads)) {
  Parts& p = *parts_;
  const Array &q = problem.q, &k = problem.k, &v = problem.v;
  const int64_t num_rows = rows.last - rows.first;
  p.out_data.type = out_type;
  p.out_data.batch = q.batch;
  p.out_data.heads = q.heads;
  p.out_data.len = num_rows;
  p.out_data.dim = v.dim;
  p.lse_data.resize(static_cast<size_t>(q.batch * q.heads * num_rows));
  p.out_data.bytes.resize(p.lse_data.size() * static_cast<size_t>(v.dim) * ElementKindBytes(out_type));
  p.args.q = p.Keep(ViewOf(q, rows));
  p.args.k = p.Keep(ViewOf(k, {0, k.len}));
  p.args.v = p.Keep(ViewOf(v, {0, v.len}));
  p.args.out = p.Keep(ViewOf(p.out_data, {0, num_rows}));
  p.args.lse = p.Keep(Tensor(p.lse_data.data(), {q.batch, q.heads, num_rows}));
  p.args.q_offset = problem.mask.q_offset + rows.first;

  AttentionDesc desc;
  desc.num_q_heads = q.heads;
  desc.num_kv_heads = k.heads;
  desc.head_dim = q.dim;
  desc.value_dim = v.dim;
  desc.max_batch = q.batch;
  desc.max_q_len = num_rows;
  desc.max_kv_len = k.len;
  desc.q_dtype = p.args.q->dtype;
  desc.k_dtype = p.args.k->dtype;
  desc.v_dtype = p.args.v->dtype;
  desc.out_dtype = p.args.out->dtype;
  desc.left = problem.mask.left;
  desc.right = problem.mask.right;
  desc.scale = problem.scale;
  desc.max_workers = p.pool.threads();
  desc.target = table.c_str();
  p.SetOptions(problem, rows, &desc);
  Require(p.plan.Init(desc));
  const size_t bytes = p.plan.workspace_bytes();
  if (p.memory.Reserve(bytes)->bytes < bytes) {
    throw std::runtime_error("no memory for " + std::to_string(bytes) + " bytes of workspace");
  }
}

PlannedAttention::~PlannedAttention() = default;

void PlannedAttention::Run() {
  Parts& p = *parts_;
  Require(p.plan.Execute(p.args, *p.memory.get(), p.pool.parallel()));
}

void PlannedAttention::RunInPieces(const std::function<void(double share)>& done) {
  constexpr int64_t kPieces = 50;
  Parts& p = *parts_;
  int64_t tasks = 0;
  Require(p.plan.Begin(p.args, *p.memory.get(), &tasks));
  struct Piece {
    void* workspace;
    int64_t first;
    std::atomic<bool> ok{true};
  };
  for (int64_t i = 0; i < kPieces; ++i) {
    const int64_t last = (i + 1) * tasks / kPieces;
    Piece piece;
    piece.workspace = p.memory.get()->data;
    piece.first = i * tasks / kPieces;
    if (piece.first == last) continue;
    const etalon_parallel* parallel = p.pool.parallel();
    parallel->parallel_for(
        parallel->ctx, last - piece.first,
        [](void* arg, int64_t from, int64_t to, int32_t worker) {
          Piece& mine = *static_cast<Piece*>(arg);
          if (etalon_run(mine.workspace, mine.first + from, mine.first + to, worker) != ETALON_OK) mine.ok = false;
        },
        &piece);
    if (!piece.ok) throw std::runtime_error("attention refused a task that it had planned");
    done(static_cast<double>(last) / static_cast<double>(tasks));
  }
}

const Array& PlannedAttention::out() const { return parts_->out_data; }
const std::vector<float>& PlannedAttention::lse() const { return parts_->lse_data; }

std::vector<float> Attend(const std::string& table, const Problem& problem, Rows rows, int threads) {
  PlannedAttention attention(table, problem, rows, threads);
  attention.Run();
  return attention.out().Floats();
}

}  // namespace etalon::cli
