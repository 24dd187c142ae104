#!/usr/bin/env bash
# Builds everything and runs the fast tests:  cmake/test.sh [CTEST_ARG...]
# For example `cmake/test.sh -R softmax` runs those of them that match.
set -euo pipefail

ETALON_ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
# shellcheck source-path=SCRIPTDIR source=common.sh
. "$ETALON_ROOT/cmake/common.sh"
build=$ETALON_ROOT/build/test
export CXX=${CXX:-g++}

step 'dependencies' bash "$ETALON_ROOT/cmake/deps.sh" test
step 'configure' configure "$build" -DCMAKE_BUILD_TYPE=Release \
    -DETALON_WERROR=ON -DETALON_BUILD_TESTS=ON -DETALON_BUILD_CLI=ON
step 'build' cmake --build "$build" --parallel "$(cores)"

# Not a step: ctest's closing lines, with its own time, are to be the last ones.
echo '== fast tests'
exec ctest --test-dir "$build" --output-on-failure --no-tests=error -L fast -j "$(cores)" "$@"
