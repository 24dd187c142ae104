// The field cases of memory and of counted work. Names begin with the id.
#include <cmath>
#include <cstring>
#include <string>

#include "tests/api/api_test.h"

namespace etalon::test {
namespace {

using Kind = Loop::Kind;

TEST_CASE("MEM-2: the queried bytes of workspace are enough, for decode") {
  for (const KernelTable& table : Tables()) {
    const ApiCase c = TrioCase({1, 4, 2, 1, 4096, 64, 64});
    const AttentionResult expected = Run(c, table);
    ApiCall call(c, table);
    for (int32_t workers = 1; workers <= 96; ++workers) {
      // Each is a fresh workspace, once with an inaccessible page behind it, once with one before it and bytes behind
      // it that must stay as they are.
      const Guard guard = workers % 2 == 0 ? Guard::kAbove : Guard::kBelow;
      const Form form = workers % 3 == 0 ? Form::kOneCall : workers % 3 == 1 ? Form::kTasks : Form::kExecute;
      const Kind kind = workers % 16 == 0 ? Kind::kThreads : Kind::kShuffled;
      const How how = {form, kind, workers, 0xFF, guard};
      INFO(std::string(table.name), " ", Describe(how));
      call.out.Restore();
      call.lse.Restore();
      CHECK(call.Run(how, nullptr) == ETALON_OK);
      CHECK(Difference(call.Result(), expected) == "");
    }
    CHECK(call.Damage() == "");
  }
}

TEST_CASE("MEM-2: the queried bytes of workspace are enough, for prefill") {
  for (const KernelTable& table : Tables()) {
    const ApiCase c = TrioCase({1, 4, 2, 64, 4096, 64, 64});
    const AttentionResult expected = Run(c, table);
    CHECK(Difference(Run(c, table, {Form::kTasks, Kind::kThreads, 96}), expected) == "");
    // The scratch of the last worker ends the workspace: for every count, one task of it.
    ApiCall call(c, table);
    for (int32_t workers = 1; workers <= 96; ++workers) {
      etalon_attention_desc desc = call.PlanDesc();
      desc.max_workers = workers;
      etalon_plan plan;
      CHECK(etalon_plan_init(&plan, &desc, nullptr) == ETALON_OK);
      GuardBuffer memory(etalon_plan_workspace_bytes(&plan), Guard::kAbove, 0);
      const etalon_workspace workspace = {memory.data(), memory.bytes()};
      int64_t num_tasks;
      INFO(std::string(table.name), " workers ", workers);
      CHECK(etalon_begin(&plan, &call.args, &workspace, &num_tasks, nullptr) == ETALON_OK);
      if (num_tasks < 64) continue;  // a task would be a large part of all the work
      CHECK(etalon_run(memory.data(), num_tasks - 1, num_tasks, workers - 1) == ETALON_OK);
    }
    CHECK(call.Damage() == "");
  }
}

TEST_CASE("MEM-4: what workspace and outputs held before does not matter") {
  for (const KernelTable& table : Tables()) {
    ApiCase c = TrioCase({3, 2, 1, 1, 9, 8, 8});
    c.kv_lens = {1, 5, 9};
    const AttentionResult expected = Expected(c);
    for (float word : expected.lse) CHECK(std::isfinite(word));
    for (How how : EveryForm()) {
      for (unsigned char before : {0xFF, 0x00}) {
        how.fill = before;
        ApiCall call(c, table);
        std::memset(call.out.tensor.data, before, 3 * 2 * 8 * sizeof(float));
        std::memset(call.lse.tensor.data, before, 3 * 2 * sizeof(float));
        INFO(std::string(table.name), " ", Describe(how), " before ", static_cast<int>(before));
        CHECK(call.Run(how, nullptr) == ETALON_OK);
        CHECK(Difference(call.Result(), expected) == "");
      }
    }
  }
}

TEST_CASE("MEM-5: rows more than 4 GiB apart") {
  constexpr int64_t kStride = ((int64_t{1} << 30) + 16) * 4;
  const float k[] = {0.0f, static_cast<float>(std::log(2.0)), static_cast<float>(std::log(4.0))};
  GuardBuffer keys = GuardBuffer::Sparse(2 * kStride + 4), values = GuardBuffer::Sparse(2 * kStride + 4);
  for (int64_t row = 0; row < 3; ++row) {
    const float v = static_cast<float>(row + 1);
    std::memcpy(keys.data() + row * kStride, &k[row], sizeof v);
    std::memcpy(values.data() + row * kStride, &v, sizeof v);
  }
  ApiCase c;
  c.size.kv_len = 3;
  c.q = F32({1.0f});
  c.k = c.v = F32({0, 0, 0});
  c.scale = 1.0f;
  for (const KernelTable& table : Tables()) {
    for (int64_t direction : {1, -1}) {
      for (const How& how : EveryForm()) {
        ApiCall call(c, table);
        for (etalon_tensor* tensor : {&call.k.tensor, &call.v.tensor}) {
          GuardBuffer& memory = tensor == &call.k.tensor ? keys : values;
          tensor->data = memory.data() + (direction < 0 ? 2 * kStride : 0);
          tensor->stride_bytes[2] = direction * kStride;
        }
        INFO(std::string(table.name), " ", Describe(how), " direction ", direction);
        CHECK(call.Run(how, nullptr) == ETALON_OK);
        CHECK(Near(call.Result().out, {17.0 / 7}, 3e-6) == "");
        CHECK(Near(call.Result().lse, {std::log(7.0)}, 1e-5) == "");
      }
    }
  }
}

TEST_CASE("MEM-6: pointers that are aligned to their element and no more") {
  for (const KernelTable& table : Tables()) {
    for (DType type : {DType::kF32, DType::kF16, DType::kBF16}) {
      for (int64_t dim : {5, 64}) {
        ApiCase c = TrioCase({1, 2, 1, 3, 140, dim, dim});
        c.q = Array(type, Ramp(3, 1, c.q.size()));
        c.k = Array(type, Ramp(5, 2, c.k.size()));
        c.v = Array(type, Ramp(7, 3, c.v.size()));
        c.out_type = type;
        Place aligned, one_off;
        aligned.offset = 0;
        one_off.offset = static_cast<int>(ElementSize(type));
        Places off = Everywhere(one_off);
        off.lse.offset = 4;
        INFO(std::string(table.name), " type ", static_cast<int>(type), " dim ", dim);
        const AttentionResult expected = Run(c, table, {}, Everywhere(aligned));
        CHECK(FormsReport(c, table, expected, off) == "");
      }
    }
  }
}

TEST_CASE("PRF-2: the workspace does not grow with the square of the length") {
  for (const KernelTable& table : Tables()) {
    for (int64_t dim : {64, 128, 256, 257, 320, 512}) {
      for (int32_t workers : {1, 8, 64}) {
        size_t before = 0;
        for (int64_t length = 1024; length <= 8192; length *= 2) {
          etalon_attention_desc desc;
          REQUIRE(etalon_attention_desc_init(&desc, sizeof desc) == ETALON_OK);
          desc.num_q_heads = 8;
          desc.num_kv_heads = 1;
          desc.head_dim = desc.value_dim = dim;
          desc.max_batch = 1;
          desc.max_q_len = desc.max_kv_len = length;
          desc.q_dtype = desc.k_dtype = desc.v_dtype = desc.out_dtype = ETALON_F32;
          desc.max_workers = workers;
          desc.target = table.name;
          etalon_plan plan;
          REQUIRE(etalon_plan_init(&plan, &desc, nullptr) == ETALON_OK);
          const size_t bytes = etalon_plan_workspace_bytes(&plan);
          INFO(std::string(table.name), " dim ", dim, " workers ", workers, " length ", length, ": ", bytes, " bytes");
          if (before > 0) CHECK(bytes <= (workers == 1 ? before : 2 * before));
          // A tile of rows and one of keys for each worker; with more than one, states of some tiles.
          if (workers == 1) CHECK(bytes < 2 * 32 * 1024 * static_cast<size_t>(dim));
          before = bytes;
        }
      }
    }
  }
}

}  // namespace
}  // namespace etalon::test
