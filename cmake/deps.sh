#!/usr/bin/env bash
# Installs what the build needs and says nothing if it is all there.
#
#   cmake/deps.sh [demo|test|dev]    each has all of the one before it; default: demo
#
# A thing counts as there when it works, wherever it is from; only what is missing is installed, by apt-get.
# Highway and xsimd are newer than in some distributions: they then come from a later suite of the same
# distribution, into a private folder (ETALON_DEPS_DIR, default build/deps), and the system stays as it is.
# ETALON_HIGHWAY_SOURCE_DIR and ETALON_XSIMD_INCLUDE_DIR, if set, are used instead.
# $ETALON_DEPS_DIR/deps.cmake tells CMake where these two are; it sets nothing for those of the system.
set -euo pipefail
export LC_ALL=C  # messages of tools are compared below

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source-path=SCRIPTDIR source=common.sh
. "$here/common.sh"
# shellcheck source-path=SCRIPTDIR source=private_apt.sh
. "$here/private_apt.sh"

cmake_min=3.25
highway_min=1.2
xsimd_min=13
lock_timeout=600  # seconds

deps=${ETALON_DEPS_DIR:-$(dirname "$here")/build/deps}
log=
scratch=
missing=()
update_done=

say() { printf 'deps: %s\n' "$*"; }
die() {
    say "$@" >&2
    exit 1
}

clean_up() { rm -rf ${log:+"$log"} ${scratch:+"$scratch"}; }
trap clean_up EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

# --- What is there -------------------------------------------------------------------------------------

# A command that only exists may still be a version manager's stub that leads nowhere, so it is run.
works() { "$1" --version >/dev/null 2>&1; }
module() { pkg-config --exists "$@" 2>/dev/null; }
# shellcheck disable=SC2086  # CXX may have arguments
compiler() { ${CXX:-g++} "$@" >/dev/null 2>&1; }
header() { printf '#if !__has_include(<%s>)\n#error\n#endif\n' "$1" | compiler -E -x c++ -; }
package() { [[ $(dpkg-query -W -f '${Status}' "$1" 2>/dev/null) == *' installed' ]]; }

cmake_is_new_enough() {
    local v
    v=$(cmake --version 2>/dev/null | sed -n 's/^cmake version //p') && [[ $v ]] && version_ge "$v" "$cmake_min"
}

# need PACKAGE TEST...: notes PACKAGE as missing unless the test holds.
need() {
    "${@:2}" || missing+=("$1")
}
either() { module "$1" || header "$2"; }

need_demo() {
    need g++ compiler --version
    need cmake cmake_is_new_enough
    need ninja-build works ninja
    need pkgconf works pkg-config
    need libeigen3-dev either eigen3 eigen3/Eigen/Core
    need libcli11-dev either CLI11 CLI/CLI.hpp
    need nlohmann-json3-dev either nlohmann_json nlohmann/json.hpp
    need libzip-dev module libzip
}

need_test() {
    need doctest-dev header doctest/doctest.h
    need libbenchmark-dev module benchmark
    need python3 works python3
    need binutils works nm
}

need_dev() {
    local v
    if ! v=$(clang_major); then
        know clang-19
        v=$(clang_on_offer)
    fi
    need "clang-$v" clang_tool clang++ "$v" >/dev/null
    need "clang-format-$v" clang_tool clang-format "$v" >/dev/null
    need "clang-tidy-$v" clang_tool clang-tidy "$v" >/dev/null
    need "libclang-rt-$v-dev" clang_has_runtime "$v"
    need "llvm-$v" clang_has_llvm "$v"
    has_qemu || know qemu-user
    need "$(qemu_on_offer)" has_qemu
    need g++-aarch64-linux-gnu works aarch64-linux-gnu-g++
    # Processors that have the scalar table alone.
    need g++-riscv64-linux-gnu works riscv64-linux-gnu-g++
    need g++-arm-linux-gnueabihf works arm-linux-gnueabihf-g++
}

