// Sizes: those that must agree, heads, head_dim, what a descriptor or plan says, lengths, and sizes that are 0.
#include <doctest/doctest.h>

#include "tests/api/errors_trial.h"

namespace etalon::test {
namespace {

// One more, still packed: an output may not overlap itself.
void Grow(etalon_tensor* tensor, int place) {
  ++tensor->shape[place];
  *tensor =
      PackedTensor(tensor->data, tensor->dtype, std::vector<int64_t>(tensor->shape, tensor->shape + tensor->rank));
}

// One more in each dimension of each tensor: the field is the first that then differs.
TEST_CASE("errors: sizes that must agree") {
  Expect({
      {"q batch", kWithArgs, [](Trial& t) { ++t.q.shape[0]; }, ETALON_BAD_SHAPE, "args.k.shape[0]"},
      {"q heads", kFused | kScoring, [](Trial& t) { t.q.shape[1] *= 2; }, ETALON_BAD_SHAPE, "args.out.shape[1]"},
      {"q len", kFused | kScoring, [](Trial& t) { ++t.q.shape[2]; }, ETALON_BAD_SHAPE, "args.out.shape[2]"},
      {"q head_dim", kWithArgs, [](Trial& t) { ++t.q.shape[3]; }, ETALON_BAD_SHAPE, "args.k.shape[3]"},
      {"k batch", kWithArgs, [](Trial& t) { ++t.k.shape[0]; }, ETALON_BAD_SHAPE, "args.k.shape[0]"},
      {"k heads", kFused | kStating, [](Trial& t) { t.k.shape[1] *= 2; }, ETALON_BAD_SHAPE, "args.v.shape[1]"},
      {"k len", kFused | kStating, [](Trial& t) { ++t.k.shape[2]; }, ETALON_BAD_SHAPE, "args.v.shape[2]"},
      {"k len", kScoring, [](Trial& t) { ++t.k.shape[2]; }, ETALON_BAD_SHAPE, "args.out.shape[3]"},
      {"k head_dim", kWithArgs, [](Trial& t) { ++t.k.shape[3]; }, ETALON_BAD_SHAPE, "args.k.shape[3]"},
      {"v batch", kFused | kStating, [](Trial& t) { ++t.v.shape[0]; }, ETALON_BAD_SHAPE, "args.v.shape[0]"},
      {"v heads", kFused | kStating, [](Trial& t) { ++t.v.shape[1]; }, ETALON_BAD_SHAPE, "args.v.shape[1]"},
      {"v len", kFused | kStating, [](Trial& t) { ++t.v.shape[2]; }, ETALON_BAD_SHAPE, "args.v.shape[2]"},
      {"v value_dim", kFused, [](Trial& t) { ++t.v.shape[3]; }, ETALON_BAD_SHAPE, "args.out.shape[3]"},
      {"out batch", kFused, [](Trial& t) { --t.out.shape[0]; }, ETALON_BAD_SHAPE, "args.out.shape[0]"},
      {"out heads", kFused, [](Trial& t) { --t.out.shape[1]; }, ETALON_BAD_SHAPE, "args.out.shape[1]"},
      {"out len", kFused, [](Trial& t) { --t.out.shape[2]; }, ETALON_BAD_SHAPE, "args.out.shape[2]"},
      {"out value_dim", kFused, [](Trial& t) { --t.out.shape[3]; }, ETALON_BAD_SHAPE, "args.out.shape[3]"},
      {"lse batch", kFused, [](Trial& t) { --t.lse.shape[0]; }, ETALON_BAD_SHAPE, "args.lse.shape[0]"},
      {"lse heads", kFused, [](Trial& t) { --t.lse.shape[1]; }, ETALON_BAD_SHAPE, "args.lse.shape[1]"},
      {"lse len", kFused, [](Trial& t) { --t.lse.shape[2]; }, ETALON_BAD_SHAPE, "args.lse.shape[2]"},

      {"scores batch", kScoring, [](Trial& t) { --t.scores.shape[0]; }, ETALON_BAD_SHAPE, "args.out.shape[0]"},
      {"scores heads", kScoring, [](Trial& t) { --t.scores.shape[1]; }, ETALON_BAD_SHAPE, "args.out.shape[1]"},
      {"scores q_len", kScoring, [](Trial& t) { --t.scores.shape[2]; }, ETALON_BAD_SHAPE, "args.out.shape[2]"},
      {"scores kv_len", kScoring, [](Trial& t) { --t.scores.shape[3]; }, ETALON_BAD_SHAPE, "args.out.shape[3]"},

      {"batch", kSoftmax, [](Trial& t) { --t.weights.shape[0]; }, ETALON_BAD_SHAPE, "args.weights.shape[0]"},
      {"heads", kSoftmax, [](Trial& t) { --t.weights.shape[1]; }, ETALON_BAD_SHAPE, "args.weights.shape[1]"},
      {"q_len", kSoftmax, [](Trial& t) { --t.weights.shape[2]; }, ETALON_BAD_SHAPE, "args.weights.shape[2]"},
      {"kv_len", kSoftmax, [](Trial& t) { --t.weights.shape[3]; }, ETALON_BAD_SHAPE, "args.weights.shape[3]"},
      {"lse batch", kSoftmax, [](Trial& t) { --t.lse.shape[0]; }, ETALON_BAD_SHAPE, "args.lse.shape[0]"},
      {"lse heads", kSoftmax, [](Trial& t) { --t.lse.shape[1]; }, ETALON_BAD_SHAPE, "args.lse.shape[1]"},
      {"lse len", kSoftmax, [](Trial& t) { --t.lse.shape[2]; }, ETALON_BAD_SHAPE, "args.lse.shape[2]"},

      {"v batch", kSumming, [](Trial& t) { --t.v.shape[0]; }, ETALON_BAD_SHAPE, "args.v.shape[0]"},
      {"v len", kSumming, [](Trial& t) { --t.v.shape[2]; }, ETALON_BAD_SHAPE, "args.v.shape[2]"},
      {"v value_dim", kSumming, [](Trial& t) { --t.v.shape[3]; }, ETALON_BAD_SHAPE, "args.out.shape[3]"},
      {"out batch", kSumming, [](Trial& t) { --t.out.shape[0]; }, ETALON_BAD_SHAPE, "args.out.shape[0]"},
      {"out heads", kSumming, [](Trial& t) { --t.out.shape[1]; }, ETALON_BAD_SHAPE, "args.out.shape[1]"},
      {"out len", kSumming, [](Trial& t) { --t.out.shape[2]; }, ETALON_BAD_SHAPE, "args.out.shape[2]"},
      {"out value_dim", kSumming, [](Trial& t) { --t.out.shape[3]; }, ETALON_BAD_SHAPE, "args.out.shape[3]"},

      {"merge_states out batch", kMerging, [](Trial& t) { --t.out.shape[0]; }, ETALON_BAD_SHAPE, "args.out.shape[0]"},
      {"merge_states out heads", kMerging, [](Trial& t) { --t.out.shape[1]; }, ETALON_BAD_SHAPE, "args.out.shape[1]"},
      {"merge_states out len", kMerging, [](Trial& t) { --t.out.shape[2]; }, ETALON_BAD_SHAPE, "args.out.shape[2]"},
      {"merge_states out dim", kMerging, [](Trial& t) { --t.out.shape[3]; }, ETALON_BAD_SHAPE, "args.out.shape[3]"},
      {"merge_states lse batch", kMerging, [](Trial& t) { --t.lse.shape[0]; }, ETALON_BAD_SHAPE, "args.lse.shape[0]"},
      {"merge_states lse heads", kMerging, [](Trial& t) { --t.lse.shape[1]; }, ETALON_BAD_SHAPE, "args.lse.shape[1]"},
      {"merge_states lse len", kMerging, [](Trial& t) { --t.lse.shape[2]; }, ETALON_BAD_SHAPE, "args.lse.shape[2]"},
  });
  // All tensors of a merge are like the first of their kind, all of states like m.
  for (const Argument& argument : Arguments()) {
    const std::string name = argument.name;
    if ((argument.functions & (kMerge | kBlockStates | kMerging)) == 0) continue;
    const bool merges = argument.functions == kMerge && name != "args.out1";
    const bool states = name.find("states->") != std::string::npos && name.find("states->m") == std::string::npos;
    if (!merges && !states) continue;
    for (int i = 0; i < (states ? 4 : argument.rank); ++i) {
      Expect(
          name, argument.functions, [&](Trial& t) { --(t.*argument.tensor).shape[i]; }, ETALON_BAD_SHAPE,
          name + ".shape[" + std::to_string(i) + "]");
    }
  }
}

TEST_CASE("errors: states unlike the call") {
  const auto grow = [](int i) {
    return [i](Trial& t) {
      for (etalon_tensor* tensor : {&t.m, &t.l, &t.o}) Grow(tensor, i);
    };
  };
  for (int i = 0; i < 4; ++i) {
    const std::string index = "[" + std::to_string(i) + "]";
    Expect("states", kBlockStates, grow(i), ETALON_BAD_SHAPE, "states->m.shape" + index);
    if (i < 3) Expect("states", kMerging, grow(i), ETALON_BAD_SHAPE, "args.out.shape" + index);
    Expect("m alone", kMerging, [&](Trial& t) { Grow(&t.m, i); }, ETALON_BAD_SHAPE, "args.states->l.shape" + index);
    Expect("m alone", kBlockStates, [&](Trial& t) { Grow(&t.m, i); }, ETALON_BAD_SHAPE, "states->l.shape" + index);
  }
  const Spoil no_blocks = [](Trial& t) { t.m.shape[3] = t.l.shape[3] = t.o.shape[3] = 0; };
  Expect("no blocks for 7 keys", kBlockStates, no_blocks, ETALON_BAD_SHAPE, "states->m.shape[3]");
  Expect("no blocks", kMerging, no_blocks, ETALON_OK, "");
  Expect({
      {"value_dim", kBlockStates, [](Trial& t) { Grow(&t.o, 4); }, ETALON_BAD_SHAPE, "states->o.shape[4]"},
      {"value_dim", kMerging, [](Trial& t) { Grow(&t.o, 4); }, ETALON_BAD_SHAPE, "args.out.shape[3]"},
      {"q heads", kBlockStates, [](Trial& t) { t.q.shape[1] *= 2, t.desc.value.num_q_heads *= 2; }, ETALON_BAD_SHAPE,
       "states->m.shape[1]"},
      {"q len", kBlockStates, [](Trial& t) { ++t.q.shape[2], ++t.desc.value.max_q_len; }, ETALON_BAD_SHAPE,
       "states->m.shape[2]"},
  });
}

TEST_CASE("errors: no heads, or such that do not divide") {
  Expect({
      {"q 0", kWithArgs, [](Trial& t) { t.q.shape[1] = 0; }, ETALON_NO_HEADS, "args.q.shape[1]"},
      {"k 0", kWithArgs, [](Trial& t) { t.k.shape[1] = 0; }, ETALON_NO_HEADS, "args.k.shape[1]"},
      {"q 5", kWithArgs, [](Trial& t) { t.q.shape[1] = 5; }, ETALON_BAD_HEADS, "args.q.shape[1]"},
      {"k 3", kWithArgs, [](Trial& t) { t.k.shape[1] = 3; }, ETALON_BAD_HEADS, "args.q.shape[1]"},
      {"k 8", kWithArgs, [](Trial& t) { t.k.shape[1] = 8; }, ETALON_BAD_HEADS, "args.q.shape[1]"},
      {"scores 0", kSoftmax, [](Trial& t) { t.scores.shape[1] = t.weights.shape[1] = t.lse.shape[1] = 0; },
       ETALON_NO_HEADS, "args.scores.shape[1]"},
      {"weights 0", kSumming, [](Trial& t) { t.weights.shape[1] = 0; }, ETALON_NO_HEADS, "args.weights.shape[1]"},
      {"v 0", kSumming, [](Trial& t) { t.v.shape[1] = 0; }, ETALON_NO_HEADS, "args.v.shape[1]"},
      {"weights 5", kSumming, [](Trial& t) { t.weights.shape[1] = 5; }, ETALON_BAD_HEADS, "args.weights.shape[1]"},
      {"v 8", kSumming, [](Trial& t) { t.v.shape[1] = 8; }, ETALON_BAD_HEADS, "args.weights.shape[1]"},
      {"out1 0", kMerge, [](Trial& t) { t.out1.shape[1] = 0; }, ETALON_NO_HEADS, "args.out1.shape[1]"},
      {"states 0", kMerging, [](Trial& t) { t.m.shape[1] = t.l.shape[1] = t.o.shape[1] = 0; }, ETALON_NO_HEADS,
       "args.states->m.shape[1]"},
      {"states 0", kBlockStates, [](Trial& t) { t.m.shape[1] = t.l.shape[1] = t.o.shape[1] = 0; }, ETALON_NO_HEADS,
       "states->m.shape[1]"},
      {"desc q 0", kSupports | kPlanInit, [](Trial& t) { t.desc.value.num_q_heads = 0; }, ETALON_NO_HEADS,
       "desc.num_q_heads"},
      {"desc kv 0", kSupports | kPlanInit, [](Trial& t) { t.desc.value.num_kv_heads = 0; }, ETALON_NO_HEADS,
       "desc.num_kv_heads"},
      {"desc kv 0", kSupports | kPlanInit,
       [](Trial& t) { t.desc.value.num_q_heads = 1, t.desc.value.num_kv_heads = 0; }, ETALON_NO_HEADS,
       "desc.num_kv_heads"},
      {"desc q -4", kWithDesc, [](Trial& t) { t.desc.value.num_q_heads = -4; }, ETALON_BAD_SHAPE, "desc.num_q_heads"},
      {"desc kv -2", kWithDesc, [](Trial& t) { t.desc.value.num_kv_heads = -2; }, ETALON_BAD_SHAPE,
       "desc.num_kv_heads"},
      {"desc q 5", kWithDesc, [](Trial& t) { t.desc.value.num_q_heads = 5; }, ETALON_BAD_HEADS, "desc.num_q_heads"},
      {"desc kv 8", kWithDesc, [](Trial& t) { t.desc.value.num_kv_heads = 8; }, ETALON_BAD_HEADS, "desc.num_q_heads"},
  });
}

TEST_CASE("errors: head_dim and value_dim of 0") {
  Expect({
      {"q, k", kWithArgs, [](Trial& t) { t.q.shape[3] = t.k.shape[3] = 0; }, ETALON_BAD_HEAD_DIM, "args.q.shape[3]"},
      {"v", kFused | kStating, [](Trial& t) { t.v.shape[3] = 0; }, ETALON_BAD_HEAD_DIM, "args.v.shape[3]"},
      {"v", kSumming, [](Trial& t) { t.v.shape[3] = t.out.shape[3] = 0; }, ETALON_BAD_HEAD_DIM, "args.v.shape[3]"},
      {"out1", kMerge, [](Trial& t) { t.out1.shape[3] = 0; }, ETALON_BAD_HEAD_DIM, "args.out1.shape[3]"},
      {"o", kMerging, [](Trial& t) { t.o.shape[4] = t.out.shape[3] = 0; }, ETALON_BAD_HEAD_DIM,
       "args.states->o.shape[4]"},
      {"o", kBlockStates, [](Trial& t) { t.o.shape[4] = 0; }, ETALON_BAD_HEAD_DIM, "states->o.shape[4]"},
      {"desc", kSupports | kPlanInit, [](Trial& t) { t.desc.value.head_dim = 0; }, ETALON_BAD_HEAD_DIM,
       "desc.head_dim"},
      {"desc", kWithDesc, [](Trial& t) { t.desc.value.head_dim = -1; }, ETALON_BAD_HEAD_DIM, "desc.head_dim"},
      {"desc", kSupports | kPlanInit, [](Trial& t) { t.desc.value.value_dim = 0; }, ETALON_BAD_HEAD_DIM,
       "desc.value_dim"},
      {"desc", kWithDesc & ~kScoring, [](Trial& t) { t.desc.value.value_dim = INT64_MIN; }, ETALON_BAD_HEAD_DIM,
       "desc.value_dim"},
      {"desc", kWithDesc, [](Trial& t) { t.desc.value.head_dim = -1, t.desc.value.q_dtype = 0; }, ETALON_BAD_HEAD_DIM,
       "desc.head_dim"},
      {"too long", kWithDesc, [](Trial& t) { t.desc.value.head_dim = INT64_MAX; }, ETALON_OVERFLOW, "desc.head_dim"},
      {"too long", kWithDesc & ~kScoring, [](Trial& t) { t.desc.value.value_dim = INT64_MAX; }, ETALON_OVERFLOW,
       "desc.value_dim"},
  });
}

TEST_CASE("errors: sizes of 1 are enough") {
  const auto ones = [](Trial& t) {
    for (etalon_tensor* tensor : {&t.q, &t.k, &t.v, &t.out, &t.lse, &t.weights, &t.scores, &t.m, &t.l, &t.o, &t.out1,
                                  &t.lse1, &t.out2, &t.lse2}) {
      for (int64_t& size : tensor->shape) size = 1;
    }
    etalon_attention_desc& d = t.desc.value;
    d.num_q_heads = d.num_kv_heads = d.head_dim = d.value_dim = d.max_batch = d.max_q_len = d.max_kv_len = 1;
    t.args.value.q_lens = t.softmax.value.q_lens = t.sum.value.q_lens = nullptr;
    t.args.value.kv_lens = t.softmax.value.kv_lens = t.sum.value.kv_lens = nullptr;
    Replan(&t), FitWorkspace(&t);
  };
  Expect("ones", kAll, ones, ETALON_OK, "");
}

// Leading dimensions that are left out are of size 1.
TEST_CASE("errors: the smallest ranks") {
  const auto small = [](Trial& t) {
    for (const Argument& argument : Arguments()) {
      if ((argument.functions & t.function) == 0) continue;
      etalon_tensor& tensor = t.*argument.tensor;
      const std::vector<int64_t> shape(tensor.shape + 2, tensor.shape + argument.rank);  // without batch and heads
      tensor = PackedTensor(tensor.data, tensor.dtype, shape);
    }
    t.desc.value.num_q_heads = t.desc.value.num_kv_heads = 1;
    Replan(&t), FitWorkspace(&t);
  };
  Expect("one head", kAll, small, ETALON_OK, "");
}

TEST_CASE("errors: states of one query of several heads") {
  const auto one = [](Trial& t) {
    for (etalon_tensor* tensor : {&t.q, &t.out, &t.lse, &t.m, &t.l, &t.o}) {
      tensor->shape[2] = 1;
      *tensor =
          PackedTensor(tensor->data, tensor->dtype, std::vector<int64_t>(tensor->shape, tensor->shape + tensor->rank));
      tensor->stride_bytes[2] = -3;  // nothing moves along it
    }
    t.q_lens[0] = t.q_lens[1] = 1;
  };
  Expect("one query", kStating | kMerging, one, ETALON_OK, "");
}

TEST_CASE("errors: sizes unlike the descriptor's or the plan's") {
  Expect({
      {"heads", kWithArgs, [](Trial& t) { t.desc.value.num_q_heads = 8, Replan(&t); }, ETALON_BAD_SHAPE,
       "args.q.shape[1]"},
      {"kv heads", kWithArgs, [](Trial& t) { t.desc.value.num_kv_heads = 1, Replan(&t); }, ETALON_BAD_SHAPE,
       "args.k.shape[1]"},
      {"head_dim", kWithArgs, [](Trial& t) { t.desc.value.head_dim = 7, Replan(&t); }, ETALON_BAD_SHAPE,
       "args.q.shape[3]"},
      {"value_dim", kFused | kStating, [](Trial& t) { t.desc.value.value_dim = 4, Replan(&t); }, ETALON_BAD_SHAPE,
       "args.v.shape[3]"},
      {"value_dim", kScoring, [](Trial& t) { t.desc.value.value_dim = -4; }, ETALON_OK, ""},
      {"batch above", kWithArgs, [](Trial& t) { t.desc.value.max_batch = 1, Replan(&t); }, ETALON_BAD_SHAPE,
       "args.q.shape[0]"},
      {"q_len above", kWithArgs, [](Trial& t) { t.desc.value.max_q_len = 2, Replan(&t); }, ETALON_BAD_SHAPE,
       "args.q.shape[2]"},
      {"kv_len above", kWithArgs, [](Trial& t) { t.desc.value.max_kv_len = 6, Replan(&t); }, ETALON_BAD_SHAPE,
       "args.k.shape[2]"},
      {"plan of nothing", kPlanned, [](Trial& t) { t.desc.value.max_kv_len = 0, Replan(&t); }, ETALON_BAD_SHAPE,
       "args.k.shape[2]"},
      {"below", kWithArgs,
       [](Trial& t) {
         t.desc.value.max_batch = 9, t.desc.value.max_q_len = 9, t.desc.value.max_kv_len = 9;
         Replan(&t), FitWorkspace(&t);
       },
       ETALON_OK, ""},
      {"left open", kOneCall | kScoring | kStating,
       [](Trial& t) {
         REQUIRE(etalon_attention_desc_init(&t.desc.value, sizeof t.desc.value) == ETALON_OK);
         FitWorkspace(&t);
         t.parallel.workers = 1;
       },
       ETALON_OK, ""},
  });
  for (int64_t etalon_attention_desc::* maximum :
       {&etalon_attention_desc::max_batch, &etalon_attention_desc::max_q_len, &etalon_attention_desc::max_kv_len}) {
    const char* const field = maximum == &etalon_attention_desc::max_batch   ? "desc.max_batch"
                              : maximum == &etalon_attention_desc::max_q_len ? "desc.max_q_len"
                                                                             : "desc.max_kv_len";
    for (int64_t size : {int64_t{-1}, INT64_MIN}) {
      Expect("negative", kWithDesc, [&](Trial& t) { t.desc.value.*maximum = size; }, ETALON_BAD_SHAPE, field);
    }
    for (int64_t size : {kLargest + 1, INT64_MAX}) {
      Expect("huge", kWithDesc, [&](Trial& t) { t.desc.value.*maximum = size; }, ETALON_OVERFLOW, field);
    }
  }
}

// A tensor without elements needs no memory, whatever its data and strides say.
void Empty(etalon_tensor* tensor, int place) {
  tensor->shape[place] = 0;
  tensor->data = nullptr;
  for (int64_t& stride : tensor->stride_bytes) stride = 1;
}

TEST_CASE("errors: sizes of 0, without memory") {
  const auto no_batch = [](Trial& t) {
    for (etalon_tensor* tensor : {&t.q, &t.k, &t.v, &t.out, &t.lse, &t.weights, &t.scores, &t.m, &t.l, &t.o, &t.out1,
                                  &t.lse1, &t.out2, &t.lse2}) {
      Empty(tensor, 0);
    }
  };
  Expect("no batch", kAll, no_batch, ETALON_OK, "");
  const auto no_queries = [](Trial& t) {
    for (etalon_tensor* tensor :
         {&t.q, &t.out, &t.lse, &t.weights, &t.scores, &t.m, &t.l, &t.o, &t.out1, &t.lse1, &t.out2, &t.lse2}) {
      Empty(tensor, 2);
    }
    t.q_lens[0] = t.q_lens[1] = 0;
  };
  Expect("no queries", kAll, no_queries, ETALON_OK, "");
  const auto no_keys = [](Trial& t) {
    for (etalon_tensor* tensor : {&t.k, &t.v}) Empty(tensor, 2);
    for (etalon_tensor* tensor : {&t.weights, &t.scores, &t.m, &t.l, &t.o}) Empty(tensor, 3);
    t.kv_lens[0] = t.kv_lens[1] = 0;
  };
  Expect("no keys", kAll, no_keys, ETALON_OK, "");
  const auto no_keys_at_all = [&](Trial& t) {
    no_keys(t);
    t.desc.value.max_kv_len = 0;
    Replan(&t), FitWorkspace(&t);
  };
  Expect("no keys in the plan", kAll, no_keys_at_all, ETALON_OK, "");
  Expect(
      "plans for nothing", kSupports | kPlanInit,
      [](Trial& t) { t.desc.value.max_batch = t.desc.value.max_q_len = t.desc.value.max_kv_len = 0; }, ETALON_OK, "");
  // States of more than one block, of which no row has any.
  const Spoil two_blocks = [&](Trial& t) {
    no_queries(t);
    t.m.shape[3] = t.l.shape[3] = t.o.shape[3] = 2;
    t.k.shape[2] = t.v.shape[2] = 513;
    t.k.stride_bytes[2] = t.v.stride_bytes[2] = 0;
    t.desc.value.max_kv_len = 513;
  };
  Expect("two blocks, no queries", kStating | kMerging, two_blocks, ETALON_OK, "");
  // The lengths of no keys.
  const Spoil keys_of_none = [&](Trial& t) { no_keys(t), t.kv_lens[1] = 1; };
  Expect("a key of none", kWithArgs | kSoftmax | kSumming, keys_of_none, ETALON_BAD_VALUE, "args.kv_lens[1]");
}

// Sizes that no memory holds, but of which nothing is there: nothing is counted, so nothing overflows.
TEST_CASE("errors: huge sizes beside one of 0") {
  const auto huge_heads = [](Trial& t) {
    for (etalon_tensor* tensor : {&t.q, &t.k, &t.v, &t.out, &t.lse, &t.weights, &t.scores, &t.m, &t.l, &t.o, &t.out1,
                                  &t.lse1, &t.out2, &t.lse2}) {
      tensor->shape[1] = kLargest;
      Empty(tensor, 0);
    }
    t.m.shape[3] = t.l.shape[3] = t.o.shape[3] = t.function == kMergeStates ? kLargest : 1;
    t.desc.value.num_q_heads = t.desc.value.num_kv_heads = kLargest;
    Replan(&t), FitWorkspace(&t);
  };
  Expect("heads", kAll, huge_heads, ETALON_OK, "");
  const auto no_keys = [](Trial& t) {
    t.softmax.value.lse = nullptr;
    for (etalon_tensor* tensor : {&t.scores, &t.weights}) {
      tensor->shape[1] = tensor->shape[2] = kLargest;
      Empty(tensor, 3);
    }
    t.kv_lens[0] = t.kv_lens[1] = 0;
  };
  Expect("rows without keys", kSoftmax, no_keys, ETALON_OK, "");
}

}  // namespace
}  // namespace etalon::test
