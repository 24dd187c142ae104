#!/usr/bin/env bash
# The golden digest in every build that must give the same bits: compilers, optimisation levels, instruction sets, the user's unsafe
# flags, other processors under qemu. Each build goes through CMake, because the order of the flags is part of what is tested.
#   tools/digest_matrix.sh [--fast] [--no-skips] [PATTERN]
#     PATTERN     only configurations whose name matches
#     --fast      one a compiler and target
#     --no-skips  a configuration that this machine cannot build or run is a failure, and not skipped
# Prints a line a configuration; ends with "N passed, N failed, N skipped" and exit code 1 if one failed, or none passed.
set -euo pipefail
cd "$(dirname "$0")/.."
root=$PWD
# shellcheck source=../cmake/common.sh
. cmake/common.sh
work=${ETALON_MATRIX_DIR:-$root/build/matrix}
deps=${ETALON_DEPS_DIR:-$root/build/deps}/deps.cmake
fast=0 skipped=SKIPPED
while [[ ${1:-} == --* ]]; do
  case $1 in
    --fast) fast=1 ;;
    --no-skips) skipped=FAILED ;;
    *) echo "usage: tools/digest_matrix.sh [--fast] [--no-skips] [PATTERN]" >&2; exit 2 ;;
  esac
  shift
done
pattern=${1:-.}
mkdir -p "$work"

newest_clang() { # prints the newest clang++ >= 16
  local v
  for v in $(seq 30 -1 16); do command -v "clang++-$v" && return 0; done
  command -v clang++ || true
}
clang=$(newest_clang)
clang=${clang##*/}

# name|compiler|flags|runner. "v4" runs natively where the CPU has AVX-512, else in the emulator if that is set up.
configurations() {
  local o
  for cxx in g++ ${clang:-clang++}; do
    for o in -O0 -O2 -O3; do echo "$cxx$o|$cxx|$o|"; done
    echo "$cxx-O0-fma|$cxx|-O0 -mfma|fma"
    echo "$cxx-O3-fma|$cxx|-O3 -mfma|fma"
    echo "$cxx-O2-v3|$cxx|-O2 -march=x86-64-v3|fma"
    echo "$cxx-O3-v3|$cxx|-O3 -march=x86-64-v3|fma"
    echo "$cxx-O3-v4|$cxx|-O3 -march=x86-64-v4|v4"
    echo "$cxx-O2-v4|$cxx|-O2 -march=x86-64-v4 -mprefer-vector-width=512|v4"
    echo "$cxx-Ofast|$cxx|-Ofast|"
    echo "$cxx-Ofast-v3|$cxx|-Ofast -march=x86-64-v3|fma"
    # Our inline assembly in Intel's order; clang's own headers do not compile so.
    [ "$cxx" != g++ ] || echo "$cxx-intel|$cxx|-O2 -masm=intel|fma"
    echo "$cxx-unsafe|$cxx|-O3 -funsafe-math-optimizations|"
    echo "$cxx-unsafe-v3|$cxx|-O3 -march=x86-64-v3 -ffp-contract=fast -funsafe-math-optimizations -ffinite-math-only|fma"
  done
  for o in -O0 -O2 -O3 -Ofast; do
    echo "aarch64-g++$o|aarch64-linux-gnu-g++|$o|aarch64"
    echo "aarch64-clang++$o|${clang:-clang++}|$o --target=aarch64-linux-gnu|aarch64"
  done
  # Processors for which there is the scalar table alone: one of 64 bits, and one of 32, where a size_t is shorter than a size.
  for o in -O0 -O3 -Ofast; do
    echo "riscv64-g++$o|riscv64-linux-gnu-g++|$o|riscv64"
    echo "armv7-g++$o|arm-linux-gnueabihf-g++|$o -Wno-psabi|arm"
  done
}

fast_names='^(g\+\+-O0|g\+\+-O3|g\+\+-Ofast-v3|clang\+\+-?[0-9]*-O2|clang\+\+-?[0-9]*-unsafe-v3|aarch64-g\+\+-O3|aarch64-clang\+\+-O2|riscv64-g\+\+-O3|armv7-g\+\+-O3)$'

has_cpu_flag() { grep -qw "$1" /proc/cpuinfo; }

# Whether tables of Highway and of xsimd run there; on other processors there are the scalar ones.
has_wide_table() { # runner
  case $1 in
    "") has_cpu_flag avx2 && has_cpu_flag fma ;;
    riscv64 | arm) false ;;
    *) true ;;
  esac
}