# clang prints a bare name back for a file that it does not find.
clang_has_runtime() {
    local clang lib
    clang=$(clang_tool clang++ "$1") || return
    for lib in fuzzer-$(uname -m) fuzzer; do
        [[ $("$clang" -print-file-name="libclang_rt.$lib.a") != /* ]] || return 0
    done
    package "libclang-rt-$1-dev"
}
clang_has_llvm() { clang_tool llvm-mca "$1" && clang_tool llvm-symbolizer "$1"; } >/dev/null
has_qemu() { works qemu-aarch64 || works qemu-aarch64-static; }

# --- The distribution's packages -----------------------------------------------------------------------

has_apt() { command -v apt-get >/dev/null; }
is_root() { ((EUID == 0)); }
can_install() { has_apt && { is_root || command -v sudo >/dev/null; }; }

as_root() {
    if is_root; then env "$@"; else sudo env "$@"; fi
}

# DPkg::Lock::Timeout covers dpkg's locks but neither that of the lists nor that of the downloads, on which
# apt gives up at once; so when it names one of them, try again.
apt_get() {
    local start=$SECONDS
    log=${log:-$(mktemp)}
    until apt_get_once "$@" </dev/null >"$log" 2>&1; do
        if ((SECONDS - start >= lock_timeout)) || ! grep -q 'Could not get lock' "$log"; then return 1; fi
        if ((SECONDS - start < 5)); then say 'waiting for another apt to end'; fi
        sleep 5
    done
}
apt_get_once() {
    as_root DEBIAN_FRONTEND=noninteractive apt-get -qq -y -o DPkg::Lock::Timeout="$lock_timeout" -o Dpkg::Use-Pty=0 "$@"
}

# A failure is not the end: what the lists have already may do, or else the installation says what is wrong.
update_once() {
    if [[ $update_done ]]; then return; fi
    update_done=yes
    apt_get update || say 'apt-get update failed; going on with the lists that are there' >&2
}

# The upstream part of the version that apt offers of a package; nothing if it offers none.
offered() {
    apt-cache policy "$1" 2>/dev/null | sed -nE 's/^ *Candidate: ([0-9]+:)?([0-9][^-+~]*).*/\2/p'
}
# know PACKAGE: a new machine's apt knows of no package, so "none on offer" counts only after an update.
know() {
    if can_install && [[ -z $(offered "$1") ]]; then update_once; fi
}

clang_on_offer() {
    local v
    if has_apt && [[ -z $(offered clang-19) ]]; then
        for v in {40..16}; do
            if [[ $(offered "clang-$v") ]]; then
                echo "$v"
                return
            fi
        done
    fi
    echo 19
}

qemu_on_offer() {
    if has_qemu || [[ $(offered qemu-user) || -z $(offered qemu-user-static) ]]; then
        echo qemu-user
    else
        echo qemu-user-static
    fi
}

install_missing() {
    if ((${#missing[@]} == 0)); then return; fi
    has_apt || die "these are missing, by the names of Debian's packages: ${missing[*]}. Please install them (this script can do it only with apt-get)."
    can_install || die "these packages are missing: ${missing[*]}. Please run as root: apt-get install --no-install-recommends ${missing[*]}"
    say "installing ${missing[*]}"
    update_once
    # Recommendations stay out: they are many, and qemu's would change how the system starts programs.
    apt_get install --no-install-recommends "${missing[@]}" || fail_with_log "apt-get could not install ${missing[*]}"
    hash -r
}

fail_with_log() {
    tail -n 15 "$log" >&2
    die "$@"
}

check_missing() {
    missing=()
    need_tier
    ((${#missing[@]} == 0)) || die "still missing after installing it: ${missing[*]} (is an older one first on PATH? cmake has to be $cmake_min or newer)"
}

# --- Highway and xsimd ---------------------------------------------------------------------------------

has_highway() { [[ -f $1/CMakeLists.txt && -f $1/hwy/highway.h ]]; }
has_xsimd() { [[ -f $1/xsimd/xsimd.hpp ]]; }

system_has_highway() { module "libhwy >= $highway_min"; }
system_has_xsimd() { module "xsimd >= $xsimd_min"; }

# The stamp has the version. It is written last, so what has one is whole, unless somebody removed files.
private_has() {
    local stamp=$deps/$1.stamp
    [[ -s $stamp ]] && version_ge "$(<"$stamp")" "$2" && "has_$1" "$3"
}
private_has_highway() { private_has highway "$highway_min" "$deps/highway"; }
private_has_xsimd() { private_has xsimd "$xsimd_min" "$deps/xsimd/include"; }

# A folder that the user names has to be right: to take another one silently would hide a mistake.
user_has_highway() {
    [[ ${ETALON_HIGHWAY_SOURCE_DIR:-} ]] || return 1
    has_highway "$ETALON_HIGHWAY_SOURCE_DIR" || die "ETALON_HIGHWAY_SOURCE_DIR is not a Highway source tree: $ETALON_HIGHWAY_SOURCE_DIR"
}
user_has_xsimd() {
    [[ ${ETALON_XSIMD_INCLUDE_DIR:-} ]] || return 1
    has_xsimd "$ETALON_XSIMD_INCLUDE_DIR" || die "ETALON_XSIMD_INCLUDE_DIR has no xsimd/xsimd.hpp: $ETALON_XSIMD_INCLUDE_DIR"
}

lacks() { ! "user_has_$1" && ! "system_has_$1" && ! "private_has_$1"; }

# need_new NAME PACKAGE MIN: the system's package if it is new enough and we may install it; if not, a
# private copy, for which nobody has to be root.
need_new() {
    local v
    if ! lacks "$1"; then return; fi
    if can_install; then
        know "$2"
        v=$(offered "$2")
        if [[ $v ]] && version_ge "$v" "$3"; then
            missing+=("$2")
            return
        fi
    fi
    wanted+=("$1")
}

# Downloads what is wanted of one suite into $scratch/SUITE.
# Trust is apt's own: the signed index of the suite has the sums of the files.
download_from() {
    local own=$1 suite=$2 dir=$scratch/$2 name
    private_lists "$own" "$suite" "$dir" || die "the system's apt sources have no entry for its own release '$own', from which to find its later ones. $elsewhere"
    (
        cd "$dir"
        cat "$dir/log"
        for name in "${wanted[@]}"; do
            # Highway is built here, by our own flags; xsimd is headers alone, and not every mirror has its source.
            case $name in
                highway) private_apt "$dir" source --download-only highway || exit ;;
                xsimd) private_apt "$dir" download libxsimd-dev || exit ;;
            esac
        done
    ) >"$log" 2>&1
}

# file_version FILE: the upstream version in the name of a package file.
file_version() {
    local v=${1##*/}
    v=${v#*_}
    v=${v%%_*}
    v=${v%%.orig.*}
    v=${v#*%3a}
    echo "${v%%-*}"
}

unpack_highway() {
    local file
    for file in "$1"/highway_*.orig.tar.*z*; do
        [[ $file == *.asc ]] || unpack highway "$file" "$highway_min" tar --strip-components=1 -xf "$file" -C || return
    done
}
unpack_xsimd() {
    local file
    for file in "$1"/libxsimd-dev_*.deb; do
        unpack xsimd "$file" "$xsimd_min" unpack_headers "$file" || return
    done
}
unpack_headers() {
    dpkg-deb -x "$1" "$2/deb" && mv "$2/deb/usr/include" "$2/include" && rm -r "$2/deb"
}

# unpack NAME FILE MIN CMD...: CMD unpacks into the folder it gets as its last argument, and that folder
# takes its place only when it is complete. An interrupted run leaves no stamp, and the next one starts anew.
unpack() {
    local name=$1 new=$scratch/new-$1 version
    version=$(file_version "$2")
    if ! version_ge "$version" "$3"; then
        echo "$name $version is too old" >>"$log"
        return 1
    fi
    rm -rf "$new" && mkdir "$new" && "${@:4}" "$new" >>"$log" 2>&1 || return
    rm -f "$deps/$name.stamp" && rm -rf "${deps:?}/$name" && mv "$new" "$deps/$name" &&
        echo "$version" >"$scratch/stamp" && mv "$scratch/stamp" "$deps/$name.stamp"
}

fetch_from() {
    local name
    download_from "$1" "$2" || return
    for name in "${wanted[@]}"; do
        "unpack_$name" "$scratch/$2" && "private_has_$name" || return
    done
}

elsewhere="Highway $highway_min and xsimd $xsimd_min (or newer) are needed: install them so that pkg-config finds them, or set ETALON_HIGHWAY_SOURCE_DIR and ETALON_XSIMD_INCLUDE_DIR."

# The system's own suite is tried too: its packages may be new enough where we may not install them.
fetch_wanted() {
    local suite own all
    has_apt || die "$elsewhere"
    read -ra all <<<"$(suites)"
    ((${#all[@]} > 0)) || die "no later release is known for this system. $elsewhere"
    own=${all[0]}
    if known_too_old; then all=("${all[@]:1}"); fi
    say "fetching ${wanted[*]} into $deps"
    log=${log:-$(mktemp)}
    # On the same disk as its goal, so that a rename is one step.
    scratch=$(mktemp -d "$deps/.new.XXXXXX")
    for suite in "${all[@]}"; do
        if fetch_from "$own" "$suite"; then
            rm -rf "$scratch"
            return
        fi
    done
    fail_with_log "could not get ${wanted[*]} from ${all[*]}; the last lines of the last attempt are above. $elsewhere"
}

# Is something wanted, for certain, not in the system's own suite? (With empty lists nothing is certain.)
known_too_old() {
    local name v
    for name in "${wanted[@]}"; do
        case $name in
            highway) v=$(offered libhwy-dev) && [[ $v ]] && ! version_ge "$v" "$highway_min" && return ;;
            xsimd) v=$(offered libxsimd-dev) && [[ $v ]] && ! version_ge "$v" "$xsimd_min" && return ;;
        esac
    done
    return 1
}

# Two runs may share the folder: the second waits, and then finds everything there.
fetch_private() {
    local name still=()
    if ((${#wanted[@]} == 0)); then return; fi
    mkdir -p "$deps" 2>/dev/null || true
    [[ -w $deps ]] || die "cannot write to $deps; ETALON_DEPS_DIR chooses another folder"
    if command -v flock >/dev/null; then
        exec 9>"$deps/.lock"
        flock 9
        rm -rf "$deps"/.new.*  # of runs that were killed; nobody else is here now
    fi
    for name in "${wanted[@]}"; do
        if lacks "$name"; then still+=("$name"); fi
    done
    wanted=("${still[@]}")
    if ((${#wanted[@]} > 0)); then fetch_wanted; fi
}

cmake_lines() {
    local where
    if user_has_highway; then where=$(cd "$ETALON_HIGHWAY_SOURCE_DIR" && pwd); elif system_has_highway; then where=; else where=$deps/highway; fi
    cmake_line ETALON_HIGHWAY_SOURCE_DIR "$where"
    if user_has_xsimd; then where=$(cd "$ETALON_XSIMD_INCLUDE_DIR" && pwd); elif system_has_xsimd; then where=; else where=$deps/xsimd/include; fi
    cmake_line ETALON_XSIMD_INCLUDE_DIR "$where"
}
# A bracket argument, since a path may have anything in it.
cmake_line() { [[ -z $2 ]] || printf 'set(%s [==[%s]==] CACHE PATH "")\n' "$1" "$2"; }

# Only when it changes: CMake configures anew each time the file is newer.
write_cmake_file() {
    if [[ -f $deps/deps.cmake && $(<"$deps/deps.cmake") == "$(cmake_lines)" ]]; then return; fi
    mkdir -p "$deps"
    cmake_lines >"$deps/deps.cmake.$$"
    mv "$deps/deps.cmake.$$" "$deps/deps.cmake"
}

# --- The whole -----------------------------------------------------------------------------------------

tier=${1:-demo}
case $tier in
    demo) need_tier() { need_demo; } ;;
    test) need_tier() { need_demo; need_test; } ;;
    dev) need_tier() { need_demo; need_test; need_dev; } ;;
    *) die "usage: ${0##*/} [demo|test|dev]" ;;
esac
if [[ $deps != /* ]]; then deps=$PWD/$deps; fi

wanted=()
need_tier
need_new highway libhwy-dev "$highway_min"
need_new xsimd libxsimd-dev "$xsimd_min"
if ((${#missing[@]} > 0)); then
    install_missing
    check_missing
fi
fetch_private
for name in highway xsimd; do
    if lacks "$name"; then die "$name was installed, but pkg-config does not find it. $elsewhere"; fi
done
write_cmake_file
