#!/usr/bin/env bash
# Builds the fuzzers with clang and runs each from its committed corpus on: the C interface, and the reading of .npz files.
#   tools/fuzz.sh [SECONDS [api|npz]]     default: 15 each, which finds what a change has broken, not what takes hours
# An input that fails is left in build/fuzz/found; tests/fuzz/README.md says how to look at it.
set -euo pipefail
ETALON_ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$ETALON_ROOT"
# shellcheck source=../cmake/common.sh
. cmake/common.sh
seconds=${1:-15}
found=build/fuzz/found

# Of the tool only what reads files.
CXX=$(clang_tool clang++ "$(clang_major)") configure build/fuzz -DCMAKE_BUILD_TYPE=Release -DETALON_BUILD_FUZZERS=ON \
  -DETALON_BUILD_CLI=OFF
rm -rf "$found"
for name in ${2:-api npz}; do
  cmake --build build/fuzz --target "etalon_${name}_fuzzer" --parallel "$(cores)"
  case $name in
    api) options=(-max_len=500 -timeout=20) ;;
    npz) options=(-max_len=2000 -timeout=10 -malloc_limit_mb=64 -rss_limit_mb=1024) ;; # of libzip, too
  esac
  mkdir -p "$found/$name" # what it finds new goes to the first folder
  "build/fuzz/tests/fuzz/etalon_${name}_fuzzer" -max_total_time="$seconds" "${options[@]}" -print_final_stats=1 -verbosity=0 \
    -artifact_prefix="$found/" "$found/$name" "tests/fuzz/corpus/$name"
done
