// shipped_layers.h: where the layers are that come with the tool.
#ifndef ETALON_CLI_SHIPPED_LAYERS_H_
#define ETALON_CLI_SHIPPED_LAYERS_H_

#include <string>
#include <vector>

namespace etalon::cli {

// Appends their files: those in the folder that ETALON_DEMO_DATA names, else those installed beside this program, else
// those of the source that it was built from. False: *error says what is missing.
bool ShippedLayers(std::vector<std::string>* files, std::string* error);

}  // namespace etalon::cli

#endif  // ETALON_CLI_SHIPPED_LAYERS_H_
