#!/usr/bin/env bash
# Builds the command-line tool and shows it on real queries, keys and values:  cmake/demo.sh [FILE.npz]
set -euo pipefail

ETALON_ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
# shellcheck source-path=SCRIPTDIR source=common.sh
. "$ETALON_ROOT/cmake/common.sh"
build=$ETALON_ROOT/build/demo
export CXX=${CXX:-g++}

step 'dependencies' bash "$ETALON_ROOT/cmake/deps.sh" demo
step 'configure' configure "$build" -DCMAKE_BUILD_TYPE=Release \
    -DETALON_BUILD_TESTS=OFF -DETALON_BUILD_CLI=ON
step 'build' cmake --build "$build" --target etalon_cli --parallel "$(cores)"

# Nothing above changed the working directory, so FILE may be relative to the caller's.
exec "$build/cli/etalon" demo "$@"
