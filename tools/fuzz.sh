#!/usr/bin/env bash
# Builds the fuzzer of the C interface with clang and runs it from the committed corpus on.
#   tools/fuzz.sh [SECONDS]     default: 15, which finds what a change has broken, not what takes hours
# An input that fails is left in build/fuzz/found; tests/fuzz/README.md says how to look at it.
set -euo pipefail
ETALON_ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$ETALON_ROOT"
# shellcheck source=../cmake/common.sh
. cmake/common.sh
found=build/fuzz/found

CXX=$(clang_tool clang++ "$(clang_major)") configure build/fuzz -DCMAKE_BUILD_TYPE=Release -DETALON_BUILD_FUZZERS=ON \
  -DETALON_BUILD_CLI=OFF
cmake --build build/fuzz --target etalon_api_fuzzer --parallel "$(cores)"
rm -rf "$found" && mkdir -p "$found/corpus" # what it finds new goes to the first folder
build/fuzz/tests/fuzz/etalon_api_fuzzer -max_total_time="${1:-15}" -max_len=260 -timeout=20 -print_final_stats=1 -verbosity=0 \
  -artifact_prefix="$found/" "$found/corpus" tests/fuzz/corpus/api
