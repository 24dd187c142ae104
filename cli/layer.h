// layer.h: one attention layer from a .npz file and the index.json beside it.
#ifndef ETALON_CLI_LAYER_H_
#define ETALON_CLI_LAYER_H_

#include <string>
#include <vector>

#include "cli/engine.h"
#include "cli/mask.h"

namespace etalon::cli {

struct Layer {
  std::string name;  // of the file, without folder and extension, printable
  std::string path;
  Array q;                            // [q heads, q len, head dim]
  Array k;                            // [kv heads, kv len, head dim]
  Array v;                            // [kv heads, kv len, value dim]
  std::vector<std::string> narrowed;  // arrays that the file holds in f64
  bool indexed = false;               // index.json has an entry: mask, scale, model come from there
  Mask mask;
  float scale = 0.0f;
  std::string model;  // empty if unknown
};

// Reads arrays q, k and v, checks that they fit together, and looks the file up in index.json. Without an entry there
// is no mask and the scale is the default. False: *error names the file and what is wrong with it.
bool LoadLayer(const std::string& path, Layer* layer, std::string* error);

}  // namespace etalon::cli

#endif  // ETALON_CLI_LAYER_H_
