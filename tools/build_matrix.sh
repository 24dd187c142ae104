#!/usr/bin/env bash
# Two compilers, four levels, two architectures: the library, the digest, the kernel tests, the golden vectors and the required cases build
# without a warning and pass. At -O0, where each would take minutes, the digest alone runs.
#   tools/build_matrix.sh [PATTERN]        PATTERN: only configurations whose name matches, such as clang or -O1
# Prints a line a configuration; exit code 1 if one failed, or none passed. Needs `cmake/deps.sh dev`.
# case: BLD-3
set -euo pipefail
ETALON_ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$ETALON_ROOT"
# shellcheck source=../cmake/common.sh
. cmake/common.sh
work=build/build-matrix
pattern=${1:-.}
clangxx=$(clang_tool clang++ "$(clang_major)")
programs=(golden attend backends_agree cases dispatch mask merge properties score softmax tiles values visible differential
  api_cases api_cases_memory api_cases_options api_options)
tests="^(digest_host_default|($(IFS='|' && echo "${programs[*]}"))_test)$"

build_and_test() { # BUILD LEVEL ARG...
  local build=$1 level=$2 targets=("${programs[@]/%/_test}")
  configure "$build" -DCMAKE_BUILD_TYPE=None -DCMAKE_CXX_FLAGS="$level" -DETALON_WERROR=ON -DETALON_BUILD_CLI=OFF -DETALON_TEST_TIMEOUT=900 \
    "${@:3}"
  # Programs have the names of their tests; one that is gone fails the build.
  cmake --build "$build" --target etalon etalon_digest "${targets[@]}"
  [ "$level" != -O0 ] || tests='^digest_host_default$'
  ctest --test-dir "$build" --output-on-failure --no-tests=error -j "$(cores)" -R "$tests"
}

mkdir -p "$work"
rm -f "$work"/*.result
passed=0 failed=0
for architecture in x86_64 aarch64; do
  for compiler in g++ clang++; do
    for level in -O0 -O1 -O2 -O3; do
      name=$architecture-$compiler$level
      [[ $name =~ $pattern ]] || continue
      CXX=$compiler more=()
      [ "$architecture" != aarch64 ] || more=(-DCMAKE_TOOLCHAIN_FILE="$ETALON_ROOT/cmake/toolchains/aarch64-linux-gnu.cmake")
      [ "$compiler" != clang++ ] || CXX=$clangxx
      if [ "$architecture" = aarch64 ]; then
        [ "$compiler" != g++ ] || CXX=aarch64-linux-gnu-g++
        more+=(-DCMAKE_CXX_COMPILER="$CXX")
      fi
      start=$SECONDS
      set +e # after `if` a failure inside would pass unseen
      (set -e; export CXX; build_and_test "$work/$name" "$level" "${more[@]}") >"$work/$name.log" 2>&1
      rc=$?
      set -e
      if ((rc == 0)); then
        passed=$((passed + 1)) result="passed $name: $(sed -n 's/.*tests passed.* out of \([0-9]*\)$/\1 tests/p' "$work/$name.log")"
      else
        failed=$((failed + 1)) result="FAILED $name: see $work/$name.log"
      fi
      echo "$result, $(took $((SECONDS - start)))" | tee "$work/$name.result"
    done
  done
done
echo "$passed passed, $failed failed"
((failed == 0 && passed > 0))
