#!/usr/bin/env bash
# What is too slow for every change: all builds of the digest matrix (AVX-512 in an emulator where the CPU has none), sweeps over all
# inputs, the model's full self-test, many random rows. Prints what docs/reliability.md records. Needs `cmake/deps.sh dev`.
set -euo pipefail
ETALON_ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$ETALON_ROOT"
# shellcheck source=../cmake/common.sh
. cmake/common.sh
export CXX=${CXX:-g++}
rows=${ETALON_NIGHTLY_ROWS:-20000}
rounds=${ETALON_NIGHTLY_ROUNDS:-60} # of a thousand draws, some 5 seconds each
work=build/nightly

many_rows() {
  local file=$work/vectors.txt seed
  seed=$(date +%Y%m%d) # another sample each day; the test prints it on failure through the file's first line
  python3 tests/model/vectors.py write --rows "$rows" --seed "$seed" "$file"
  ETALON_VECTORS=$file ETALON_VECTORS_ROWS=$rows "$work/tests/golden/golden_test"
}

mkdir -p "$work"
step 'configure' configure "$work" -DCMAKE_BUILD_TYPE=Release -DETALON_WERROR=ON -DETALON_BUILD_BENCH=ON
step 'build' cmake --build "$work"
step 'tests of all labels' ctest --test-dir "$work" --output-on-failure -j "$(cores)"
step 'self-test of the model' python3 tests/model/selftest.py
# Other draws each day; a failure names its seed.
step "$rounds rounds of every table against scalar" \
  "$work/tests/kernels/differential_test" --rounds "$rounds" --seed "$(date +%Y%m%d)000000"
step "$rounds rounds of all options together" \
  "$work/tests/api/options_differential_test" --rounds "$rounds" --seed "$(date +%Y%m%d)000000"
step "$rows rows against the model" many_rows
ETALON_EMULATE_AVX512=1 step 'digest matrix' tools/digest_matrix.sh
step 'fuzzers of the C interface and of .npz files, 10 minutes each' tools/fuzz.sh 600
