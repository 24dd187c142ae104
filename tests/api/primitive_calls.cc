#include "tests/api/primitive_calls.h"

#include <cstring>
#include <utility>

namespace etalon::test {
namespace {

// The mask of a case, which ends at a page that nobody may touch.
class CaseMask {
 public:
  explicit CaseMask(const ApiCase& c) : memory_(c.mask.size(), Guard::kAbove) {
    if (c.mask_shape.empty()) return;
    if (!c.mask.empty()) std::memcpy(memory_.data(), c.mask.data(), c.mask.size());
    REQUIRE(etalon_tensor_init(&tensor_, memory_.data(), ETALON_BOOL, 4, c.mask_shape.data(), nullptr) == ETALON_OK);
    given_ = true;
  }
  const etalon_tensor* get() const { return given_ ? &tensor_ : nullptr; }

 private:
  GuardBuffer memory_;
  etalon_tensor tensor_ = {};
  bool given_ = false;
};

// [q_len, kv_len] of one head, for the kernels; none without a mask.
std::vector<uint8_t> MaskOfHead(const ApiCase& c, int64_t b, int64_t h) {
  std::vector<uint8_t> mask;
  const Shape& shape = c.mask_shape;
  for (int64_t i = 0; i < c.size.q_len && !shape.empty(); ++i) {
    for (int64_t t = 0; t < c.size.kv_len; ++t) {
      const int64_t index[] = {b, h, i, t};
      int64_t place = 0;
      for (size_t d = 0; d < 4; ++d) place = place * shape[d] + (shape[d] == 1 ? 0 : index[d]);
      mask.push_back(c.mask[static_cast<size_t>(place)]);
    }
  }
  return mask;
}

// What the arguments of softmax and the weighted sum have in common.
template <typename Args>
void SetRows(const ApiCase& c, const KernelTable& table, const CaseMask& mask, Args* args) {
  args->mask = mask.get();
  args->left = c.left;
  args->right = c.right;
  args->q_offset = c.q_offset;
  args->q_offsets = OrNull(c.q_offsets);
  args->q_lens = OrNull(c.q_lens);
  args->kv_lens = OrNull(c.kv_lens);
  args->target = table.name;
}

// measure(&bytes, &error), then run(workspace, parallel, &error) in exactly these bytes.
template <typename Measure, typename Function>
void RunIn(const How& how, Measure measure, Function run) {
  etalon_error error;
  size_t bytes = 0;
  etalon_status status = measure(&bytes, &error);
  CHECK_MESSAGE(status == ETALON_OK, std::string(error.text));
  GuardBuffer memory(bytes, how.guard, 0, how.fill);
  const etalon_workspace workspace = {memory.data(), bytes};
  const Loop loop(how.loop, how.workers, how.seed);
  status = run(&workspace, loop.get(), &error);
  CHECK_MESSAGE(status == ETALON_OK, std::string(error.text));
  CHECK(memory.Intact());
}

etalon_status NoWorkspace(size_t* bytes, etalon_error*) {
  *bytes = 0;
  return ETALON_OK;
}

// one(b, h) of every head, one after the other.
template <typename Function>
Array ByHead(const Sizes& s, DType type, int64_t of_head, Function one) {
  Array all(type, s.batch * s.num_q_heads * of_head);
  for (int64_t n = 0; n < s.batch * s.num_q_heads && of_head > 0; ++n) {
    const Array part = one(n / s.num_q_heads, n % s.num_q_heads);
    std::memcpy(all.at(n * of_head), part.data(), static_cast<size_t>(of_head) * ElementSize(type));
  }
  return all;
}

}  // namespace

const std::vector<How>& EveryLoop() {
  using Kind = Loop::Kind;
  static const std::vector<How> loops = {{Form::kOneCall, Kind::kAlone, 1, 0xFF, Guard::kAbove},
                                         {Form::kOneCall, Kind::kAlone, 3, 0x00, Guard::kBelow},
                                         {Form::kOneCall, Kind::kReverse, 2, 0xFF, Guard::kBelow},
                                         {Form::kOneCall, Kind::kShuffled, 64, 0x00, Guard::kAbove},
                                         {Form::kOneCall, Kind::kThreads, 4, 0xFF, Guard::kAbove}};
  return loops;
}

// ------------------------------------------------------------------------------------------------------- scores

Array CallScores(const ApiCase& c, const KernelTable& table, const How& how, const Places& places) {
  ApiCall call(c, table, places);
  const Shape shape = With(RowsShape(c.size), c.size.kv_len);
  GuardedTensor scores(Unwritten(DType::kF32, shape), shape, places.out);
  call.desc.max_workers = how.workers;
  call.args.v = nullptr;
  call.args.lse = nullptr;
  call.args.out = scores.get();
  RunIn(
      how,
      [&](size_t* bytes, etalon_error* error) {
        return etalon_scores_workspace_bytes(&call.desc, &call.args, bytes, error);
      },
      [&](const etalon_workspace* workspace, const etalon_parallel* parallel, etalon_error* error) {
        return etalon_scores(&call.desc, &call.args, workspace, parallel, error);
      });
  CHECK(call.Damage() == "");
  CHECK(scores.GapsIntact());
  return scores.Values();
}

Array ExpectedScores(const ApiCase& c) {
  return ByHead(c.size, DType::kF32, c.size.q_len * c.size.kv_len,
                [&](int64_t b, int64_t h) { return F32(RunScores(Definition(), HeadCase(c, b, h))); });
}

// ------------------------------------------------------------------------------------------------------ softmax

SoftmaxResult CallSoftmax(const ApiCase& c, const Array& scores, const KernelTable& table, const How& how,
                          const Places& places, bool in_place) {
  const Shape shape = With(RowsShape(c.size), c.size.kv_len);
  GuardedTensor in(scores, shape, places.q), out(Unwritten(DType::kF32, shape), shape, places.out);
  GuardedTensor lse(Unwritten(DType::kF32, RowsShape(c.size)), RowsShape(c.size), places.lse);
  etalon_softmax_args args;
  REQUIRE(etalon_softmax_args_init(&args, sizeof args) == ETALON_OK);
  const CaseMask mask(c);
  SetRows(c, table, mask, &args);
  args.scores = in.get();
  args.weights = in_place ? in.get() : out.get();
  args.lse = lse.get();
  RunIn(how, NoWorkspace, [&](const etalon_workspace*, const etalon_parallel* parallel, etalon_error* error) {
    return etalon_softmax(&args, parallel, error);
  });
  CHECK((in_place ? in.GapsIntact() && out.Intact() : in.Intact() && out.GapsIntact()));
  CHECK(lse.GapsIntact());
  return {Floats(in_place ? in.Values() : out.Values()), Floats(lse.Values())};
}

SoftmaxResult ExpectedSoftmax(const ApiCase& c, const Array& scores) {
  SoftmaxResult all;
  const int64_t of_head = c.size.q_len * c.size.kv_len;
  for (int64_t n = 0; n < c.size.batch * c.size.num_q_heads; ++n) {
    const SoftmaxCase one = {c.size.q_len, c.size.kv_len, Floats(Slice(scores, n * of_head, of_head)),
                             SpansOf(c, n / c.size.num_q_heads),
                             MaskOfHead(c, n / c.size.num_q_heads, n % c.size.num_q_heads)};
    const SoftmaxResult part = RunSoftmax(Definition(), one);
    all.w.insert(all.w.end(), part.w.begin(), part.w.end());
    all.lse.insert(all.lse.end(), part.lse.begin(), part.lse.end());
  }
  return all;
}

// ------------------------------------------------------------------------------------------------- weighted sum

Array CallWeightedSum(const ApiCase& c, const Array& weights, const KernelTable& table, const How& how,
                      const Places& places) {
  ApiCall call(c, table, places);  // for v and out
  GuardedTensor in(weights, With(RowsShape(c.size), c.size.kv_len), places.q);
  etalon_weighted_sum_args args;
  REQUIRE(etalon_weighted_sum_args_init(&args, sizeof args) == ETALON_OK);
  const CaseMask mask(c);
  SetRows(c, table, mask, &args);
  args.weights = in.get();
  args.v = call.v.get();
  args.out = call.out.get();
  args.max_workers = how.workers;
  RunIn(
      how, [&](size_t* bytes, etalon_error* error) { return etalon_weighted_sum_workspace_bytes(&args, bytes, error); },
      [&](const etalon_workspace* workspace, const etalon_parallel* parallel, etalon_error* error) {
        return etalon_weighted_sum(&args, workspace, parallel, error);
      });
  CHECK(call.Damage() == "");
  CHECK(in.Intact());
  return call.out.Values();
}

Array ExpectedWeightedSum(const ApiCase& c, const Array& weights) {
  const Sizes& s = c.size;
  return ByHead(s, c.out_type, s.q_len * s.value_dim, [&](int64_t b, int64_t h) {
    const int64_t of_head = s.q_len * s.kv_len;
    WeightedSumCase one;
    one.rows = s.q_len;
    one.num_keys = s.kv_len;
    one.value_dim = s.value_dim;
    one.w = Floats(Slice(weights, (b * s.num_q_heads + h) * of_head, of_head));
    one.v = HeadCase(c, b, h).sources[0].v;
    one.spans = SpansOf(c, b);
    one.mask = MaskOfHead(c, b, h);
    one.out_type = c.out_type;
    return RunWeightedSum(Definition(), one);
  });
}

// -------------------------------------------------------------------------------------------------------- merge

AttentionResult CallMerge(const Sizes& size, const MergeCase& c, const KernelTable& table, const How& how,
                          const Places& places, InPlace in_place) {
  const Shape rows = RowsShape(size), shape = With(rows, c.value_dim);
  GuardedTensor out1(c.out1, shape, places.q), out2(c.out2, shape, places.k);
  GuardedTensor lse1(F32(c.lse1), rows, places.v), lse2(F32(c.lse2), rows, places.v);
  GuardedTensor out(Unwritten(c.out1.type(), shape), shape, places.out);
  GuardedTensor lse(Unwritten(DType::kF32, rows), rows, places.lse);
  GuardedTensor* const to = in_place == InPlace::kNo ? &out : in_place == InPlace::kFirst ? &out1 : &out2;
  GuardedTensor* const lse_to = in_place == InPlace::kNo ? &lse : in_place == InPlace::kFirst ? &lse1 : &lse2;
  etalon_merge_args args;
  REQUIRE(etalon_merge_args_init(&args, sizeof args) == ETALON_OK);
  args.out1 = out1.get();
  args.lse1 = lse1.get();
  args.out2 = out2.get();
  args.lse2 = lse2.get();
  args.out = to->get();
  args.lse = lse_to->get();
  args.target = table.name;
  RunIn(how, NoWorkspace, [&](const etalon_workspace*, const etalon_parallel* parallel, etalon_error* error) {
    return etalon_merge(&args, parallel, error);
  });
  for (GuardedTensor* tensor : {&out1, &out2, &lse1, &lse2, &out, &lse}) {
    CHECK((tensor == to || tensor == lse_to ? tensor->GapsIntact() : tensor->Intact()));
  }
  return {to->Values(), Floats(lse_to->Values())};
}

// ------------------------------------------------------------------------------------------------------- states

namespace {

// Rows of states `row_stride` apart and, as the header demands, heads that follow each other; sequences `gap` states
// further apart than they need be.
Place StatesPlace(int64_t row_stride, int64_t gap) {
  Place place;
  place.layout = [=](const Shape& shape) -> Shape {
    const int64_t of_head = shape[2] * row_stride, of_batch = shape[1] * of_head + gap;
    if (shape.size() == 4) return {of_batch, of_head, row_stride, 1};
    const int64_t value_dim = shape[4];
    return {of_batch * value_dim + 1, of_head * value_dim, row_stride * value_dim, value_dim, 1};
  };
  return place;
}

Array OrUnwritten(const std::vector<float>* values, const Shape& shape) {
  return values == nullptr ? Unwritten(DType::kF32, shape) : F32(*values);
}

}  // namespace

GuardedStates::GuardedStates(const Sizes& s, int64_t blocks, int64_t row_stride, const StatesResult* values)
    : GuardedStates(With(RowsShape(s), blocks), s.value_dim, row_stride, values) {}

GuardedStates::GuardedStates(const Shape& shape, int64_t value_dim, int64_t row_stride, const StatesResult* values)
    : m(OrUnwritten(values == nullptr ? nullptr : &values->m, shape), shape, StatesPlace(row_stride, 3)),
      l(OrUnwritten(values == nullptr ? nullptr : &values->l, shape), shape, StatesPlace(row_stride, 7)),
      o(OrUnwritten(values == nullptr ? nullptr : &values->o, With(shape, value_dim)), With(shape, value_dim),
        StatesPlace(row_stride, 4)),
      states_{m.get(), l.get(), o.get()} {}

StatesResult GuardedStates::Values() const {
  return {m.tensor.shape[3], Floats(m.Values()), Floats(l.Values()), Floats(o.Values())};
}

std::unique_ptr<GuardedStates::Part> GuardedStates::Blocks(int64_t first, int64_t count) const {
  auto part = std::make_unique<Part>();
  part->m = m.tensor;
  part->l = l.tensor;
  part->o = o.tensor;
  for (etalon_tensor* tensor : {&part->m, &part->l, &part->o}) {
    tensor->data = static_cast<unsigned char*>(tensor->data) + first * tensor->stride_bytes[3];
    tensor->shape[3] = count;
  }
  part->states = {&part->m, &part->l, &part->o};
  return part;
}

void CallBlockStates(const ApiCase& c, const etalon_states* states, const KernelTable& table, const How& how,
                     const Places& places) {
  ApiCall call(c, table, places);
  call.desc.max_workers = how.workers;
  call.args.out = nullptr;
  call.args.lse = nullptr;
  RunIn(
      how,
      [&](size_t* bytes, etalon_error* error) {
        return etalon_block_states_workspace_bytes(&call.desc, &call.args, bytes, error);
      },
      [&](const etalon_workspace* workspace, const etalon_parallel* parallel, etalon_error* error) {
        return etalon_block_states(&call.desc, &call.args, states, workspace, parallel, error);
      });
  CHECK(call.Damage() == "");
}

StatesResult ExpectedStates(const ApiCase& c) {
  StatesResult all;
  all.per_row = etalon_num_blocks(c.size.kv_len);
  for (int64_t n = 0; n < c.size.batch * c.size.num_q_heads; ++n) {
    const StatesResult one = RunBlockStates(Definition(), HeadCase(c, n / c.size.num_q_heads, n % c.size.num_q_heads));
    all.m.insert(all.m.end(), one.m.begin(), one.m.end());
    all.l.insert(all.l.end(), one.l.begin(), one.l.end());
    all.o.insert(all.o.end(), one.o.begin(), one.o.end());
  }
  return all;
}

AttentionResult CallMergeStates(const ApiCase& c, const etalon_states* states, const KernelTable& table, const How& how,
                                const Places& places) {
  ApiCall call(c, table, places);  // for out and lse
  etalon_merge_states_args args;
  REQUIRE(etalon_merge_states_args_init(&args, sizeof args) == ETALON_OK);
  args.states = states;
  args.out = call.out.get();
  args.lse = call.lse.get();
  args.target = table.name;
  args.max_workers = how.workers;
  RunIn(
      how, [&](size_t* bytes, etalon_error* error) { return etalon_merge_states_workspace_bytes(&args, bytes, error); },
      [&](const etalon_workspace* workspace, const etalon_parallel* parallel, etalon_error* error) {
        return etalon_merge_states(&args, workspace, parallel, error);
      });
  CHECK(call.Damage() == "");
  return call.Result();
}

}  // namespace etalon::test
