# Cross build for 64-bit Arm Linux with the distribution's cross compiler; tests run under qemu's user emulation.
# With clang: -DCMAKE_CXX_COMPILER=clang++ (it takes headers and libraries from the cross compiler's package).
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
if(NOT CMAKE_CXX_COMPILER)
  set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
endif()
if(NOT CMAKE_C_COMPILER)
  set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)  # only the tests hold C
endif()
set(CMAKE_C_COMPILER_TARGET aarch64-linux-gnu)
set(CMAKE_CXX_COMPILER_TARGET aarch64-linux-gnu)
set(CMAKE_EXE_LINKER_FLAGS_INIT -static)  # no library path for the emulator to know
find_program(ETALON_QEMU_AARCH64 NAMES qemu-aarch64 qemu-aarch64-static)
if(ETALON_QEMU_AARCH64)
  set(CMAKE_CROSSCOMPILING_EMULATOR ${ETALON_QEMU_AARCH64})
endif()
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
