# Writes the bytes of a file as a C++ array:  cmake -DINPUT=... -DOUTPUT=... -DNAME=kThing -P embed.cmake
file(READ "${INPUT}" bytes HEX)
string(REGEX REPLACE "(................................)" "\\1\n" bytes "${bytes}")
string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${bytes}")
file(WRITE "${OUTPUT}.new" "#include <cstddef>
namespace etalon::cli {
extern const unsigned char ${NAME}[];
extern const size_t ${NAME}Size;
const unsigned char ${NAME}[] = {
${bytes}};
const size_t ${NAME}Size = sizeof ${NAME};
}  // namespace etalon::cli
")
file(RENAME "${OUTPUT}.new" "${OUTPUT}")
