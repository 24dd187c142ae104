// random_tile.h: kernel calls over what kernels can get wrong, drawn from a seed: sizes around vectors, register blocks
// and chunks; strides of any kind; spans, masks and biases that differ wildly among the rows of a tile; numbers that
// are not. What they compute is looked at as bytes, what lies between the outputs included.
#ifndef ETALON_TESTS_KERNELS_RANDOM_TILE_H_
#define ETALON_TESTS_KERNELS_RANDOM_TILE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "tests/kernels/random_parts.h"

namespace etalon::test {

// A tile of rows against some sources. Not copied: arguments point into it.
class RandomTile {
 public:
  // work: about the most products that one call computes.
  RandomTile(uint64_t seed, int64_t work);
  RandomTile(const RandomTile&) = delete;

  const std::string& text() const { return text_; }  // what it is
  int64_t products() const { return products_; }

  // Each leaves what was written, and the memory around it, in Written().
  void Attend(const KernelTable& table);
  void Scores(const KernelTable& table);
  void BlockStates(const KernelTable& table);
  void Fold(const KernelTable& table);  // the states of BlockStates by `states`
  void KeepStates();                    // takes those of the last BlockStates for Fold

  const ByteVector& Written() const { return written_; }
  const std::vector<float>& lse() const { return lse_; }  // of the last Attend or Fold; 7 where it is not wanted
  std::string Where(size_t offset) const;                 // which element a byte of Written() belongs to

  // Leaves only some rows: for finding the smallest tile that still differs.
  void KeepRows(size_t first, size_t last);
  size_t num_rows() const { return rows_.size(); }
  std::string DescribeRow(size_t row) const;

 private:
  struct Source {
    Rows k, v;
    std::vector<Rows> biases;
    std::vector<ByteVector> masks;
    std::vector<std::vector<Span>> runs;
  };
  void DrawQueries();
  void DrawSource();
  void DrawPositions(RowKeys* keys);
  void DrawSpans(KeySource* source, RowKeys* keys);
  void DrawBias(Source* data, KeySource* source, RowKeys* keys);
  void DrawMask(Source* data, KeySource* source, RowKeys* keys);
  void DrawBits(Source* data, KeySource* source, RowKeys* keys);
  void DrawRuns(Source* data, const KeySource& source, RowKeys* keys);
  void Poison(Source* data, const KeySource& source, const RowKeys* keys);
  bool Allowed(const KeySource& source, const RowKeys& keys, int64_t key) const;
  void Say(const std::string& words) { text_ += " " + words; }
  AttendArgs Args(void* scratch) const;

  Random random_;
  int64_t work_, products_ = 0;
  int64_t head_dim_, value_dim_;
  ScoreOptions options_ = {};
  DType out_type_;
  bool sinks_ = false, overflows_ = false;
  std::vector<QueryRow> rows_;
  Rows q_, out_;
  std::vector<float> lse_;
  std::vector<std::unique_ptr<Source>> data_;
  std::vector<KeySource> sources_;
  std::vector<std::vector<RowKeys>> keys_;  // [source][row]
  int64_t score_stride_;
  size_t states_source_ = 0;
  int64_t first_block_ = 0, last_block_ = 0, state_stride_ = 0;
  std::vector<float> m_, l_, o_, kept_m_, kept_l_, kept_o_;
  ByteVector written_;
  std::string text_;
};

}  // namespace etalon::test

#endif  // ETALON_TESTS_KERNELS_RANDOM_TILE_H_
