// Where tensors, length arrays and the workspace may lie, and how tensors may be laid out. Queries of sizes see none of
// it: there may be no memory yet.
#include <doctest/doctest.h>

#include "tests/api/errors_trial.h"

namespace etalon::test {
namespace {

std::string Stride(const Argument& argument, int index) {
  return std::string(argument.name) + ".stride_bytes[" + std::to_string(index) + "]";
}

// The functions that compute see the fault, the queries do not.
void ExpectOfMemory(const std::string& what, Functions functions, const Spoil& spoil, etalon_status status,
                    const std::string& field) {
  Expect(what, functions & kComputing, spoil, status, field);
  Expect(what, functions & ~kComputing, spoil, ETALON_OK, "");
}

// `change` is done to the tensor of the argument.
void ExpectOfTensor(const std::string& what, const Argument& argument,
                    const std::function<void(etalon_tensor&)>& change, etalon_status status, const std::string& field) {
  ExpectOfMemory(what, argument.functions, [&](Trial& t) { change(t.*argument.tensor); }, status, field);
}

bool OfStates(const Argument& argument) {
  return argument.tensor == &Trial::m || argument.tensor == &Trial::l || argument.tensor == &Trial::o;
}

int64_t ElementBytes(const etalon_tensor& tensor) { return static_cast<int64_t>(etalon_dtype_bytes(tensor.dtype)); }

TEST_CASE("errors: data that is NULL or misaligned") {
  for (const Argument& argument : Arguments()) {
    const std::string field = std::string(argument.name) + ".data";
    ExpectOfTensor("NULL", argument, [](etalon_tensor& t) { t.data = nullptr; }, ETALON_NULL_POINTER, field);
    for (int shift : {1, -1}) {
      ExpectOfTensor(
          "misaligned", argument, [&](etalon_tensor& t) { t.data = static_cast<char*>(t.data) + shift; },
          ETALON_MISALIGNED, field);
    }
    if (!argument.f32) continue;
    ExpectOfTensor(
        "half an element", argument, [](etalon_tensor& t) { t.data = static_cast<char*>(t.data) + 2; },
        ETALON_MISALIGNED, field);
  }
}

TEST_CASE("errors: strides that do not fit the element") {
  for (const Argument& argument : Arguments()) {
    if ((argument.functions & kComputing) == 0) continue;
    for (int i = 0; i < argument.rank; ++i) {
      for (int64_t odd : {1, -1, 2}) {
        if (odd == 2 && !argument.f32) continue;  // half an element
        // Blocks are 1 here: their stride counts for nothing in m and l, and in o it stands before the last.
        if (OfStates(argument) && i == 3) continue;
        ExpectOfTensor(
            "no multiple", argument, [&](etalon_tensor& t) { t.stride_bytes[i] += odd; }, ETALON_BAD_STRIDE,
            Stride(argument, i));
      }
    }
    const int last = argument.rank - 1;
    if (argument.tensor == &Trial::m || argument.tensor == &Trial::l) continue;
    for (int64_t factor : {0, 2, -1}) {
      ExpectOfTensor(
          "innermost", argument, [&](etalon_tensor& t) { t.stride_bytes[last] = factor * ElementBytes(t); },
          ETALON_BAD_STRIDE, Stride(argument, last));
    }
  }
}

// Whatever a stride says of a dimension of size 1, nothing moves along it.
TEST_CASE("errors: the stride of a size of 1 does not count") {
  for (int64_t stride : {int64_t{0}, int64_t{3}, int64_t{-1}, INT64_MIN, INT64_MAX}) {
    for (etalon_tensor Trial::* tensor : {&Trial::m, &Trial::l, &Trial::o}) {
      Expect(
          "blocks", kBlockStates | kMergeStates, [&](Trial& t) { (t.*tensor).stride_bytes[3] = stride; }, ETALON_OK,
          "");
    }
  }
}

TEST_CASE("errors: an output that reaches a byte twice") {
  for (const Argument& argument : Arguments()) {
    if (!argument.output || (argument.functions & kComputing) == 0) continue;
    // Of these the two inner strides are what etalon_states says, or of size 1.
    const int moving = OfStates(argument) ? 3 : argument.rank - 1;
    for (int i = 0; i < moving; ++i) {
      ExpectOfTensor(
          "stride 0", argument, [&](etalon_tensor& t) { t.stride_bytes[i] = 0; }, ETALON_OVERLAP, Stride(argument, i));
      // An element less than what is inside it.
      ExpectOfTensor(
          "too near", argument, [&](etalon_tensor& t) { t.stride_bytes[i] -= ElementBytes(t); }, ETALON_OVERLAP,
          Stride(argument, i));
      ExpectOfTensor(
          "too near, backwards", argument,
          [&](etalon_tensor& t) { t.stride_bytes[i] = ElementBytes(t) - t.stride_bytes[i]; }, ETALON_OVERLAP,
          Stride(argument, i));
    }
  }
  // Sorted by stride: batches inside heads are as good as the other way round, if they are distinct.
  const auto batches_inside = [](etalon_tensor& t, int64_t of_batch) {
    const int64_t inner = t.stride_bytes[1];
    t.stride_bytes[0] = of_batch == 0 ? inner : of_batch;
    t.stride_bytes[1] = kBatch * inner;
  };
  Expect("batches inside heads", kFused, [&](Trial& t) { batches_inside(t.out, 0); }, ETALON_OK, "");
  Expect(
      "batches inside heads, too near", kAttention, [&](Trial& t) { batches_inside(t.out, t.out.stride_bytes[1] - 2); },
      ETALON_OVERLAP, "args.out.stride_bytes[0]");
}

TEST_CASE("errors: inputs may repeat themselves and walk backwards") {
  for (const Argument& argument : Arguments()) {
    for (int i = 0; i < (OfStates(argument) ? 1 : argument.rank - 1); ++i) {
      if (!argument.output) {
        ExpectOfTensor("stride 0", argument, [&](etalon_tensor& t) { t.stride_bytes[i] = 0; }, ETALON_OK, "");
      }
      const auto backwards = [&](etalon_tensor& t) {
        t.data = static_cast<char*>(t.data) + t.stride_bytes[i] * (t.shape[i] - 1);
        t.stride_bytes[i] = -t.stride_bytes[i];
      };
      ExpectOfTensor("backwards", argument, backwards, ETALON_OK, "");
    }
  }
}

// Strides so large that an offset, the sum of offsets, the length or the address does not fit.
TEST_CASE("errors: tensors beyond all addresses") {
  for (const Argument& argument : Arguments()) {
    const Functions functions = argument.functions & kComputing;
    const auto expect = [&](const char* what, const std::function<void(etalon_tensor&)>& change,
                            const std::string& field) {
      Expect(what, functions, [&](Trial& t) { change(t.*argument.tensor); }, ETALON_OVERFLOW, field);
    };
    for (int i = 1; i < 3; ++i) {
      for (int64_t stride : {kLargest, INT64_MIN}) {
        const auto change = [&](etalon_tensor& t) {
          t.shape[i] = t.shape[i] < 3 ? 3 : t.shape[i];
          t.stride_bytes[i] = stride;
        };
        if (argument.rank > i + 1) expect("offset", change, Stride(argument, i));
      }
    }
    expect("sum", [](etalon_tensor& t) { t.stride_bytes[0] = INT64_MAX - ElementBytes(t) + 1; }, Stride(argument, 0));
    expect("below 0", [](etalon_tensor& t) { t.stride_bytes[0] = INT64_MIN; }, argument.name);
    const auto longest = [](etalon_tensor& t) {  // each end has an address
      t.data = reinterpret_cast<void*>(uintptr_t{1} << 63);
      t.stride_bytes[0] = -kLargest;
      t.stride_bytes[1] = kLargest;
      t.shape[1] = 2;
    };
    if (argument.tensor != &Trial::k && argument.tensor != &Trial::v) expect("length", longest, argument.name);
    expect("end", [](etalon_tensor& t) { t.data = reinterpret_cast<void*>(UINTPTR_MAX - 7); }, argument.name);
    const auto before = [](etalon_tensor& t) {
      t.data = reinterpret_cast<void*>(uintptr_t{8});
      t.stride_bytes[0] = -t.stride_bytes[0];
    };
    expect("begin", before, argument.name);
  }
}

// The strides of states: rows evenly spaced, o value_dim times as wide.
TEST_CASE("errors: states that are not spaced as they must be") {
  const int64_t row = 16, wide = row * kValueDim;
  struct Case {
    etalon_tensor Trial::* tensor;
    const char* name;
    int place;
    int64_t stride;
  };
  const auto spread = [&](Trial& t) {  // room between the rows, and two blocks
    for (etalon_tensor* s : {&t.m, &t.l, &t.o}) {
      const int64_t width = s == &t.o ? wide : row;
      s->stride_bytes[0] = kQHeads * kQLen * width + 64;
      s->stride_bytes[1] = kQLen * width;
      s->stride_bytes[2] = width;
      s->shape[3] = 2;
    }
    t.o.stride_bytes[3] = kValueDim * 4;
    t.k.shape[2] = t.v.shape[2] = 513;
    t.k.stride_bytes[2] = t.v.stride_bytes[2] = 0;
    t.desc.value.max_kv_len = 513;
    t.args.value.kv_lens = nullptr;
  };
  Expect("spread", kBlockStates | kMergeStates, spread, ETALON_OK, "");
  const Case cases[] = {
      {&Trial::m, "m", 1, kQLen * row + 4}, {&Trial::l, "l", 1, kQLen * row + 4},
      {&Trial::l, "l", 2, row - 4},         {&Trial::o, "o", 1, kQLen * wide + 4},
      {&Trial::o, "o", 2, wide - 4},        {&Trial::o, "o", 3, kValueDim * 4 + 4},
  };
  for (const Case& c : cases) {
    const Spoil spoil = [&](Trial& t) { spread(t), (t.*c.tensor).stride_bytes[c.place] = c.stride; };
    const std::string field = std::string("states->") + c.name + ".stride_bytes[" + std::to_string(c.place) + "]";
    Expect("uneven", kBlockStates, spoil, ETALON_BAD_STRIDE, field);
    Expect("uneven", kMergeStates, spoil, ETALON_BAD_STRIDE, "args." + field);
  }
  // Fits by itself, but not that of o.
  for (int64_t stride : {kLargest / 2, -kLargest / 2}) {
    const Spoil far = [&](Trial& t) {
      for (etalon_tensor* s : {&t.m, &t.l}) {
        s->data = reinterpret_cast<void*>(uintptr_t{1} << 62);
        s->stride_bytes[0] = s->stride_bytes[1] = 0;
        s->stride_bytes[2] = stride;
      }
    };
    Expect("far", kMergeStates, far, ETALON_OVERFLOW, "args.states->m.stride_bytes");
  }
  // The rows fit, and so do the heads of m; not the heads of o, or a head after the last row.
  const auto far_heads = [](int64_t stride, int64_t value_dim) {
    return [stride, value_dim](Trial& t) {
      for (etalon_tensor* s : {&t.m, &t.l}) {
        s->stride_bytes[0] = s->stride_bytes[1] = 0;
        s->stride_bytes[2] = stride;
      }
      t.o.shape[4] = t.out.shape[3] = value_dim;
    };
  };
  Expect("far heads of o", kMergeStates, far_heads(INT64_MAX / 12 / 4 * 4, kValueDim), ETALON_OVERFLOW,
         "args.states->m.stride_bytes");
  Expect("far heads", kMergeStates, far_heads(INT64_MAX / 5 / 4 * 8, 1), ETALON_OVERFLOW,
         "args.states->m.stride_bytes");
}

TEST_CASE("errors: arrays of lengths") {
  struct Array {
    Functions functions;
    const char* field;
    const int64_t** (*pointer)(Trial&);
  };
  const Array arrays[] = {
      {kWithArgs, "args.q_offsets", [](Trial& t) { return &t.args.value.q_offsets; }},
      {kWithArgs, "args.q_lens", [](Trial& t) { return &t.args.value.q_lens; }},
      {kWithArgs, "args.kv_lens", [](Trial& t) { return &t.args.value.kv_lens; }},
      {kSoftmax, "args.q_offsets", [](Trial& t) { return &t.softmax.value.q_offsets; }},
      {kSoftmax, "args.q_lens", [](Trial& t) { return &t.softmax.value.q_lens; }},
      {kSoftmax, "args.kv_lens", [](Trial& t) { return &t.softmax.value.kv_lens; }},
      {kSumming, "args.q_offsets", [](Trial& t) { return &t.sum.value.q_offsets; }},
      {kSumming, "args.q_lens", [](Trial& t) { return &t.sum.value.q_lens; }},
      {kSumming, "args.kv_lens", [](Trial& t) { return &t.sum.value.kv_lens; }},
  };
  for (const Array& array : arrays) {
    const auto at = [&](uintptr_t address) {
      return [address, &array](Trial& t) { *array.pointer(t) = reinterpret_cast<const int64_t*>(address); };
    };
    const uintptr_t free = reinterpret_cast<uintptr_t>(FreeMemory());
    Expect("misaligned", array.functions, at(free + 4), ETALON_MISALIGNED, array.field);
    Expect("misaligned", array.functions, at(free + 1), ETALON_MISALIGNED, array.field);
    Expect("beyond the end", array.functions, at(UINTPTR_MAX - 7), ETALON_OVERFLOW, array.field);
    Expect("not given", array.functions, at(0), ETALON_OK, "");
  }
}

TEST_CASE("errors: the workspace") {
  const std::vector<Row> rows = {
      {"NULL", kWithWorkspace, [](Trial& t) { t.pass.workspace = nullptr; }, ETALON_NULL_POINTER, "workspace"},
      {"NULL data", kWithWorkspace, [](Trial& t) { t.workspace.data = nullptr; }, ETALON_NULL_POINTER,
       "workspace.data"},
      {"a byte too small", kWithWorkspace, [](Trial& t) { --t.workspace.bytes; }, ETALON_SMALL_WORKSPACE,
       "workspace.bytes"},
      {"no bytes", kWithWorkspace, [](Trial& t) { t.workspace.bytes = 0; }, ETALON_SMALL_WORKSPACE, "workspace.bytes"},
      {"larger", kWithWorkspace, [](Trial& t) { t.workspace.bytes += 100; }, ETALON_OK, ""},
      {"misaligned", kWithWorkspace, [](Trial& t) { t.workspace.data = static_cast<char*>(t.workspace.data) + 32; },
       ETALON_MISALIGNED, "workspace.data"},
      {"misaligned", kWithWorkspace, [](Trial& t) { t.workspace.data = static_cast<char*>(t.workspace.data) + 1; },
       ETALON_MISALIGNED, "workspace.data"},
      {"beyond the end", kWithWorkspace, [](Trial& t) { t.workspace.data = reinterpret_cast<void*>(UINTPTR_MAX - 63); },
       ETALON_OVERFLOW, "workspace.bytes"},
  };
  Expect(rows);
}

}  // namespace
}  // namespace etalon::test
