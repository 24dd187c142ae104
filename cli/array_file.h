// array_file.h: one array from a .npy file or a member of a .npz file, and its elements as the library stores them.
#ifndef ETALON_CLI_ARRAY_FILE_H_
#define ETALON_CLI_ARRAY_FILE_H_

#include <string>
#include <vector>

#include "cli/engine.h"
#include "cli/npy.h"
#include "cli/npz.h"

namespace etalon::cli {

// False: *error says what is wrong, without the path.
bool ReadNpyFile(const std::string& path, std::vector<unsigned char>* bytes, std::string* error);
bool ReadNpzMember(NpzFile* npz, const std::string& name, std::vector<unsigned char>* bytes, std::string* error);

// By its first bytes; false if it cannot be read.
bool IsNpyFile(const std::string& path);

// The first of an archive's entries, for an error that says what else there is.
std::string NamesText(const NpzFile& npz);

// f16 and f32 as they are, f64 narrowed to f32, round to nearest even. False if a finite number is beyond f32: *error
// says which element.
bool TakeElements(const NpyView& view, ElementKind* type, std::vector<unsigned char>* bytes, std::string* error);

}  // namespace etalon::cli

#endif  // ETALON_CLI_ARRAY_FILE_H_
