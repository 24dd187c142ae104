// Functions without descriptors, and the _init functions, on any numbers.
#include <cmath>

#include "tests/fuzz/elements.h"
#include "tests/fuzz/expect.h"
#include "tests/fuzz/run.h"
#include "tests/support/host_environment.h"

namespace etalon::fuzz {
namespace {

int64_t AnyNumber(Bytes* in) {
  switch (in->Below(4)) {
    case 0:
      return in->Below(9);
    case 1:
      return in->Below(65536) - 100;
    case 2:
      return int64_t{1} << in->Below(63);
    default:
      return in->Pick<int64_t>({-1, INT64_MIN, INT64_MAX, INT64_MAX / 2, INT32_MAX, INT32_MIN, 1000003});
  }
}

int32_t Small(int64_t number) { return static_cast<int32_t>(static_cast<uint64_t>(number) & 0xFFFFFFFFu); }

int64_t ElementBytes(int32_t dtype) {
  if (dtype == ETALON_BOOL || dtype == ETALON_BITS) return 1;
  return dtype == ETALON_F32 ? 4 : dtype == ETALON_F16 || dtype == ETALON_BF16 ? 2 : 0;
}

void TensorInit(Bytes* in) {
  Arena arena;
  Block* block = arena.Add("tensor", sizeof(etalon_tensor));
  etalon_tensor* tensor = in->OneIn(16) ? nullptr : reinterpret_cast<etalon_tensor*>(block->data());
  const int32_t dtype = in->OneIn(6) ? Small(AnyNumber(in)) : 1 + static_cast<int32_t>(in->Below(3));
  const int32_t rank = in->OneIn(6) ? Small(AnyNumber(in)) : 1 + static_cast<int32_t>(in->Below(5));
  const bool good_rank = rank >= 1 && rank <= ETALON_MAX_RANK;
  Block* shape = arena.Add("shape", good_rank ? static_cast<size_t>(rank) * sizeof(int64_t) : 0);
  const int64_t element = ElementBytes(dtype);
  Faults faults;
  bool empty = false;
  Wide bytes = element;
  for (int32_t i = 0; good_rank && i < rank; ++i) {
    const int64_t size = in->OneIn(6) ? AnyNumber(in) : in->Below(9);
    shape->Put(static_cast<size_t>(i) * sizeof size, size);
    if (size < 0) faults.Must(ETALON_BAD_SHAPE);
    empty = empty || size == 0;
    if (size > 0 && bytes <= INT64_MAX) bytes *= size;
  }
  if (bytes > INT64_MAX) faults.May(ETALON_OVERFLOW);
  if (bytes > INT64_MAX && !empty) faults.Must(ETALON_OVERFLOW);
  if (element == 0) faults.Must(ETALON_BAD_DTYPE);
  if (!good_rank) faults.Must(ETALON_BAD_RANK);
  const int64_t* sizes = in->OneIn(16) ? nullptr : reinterpret_cast<const int64_t*>(shape->data());
  if (tensor == nullptr || sizes == nullptr) faults.Must(ETALON_NULL_POINTER);
  block->Remember();
  int data = 0;
  std::string wrong;
  const ErrorFunction init = [&](etalon_error* error) {
    return etalon_tensor_init(tensor, &data, dtype, rank, sizes, error);
  };
  const etalon_status status = Answer(!in->OneIn(4), "default", init, &wrong);
  if (!wrong.empty()) Stop("tensor_init: " + wrong);
  const std::string disagrees = faults.Disagrees(status);
  if (!disagrees.empty()) Stop("tensor_init: " + disagrees);
  if (status != ETALON_OK) {
    if (!block->Change().empty()) Stop("tensor_init has refused, but " + block->Change());
    return;
  }
  etalon_tensor want = {};
  want.data = &data;
  want.dtype = dtype;
  want.rank = rank;
  Wide stride = element;
  for (int32_t i = rank; i-- > 0; stride *= sizes[i]) {
    want.shape[i] = sizes[i];
    if (empty) stride = element;  // any will do where no element is
    want.stride_bytes[i] = empty ? tensor->stride_bytes[i] : static_cast<int64_t>(stride);
  }
  if (std::memcmp(&want, tensor, sizeof want) != 0) Stop("tensor_init has made another tensor");
}

// An _init function with any size; that of the first version was `first`.
template <typename Descriptor>
void Init(Bytes* in, const char* name, etalon_status (*init)(Descriptor*, size_t), size_t first = sizeof(Descriptor)) {
  const size_t sizes[] = {sizeof(Descriptor), sizeof(Descriptor) + 8, 4096, first - 1, 0, 4097, SIZE_MAX, first};
  const size_t size = in->Pick(sizes);
  const bool good = size >= first && size <= 4096;
  Arena arena;
  Block* block = arena.Add(name, good ? size : sizeof(Descriptor));
  block->Remember();
  const bool null = in->OneIn(8);
  const etalon_status status = init(null ? nullptr : reinterpret_cast<Descriptor*>(block->data()), size);
  if ((status == ETALON_OK) != (good && !null)) Stop(std::string(name) + "_init: " + etalon_status_name(status));
  if (status != ETALON_OK) {
    const bool right = (null && status == ETALON_NULL_POINTER) || (!good && status == ETALON_BAD_STRUCT_SIZE);
    if (!right || !block->Change().empty()) Stop(std::string(name) + "_init has refused wrongly");
    return;
  }
  if (!block->Overrun().empty() || block->Get<size_t>() != size) Stop(std::string(name) + "_init");
}

void Slopes(Bytes* in) {
  int64_t heads = in->Pick<int64_t>({0, -1, INT64_MIN, 0});
  if (!in->OneIn(2)) heads += 1 + in->Below(600);
  Arena arena;
  Block* block = arena.Add("slopes", heads < 1 ? 0 : static_cast<size_t>(heads) * sizeof(float));
  block->Remember();
  float* slopes = in->OneIn(8) ? nullptr : reinterpret_cast<float*>(block->data());
  Faults faults;
  if (slopes == nullptr) faults.Must(ETALON_NULL_POINTER);
  if (heads < 1) faults.Must(ETALON_NO_HEADS);
  std::string wrong;
  const ErrorFunction f = [&](etalon_error* error) { return etalon_alibi_slopes(heads, slopes, error); };
  const bool wants_error = !in->OneIn(4);
  const etalon_status status = Answer(wants_error, test::kHostEnvironments[in->Below(5)], f, &wrong);
  if (!wrong.empty()) Stop("alibi_slopes: " + wrong);
  const std::string disagrees = faults.Disagrees(status);
  if (!disagrees.empty()) Stop("alibi_slopes: " + disagrees);
  if (!(status == ETALON_OK ? block->Overrun() : block->Change()).empty()) Stop("alibi_slopes has written elsewhere");
  for (int64_t h = 0; status == ETALON_OK && h < heads; ++h) {
    if (slopes[h] != StandardSlope(h, heads)) {
      Stop("slope " + std::to_string(h) + " of " + std::to_string(heads) + " heads");
    }
  }
}

void Inits(Bytes* in) {
  switch (in->Below(9)) {
    case 0:
      return Init(in, "attention_desc", etalon_attention_desc_init);
    case 1:
      return Init(in, "attention_args", etalon_attention_args_init, offsetof(etalon_attention_args, kv_firsts));
    case 2:
      return Init(in, "plan_info", etalon_plan_info_init);
    case 3:
      return Init(in, "softmax_args", etalon_softmax_args_init);
    case 4:
      return Init(in, "weighted_sum_args", etalon_weighted_sum_args_init);
    case 5:
      return Init(in, "merge_args", etalon_merge_args_init);
    case 6:
      return Init(in, "merge_states_args", etalon_merge_states_args_init);
    case 7:
      return Init(in, "key_source", etalon_key_source_init);
    default:
      return Init(in, "mask_args", etalon_mask_args_init);
  }
}

void Numbers(Bytes* in) {
  const int64_t n = AnyNumber(in);
  const int64_t blocks = n <= 0 ? 0 : static_cast<int64_t>((Wide{n} + 511) / 512);
  if (etalon_num_blocks(n) != blocks) Stop("num_blocks of " + std::to_string(n));
  if (n >= 1) {
    const float scale = static_cast<float>(1.0 / std::sqrt(static_cast<double>(n)));
    if (etalon_default_scale(n) != scale) Stop("default_scale of " + std::to_string(n));
  }
  const int32_t small = Small(n);
  if (etalon_dtype_bytes(small) != static_cast<size_t>(ElementBytes(small)))
    Stop("dtype_bytes of " + std::to_string(small));
  const bool known = small >= 0 && small <= ETALON_OUT_OF_MEMORY;
  if ((std::strncmp(etalon_status_name(small), "ETALON_", 7) == 0) != known) Stop("status_name");
  if (etalon_status_text(small)[0] == '\0') Stop("status_text");

  etalon_target target = {nullptr, 77, 77};
  const bool exists = small >= 0 && small < etalon_num_targets();
  const etalon_status status = etalon_get_target(small, &target);
  if (status != (exists ? ETALON_OK : ETALON_BAD_VALUE)) Stop("get_target of " + std::to_string(small));
  if (exists && (target.missing & ~target.required) != 0) Stop("get_target: a feature is missing that is not required");
  if (exists && target.missing != (target.required & ~etalon_cpu_features())) Stop("get_target: another CPU");
  if (!exists && target.missing != 77) Stop("get_target has refused and written");
  if (etalon_get_target(0, nullptr) != ETALON_NULL_POINTER) Stop("get_target of NULL");
  const uint64_t bits = static_cast<uint64_t>(n);
  const bool one_bit = bits != 0 && (bits & (bits - 1)) == 0;
  if (!one_bit && etalon_cpu_feature_name(bits) != nullptr) Stop("cpu_feature_name of " + std::to_string(bits));
  if (one_bit && (etalon_cpu_features() & bits) != 0 && etalon_cpu_feature_name(bits) == nullptr) {
    Stop("a feature of this CPU has no name");
  }
}

}  // namespace

void RunSmallFunctions(Bytes* in) {
  switch (in->Below(4)) {
    case 0:
      return TensorInit(in);
    case 1:
      return Inits(in);
    case 2:
      return Numbers(in);
    default:
      return Slopes(in);
  }
}

}  // namespace etalon::fuzz
