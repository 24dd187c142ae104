#include "bench/support/attention.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <tuple>
#include <utility>

#include "bench/support/checking.h"
#include "tests/support/generate.h"
#include "tests/support/reference.h"

namespace etalon::bench {
namespace {

DType InternalType(ElementType type) {
  return type == ElementType::kF16 ? DType::kF16 : type == ElementType::kBF16 ? DType::kBF16 : DType::kF32;
}

size_t BytesOf(const AttentionShape& s, int64_t heads, int64_t length, ElementType type) {
  return static_cast<size_t>(heads * length * s.head_dim * ElementBytes(type));
}

Span SpanOf(const AttentionShape& s, int64_t row) {
  const int64_t position = row + s.q_offset();
  const int64_t first = s.left < 0 ? 0 : std::max<int64_t>(0, position - s.left);
  const int64_t last = s.right < 0 ? s.kv_len : std::min(s.kv_len, position + s.right + 1);
  return {first, std::max(first, last)};
}

// Rows of one head, packed.
test::Array Packed(const Tensor& tensor, int64_t head, const std::vector<int64_t>& rows) {
  const int64_t channels = tensor.shape[3];
  test::Array array(InternalType(static_cast<ElementType>(tensor.dtype)), static_cast<int64_t>(rows.size()) * channels);
  for (size_t r = 0; r < rows.size(); ++r) {
    std::memcpy(array.at(static_cast<int64_t>(r) * channels), RowOf(tensor, head, rows[r]).data,
                static_cast<size_t>(channels * tensor.stride_bytes[3]));
  }
  return array;
}

test::AttentionCase CaseOf(const AttentionProblem& problem, int64_t head, const std::vector<int64_t>& rows) {
  const AttentionShape& s = problem.shape();
  const int64_t kv_head = head / (s.q_heads / s.kv_heads);
  std::vector<int64_t> tokens(static_cast<size_t>(s.kv_len));
  for (int64_t t = 0; t < s.kv_len; ++t) tokens[static_cast<size_t>(t)] = t;
  test::AttentionCase c;
  c.rows = static_cast<int64_t>(rows.size());
  c.head_dim = c.value_dim = s.head_dim;
  c.scale = etalon_default_scale(s.head_dim);
  c.q = Packed(problem.q(), head, rows);
  test::SourceData source;
  source.num_keys = s.kv_len;
  source.k = Packed(problem.k(), kv_head, tokens);
  source.v = Packed(problem.v(), kv_head, tokens);
  for (const int64_t row : rows) source.spans.push_back(SpanOf(s, row));
  c.sources.push_back(std::move(source));
  problem.extras().SetCase(head, rows, &c);
  return c;
}

}  // namespace

AttentionShape AttentionShape::Causal() const {
  AttentionShape shape = *this;
  shape.right = 0;
  return shape;
}

int64_t AttentionShape::VisiblePairs() const {
  int64_t pairs = 0;
  for (int64_t row = 0; row < q_len; ++row) {
    const Span span = SpanOf(*this, row);
    if (!extras.Masks()) pairs += span.last - span.first;
    for (int64_t t = span.first; extras.Masks() && t < span.last; ++t) pairs += extras.Shows(row, t) ? 1 : 0;
  }
  return pairs * q_heads;
}

void Require(const Status& status) {
  if (status.ok()) return;
  std::fprintf(stderr, "%s: %s\n", etalon_status_name(status.code()), status.text());
  std::exit(1);
}

int64_t ElementBytes(ElementType type) { return static_cast<int64_t>(etalon_dtype_bytes(static_cast<int32_t>(type))); }

const char* TypeName(ElementType type) {
  return type == ElementType::kF16 ? "f16" : type == ElementType::kBF16 ? "bf16" : "f32";
}

void FillNormal(Buffer* buffer, ElementType type, uint64_t seed) {
  // Large buffers repeat what they begin with, since making numbers would take longer than measuring. The period is
  // prime, so that no two rows of keys are alike.
  constexpr size_t kPeriod = 1000003;
  test::Random random(seed);
  const size_t element = static_cast<size_t>(ElementBytes(type)), n = buffer->bytes() / element;
  for (size_t i = 0; i < std::min(n, kPeriod); ++i) {
    StoreElement(InternalType(type), buffer->data(), i, random.Normal() * 0.8660254f);
  }
  char* const bytes = static_cast<char*>(buffer->data());
  for (size_t done = kPeriod; done < n; done += kPeriod) {
    std::memcpy(bytes + done * element, bytes, std::min(kPeriod, n - done) * element);
  }
}

Tensor RowOf(const Tensor& tensor, int64_t head, int64_t row) {
  Tensor view = HeadOf(tensor, head);
  view.data = static_cast<char*>(view.data) + row * tensor.stride_bytes[2];
  view.shape[2] = 1;
  return view;
}

Tensor HeadOf(const Tensor& tensor, int64_t head) {
  Tensor view = tensor;
  view.data = static_cast<char*>(tensor.data) + head * tensor.stride_bytes[1];
  view.shape[1] = 1;
  return view;
}

AttentionProblem::AttentionProblem(const AttentionShape& s, const std::string& target)
    : shape_(s),
      extras_(s.extras, s.q_heads, s.q_len, s.kv_len),
      target_(target),
      q_data_(BytesOf(s, s.q_heads, s.q_len, s.type)),
      k_data_(BytesOf(s, s.kv_heads, s.kv_len, s.type)),
      v_data_(BytesOf(s, s.kv_heads, s.kv_len, s.type)),
      out_data_(BytesOf(s, s.q_heads, s.q_len, ElementType::kF32)),
      q_(View(q_data_, s.type, s.q_heads, s.q_len)),
      k_(View(k_data_, s.type, s.kv_heads, s.kv_len)),
      v_(View(v_data_, s.type, s.kv_heads, s.kv_len)),
      out_(View(out_data_, ElementType::kF32, s.q_heads, s.q_len)) {
  FillNormal(&q_data_, s.type, 1);
  FillNormal(&k_data_, s.type, 2);
  FillNormal(&v_data_, s.type, 3);
  desc_.num_q_heads = s.q_heads;
  desc_.num_kv_heads = s.kv_heads;
  desc_.head_dim = desc_.value_dim = s.head_dim;
  desc_.max_batch = 1;
  desc_.max_q_len = s.q_len;
  desc_.max_kv_len = s.kv_len;
  desc_.q_dtype = desc_.k_dtype = desc_.v_dtype = static_cast<int32_t>(s.type);
  desc_.out_dtype = ETALON_F32;
  desc_.left = s.left;
  desc_.right = s.right;
  desc_.max_workers = s.workers;
  desc_.target = target_.c_str();
  extras_.SetDesc(&desc_);
  args_.q = &q_;
  args_.k = &k_;
  args_.v = &v_;
  args_.out = &out_;
  args_.q_offset = s.q_offset();
  extras_.SetArgs(&args_);
  if (s.page_len > 0) MakePages();
  Require(plan_.Init(desc_));
  workspace_.Reserve(plan_.workspace_bytes());
}

void AttentionProblem::MakePages() {
  const AttentionShape& s = shape_;
  const int64_t pages = (s.kv_len + s.page_len - 1) / s.page_len, row = s.head_dim * ElementBytes(s.type);
  const int64_t head = s.page_len * row, page = s.kv_heads * head;
  test::Random random(7);
  for (int64_t i = 0; i < pages; ++i) page_table_.push_back(static_cast<int32_t>(i));
  for (size_t i = page_table_.size(); i > 1; --i) {
    std::swap(page_table_[i - 1], page_table_[static_cast<size_t>(random.Below(static_cast<int64_t>(i)))]);
  }
  for (const auto& [from, to, pool] :
       {std::tuple<const Tensor&, std::unique_ptr<Buffer>*, std::unique_ptr<Tensor>*>{k_, &k_pages_, &k_pool_},
        {v_, &v_pages_, &v_pool_}}) {
    *to = std::make_unique<Buffer>(static_cast<size_t>(pages * page));
    char* const data = static_cast<char*>((*to)->data());
    for (int64_t h = 0; h < s.kv_heads; ++h) {
      for (int64_t t = 0; t < s.kv_len; ++t) {
        const int64_t id = page_table_[static_cast<size_t>(t / s.page_len)];
        std::memcpy(data + id * page + h * head + t % s.page_len * row, RowOf(from, h, t).data,
                    static_cast<size_t>(row));
      }
    }
    *pool = std::make_unique<Tensor>(data, s.type,
                                     std::initializer_list<int64_t>{pages, s.kv_heads, s.page_len, s.head_dim});
  }
  places_.page_table = page_table_.data();
  places_.max_pages = pages;
  args_.k = k_pool_.get();
  args_.v = v_pool_.get();
  args_.places = &places_;
  args_.kv_lens = &shape_.kv_len;
}

Tensor AttentionProblem::View(const Buffer& data, ElementType type, int64_t heads, int64_t length) const {
  const int64_t element = ElementBytes(type), row = shape_.head_dim * element;
  const int64_t head_stride = shape_.tokens_outermost ? row : length * row;
  const int64_t token_stride = shape_.tokens_outermost ? heads * row : row;
  return Tensor(data.data(), type, {1, heads, length, shape_.head_dim},
                {heads * length * row, head_stride, token_stride, element});
}

void AttentionProblem::Run(const etalon_parallel* parallel) {
  Require(plan_.Execute(args_, *workspace_.get(), parallel));
}

Check AttentionProblem::Judged() {
  std::memset(out_data_.data(), 0xFF, out_data_.bytes());  // NaN where nothing is written
  Run();
  const size_t d = static_cast<size_t>(shape_.head_dim);
  const std::vector<int64_t> rows = SomeOf(shape_.q_len);
  std::vector<int64_t> heads = {shape_.q_heads - 1};
  // Of long caches one head is enough: the check would else take longer than all the rest.
  constexpr int64_t kLong = int64_t{1} << 20;
  if (shape_.q_heads > 1 && shape_.kv_len * shape_.head_dim < kLong) heads.push_back(0);
  Judge judge;
  WorkspaceMemory memory;
  for (const int64_t head : heads) {
    const std::vector<double> exact = ExactAttention(*this, head, rows);
    for (size_t r = 0; r < rows.size(); ++r) {
      // A row's bits do not depend on what else is computed with it, so the other table computes it alone.
      std::vector<float> wanted(d);
      const int64_t kv_head = head / (shape_.q_heads / shape_.kv_heads);
      const Tensor q = RowOf(q_, head, rows[r]), k = HeadOf(k_, kv_head), v = HeadOf(v_, kv_head);
      const Tensor out(wanted.data(), {1, 1, 1, shape_.head_dim});
      AttentionDesc desc;
      desc.left = shape_.left;
      desc.right = shape_.right;
      desc.softcap = shape_.extras.softcap;
      desc.target = BitsTable();
      AttentionArgs args;
      args.q = &q;
      args.k = &k;
      args.v = &v;
      args.out = &out;
      args.q_offset = shape_.q_offset() + rows[r];
      const auto extras = extras_.RowOf(head, rows[r]);
      extras_.SetRowArgs(*extras, &args);
      Require(Attention(desc, args, &memory));
      judge.Row("head " + std::to_string(head) + ", row " + std::to_string(rows[r]),
                static_cast<const float*>(RowOf(out_, head, rows[r]).data), wanted.data(), exact.data() + r * d, d);
    }
  }
  return judge.Verdict();
}

std::vector<double> ExactAttention(const AttentionProblem& problem, int64_t head, const std::vector<int64_t>& rows) {
  return test::AttentionInF64(CaseOf(problem, head, rows)).out;
}

std::vector<double> ExactScores(const AttentionProblem& problem, int64_t head, const std::vector<int64_t>& rows) {
  return test::ScoresInF64(CaseOf(problem, head, rows)).s;
}

}  // namespace etalon::bench
