#include "tests/api/api_test.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <thread>

#include "tests/support/reference.h"
#include "tests/support/tolerance.h"

namespace etalon::test {
ApiCase RandomCase(const Sizes& s, uint64_t seed) {
  Random random(seed);
  const auto type = [&] { return static_cast<DType>(random.Below(3)); };
  ApiCase c;
  c.size = s;
  c.q = Array{type(), random.Normals(s.batch * s.num_q_heads * s.q_len * s.head_dim)};
  c.k = Array{type(), random.Normals(s.batch * s.num_kv_heads * s.kv_len * s.head_dim)};
  c.v = Array{type(), random.Normals(s.batch * s.num_kv_heads * s.kv_len * s.value_dim)};
  c.out_type = type();
  return c;
}

ApiCase TrioCase(const Sizes& s) {
  ApiCase c;
  c.size = s;
  c.q = F32(Ramp(3, 1, s.batch * s.num_q_heads * s.q_len * s.head_dim));
  c.k = F32(Ramp(5, 2, s.batch * s.num_kv_heads * s.kv_len * s.head_dim));
  c.v = F32(Ramp(7, 3, s.batch * s.num_kv_heads * s.kv_len * s.value_dim));
  return c;
}

ApiCase OneHead(const AttentionCase& one) {
  ApiCase c;
  c.size = {1, 1, 1, one.rows, one.sources[0].num_keys, one.head_dim, one.value_dim};
  c.q = one.q;
  c.k = one.sources[0].k;
  c.v = one.sources[0].v;
  c.out_type = one.out_type;
  c.scale = one.scale;
  return c;
}

std::string Describe(const Sizes& s) {
  return "batch " + std::to_string(s.batch) + " heads " + std::to_string(s.num_q_heads) + "/" +
         std::to_string(s.num_kv_heads) + " q_len " + std::to_string(s.q_len) + " kv_len " + std::to_string(s.kv_len) +
         " head_dim " + std::to_string(s.head_dim) + " value_dim " + std::to_string(s.value_dim);
}

bool Sees(const ApiCase& c, int64_t b, int64_t i, int64_t t) {
  const size_t at = static_cast<size_t>(b);
  if (i >= (c.q_lens.empty() ? c.size.q_len : c.q_lens[at])) return false;
  if (t >= (c.kv_lens.empty() ? c.size.kv_len : c.kv_lens[at])) return false;
  const int64_t distance = t - (i + c.q_offset + (c.q_offsets.empty() ? 0 : c.q_offsets[at]));
  return (c.left < 0 || distance >= -c.left) && (c.right < 0 || distance <= c.right);
}

std::vector<Span> SpansOf(const ApiCase& c, int64_t b) {
  std::vector<Span> spans;
  for (int64_t i = 0; i < c.size.q_len; ++i) {
    Span span = {0, 0};
    for (int64_t t = 0; t < c.size.kv_len; ++t) {
      if (!Sees(c, b, i, t)) continue;
      if (span.last == 0) span.first = t;
      span.last = t + 1;
    }
    spans.push_back(span);
  }
  return spans;
}

AttentionCase HeadCase(const ApiCase& c, int64_t b, int64_t h) {
  const Sizes& s = c.size;
  const int64_t q_head = b * s.num_q_heads + h;
  const int64_t kv_head = b * s.num_kv_heads + h / (s.num_q_heads / s.num_kv_heads);
  const float scale = c.scale == 0.0f ? ScaleOf(s.head_dim) : c.scale;
  AttentionCase one =
      PlainCase(Slice(c.q, q_head * s.q_len * s.head_dim, s.q_len * s.head_dim),
                Slice(c.k, kv_head * s.kv_len * s.head_dim, s.kv_len * s.head_dim),
                Slice(c.v, kv_head * s.kv_len * s.value_dim, s.kv_len * s.value_dim), s.head_dim, s.value_dim, scale);
  one.out_type = c.out_type;
  one.sources[0].spans = SpansOf(c, b);
  return one;
}

AttentionResult Expected(const ApiCase& c) {
  const Sizes& s = c.size;
  const int64_t of_head = s.q_len * s.value_dim;
  AttentionResult all = {Array(c.out_type, s.batch * s.num_q_heads * of_head), {}};
  for (int64_t n = 0; n < s.batch * s.num_q_heads && s.q_len > 0; ++n) {
    const AttentionResult one = RunAttend(Definition(), HeadCase(c, n / s.num_q_heads, n % s.num_q_heads));
    std::memcpy(all.out.at(n * of_head), one.out.data(), static_cast<size_t>(of_head) * ElementSize(c.out_type));
    all.lse.insert(all.lse.end(), one.lse.begin(), one.lse.end());
  }
  return all;
}

std::string AccuracyReport(const ApiCase& c, const AttentionResult& got) {
  const Sizes& s = c.size;
  for (int64_t n = 0; n < s.batch * s.num_q_heads && s.q_len > 0; ++n) {
    const TrueAttention exact = AttentionInF64(HeadCase(c, n / s.num_q_heads, n % s.num_q_heads));
    const AttentionResult one = {
        Slice(got.out, n * s.q_len * s.value_dim, s.q_len * s.value_dim),
        std::vector<float>(got.lse.begin() + n * s.q_len, got.lse.begin() + (n + 1) * s.q_len)};
    const std::string report = OutReport(one, exact) + LseReport(one.lse, exact.lse);
    if (!report.empty()) return "head " + std::to_string(n) + ": " + report;
  }
  return "";
}

std::string Near(const Array& got, const std::vector<double>& expected, double allowed) {
  return NearReport(TrueValues(got), expected, allowed);
}

std::string Near(const std::vector<float>& got, const std::vector<double>& expected, double allowed) {
  return NearReport(TrueValues(got), expected, allowed);
}

// ----------------------------------------------------------------------------------------------------- who runs it

Loop::Loop(Kind kind, int32_t workers, uint64_t seed)
    : kind_(kind), workers_(std::max(1, workers)), seed_(seed), parallel_() {
  parallel_.parallel_for = [](void* ctx, int64_t num_tasks, etalon_task_fn fn, void* arg) {
    static_cast<const Loop*>(ctx)->Run(num_tasks, fn, arg);
  };
  parallel_.ctx = this;
  parallel_.workers = workers;
}

void Loop::Run(int64_t num_tasks, etalon_task_fn fn, void* arg) const {
  if (kind_ == Kind::kThreads) {
    std::atomic<int64_t> next{0};
    std::vector<std::thread> threads;
    for (int32_t worker = 0; worker < workers_; ++worker) {
      threads.emplace_back([&, worker] {
        const int64_t grain = 1 + worker % 2;
        for (int64_t first; (first = next.fetch_add(grain)) < num_tasks;) {
          fn(arg, first, std::min(first + grain, num_tasks), worker);
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    return;
  }
  std::vector<int64_t> cuts;  // each a first task
  Random random(seed_);
  for (int64_t t = 0; t < num_tasks; ++t) {
    if (t == 0 || kind_ != Kind::kShuffled || random.Below(3) > 0) cuts.push_back(t);
  }
  std::vector<Span> parts;
  for (size_t i = 0; i < cuts.size(); ++i) parts.push_back({cuts[i], i + 1 < cuts.size() ? cuts[i + 1] : num_tasks});
  if (kind_ == Kind::kReverse) std::reverse(parts.begin(), parts.end());
  for (size_t i = parts.size(); kind_ == Kind::kShuffled && i-- > 1;) {
    std::swap(parts[i], parts[static_cast<size_t>(random.Below(static_cast<int64_t>(i) + 1))]);
  }
  int64_t turn = 0;
  for (const Span& part : parts) {
    const int64_t worker = kind_ == Kind::kShuffled ? random.Below(workers_) : turn++ % workers_;
    fn(arg, part.first, part.last, static_cast<int32_t>(worker));
  }
}

std::string Describe(const How& how) {
  const char* const forms[] = {"one call", "tasks", "execute"};
  const char* const loops[] = {"alone", "forward", "in reverse", "shuffled", "on threads"};
  return std::string(forms[static_cast<int>(how.form)]) + " " + loops[static_cast<int>(how.loop)] + ", " +
         std::to_string(how.workers) + " workers";
}

const std::vector<How>& EveryForm() {
  using Kind = Loop::Kind;
  static const std::vector<How> forms = {{Form::kOneCall, Kind::kAlone, 1, 0xFF, Guard::kAbove},
                                         {Form::kOneCall, Kind::kAlone, 6, 0x00, Guard::kBelow},
                                         {Form::kOneCall, Kind::kThreads, 4, 0xFF, Guard::kAbove},
                                         {Form::kTasks, Kind::kForward, 1, 0x00, Guard::kAbove},
                                         {Form::kTasks, Kind::kReverse, 3, 0xFF, Guard::kBelow},
                                         {Form::kTasks, Kind::kShuffled, 64, 0xFF, Guard::kAbove},
                                         {Form::kExecute, Kind::kShuffled, 17, 0x00, Guard::kBelow},
                                         {Form::kExecute, Kind::kThreads, 5, 0xFF, Guard::kAbove}};
  return forms;
}

Places Everywhere(const Place& place) { return {place, place, place, place, place}; }

const int64_t* OrNull(const std::vector<int64_t>& lengths) { return lengths.empty() ? nullptr : lengths.data(); }

Shape RowsShape(const Sizes& s) { return {s.batch, s.num_q_heads, s.q_len}; }

namespace {

Shape KeysShape(const Sizes& s) { return {s.batch, s.num_kv_heads, s.kv_len}; }

// For etalon_run as an etalon_task_fn.
struct Begun {
  void* workspace;
  std::atomic<int> failures{0};

  static void Run(void* arg, int64_t first, int64_t last, int32_t worker) {
    Begun* begun = static_cast<Begun*>(arg);
    if (etalon_run(begun->workspace, first, last, worker) != ETALON_OK) ++begun->failures;
  }
};

}  // namespace

etalon_status RunForm(const etalon_attention_desc& desc, const etalon_attention_desc& full,
                      const etalon_attention_args& args, const How& how, etalon_error* error) {
  const Loop loop(how.loop, how.workers, how.seed);
  etalon_plan plan;
  size_t bytes = 0;
  etalon_status status = how.form == Form::kOneCall ? etalon_attention_workspace_bytes(&desc, &args, &bytes, error)
                                                    : etalon_plan_init(&plan, &full, error);
  if (status != ETALON_OK) return status;
  if (how.form != Form::kOneCall) bytes = etalon_plan_workspace_bytes(&plan);
  GuardBuffer memory(bytes, how.guard, 0, how.fill);
  const etalon_workspace workspace = {memory.data(), bytes};
  if (how.form == Form::kOneCall) {
    status = etalon_attention(&desc, &args, &workspace, loop.get(), error);
  } else if (how.form == Form::kExecute) {
    status = etalon_execute(&plan, &args, &workspace, loop.get(), error);
  } else {
    int64_t num_tasks = -1;
    status = etalon_begin(&plan, &args, &workspace, &num_tasks, error);
    if (status != ETALON_OK) return status;
    CHECK(num_tasks >= 0);
    Begun begun = {workspace.data, {0}};
    loop.Run(num_tasks, Begun::Run, &begun);
    CHECK(begun.failures == 0);
  }
  CHECK(memory.Intact());
  return status;
}

ApiCall::ApiCall(const ApiCase& c, const KernelTable& table, const Places& places)
    : q(c.q, With(RowsShape(c.size), c.size.head_dim), places.q),
      k(c.k, With(KeysShape(c.size), c.size.head_dim), places.k),
      v(c.v, With(KeysShape(c.size), c.size.value_dim), places.v),
      out(Unwritten(c.out_type, With(RowsShape(c.size), c.size.value_dim)), With(RowsShape(c.size), c.size.value_dim),
          places.out),
      lse(Unwritten(DType::kF32, RowsShape(c.size)), RowsShape(c.size), places.lse),
      case_(c) {
  REQUIRE(etalon_attention_desc_init(&desc, sizeof desc) == ETALON_OK);
  desc.left = c.left;
  desc.right = c.right;
  desc.scale = c.scale;
  desc.target = table.name;
  REQUIRE(etalon_attention_args_init(&args, sizeof args) == ETALON_OK);
  args.q = q.get();
  args.k = k.get();
  args.v = v.get();
  args.out = out.get();
  args.lse = lse.get();
  args.q_offset = c.q_offset;
  args.q_offsets = OrNull(case_.q_offsets);
  args.q_lens = OrNull(case_.q_lens);
  args.kv_lens = OrNull(case_.kv_lens);
}

etalon_attention_desc ApiCall::PlanDesc() const {
  const Sizes& s = case_.size;
  etalon_attention_desc full = desc;
  full.num_q_heads = s.num_q_heads;
  full.num_kv_heads = s.num_kv_heads;
  full.head_dim = s.head_dim;
  full.value_dim = s.value_dim;
  full.max_batch = s.batch;
  full.max_q_len = s.q_len;
  full.max_kv_len = s.kv_len;
  full.q_dtype = q.tensor.dtype;
  full.k_dtype = k.tensor.dtype;
  full.v_dtype = v.tensor.dtype;
  full.out_dtype = out.tensor.dtype;
  return full;
}

etalon_status ApiCall::Run(const How& how, etalon_error* error) {
  desc.max_workers = how.workers;
  return RunForm(desc, PlanDesc(), args, how, error);
}

AttentionResult ApiCall::Result() const { return {out.Values(), Floats(lse.Values())}; }

std::string ApiCall::Damage() const {
  std::string damage;
  if (!q.Intact()) damage += "q was written to; ";
  if (!k.Intact()) damage += "k was written to; ";
  if (!v.Intact()) damage += "v was written to; ";
  if (!out.GapsIntact()) damage += "memory around out was written to; ";
  if (!lse.GapsIntact()) damage += "memory around lse was written to; ";
  return damage;
}

AttentionResult Run(const ApiCase& c, const KernelTable& table, const How& how, const Places& places) {
  ApiCall call(c, table, places);
  etalon_error error;
  const etalon_status status = call.Run(how, &error);
  CHECK_MESSAGE(status == ETALON_OK, std::string(error.text));
  CHECK(call.Damage() == "");
  return call.Result();
}

std::string FormsReport(const ApiCase& c, const KernelTable& table, const AttentionResult& expected,
                        const Places& places) {
  for (const How& how : EveryForm()) {
    const std::string difference = Difference(Run(c, table, how, places), expected);
    if (!difference.empty()) return Describe(how) + ": " + difference;
  }
  return "";
}

AttentionResult RunEveryForm(const ApiCase& c, const KernelTable& table) {
  const AttentionResult got = Run(c, table);
  CHECK(FormsReport(c, table, got) == "");
  return got;
}

}  // namespace etalon::test
