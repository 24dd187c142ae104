#include "tests/kernels/random_rows.h"

#include <algorithm>
#include <cmath>

#include "tests/kernels/kernel_test.h"

namespace etalon::test {

ByteVector RandomSoftmaxRows(uint64_t seed, const KernelTable& table, std::string* text) {
  Random random(seed);
  const int64_t n = AnyRows(&random), num_keys = AnyKeys(&random) / (1 + n / 20);
  const bool in_place = OneIn(&random, 3), masked = OneIn(&random, 2), spans = OneIn(&random, 2),
             nulls = OneIn(&random, 4);
  const int64_t mask_stride = OneOf(&random, {1, 1, 2, -1, 0}), stride = num_keys + random.Below(5);
  Rows s(n, num_keys, stride * 4, DType::kF32, random.Below(8)),
      w(n, num_keys, stride * 4, DType::kF32, random.Below(8));
  const Filling filling = AnyFilling(&random);
  s.Fill(filling, &random);
  const int64_t absent = random.Below(3);
  for (int64_t r = 0; r < n && absent > 0; ++r) {
    for (int64_t j = 0; j < num_keys; ++j) {
      if (OneIn(&random, absent == 1 ? 2 : 20)) StoreElement(DType::kF32, s.at(r), static_cast<size_t>(j), -kInfinity);
    }
  }
  w.Overwrite(kUnwritten);
  const int64_t last = std::max<int64_t>(0, num_keys - 1) * mask_stride;
  ByteVector mask(static_cast<size_t>(std::abs(last) + 1));
  for (unsigned char& m : mask) m = static_cast<unsigned char>(OneIn(&random, 3) ? 0 : 3);
  std::vector<float> lse(static_cast<size_t>(n), 7.0f);
  std::vector<SoftmaxRow> rows;
  for (int64_t r = 0; r < n; ++r) {
    SoftmaxRow row = {};
    row.s = reinterpret_cast<const float*>(s.at(r));
    row.w = reinterpret_cast<float*>(in_place ? s.at(r) : w.at(r));
    row.lse = nulls && OneIn(&random, 2) ? nullptr : &lse[static_cast<size_t>(r)];
    row.span = !spans              ? Span{0, num_keys}
               : OneIn(&random, 4) ? NoKeys(&random, 0, num_keys)
                                   : SomeKeys(&random, 0, num_keys);
    row.mask = masked && !OneIn(&random, 4) ? mask.data() + std::max<int64_t>(0, -last) : nullptr;
    rows.push_back(row);
  }
  *text = "rows " + Number(n) + " keys " + Number(num_keys) + " filling " + Number(static_cast<int64_t>(filling)) +
          (in_place ? " in place" : "") + (spans ? " spans" : "") + (masked ? " mask/" + Number(mask_stride) : "");
  const SoftmaxArgs args = {rows.data(), rows.size(), num_keys, mask_stride};
  InEnvironment([&] { table.softmax(args); });
  ByteVector written = (in_place ? s : w).Copy();
  Append(lse, &written);
  return written;
}

ByteVector RandomWeightedSumRows(uint64_t seed, const KernelTable& table, std::string* text) {
  Random random(seed);
  const int64_t n = AnyRows(&random), num_keys = AnyKeys(&random) / (1 + n / 8), value_dim = AnyDim(&random);
  const DType v_type = AnyType(&random), out_type = AnyType(&random);
  const int64_t v_size = static_cast<int64_t>(ElementSize(v_type)),
                out_size = static_cast<int64_t>(ElementSize(out_type));
  Rows v(num_keys, value_dim, AnyStride(&random, value_dim * v_size, v_size, num_keys), v_type, random.Below(8));
  const Filling v_filling = AnyFilling(&random), w_filling = AnyFilling(&random);
  v.Fill(v_filling, &random);
  Rows w(n, num_keys, (num_keys + random.Below(5)) * 4, DType::kF32, random.Below(8));
  w.Fill(w_filling, &random);
  Rows out(n, value_dim, (value_dim + random.Below(5)) * out_size * (OneIn(&random, 3) ? -1 : 1), out_type,
           random.Below(8));
  out.Overwrite(kUnwritten);
  const bool masked = OneIn(&random, 2), spans = OneIn(&random, 2), causal = OneIn(&random, 2);
  const int64_t mask_stride = OneOf(&random, {1, 1, 2, -1, 0}), last = std::max<int64_t>(0, num_keys - 1) * mask_stride;
  ByteVector mask(static_cast<size_t>(std::abs(last) + 1));
  for (unsigned char& m : mask) m = static_cast<unsigned char>(OneIn(&random, 3) ? 0 : 3);
  std::vector<WeightedSumRow> rows;
  for (int64_t r = 0; r < n; ++r) {
    WeightedSumRow row = {};
    row.w = reinterpret_cast<const float*>(w.at(r));
    row.out = out.at(r);
    row.span = {0, num_keys};
    if (spans) row.span = OneIn(&random, 4) ? NoKeys(&random, 0, num_keys) : SomeKeys(&random, 0, num_keys);
    if (spans && causal) row.span = {0, std::min(num_keys, num_keys / 2 + r)};
    row.mask = masked && !OneIn(&random, 4) ? mask.data() + std::max<int64_t>(0, -last) : nullptr;
    rows.push_back(row);
  }
  *text = "rows " + Number(n) + " keys " + Number(num_keys) + " value_dim " + Number(value_dim) + " v " + Name(v_type) +
          "/" + Number(v.stride_bytes()) + " filling " + Number(static_cast<int64_t>(v_filling)) + " w filling " +
          Number(static_cast<int64_t>(w_filling)) + " out " + Name(out_type) + (spans ? " spans" : "") +
          (masked ? " mask/" + Number(mask_stride) : "");
  const ScratchMemory scratch(table, 0, value_dim);
  WeightedSumArgs args = {};
  args.rows = rows.data();
  args.num_rows = rows.size();
  args.v = v.at(0);
  args.v_stride_bytes = v.stride_bytes();
  args.v_type = v_type;
  args.out_type = out_type;
  args.num_keys = num_keys;
  args.mask_stride_bytes = mask_stride;
  args.value_dim = static_cast<size_t>(value_dim);
  args.scratch = scratch.get();
  InEnvironment([&] { table.weighted_sum(args); });
  return out.Copy();
}

ByteVector RandomMergeRows(uint64_t seed, const KernelTable& table, std::string* text) {
  Random random(seed);
  const int64_t n = AnyRows(&random), value_dim = AnyDim(&random);
  const DType type = AnyType(&random);
  const int64_t size = static_cast<int64_t>(ElementSize(type)), shift = random.Below(8);
  const int64_t stride = (value_dim + random.Below(5)) * size * (OneIn(&random, 3) ? -1 : 1);
  Rows out1(n, value_dim, stride, type, shift), out2(n, value_dim, stride, type, shift),
      out(n, value_dim, stride, type, shift);
  out1.Fill(AnyFilling(&random), &random);
  out2.Fill(AnyFilling(&random), &random);
  out.Overwrite(kUnwritten);
  std::vector<float> lse1 = random.Normals(n, 5.0f), lse2 = random.Normals(n, 5.0f), lse(static_cast<size_t>(n), 7.0f);
  const int64_t odd = random.Below(3);
  for (std::vector<float>* values : {&lse1, &lse2}) {
    for (float& x : *values) {
      if (OneIn(&random, 4)) x = -kInfinity;
      if (odd == 0 && OneIn(&random, 4))
        x = OneOf(&random, {kInfinity, NAN, FromBits(0xFFA00001u), 1e38f, -1e38f, 1e-40f, 0.0f, -0.0f});
    }
  }
  const int64_t into = random.Below(4), lse_into = random.Below(4);
  MergeArgs args = {};
  args.num_rows = static_cast<size_t>(n);
  args.value_dim = static_cast<size_t>(value_dim);
  args.type = type;
  args.out1 = out1.at(0);
  args.out2 = out2.at(0);
  Rows* target = into == 0 ? &out1 : into == 1 ? &out2 : &out;
  args.out = target->at(0);
  args.out1_stride_bytes = args.out2_stride_bytes = args.out_stride_bytes = stride;
  args.lse1 = lse1.data();
  args.lse2 = lse2.data();
  std::vector<float>* lse_target = lse_into == 0 ? &lse1 : lse_into == 1 ? &lse2 : &lse;
  args.lse = lse_into == 3 ? nullptr : lse_target->data();
  *text = "rows " + Number(n) + " value_dim " + Number(value_dim) + " " + Name(type) + "/" + Number(stride) + " into " +
          Number(into) + " lse into " + Number(lse_into);
  InEnvironment([&] { table.merge(args); });
  ByteVector written = target->Copy();
  Append(*lse_target, &written);
  return written;
}

}  // namespace etalon::test
