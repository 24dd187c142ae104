#!/usr/bin/env bash
# What is too slow for every change: all builds of the digest matrix (AVX-512 in an emulator where the CPU has none) and of the build
# matrix, sweeps over all inputs, the model's full self-test, many random rows, all tests of aarch64. Prints what docs/reliability.md records. Needs `cmake/deps.sh dev`.
set -euo pipefail
ETALON_ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$ETALON_ROOT"
# shellcheck source=../cmake/common.sh
. cmake/common.sh
export CXX=${CXX:-g++}
rows=${ETALON_NIGHTLY_ROWS:-20000}
rounds=${ETALON_NIGHTLY_ROUNDS:-60} # of a thousand draws, some 5 seconds each
work=build/nightly

# Whoever runs this has all that is needed: what would have been skipped without it is a failure.
run_ctest() { ETALON_NO_SKIPS=1 ctest --test-dir "$1" --output-on-failure --no-tests=error -j "$(cores)"; }

many_rows() {
  local file=$work/vectors.txt seed
  seed=$(date +%Y%m%d) # another sample each day; the test prints it on failure through the file's first line
  python3 tests/model/vectors.py write --rows "$rows" --seed "$seed" "$file"
  ETALON_VECTORS=$file ETALON_VECTORS_ROWS=$rows "$work/tests/golden/golden_test"
}

all_of_aarch64() {
  configure "$work-aarch64" -DCMAKE_TOOLCHAIN_FILE="$ETALON_ROOT/cmake/toolchains/aarch64-linux-gnu.cmake" \
    -DCMAKE_BUILD_TYPE=Release -DETALON_WERROR=ON -DETALON_BUILD_CLI=OFF -DETALON_TEST_TIMEOUT=3600
  cmake --build "$work-aarch64"
  run_ctest "$work-aarch64"
}

mkdir -p "$work"
step 'configure' configure "$work" -DCMAKE_BUILD_TYPE=Release -DETALON_WERROR=ON -DETALON_BUILD_BENCH=ON
step 'build' cmake --build "$work"
step 'tests of all labels' run_ctest "$work"
step 'self-test of the model' python3 tests/model/selftest.py
# Other draws each day; a failure names its seed.
step "$rounds rounds of every table against scalar" \
  "$work/tests/kernels/differential_test" --rounds "$rounds" --seed "$(date +%Y%m%d)000000"
step "$rounds rounds of all options together" \
  "$work/tests/api/options_differential_test" --rounds "$rounds" --seed "$(date +%Y%m%d)000000"
step 'every kernel on hard inputs, within proved bounds' "$work/cli/etalon" check --full
step "$rows rows against the model" many_rows
ETALON_EMULATE_AVX512=1 step 'digest matrix' tools/digest_matrix.sh --no-skips
step 'two compilers, four levels, two architectures' tools/build_matrix.sh
step 'all tests of aarch64 under qemu' all_of_aarch64
step 'what each table has shown' python3 tools/table_matrix.py "x86-64 $CXX"="$work" 'aarch64 g++'="$work-aarch64" \
  'x86-64 clang -O2'=build/build-matrix/x86_64-clang++-O2 'aarch64 clang -O2'=build/build-matrix/aarch64-clang++-O2 \
  'riscv64 g++'=build/matrix/riscv64-g++-O3 'armv7 g++'=build/matrix/armv7-g++-O3
step 'the tool for aarch64 as one static program' tools/static_tool.sh
step 'fuzzers of the C interface and of .npz files, 10 minutes each' tools/fuzz.sh 600
