// tensors.h: q, k and v from files, in storage types of the library and checked against each other.
#ifndef ETALON_CLI_TENSORS_H_
#define ETALON_CLI_TENSORS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "cli/engine.h"
#include "cli/npy.h"

namespace etalon::cli {

struct Tensors {
  Array q;  // [batch, q heads, q len, head dim]
  Array k;  // [batch, kv heads, kv len, head dim]
  Array v;  // [batch, kv heads, kv len, value dim]
  // As in the files. The library has no f64, so what is stored as that is narrowed to f32, round to nearest even.
  NpyType q_stored = NpyType::kF16;
  NpyType k_stored = NpyType::kF16;
  NpyType v_stored = NpyType::kF16;
  int rank = 3;  // of all three in the files; without a batch dimension 3, and batch is 1
};

// Three numbers for rank 3 and four for rank 4.
std::vector<int64_t> ShapeOf(const Array& array, int rank);

// Names of the arrays that were narrowed.
std::vector<std::string> Narrowed(const Tensors& tensors);

// From one .npz file with the entries q.npy, k.npy and v.npy, or from three .npy files in this order. False: *error
// names the file, the array and what is wrong.
bool ReadTensors(const std::vector<std::string>& files, bool batch_allowed, Tensors* tensors, std::string* error);

// One array, for tests. False if it is empty, of another rank than wanted, or has a finite number beyond f32.
bool TakeArray(const NpyView& view, bool batch_allowed, Array* array, std::string* error);

}  // namespace etalon::cli

#endif  // ETALON_CLI_TENSORS_H_
