// A KV cache in pages, as engines with many sequences keep it: new keys and values are appended to pages of a pool, and
// attention reads them where they are.
#include <cstdio>
#include <cstdlib>
#include <etalon/etalon.hpp>
#include <vector>

namespace {

constexpr int64_t kHeads = 8, kKvHeads = 2, kHeadDim = 64;
constexpr int64_t kPageLen = 16, kNumPages = 8, kMaxPages = 4;  // of the pool, and of a sequence
constexpr int64_t kPrompt = 37, kSteps = 20;

void Require(const etalon::Status& status) {
  if (status.ok()) return;
  std::fprintf(stderr, "%s\n", status.text());
  std::exit(1);
}

// What a model would compute: any numbers.
std::vector<float> SomeNumbers(int64_t count, int seed) {
  std::vector<float> numbers(static_cast<size_t>(count));
  for (size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<float>((i * 37 + seed * 11) % 64) / 32.0f - 1.0f;
  return numbers;
}

class Cache {
 public:
  Cache()
      : k_data_(kNumPages * kKvHeads * kPageLen * kHeadDim),
        v_data_(k_data_.size()),
        k_(k_data_.data(), etalon::ElementType::kF16, {kNumPages, kKvHeads, kPageLen, kHeadDim}),
        v_(v_data_.data(), etalon::ElementType::kF16, {kNumPages, kKvHeads, kPageLen, kHeadDim}),
        page_table_(kMaxPages, -1) {
    for (int32_t page = 0; page < kNumPages; ++page) free_pages_.push_back(page * 5 % kNumPages);  // any order
    places_.page_table = page_table_.data();
    places_.max_pages = kMaxPages;
  }

  // f32 keys and values [kKvHeads, count, kHeadDim] of the next tokens, stored as f16.
  void Append(const std::vector<float>& k, const std::vector<float>& v, int64_t count) {
    for (int64_t page = kv_len_ / kPageLen; page * kPageLen < kv_len_ + count; ++page) {
      if (page_table_[static_cast<size_t>(page)] >= 0) continue;
      page_table_[static_cast<size_t>(page)] = free_pages_.back();
      free_pages_.pop_back();
    }
    const etalon::Tensor new_k(k.data(), {1, kKvHeads, count, kHeadDim});
    const etalon::Tensor new_v(v.data(), {1, kKvHeads, count, kHeadDim});
    etalon::KvAppendDesc args;
    args.new_k = &new_k;
    args.new_v = &new_v;
    args.k = &k_;
    args.v = &v_;
    args.places = &places_;
    args.kv_lens = &kv_len_;
    Require(etalon::KvAppend(args));
    kv_len_ += count;
  }

  // q and out [kHeads, count, kHeadDim] of the last `count` tokens.
  void Attend(const std::vector<float>& q, int64_t count, std::vector<float>* out) {
    const etalon::Tensor q_tensor(q.data(), {1, kHeads, count, kHeadDim});
    const etalon::Tensor out_tensor(out->data(), {1, kHeads, count, kHeadDim});
    etalon::AttentionDesc desc;
    desc.right = 0;  // causal
    etalon::AttentionArgs args;
    args.q = &q_tensor;
    args.k = &k_;
    args.v = &v_;
    args.out = &out_tensor;
    args.q_offset = kv_len_ - count;
    args.kv_lens = &kv_len_;
    args.places = &places_;
    Require(etalon::Attention(desc, args, &memory_));
  }

  const std::vector<int32_t>& page_table() const { return page_table_; }

 private:
  std::vector<uint16_t> k_data_, v_data_;
  etalon::Tensor k_, v_;
  std::vector<int32_t> page_table_, free_pages_;
  etalon::KvPlaces places_;
  int64_t kv_len_ = 0;
  etalon::WorkspaceMemory memory_;
};

}  // namespace

int main() {
  Cache cache;
  std::vector<float> out(kHeads * kPrompt * kHeadDim);
  cache.Append(SomeNumbers(kKvHeads * kPrompt * kHeadDim, 1), SomeNumbers(kKvHeads * kPrompt * kHeadDim, 2), kPrompt);
  cache.Attend(SomeNumbers(kHeads * kPrompt * kHeadDim, 3), kPrompt, &out);
  for (int step = 0; step < kSteps; ++step) {
    cache.Append(SomeNumbers(kKvHeads * kHeadDim, step), SomeNumbers(kKvHeads * kHeadDim, step + 1), 1);
    cache.Attend(SomeNumbers(kHeads * kHeadDim, step + 2), 1, &out);
  }
  std::printf("pages");
  for (const int32_t page : cache.page_table()) std::printf(" %d", page);
  std::printf(", first channel of the last token %.6f", static_cast<double>(out[0]));
  // prints: pages 3 6 1 4, first channel of the last token 0.227365
  return 0;
}
