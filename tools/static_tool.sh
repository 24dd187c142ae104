#!/usr/bin/env bash
# The command-line tool for 64-bit Arm as one static program, to be copied to a device that has nothing else; then runs its `check` under
# qemu as a Cortex-A72, the core of a Raspberry Pi 4. Such a core may lack the instructions for AES: the program must have none.
#   tools/static_tool.sh        leaves build/static-aarch64/etalon
# Needs `cmake/deps.sh dev`. zlib and libzip are built from the sources of the system's own release; all else is headers.
set -euo pipefail
export LC_ALL=C
ETALON_ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$ETALON_ROOT"
# shellcheck source=../cmake/common.sh
. cmake/common.sh
# shellcheck source=../cmake/private_apt.sh
. cmake/private_apt.sh
triple=aarch64-linux-gnu
libs=$(realpath -m "${ETALON_DEPS_DIR:-build/deps}")/$triple # absolute: cmake is called from other folders
build=build/static-aarch64
toolchain=$ETALON_ROOT/cmake/toolchains/$triple.cmake

fetch_sources() { # into $1
  local own
  own=$(suites | cut -d ' ' -f 1)
  [ -n "$own" ] || { echo "static_tool: no release is known for this system" >&2; return 1; }
  private_lists "$own" "$own" "$1" || { echo "static_tool: the system's apt sources have no entry for '$own'" >&2; return 1; }
  (cd "$1" && private_apt "$1" source --download-only zlib libzip) >>"$1/log" 2>&1 ||
    { tail -n 15 "$1/log" >&2; return 1; }
}

cross_build() { # SOURCE BUILD ARG...: an optimised static build, of a project from before CMake 3.5 for one
  cmake -S "$1" -B "$2" -G Ninja -DCMAKE_TOOLCHAIN_FILE="$toolchain" -DCMAKE_BUILD_TYPE=Release -DBUILD_SHARED_LIBS=OFF \
    -DCMAKE_POLICY_VERSION_MINIMUM=3.5 "${@:3}"
}

build_libraries() { # in the folder $1, into $libs
  local name
  for name in zlib libzip; do
    mkdir "$1/$name"
    tar -xf "$(find "$1" -maxdepth 1 -name "${name}_*.orig.tar.*" ! -name '*.asc')" -C "$1/$name" --strip-components=1
  done
  mkdir -p "$1/prefix/lib/pkgconfig" "$1/prefix/include"
  mkdir -p "$1/zlib/win32" && touch "$1/zlib/win32/zlib1.rc" # its CMake asks for it, and Debian leaves it out
  cross_build "$1/zlib" "$1/zlib-build"
  cmake --build "$1/zlib-build" --target zlibstatic
  cp "$1/zlib-build/libz.a" "$1/prefix/lib"
  cp "$1/zlib/zlib.h" "$1/zlib-build/zconf.h" "$1/prefix/include"
  cross_build "$1/libzip" "$1/libzip-build" -DCMAKE_INSTALL_PREFIX="$1/prefix" -DCMAKE_INSTALL_LIBDIR=lib \
    -DZLIB_LIBRARY="$1/prefix/lib/libz.a" -DZLIB_INCLUDE_DIR="$1/prefix/include" -DENABLE_COMMONCRYPTO=OFF -DENABLE_GNUTLS=OFF \
    -DENABLE_MBEDTLS=OFF -DENABLE_OPENSSL=OFF -DENABLE_BZIP2=OFF -DENABLE_LZMA=OFF -DENABLE_ZSTD=OFF -DBUILD_TOOLS=OFF \
    -DBUILD_REGRESS=OFF -DBUILD_EXAMPLES=OFF -DBUILD_DOC=OFF
  cmake --build "$1/libzip-build" --target install
  # Instead of libzip's own, which leaves zlib to whoever links statically.
  printf 'prefix=%s\nName: libzip\nDescription: reads and writes zip archives\nVersion: %s\nLibs: -L${prefix}/lib -lzip -lz\nCflags: -I${prefix}/include\n' \
    "$libs" "$(sed -n 's/^Version: //p' "$1/prefix/lib/pkgconfig/libzip.pc")" >"$1/libzip.pc"
  mv "$1/libzip.pc" "$1/prefix/lib/pkgconfig/libzip.pc"
  rm -rf "$libs"
  mv "$1/prefix" "$libs" # in one step, so that what is there is whole
}

libraries() {
  [ ! -f "$libs/lib/pkgconfig/libzip.pc" ] || return 0
  local scratch
  scratch=$libs.new
  rm -rf "$scratch" # of a run that was killed
  mkdir -p "$scratch"
  fetch_sources "$scratch"
  set +e # after `||` a failure inside would pass unseen
  (set -e; build_libraries "$scratch") >"$scratch/log" 2>&1
  local rc=$?
  set -e
  ((rc == 0)) || { tail -n 15 "$scratch/log" >&2; return "$rc"; }
  rm -rf "$scratch"
}

tool() {
  PKG_CONFIG_LIBDIR=$libs/lib/pkgconfig configure "$build" -DCMAKE_TOOLCHAIN_FILE="$toolchain" -DCMAKE_BUILD_TYPE=Release \
    -DETALON_WERROR=ON -DETALON_BUILD_TESTS=OFF
  cmake --build "$build" --target etalon_cli
  "$triple-strip" -o "$build/etalon" "$build/cli/etalon"
}

no_aes() {
  "$triple-objdump" -d --no-show-raw-insn "$build/etalon" >"$build/etalon.s"
  grep -qE '\sfmla\s' "$build/etalon.s" || { echo "static_tool: the disassembly shows no vector instruction" >&2; return 1; }
  local rc=0
  grep -m 3 -E '\s(aes(e|d|mc|imc)|pmull2?)\s' "$build/etalon.s" || rc=$?
  ((rc == 1)) # not a failure of grep itself
}

check() {
  local qemu
  qemu=$(emulator aarch64)
  "$qemu" -cpu cortex-a72 "$build/etalon" info
  "$qemu" -cpu cortex-a72 "$build/etalon" check
}

step 'zlib and libzip for aarch64' libraries
step 'the tool' tool
step 'no instruction for AES' no_aes
step 'etalon check on a Cortex-A72 under qemu' check
ls -l "$build/etalon"
