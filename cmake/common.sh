# shellcheck shell=bash
# Helpers for the scripts of this project: source this file, do not run it.

cores() { nproc 2>/dev/null || getconf _NPROCESSORS_ONLN; }

took() { printf '%d min %02d s' "$(($1 / 60))" "$(($1 % 60))"; }

# step NAME CMD...: runs CMD between a title and the time it took, and names itself if CMD fails.
step() {
    local name=$1 start=$SECONDS rc=0 errexit=+e
    shift
    printf '== %s\n' "$name"
    # `CMD || rc=$?` would switch errexit off inside CMD when CMD is a shell function, and its failures
    # would pass unseen. A subshell that sets errexit itself is safe: with the outer one off, all goes on.
    case $- in *e*) errexit=-e ;; esac
    set +e
    (set -e; "$@")
    rc=$?
    set "$errexit"
    if ((rc != 0)); then
        printf '== %s: FAILED with exit code %d after %s\n' "$name" "$rc" "$(took $((SECONDS - start)))" >&2
        return "$rc"
    fi
    printf '== %s: done in %s\n' "$name" "$(took $((SECONDS - start)))"
}

# emulator PROCESSOR: the command that runs its programs, by qemu's name of it (aarch64, arm); fails if there is none.
emulator() { command -v "qemu-$1" || command -v "qemu-$1-static"; }

version_ge() { printf '%s\n' "$2" "$1" | sort -V -C; }

# clang_tool TOOL MAJOR: the command for that version of TOOL; fails if there is none.
clang_tool() {
    if command -v "$1-$2"; then return; fi
    # Not `grep -q`: it may end before the tool has written all, whose death would count as "no".
    "$1" --version 2>/dev/null | grep "version $2\." >/dev/null && command -v "$1"
}

# The major version of clang to use, at least 16 and with its tools; fails if there is none.
# 19 goes first, since clang-format's opinion changes between versions.
clang_major() {
    local v
    for v in 19 {40..16}; do
        if clang_tool clang++ "$v" && clang_tool clang-format "$v" && clang_tool clang-tidy "$v"; then
            echo "$v" >&3
            return
        fi
    done 3>&1 >/dev/null
    return 1
}

# configure BUILD_DIR ARG...: runs CMake only if something that it cannot notice by itself has changed:
# the arguments, CMake, the compiler, or what deps.sh found. For the rest, building re-runs it when needed.
configure() {
    local build=$1 deps=${ETALON_DEPS_DIR:-$ETALON_ROOT/build/deps}/deps.cmake inputs
    shift
    inputs=$(
        printf '%s\n' "$ETALON_ROOT" "$*" "${CXX:-}" "${CXXFLAGS:-}" "${LDFLAGS:-}"
        cmake --version | sed -n 1p
        cat "$deps"
    )
    if [[ -f $build/build.ninja && -f $build/configured && $(<"$build/configured") == "$inputs" ]]; then
        return
    fi
    # --fresh, since neither the compiler nor a value from `-C` would replace what is in an old cache.
    rm -f "$build/configured"
    cmake --fresh -G Ninja -S "$ETALON_ROOT" -B "$build" -C "$deps" "$@"
    printf '%s\n' "$inputs" >"$build/configured"
}
