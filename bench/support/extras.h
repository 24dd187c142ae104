// extras.h: what an attention problem has beside q, k, v and geometry: softcap, ALiBi, a bias, a mask. Owns the data,
// and gives them to the call, to a call of one row, and to the f64 reference.
#ifndef ETALON_BENCH_SUPPORT_EXTRAS_H_
#define ETALON_BENCH_SUPPORT_EXTRAS_H_

#include <cstdint>
#include <etalon/etalon.hpp>
#include <memory>
#include <vector>

#include "bench/support/buffer.h"
#include "tests/support/kernel_case.h"

namespace etalon::bench {

struct ExtrasSpec {
  float softcap = 0;
  bool alibi = false;        // the standard slopes
  bool bias = false;         // f32 [q_len, kv_len], one for all heads
  bool mask = false;         // bytes [q_len, kv_len], one for all heads; hides a key in eight
  int64_t document = 0;      // packed documents of so many tokens, as a prepared mask
  int64_t one_block_of = 0;  // of so many key blocks of 128 tokens a query block of 128 sees one, and its own; prepared

  bool Any() const { return softcap > 0 || alibi || bias || mask || document > 0 || one_block_of > 0; }
  bool Masks() const { return mask || document > 0 || one_block_of > 0; }
  bool Shows(int64_t row, int64_t key) const;  // by the mask alone
};

class Extras {
 public:
  Extras(const ExtrasSpec& spec, int64_t heads, int64_t q_len, int64_t kv_len);
  Extras(const Extras&) = delete;
  Extras& operator=(const Extras&) = delete;

  void SetDesc(AttentionDesc* desc) const;
  void SetArgs(AttentionArgs* args) const;

  // For a call of one row of one head: what it needs lives in a Row.
  struct Row {
    std::vector<uint8_t> shown;
    Tensor bias, mask, slope;
  };
  std::unique_ptr<Row> RowOf(int64_t head, int64_t row) const;
  void SetRowArgs(const Row& row, AttentionArgs* args) const;

  // Rows of one head; the source and q are filled already.
  void SetCase(int64_t head, const std::vector<int64_t>& rows, test::AttentionCase* c) const;

 private:
  void PrepareMask();

  ExtrasSpec spec_;
  int64_t q_len_, kv_len_;
  std::vector<float> slopes_;
  Buffer bias_data_, mask_data_;
  Tensor bias_, mask_;
  std::unique_ptr<Buffer> prepared_data_;
  const etalon_mask* prepared_ = nullptr;
};

}  // namespace etalon::bench

#endif  // ETALON_BENCH_SUPPORT_EXTRAS_H_