why_skipped() { # compiler runner -> prints a reason, or nothing
  command -v "$1" >/dev/null || { echo "no $1"; return; }
  case $2 in
    fma) has_cpu_flag avx2 || echo "the CPU has no AVX2" ;;
    v4) has_cpu_flag avx512vl || [ -n "${ETALON_EMULATE_AVX512:-}" ] ||
      echo "the CPU has no AVX-512, and ETALON_EMULATE_AVX512 is not set (tools/run_emulated.sh)" ;;
    aarch64 | riscv64 | arm)
      emulator "$2" >/dev/null || { echo "no qemu-$2"; return; }
      # clang takes headers and libraries from the cross compiler's package
      [ "$2" != aarch64 ] || command -v aarch64-linux-gnu-g++ >/dev/null || echo "no aarch64 cross compiler and libraries" ;;
  esac
}

run_digest() { # runner binary host
  case $1 in
    aarch64 | riscv64 | arm) "$(emulator "$1")" "$2" --host "$3" --check "$root/tests/golden/digest.txt" ;;
    v4) if has_cpu_flag avx512vl; then "$2" --host "$3" --check "$root/tests/golden/digest.txt"
      else "$root/tools/run_emulated.sh" -f "$root/tests/golden/digest.txt" "$2" --host "$3" --check /digest.txt; fi ;;
    *) "$2" --host "$3" --check "$root/tests/golden/digest.txt" ;;
  esac
}

one() { # name compiler flags runner -> a line in $work/NAME.result
  local name=$1 compiler=$2 flags=$3 runner=$4 reason build=$work/$1 log=$work/$1.log hosts=("default" flush up)
  reason=$(why_skipped "$compiler" "$runner")
  [ -z "$reason" ] || { echo "$skipped $name: $reason" | tee "$work/$name.result"; return; }
  [ "$runner" = v4 ] && ! has_cpu_flag avx512vl && hosts=("default")
  [ "$runner" = riscv64 ] && hosts=("default" up) # it cannot flush subnormals
  local arguments=(-S "$root" -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=None -DCMAKE_CXX_COMPILER="$compiler"
    -DCMAKE_CXX_FLAGS="$flags" -DETALON_BUILD_DIGEST=ON -DETALON_BUILD_TESTS=OFF -DETALON_BUILD_CLI=OFF
    -DETALON_WERROR=OFF) # clang warns of -Ofast itself
  [ ! -f "$deps" ] || arguments+=(-C "$deps") # what cmake/deps.sh found, Highway for one
  case $runner in
    aarch64 | riscv64 | arm)
      arguments+=(-DCMAKE_SYSTEM_NAME=Linux -DCMAKE_SYSTEM_PROCESSOR="$runner" -DCMAKE_EXE_LINKER_FLAGS=-static) ;;
    v4) arguments+=(-DCMAKE_EXE_LINKER_FLAGS=-static) ;;
  esac
  if ! { cmake "${arguments[@]}" && cmake --build "$build" --target etalon_digest; } >"$log" 2>&1; then
    echo "FAILED $name: does not build, see ${log#"$root"/}" | tee "$work/$name.result"
    return
  fi
  local host digests
  for host in "${hosts[@]}"; do
    if ! run_digest "$runner" "$build/tests/etalon_digest" "$host" >>"$log" 2>&1; then
      echo "FAILED $name, host state $host: $(tail -n 1 "$log")" | tee "$work/$name.result"
      return
    fi
  done
  digests=$(grep -c ': equal' "$log" || true)
  if [ "$digests" -lt ${#hosts[@]} ]; then # a program that compares nothing succeeds as well
    echo "FAILED $name: $digests digests in ${#hosts[@]} host states, see ${log#"$root"/}" | tee "$work/$name.result"
    return
  fi
  local backend
  for backend in highway xsimd; do
    if has_wide_table "$runner" && ! grep -q "^$backend-.*: equal" "$log"; then
      echo "FAILED $name: no table of $backend among them, see ${log#"$root"/}" | tee "$work/$name.result"
      return
    fi
  done
  echo "passed $name ($digests digests)" | tee "$work/$name.result"
}

rm -f "$work"/*.result
running=0 started=()
while IFS='|' read -r name compiler flags runner; do
  [[ $name =~ $pattern ]] || continue
  [ $fast -eq 0 ] || [[ $name =~ $fast_names ]] || continue
  one "$name" "$compiler" "$flags" "$runner" </dev/null &
  started+=("$name")
  running=$((running + 1))
  [ $running -lt "$(nproc)" ] || { wait -n || true; running=$((running - 1)); }
done < <(configurations)
wait
for name in "${started[@]}"; do
  [ -s "$work/$name.result" ] || echo "FAILED $name: ended without a result" | tee "$work/$name.result"
done
count() { cat "$work"/*.result 2>/dev/null | grep -c "^$1" || true; }
echo "$(count passed) passed, $(count FAILED) failed, $(count SKIPPED) skipped"
[ "$(count FAILED)" -eq 0 ] && [ "$(count passed)" -gt 0 ]
