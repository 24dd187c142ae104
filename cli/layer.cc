#include "cli/layer.h"

#include <cmath>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <vector>

#include "cli/tensors.h"
#include "cli/text.h"

namespace etalon::cli {
namespace {

using nlohmann::json;

constexpr std::streamoff kMaxIndexBytes = 1 << 24;

// True with *text empty if there is no such file.
bool ReadIndex(const std::filesystem::path& path, std::string* text, std::string* error) {
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  if (!file) return true;
  const std::streamoff size = file.tellg();
  if (size < 0 || size > kMaxIndexBytes) {
    *error = "index.json beside it is not a file of at most " + std::to_string(kMaxIndexBytes) + " bytes";
    return false;
  }
  file.seekg(0);
  text->assign(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
  return true;
}

// The entry of index.json, or an error text. Only keys that change the result are checked.
bool ApplyEntry(const json& entry, Layer* layer, std::string* error) {
  const auto fail = [&](const std::string& what) {
    *error = "its entry in index.json: " + what;
    return false;
  };
  if (!entry.is_object()) return fail("not an object");
  for (const auto& [name, array] :
       {std::pair<const char*, const Array*>{"q", &layer->q}, {"k", &layer->k}, {"v", &layer->v}}) {
    const auto shape = entry.find(name);
    if (shape != entry.end() && *shape != json(ShapeOf(*array, 3))) {
      return fail(std::string("the shape of ") + name + " is " + ShapeText(ShapeOf(*array, 3)) + " in the file and " +
                  Printable(shape->dump(-1, ' ', true, json::error_handler_t::replace), 60) + " there");
    }
  }
  const auto first = entry.find("first_position");
  if (first != entry.end() && *first != 0) return fail("first_position is not 0");
  const auto causal = entry.find("causal");
  if (causal == entry.end() || !causal->is_boolean()) return fail("causal must be true or false");
  if (causal->get<bool>()) layer->mask = CausalMask();
  const auto window = entry.find("window");
  if (window != entry.end() && !window->is_null()) {
    if (!window->is_number_unsigned() || window->get<uint64_t>() < 1 || window->get<uint64_t>() > INT64_MAX) {
      return fail("window must be null or a whole number of at least 1");
    }
    if (!causal->get<bool>()) return fail("a window is causal, but causal is false");
    layer->mask = WindowMask(window->get<int64_t>());
  }
  const auto scale = entry.find("scale");
  if (scale == entry.end() || !scale->is_number()) return fail("scale must be a number");
  layer->scale = static_cast<float>(scale->get<double>());
  if (!std::isfinite(layer->scale)) return fail("scale is not finite in f32");
  // The library would take the default instead.
  if (layer->scale == 0.0f) return fail("scale is 0 in f32");
  const auto model = entry.find("model");
  if (model != entry.end() && model->is_string()) layer->model = Printable(model->get<std::string>());
  const auto number = entry.find("layer");
  if (number != entry.end() && number->is_number_integer()) layer->model += ", layer " + number->dump();
  layer->indexed = true;
  return true;
}

bool ApplyIndex(const std::filesystem::path& path, const std::string& key, Layer* layer, std::string* error) {
  std::string text;
  if (!ReadIndex(path.parent_path() / "index.json", &text, error)) return false;
  if (text.empty()) return true;
  const json index = json::parse(text, nullptr, false);
  if (!index.is_object()) {
    *error = "index.json beside it is not a JSON object";
    return false;
  }
  const auto entry = index.find(key);
  return entry == index.end() || ApplyEntry(*entry, layer, error);
}

}  // namespace

bool LoadLayer(const std::string& path, Layer* layer, std::string* error) {
  *layer = Layer();
  const std::filesystem::path file(path);
  const std::string key = file.stem().string();
  layer->path = path;
  layer->name = Printable(key);
  Tensors tensors;
  if (!ReadTensors({path}, false, &tensors, error)) return false;
  layer->narrowed = Narrowed(tensors);
  layer->q = std::move(tensors.q);
  layer->k = std::move(tensors.k);
  layer->v = std::move(tensors.v);
  layer->scale = DefaultScaleOf(layer->q.dim);
  if (ApplyIndex(file, key, layer, error)) return true;
  *error = PrintablePath(path) + ": " + *error;
  return false;
}

}  // namespace etalon::cli
