// accuracy_json.h: an Accuracy as the tool's reports have it.
#ifndef ETALON_CLI_ACCURACY_JSON_H_
#define ETALON_CLI_ACCURACY_JSON_H_

#include <nlohmann/json.hpp>

#include "cli/reference.h"

namespace etalon::cli {

inline nlohmann::ordered_json ToJson(const Accuracy& a) {
  return {{"heads", a.heads},
          {"rows_of_each_head", a.rows},
          {"max_abs", a.max_abs},
          {"relative_rms", a.relative_rms},
          {"predicted_relative_rms", a.predicted_relative_rms},
          {"not_finite", a.not_finite},
          {"beyond_f16", a.beyond_f16},
          {"ok", a.ok}};
}

}  // namespace etalon::cli

#endif  // ETALON_CLI_ACCURACY_JSON_H_
