#include "tests/api/guarded_mask.h"

#include <algorithm>

namespace etalon::test {

Layout AnyLayout(const OptionsCase& c, size_t number) {
  const Layout layouts[] = {Packed, Padded, Backward};
  return layouts[(static_cast<size_t>(c.q_len + c.head_dim) + number) % 3];
}

void GuardedMask::Spread(const std::vector<uint8_t>& bytes, const Shape& shape, const Shape& strides, int32_t dtype) {
  int64_t below = 0, above = Count(shape) == 0 ? 0 : 1;
  for (size_t d = 0; d < shape.size() && above > 0; ++d) {
    (strides[d] < 0 ? below : above) += (shape[d] - 1) * (strides[d] < 0 ? -strides[d] : strides[d]);
  }
  before_.assign(static_cast<size_t>(below + above), 0x5A);
  for (size_t i = 0; i < bytes.size(); ++i) {
    int64_t rest = static_cast<int64_t>(i), offset = below;
    for (size_t d = shape.size(); d-- > 0; rest /= shape[d]) offset += rest % shape[d] * strides[d];
    before_[static_cast<size_t>(offset)] = bytes[i];
  }
  dense_ = std::make_unique<GuardBuffer>(before_.size(), Guard::kAbove);
  if (!before_.empty()) std::memcpy(dense_->data(), before_.data(), before_.size());
  REQUIRE(etalon_tensor_init(&tensor_, dense_->data() + below, dtype, 4, shape.data(), nullptr) == ETALON_OK);
  for (size_t d = 0; d < shape.size(); ++d) tensor_.stride_bytes[d] = strides[d];
}

GuardedMask::GuardedMask(const OptionsCase& c, size_t source) {
  const MaskCase& mask = c.sources[source].mask;
  const MaskKind form = mask.form;
  if (form == MaskKind::kNone) return;
  if (form != MaskKind::kSegments && form != MaskKind::kBlocks) {
    const bool bits = form == MaskKind::kBits || form == MaskKind::kPreparedBits;
    const int64_t kv_len = mask.shape[3];
    Shape shape = mask.shape;
    std::vector<uint8_t> bytes = mask.shows;
    if (bits) {
      shape[3] = (kv_len + 7) / 8;
      bytes.assign(static_cast<size_t>(Count(shape)), 0);
      for (size_t i = 0; i < mask.shows.size(); ++i) {
        const size_t row = i / static_cast<size_t>(kv_len), column = i % static_cast<size_t>(kv_len);
        const unsigned bit = mask.shows[i] != 0 ? 1u << column % 8 : 0u;
        bytes[row * static_cast<size_t>(shape[3]) + column / 8] |= static_cast<uint8_t>(bit);
      }
      // Bits beyond the keys are nobody's.
      for (size_t i = static_cast<size_t>(shape[3]); kv_len % 8 != 0 && i <= bytes.size();
           i += static_cast<size_t>(shape[3])) {
        bytes[i - 1] |= static_cast<uint8_t>(0xFFu << kv_len % 8);
      }
    }
    Spread(bytes, shape, AnyLayout(c, source)(shape), bits ? ETALON_BITS : ETALON_BOOL);
    const int64_t columns = c.LongestKv(source);
    if (!bits && shape[3] == 1 && columns > 1 && shape[2] % 2 == 1) {  // as good as a size of 1
      tensor_.shape[3] = columns;
      tensor_.stride_bytes[3] = 0;
    }
  }
  given_ = form == MaskKind::kBool || form == MaskKind::kBits;
  if (!given_) Prepare(c, source);
}

void GuardedMask::Prepare(const OptionsCase& c, size_t source) {
  const MaskCase& mask = c.sources[source].mask;
  etalon_mask_args args;
  REQUIRE(etalon_mask_args_init(&args, sizeof args) == ETALON_OK);
  args.batch = mask.shape[0];
  args.num_heads = mask.shape[1];
  args.q_len = c.LongestQ();
  args.kv_len = c.LongestKv(source);
  if (dense_ != nullptr) {
    args.mask = &tensor_;
  } else if (mask.form == MaskKind::kSegments) {
    static const int64_t nobody = 0;  // to point to where there are none
    args.q_segments = mask.q_segments.empty() ? &nobody : mask.q_segments.data();
    args.kv_segments = mask.kv_segments.empty() ? &nobody : mask.kv_segments.data();
  } else {
    args.q_block = mask.q_block;
    args.kv_block = mask.kv_block;
    args.block_starts = mask.block_starts.data();
    args.blocks = mask.blocks.data();
  }
  etalon_error error;
  size_t bytes = 0;
  etalon_status status = etalon_mask_bytes(&args, &bytes, &error);
  REQUIRE_MESSAGE(status == ETALON_OK, std::string(error.text));
  memory_ = std::make_unique<GuardBuffer>(bytes, Guard::kAbove, 0);
  const etalon_workspace memory = {memory_->data(), bytes};
  status = etalon_mask_prepare(&args, &memory, &prepared_, &error);
  REQUIRE_MESSAGE(status == ETALON_OK, std::string(error.text));
  CHECK(static_cast<const void*>(prepared_) == memory.data);
  CHECK(memory_->Intact());
  memory_before_.assign(memory_->data(), memory_->data() + bytes);
  dense_.reset();  // nobody needs it any more
}

bool GuardedMask::Intact() const {
  if (dense_ != nullptr && !(dense_->Intact() && std::equal(before_.begin(), before_.end(), dense_->data())))
    return false;
  return memory_ == nullptr ||
         (memory_->Intact() && std::equal(memory_before_.begin(), memory_before_.end(), memory_->data()));
}

}  // namespace etalon::test
